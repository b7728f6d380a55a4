"""All methods, behind one interface (base.py), by name."""

from importlib import import_module
from typing import TYPE_CHECKING

from wscpml.errors import UserError

if TYPE_CHECKING:
    from wscpml.baselines.base import Method

METHODS = {  # module and class, imported once asked for
    "wsc-pml": "printed:AsPrinted",
    "pml-ni": "baselines.pml_ni:PMLNI",
    "nlr": "baselines.nlr:NLR",
    "pml-lenfn": "baselines.pml_lenfn:PMLLENFN",
    "pamb": "baselines.pamb:PAMB",
    "pml-fp": "baselines.pml_fp:PMLfp",
    "fbd": "baselines.fbd:FBD",
    "br": "baselines.br:BR",
    "krr-c": "baselines.ridge:KernelRidge",
    "rf-c": "baselines.forest:Forest",
    "ml-knn": "baselines.ml_knn:MLkNN",
    "oracle": "baselines.br:Oracle",
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
    return getattr(import_module(f"wscpml.{module}"), kind)
