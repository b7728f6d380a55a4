"""WSC-PML with the scaling and kernel of its authors' group: the paper does not say its own."""

from dataclasses import dataclass
from typing import Literal

from wscpml.methods.wsc_pml import AsPrinted
from wscpml.parameters import Positive


@dataclass(kw_only=True, eq=False, repr=False)
class GroupFeatures(AsPrinted):
    """Min-max scaling and a Gaussian kernel, as in the group's published code for sibling papers.

    Scaling, kernel and bandwidth are theirs. How many anchors there are, the principal axes of the
    kernel map and the clustering of scaled, not mapped, features stay ours. So does one way for all
    data sets: one of their programs skips the kernel on birds, and some have none.
    """

    TITLE = "WSC-PML, group's features"
    SOURCE = "WSC-PML on the features of the group's code for sibling papers"

    scaling: Literal["quantile", "minmax", "zscore", "none"] = "minmax"
    kernel: Literal["laplace", "rbf", "none"] = "rbf"
    bandwidth: Positive = 2.0
