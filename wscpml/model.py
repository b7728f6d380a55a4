"""A trained model: everything that stands between raw features and label probabilities."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wscpml.arrays import Array, Matrix
from wscpml.classifier import Network
from wscpml.features import FeatureMap


@dataclass(frozen=True)
class Model:
    """The fitted feature map and the networks behind it, with the names of both ends."""

    FILES = ("weights.safetensors", "names.json")

    feature_map: FeatureMap
    network: Network
    feature_names: list[str]
    label_names: list[str]

    def predict_proba(self, X: Matrix) -> Array:
        """Probability of each label for raw features ``(n, d)``, ``(n, q)``."""
        return self.network.predict_proba(self.feature_map(X))

    def to_files(self) -> dict[str, Any]:
        """Contents of the model's directory, by file name."""
        weights = {f"feature_map.{k}": v for k, v in self.feature_map.to_arrays().items()}
        weights |= {f"network.{k}": v for k, v in asdict(self.network).items()}
        names = {"features": self.feature_names, "labels": self.label_names}
        return dict(zip(self.FILES, (weights, names), strict=True))

    @classmethod
    def from_files(cls, files: Mapping[str, Any]) -> "Model":
        """The model whose directory has these contents."""
        parts: dict[str, dict[str, Array]] = {"feature_map": {}, "network": {}}
        weights, names = (files[name] for name in cls.FILES)
        for name, array in weights.items():
            part, _, field = name.partition(".")
            parts[part][field] = array
        return cls(
            FeatureMap.from_arrays(parts["feature_map"]),
            Network(**parts["network"]),
            names["features"],
            names["labels"],
        )
