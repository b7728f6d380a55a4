"""A trained model: everything that stands between raw features and label probabilities."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from wscpml.arrays import Array, Matrix, unsqueezed
from wscpml.classifier import Network
from wscpml.features import FeatureMap
from wscpml.ridge import Ridge

Head = Network | Ridge
HEADS: dict[str, type[Head]] = {"network": Network, "kernel_ridge": Ridge}


@dataclass(frozen=True)
class Model:
    """The fitted feature map and the classifier behind it, with the names of both ends."""

    FILES = ("weights.safetensors", "names.json")

    feature_map: FeatureMap
    head: Head
    feature_names: list[str]
    label_names: list[str]

    def predict_proba(self, X: Matrix) -> Array:
        """Probability of each label for raw features ``(n, d)``, ``(n, q)``."""
        return self.head.predict_proba(self.feature_map(X))

    def to_files(self) -> dict[str, Any]:
        """Contents of the model's directory, by file name."""
        weights = {f"feature_map.{k}": v for k, v in self.feature_map.to_arrays().items()}
        weights |= {f"head.{k}": v for k, v in asdict(self.head).items()}
        kind = next(name for name, head in HEADS.items() if isinstance(self.head, head))
        names = {"kind": kind, "features": self.feature_names, "labels": self.label_names}
        return dict(zip(self.FILES, (weights, names), strict=True))

    @classmethod
    def from_files(cls, files: Mapping[str, Any]) -> "Model":
        """The model whose directory has these contents."""
        weights, names = (files[name] for name in cls.FILES)
        parts: dict[str, dict[str, Array]] = {"feature_map": {}, "head": {}}
        for name, array in weights.items():
            part, _, field = name.partition(".")
            parts[part][field] = array
        return cls(
            FeatureMap.from_arrays(parts["feature_map"]),
            HEADS[names["kind"]](**parts["head"]),
            names["features"],
            names["labels"],
        )


def with_even_odds_at(probability: float, head: Head) -> Head:
    """The same classifier, its probabilities shifted so that this one becomes a half."""
    if isinstance(head, Ridge):
        return replace(head, bias=head.bias + 0.5 - unsqueezed(np.array(probability)))
    shift = np.float32(np.log(probability / (1 - probability)))
    return replace(head, output_bias=head.output_bias - shift)
