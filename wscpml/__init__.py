"""Partial multi-label learning by weakly-supervised clustering (WSC-PML).

Rows are instances everywhere: features ``X`` are ``(n, d)``, candidates ``Y`` are 0/1 ``(n, q)``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wscpml.estimator import WSCPML

__all__ = ["WSCPML"]


def __getattr__(name: str) -> Any:
    """Import the estimator once it is asked for, so that commands start in a blink."""
    if name == "WSCPML":
        from wscpml.estimator import WSCPML

        return WSCPML
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
