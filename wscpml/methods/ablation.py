"""WSC-PML with a part of it removed, the paper's ablation; Full is WSC-PML itself."""

from wscpml.algorithm import undecomposed
from wscpml.algorithm.clustering import Clustering
from wscpml.arrays import Array, Matrix
from wscpml.methods.br import BR
from wscpml.methods.wsc_pml import AsPrinted

GRID = AsPrinted.GRID


class NC(BR):
    """No clustering: the network on the candidates as they are."""

    TITLE = "NC"
    SOURCE = "the paper's ablation: no clustering"


class ND(AsPrinted):
    """No decomposition: the memberships of Eq. 6 are the pseudo-labels; its lambda is `beta`."""

    TITLE = "ND"
    SOURCE = "the paper's ablation: no decomposition"
    GRID = {"beta": GRID["beta"]}

    def _cluster(self, scaled: Matrix, candidates: Array, B: Array) -> Clustering:
        return undecomposed.cluster(
            scaled, candidates, B, self.beta, self.max_iterations, self.tolerance
        )


class NWS(AsPrinted):
    """No weak supervision: Eq. 10 without its term in beta."""

    TITLE = "NWS"
    SOURCE = "the paper's ablation: no weak supervision"
    GRID = {"alpha": GRID["alpha"]}

    def _cluster(self, scaled: Matrix, candidates: Array, B: Array) -> Clustering:
        return super()._cluster(scaled, candidates, 0 * B)
