"""All methods, behind one interface (base.py), by name."""

from importlib import import_module
from typing import TYPE_CHECKING

from wscpml.errors import UserError

if TYPE_CHECKING:
    from wscpml.methods.base import Method

METHODS = {  # module beside this one and class, imported once asked for
    "wsc-pml": "wsc_pml:AsPrinted",
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
ABLATIONS = {  # of WSC-PML
    "ablation-nc": "ablation:NC",
    "ablation-nd": "ablation:ND",
    "ablation-nws": "ablation:NWS",
}
OTHER_FEATURES = {"group-features": "group_features:GroupFeatures"}  # of WSC-PML
PLACES = METHODS | ABLATIONS | OTHER_FEATURES


def method(name: str) -> "type[Method]":
    """The class of that name."""
    if name not in PLACES:
        raise UserError(f"{name}: no such method; known are {', '.join(PLACES)}")
    module, _, kind = PLACES[name].partition(":")
    return getattr(import_module(f"wscpml.methods.{module}"), kind)
