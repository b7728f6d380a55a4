"""A trained model: everything that stands between raw features and label probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from wscpml import artifacts
from wscpml.algorithm.composition import Head
from wscpml.algorithm.features import FeatureMap
from wscpml.algorithm.network import Network
from wscpml.algorithm.ridge import Ridge
from wscpml.arrays import Array, Matrix
from wscpml.datasets.encoding import Encoding
from wscpml.datasets.files import digest
from wscpml.errors import UserError

FORMAT = 1  # of the directory; another one, once models of this one could be read wrongly
MAKE_ONE = "`wscpml clean ... --model DIR` makes one, `dvc repro` that of the pipeline"
CHECKSUMS = "checksums.json"  # sha256 of each of the files
CHECKED = "checksums"  # in names.json, that there are some
ATTEMPTS = 3  # to read one that is being replaced
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
            _check_shapes(feature_map, head)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise ValueError("its weights are not those of a model") from None
        _refuse_not_finite(weights)
        for kind in ("features", "labels"):
            _check_names(names[kind], kind)
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


def save(
    directory: str | Path, model: Model, beside: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Write a model to a directory, in place of what was there, with the checksums of its files.

    `beside` is further content of the directory, by file name.
    """
    files = model.to_files() | dict(beside)
    files["names.json"][CHECKED] = True
    with artifacts.new_directory(directory) as place:
        for name, content in files.items():
            artifacts.write_part(place, directory, name, content)
        sums = {file.name: digest(file) for file in sorted(place.iterdir())}
        artifacts.write_part(place, directory, CHECKSUMS, sums)


def load(directory: str | Path) -> Model:
    """The model in a directory; anything else there is a UserError."""
    directory = Path(directory)
    for _ in range(ATTEMPTS):  # it may be replaced by another while it is read
        before = _version(directory)
        try:
            found = _load(directory)
        except UserError:
            if _version(directory) == before:
                raise
        else:
            if _version(directory) == before:
                return found
    raise UserError(f"{directory}: was replaced each time while it was read; try again")


def _version(directory: Path) -> tuple[int, int] | None:
    """What tells a directory from the one that it was replaced by."""
    try:
        found = directory.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _load(directory: Path) -> Model:
    files = artifacts.read_directory(directory, Model.FILES, MAKE_ONE)
    names = files["names.json"]
    about = names if isinstance(names, dict) else {}
    if about.get("encoded"):
        files |= artifacts.read_directory(directory, Model.MAY_HAVE, MAKE_ONE)
    if about.get(CHECKED) or (directory / CHECKSUMS).exists():  # models of before had none
        _check(directory, list(files))
    try:
        return Model.from_files(files)
    except ValueError as error:
        raise UserError(f"{directory}: is no model to use: {error}; {MAKE_ONE}") from None


def _check(directory: Path, names: Sequence[str]) -> None:
    """Compare files with their checksums."""
    sums = artifacts.read(directory / CHECKSUMS, way_out=MAKE_ONE)
    for name in names:
        known = sums.get(name) if isinstance(sums, dict) else None
        if digest(directory / name) != known:
            raise UserError(
                f"{directory / name}: is damaged, or of another model: it is not what {CHECKSUMS} "
                f"says; {MAKE_ONE}"
            )


def refuse_to_replace(directory: Path) -> None:
    """A directory is replaced as a whole: not one that holds anything but a model."""
    if not directory.exists():
        return
    ours = {*Model.FILES, *Model.MAY_HAVE, CHECKSUMS}
    if not directory.is_dir() or {file.name for file in directory.iterdir()} - ours:
        raise UserError(f"{directory}: is there, and is not just a model; name a new directory")


def _check_shapes(feature_map: FeatureMap, head: Head) -> None:
    """A ValueError unless all weights fit each other."""
    d, (m, _) = len(feature_map.gain), feature_map.anchors.shape
    shapes: list[tuple[Any, tuple[int, ...]]] = [
        (feature_map.levels, (len(feature_map.levels), d)),
        (feature_map.offset, (d,)),
        (feature_map.gain, (d,)),
        (feature_map.anchors, (m, d)),
        (feature_map.bandwidth.ravel(), (1,)),
        (feature_map.exponent.ravel(), (1,)),
    ]
    if m:
        shapes += [(feature_map.centre, (m,)), (feature_map.whitening, (m, feature_map.size))]
    if isinstance(head, Ridge):
        shapes += [(head.weight, (feature_map.size, len(head.bias))), (head.bias, head.bias.shape)]
    else:
        assert isinstance(head, Network)
        q, width = head.output_weight.shape
        shapes += [
            (head.hidden_weight, (feature_map.size, q * width)),
            (head.hidden_bias, (q * width,)),
            (head.output_bias, (q,)),
        ]
    if any(array.shape != shape for array, shape in shapes):
        raise ValueError


def _refuse_not_finite(weights: Mapping[str, Array]) -> None:
    for name, array in weights.items():
        if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise ValueError(f"its weight {name} has values that are no numbers")


def _check_names(names: Any, kind: str) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"its {kind} are not named")
    if len(set(names)) < len(names):
        raise ValueError(f"two of its {kind} have one name")


def _outputs(head: Head) -> int:
    return len(head.bias if isinstance(head, Ridge) else head.output_bias)
