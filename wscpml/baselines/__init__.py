"""The comparison methods, behind one interface (base.py), by name."""

from importlib import import_module
from typing import TYPE_CHECKING

from wscpml.errors import UserError

if TYPE_CHECKING:
    from wscpml.baselines.base import Method

METHODS = {  # module and class, imported once asked for
    "pml-ni": "pml_ni:PMLNI",
    "nlr": "nlr:NLR",
    "pml-lenfn": "pml_lenfn:PMLLENFN",
    "pamb": "pamb:PAMB",
    "pml-fp": "pml_fp:PMLfp",
    "fbd": "fbd:FBD",
    "br": "br:BR",
    "krr-c": "ridge:KernelRidge",
    "rf-c": "forest:Forest",
    "ml-knn": "ml_knn:MLkNN",
    "oracle": "br:Oracle",
}


def method(name: str) -> "type[Method]":
    """The class of that name."""
    if name not in METHODS:
        raise UserError(f"{name}: no such method; known are {', '.join(METHODS)}")
    module, _, kind = METHODS[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), kind)
