"""WSC-PML with the scaling and kernel of its authors' group: the paper does not say its own."""

from typing import Any

from wscpml.methods.wsc_pml import AsPrinted


class GroupFeatures(AsPrinted):
    """Min-max scaling and a Gaussian kernel, as in the group's published code for sibling papers.

    Scaling, kernel and bandwidth are theirs. How many anchors there are, the principal axes of the
    kernel map and the clustering of scaled, not mapped, features stay ours. So does one way for all
    data sets: one of their programs skips the kernel on birds, and some have none.
    """

    TITLE = "WSC-PML, group's features"
    SOURCE = "WSC-PML on the features of the group's code for sibling papers"

    def __init__(self, alpha: float = 10.0, beta: float = 10.0, random_state: Any = None) -> None:
        super().__init__(
            scaling="minmax",
            kernel="rbf",
            bandwidth=2.0,
            alpha=alpha,
            beta=beta,
            random_state=random_state,
        )
