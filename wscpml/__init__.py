"""Partial multi-label learning by weakly-supervised clustering (WSC-PML).

Rows are instances everywhere: features ``X`` are ``(n, d)``, candidates ``Y`` are 0/1 ``(n, q)``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wscpml.datasets.embeddings import embed
    from wscpml.estimator import WSCPML
    from wscpml.quality.given import label_confidence

__all__ = ["WSCPML", "embed", "label_confidence"]


def __getattr__(name: str) -> Any:
    """Import what is asked for once it is, so that commands start in a blink."""
    if name == "WSCPML":
        from wscpml.estimator import WSCPML

        return WSCPML
    if name == "label_confidence":
        from wscpml.quality.given import label_confidence

        return label_confidence
    if name == "embed":
        from wscpml.datasets.embeddings import embed

        return embed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
