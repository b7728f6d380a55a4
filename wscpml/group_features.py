"""WSC-PML on the features of its authors' group: the paper does not say what it was measured on."""

from typing import Any

from wscpml.printed import AsPrinted


class GroupFeatures(AsPrinted):
    """Min-max scaling and a Gaussian kernel, as in the group's published code for sibling papers.

    That code skips the kernel on birds; here it is the same on every data set.
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
