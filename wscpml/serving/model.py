"""A trained model: everything that stands between raw features and label probabilities."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wscpml import artifacts
from wscpml.algorithm.composition import Head
from wscpml.algorithm.features import FeatureMap
from wscpml.algorithm.network import Network
from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import Array, Matrix
from wscpml.datasets.encoding import Encoding
from wscpml.errors import UserError

FORMAT = 1  # of the directory; another one, once models of this one could be read wrongly
MAKE_ONE = "`wscpml clean ... --model DIR` makes one, `dvc repro` that of the pipeline"
HEADS: dict[str, type[Head]] = {"network": Network, "kernel_ridge": Ridge}


@dataclass(frozen=True)
class Model:
    """The fitted feature map and the classifier behind it, with the names of both ends."""

    FILES = ("weights.safetensors", "names.json")
    MAY_HAVE = Encoding.FILES

    feature_map: FeatureMap
    head: Head
    feature_names: list[str]
    label_names: list[str]
    encoding: Encoding | None = None  # of raw columns; None: they are the features

    @property
    def columns(self) -> list[str]:
        """The columns that a table to predict from must have."""
        return self.encoding.columns if self.encoding else self.feature_names

    def predict_proba(self, X: Matrix) -> Array:
        """Probability of each label for raw features ``(n, d)``, ``(n, q)``."""
        return self.head.predict_proba(self.feature_map(X))

    def to_files(self) -> dict[str, Any]:
        """Contents of the model's directory, by file name."""
        weights = {f"feature_map.{k}": v for k, v in self.feature_map.to_arrays().items()}
        weights |= {f"head.{k}": v for k, v in asdict(self.head).items()}
        kind = next(name for name, head in HEADS.items() if isinstance(self.head, head))
        names = {
            "format": FORMAT,
            "kind": kind,
            "features": self.feature_names,
            "labels": self.label_names,
        }
        if self.encoding is None:
            return dict(zip(self.FILES, (weights, names), strict=True))
        names["encoded"] = True
        return dict(zip(self.FILES, (weights, names), strict=True)) | self.encoding.to_files()

    @classmethod
    def from_files(cls, files: Mapping[str, Any]) -> "Model":
        """The model whose directory has these contents; a ValueError says why they are none."""
        weights, names = (files[name] for name in cls.FILES)
        if not isinstance(names, dict) or not {"kind", "features", "labels"} <= names.keys():
            raise ValueError("names.json is not that of a model")
        if (found := names.get("format")) != FORMAT:
            told = "none" if found is None else repr(found)
            raise ValueError(f"its format is {told}, and this version of wscpml reads {FORMAT}")
        parts: dict[str, dict[str, Array]] = {"feature_map": {}, "head": {}}
        try:
            for name, array in weights.items():
                part, _, field = name.partition(".")
                parts[part][field] = array
            feature_map = FeatureMap.from_arrays(parts["feature_map"])
            head = HEADS[names["kind"]](**parts["head"])
        except (KeyError, TypeError, ValueError):
            raise ValueError("its weights are not those of a model") from None
        encoding = Encoding.from_files(files) if names.get("encoded") else None
        model = cls(feature_map, head, names["features"], names["labels"], encoding)
        if (len(feature_map.gain), _outputs(head)) != (
            len(model.feature_names),
            len(model.label_names),
        ):
            raise ValueError("its names and its weights are of different models")
        if encoding and encoding.names != model.feature_names:
            raise ValueError("its names and its encoding of columns are of different models")
        return model


def load(directory: str | Path) -> Model:
    """The model in a directory; anything else there is a UserError."""
    files = artifacts.read_directory(directory, Model.FILES, MAKE_ONE)
    names = files["names.json"]
    if isinstance(names, dict) and names.get("encoded"):
        files |= artifacts.read_directory(directory, Model.MAY_HAVE, MAKE_ONE)
    try:
        return Model.from_files(files)
    except ValueError as error:
        raise UserError(f"{directory}: is no model to use: {error}; {MAKE_ONE}") from None


def refuse_to_replace(directory: Path) -> None:
    """A directory is replaced as a whole: not one that holds anything but a model."""
    if not directory.exists():
        return
    ours = {*Model.FILES, *Model.MAY_HAVE}
    if not directory.is_dir() or {file.name for file in directory.iterdir()} - ours:
        raise UserError(f"{directory}: is there, and is not just a model; name a new directory")


def _outputs(head: Head) -> int:
    return len(head.bias if isinstance(head, Ridge) else head.output_bias)
