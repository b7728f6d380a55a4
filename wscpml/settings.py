"""The one module that knows params.yaml: typed, validated, one line per mistake.

`python -m wscpml.settings` checks the file and says nothing if it is right. So are the files
models/NAME/params.yaml, the parameters of the methods to compare with.
"""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_type_hints

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from wscpml.datasets.files import OWN
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.errors import UserError
from wscpml.methods import METHODS, method


def _not_a_switch(value: object) -> object:
    """YAML reads `yes` as True, and True would pass for 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _known_name(value: str) -> str:
    if value not in REGISTRY and value not in BENCHMARKS:
        raise ValueError(f"must be one of {', '.join(REGISTRY)}, or of {', '.join(BENCHMARKS)}")
    return value


def _known_method(value: str) -> str:
    if value not in METHODS:
        raise ValueError(f"must be one of {', '.join(METHODS)}")
    return value


def _watched(value: Path) -> Path:
    """DVC sees a change of a file only if the pipeline names its directory."""
    if OWN not in Path(os.path.normpath(value)).parents:
        raise ValueError(f"must be in {OWN}/, which DVC watches")
    return value


def _adaptive_or_share(value: Any) -> Literal["adaptive"] | float:
    if value == "adaptive":
        return "adaptive"
    try:
        share = float(_not_a_switch(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise ValueError("must be `adaptive` or a number from 0 to 1")
    return share


OWN_FILES = ("features", "candidates", "truth", "id", "tags", "label_count")

OwnPath = Annotated[Path, AfterValidator(_watched)]
Float = Annotated[float, BeforeValidator(_not_a_switch)]
Int = Annotated[int, BeforeValidator(_not_a_switch)]
Positive = Annotated[Float, Field(gt=0)]
Weight = Annotated[Float, Field(gt=0, le=1e9)]
Count = Annotated[Int, Field(ge=1)]


class Section(BaseModel):
    """A part of params.yaml: every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


S = TypeVar("S", bound=Section)


class DatasetSettings(Section):
    """Which data: a named set, or files of one's own."""

    name: Annotated[str, AfterValidator(_known_name)] | None = None
    features: OwnPath | None = None
    candidates: OwnPath | None = None
    truth: OwnPath | None = None
    id: str | None = None
    tags: str | None = None
    separator: Annotated[str, Field(min_length=1)] = ";"
    label_count: Count | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        own = [key for key in OWN_FILES if getattr(self, key) is not None]
        if self.name is None and self.features is None:
            raise ValueError("give the name of a data set, or features of your own")
        if self.name is not None and own:
            raise ValueError(f"{own[0]} is for files of your own; set name to null to use them")
        return self

    @property
    def title(self) -> str:
        """What to call the data set."""
        return self.name or str(self.features)


class SplitSettings(Section):
    """Which rows are held out for the test."""

    folds: Annotated[Int, Field(ge=2)]
    fold: Annotated[Int, Field(ge=0)] | None

    @field_validator("fold")
    @classmethod
    def _one_of_the_folds(cls, fold: int | None, info: ValidationInfo) -> int | None:
        folds = info.data.get("folds")
        if folds is not None and fold is not None and fold >= folds:
            raise ValueError(f"must be < split.folds = {folds}")
        return fold


class NoiseSettings(Section):
    """How candidates are made of true labels."""

    kind: Literal["pad", "uniform", "label_dependent", "instance_dependent"]
    candidates: Count | None
    rate: Annotated[Float, Field(gt=0, lt=1)]


class FeatureSettings(Section):
    """Scaling and kernel map."""

    scaling: Literal["quantile", "minmax", "zscore", "none"]
    kernel: Literal["laplace", "rbf", "none"]
    anchors_per_feature: Count
    bandwidth: Positive
    energy: Annotated[Float, Field(gt=0, le=1)]


class ConfidenceSettings(Section):
    """Weak supervision, Eqs. 4-5."""

    theta: Annotated[Literal["adaptive"] | float, PlainValidator(_adaptive_or_share)]


class ClusteringSettings(Section):
    """Weakly-supervised clustering, Eq. 10."""

    alpha: Weight
    beta: Weight
    rule: Literal["paper", "constrained"]
    max_iterations: Count
    tolerance: Positive


class ClassifierSettings(Section):
    """Which classifier, and the training of the networks of Eq. 11."""

    kind: Literal["network", "kernel_ridge"]
    labels: Literal["printed", "cleaned"]
    width: Count
    learning_rate: Positive
    weight_decay: Annotated[Float, Field(ge=0)]
    batch_size: Count
    max_epochs: Count
    patience: Count
    validation_share: Annotated[Float, Field(gt=0, lt=1)]


class EvaluationSettings(Section):
    """From probabilities to predicted labels."""

    threshold: Annotated[Float, Field(gt=0, lt=1)]


class TrackingSettings(Section):
    """Where the run is filed, and its model registered."""

    experiment: Annotated[str, Field(min_length=1)]
    register_as: Annotated[str, Field(min_length=1)] | None


class Settings(Section):
    """The whole of params.yaml."""

    method: Annotated[str, AfterValidator(_known_method)]
    seed: Annotated[Int, Field(ge=0)]
    device: Literal["auto", "cpu", "cuda"]
    dataset: DatasetSettings
    split: SplitSettings
    noise: NoiseSettings
    features: FeatureSettings
    confidence: ConfidenceSettings
    clustering: ClusteringSettings
    classifier: ClassifierSettings
    evaluation: EvaluationSettings
    tracking: TrackingSettings

    @property
    def has_stages(self) -> bool:
        """Whether the method is fitted by stages of its own."""
        return self.method == "wsc-pml"


class EstimatorSettings(Section):
    """What of params.yaml is for the estimator WSCPML."""

    seed: Annotated[Int, Field(ge=0)]
    features: FeatureSettings
    confidence: ConfidenceSettings
    clustering: ClusteringSettings
    classifier: ClassifierSettings


def load(path: Path = Path("params.yaml")) -> Settings:
    """Read and check the settings; all mistakes come in one UserError, a line each."""
    return _spelled_out(checked(path, Settings))


def parameters(name: str) -> dict[str, Any]:
    """Read and check the parameters of a method to compare with.

    Those of the feature map and of the networks are as in params.yaml; any others are numbers that
    are not negative, counts from 1 on, and switches.
    """
    shared = FeatureSettings.model_fields | ClassifierSettings.model_fields
    ranges: dict[Any, Any] = {float: Annotated[Float, Field(ge=0)], int: Count}
    ranges[int | None] = Count | None
    fields: dict[str, Any] = {}
    for key, kind in get_type_hints(method(name).__init__).items():
        if key not in ("random_state", "return"):
            field = shared.get(key)
            fields[key] = (field.annotation, field) if field else (ranges.get(kind, kind), ...)
    section = create_model(name, __base__=Section, **fields)
    return checked(Path("models", name, "params.yaml"), section).model_dump()


def for_estimator(
    defaults: Mapping[str, Any], path: Path | None, changes: Sequence[str]
) -> dict[str, Any]:
    """Parameters of WSCPML: its defaults, those of a params.yaml, and changes as SECTION.KEY=VALUE.

    The seed is its `random_state`.
    """
    sections: dict[str, type[Section]] = {
        "features": FeatureSettings,
        "confidence": ConfidenceSettings,
        "clustering": ClusteringSettings,
        "classifier": ClassifierSettings,
    }
    content: dict[str, Any] = {"seed": 0} | {
        name: {key: defaults[key] for key in kind.model_fields} for name, kind in sections.items()
    }
    if path:
        found = _yaml(path)
        if not isinstance(found, dict):
            raise UserError(f"{path}: must have sections with keys of their own")
        content |= {name: found[name] for name in content if name in found}
    for change in changes:
        where, given, value = change.partition("=")
        section, _, key = where.rpartition(".")
        place = content.get(section) if section else content
        if not given or not isinstance(place, dict):
            raise UserError(
                f"{change}: must be KEY=VALUE, with a key such as classifier.kind; known are "
                f"{', '.join(content)}"
            )
        place[key] = _parsed(value, change)
    chosen = _valid(content, EstimatorSettings, str(path or "settings")).model_dump()
    parameters = {"random_state": chosen.pop("seed")}
    for section in chosen.values():
        parameters |= section
    return parameters


def checked(path: Path, kind: type[S]) -> S:
    """Read a file of settings of some kind; all mistakes come in one UserError, a line each."""
    return _valid(_yaml(path), kind, str(path))


def _yaml(path: Path) -> Any:
    try:
        return _parsed(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise UserError(f"{path}: is missing; run from the project's root") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def _parsed(text: str | bytes, source: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{source}: is not valid YAML: {reason}") from None


def _valid(content: Any, kind: type[S], source: str) -> S:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        lines = [_explain(mistake, kind) for mistake in error.errors()]
        raise UserError("\n".join(f"{source}: {line}" for line in lines)) from None


def _spelled_out(settings: Settings) -> Settings:
    """Short names and what they leave open: emotions-3 is emotions with 3 candidates."""
    name, noise = settings.dataset.name, settings.noise
    if name in BENCHMARKS:
        name, r = BENCHMARKS[name]
        noise = noise.model_copy(update={"kind": "pad", "candidates": r})
    elif name and noise.candidates is None and (levels := REGISTRY[name].levels):
        noise = noise.model_copy(update={"candidates": levels[len(levels) // 2]})
    dataset = settings.dataset.model_copy(update={"name": name})
    return settings.model_copy(update={"dataset": dataset, "noise": noise})


_WORDS = {
    "greater_than": "must be > {gt:g}",
    "greater_than_equal": "must be >= {ge:g}",
    "less_than": "must be < {lt:g}",
    "less_than_equal": "must be <= {le:g}",
    "finite_number": "must be a finite number",
    "literal_error": "must be {expected}",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "value_error": "{error}",
    "model_type": "must be a section with keys of its own",
    **dict.fromkeys(["int_type", "int_parsing", "int_from_float"], "must be a whole number"),
    **dict.fromkeys(["float_type", "float_parsing"], "must be a number"),
    **dict.fromkeys(["bool_type", "bool_parsing"], "must be true or false"),
}


def _explain(mistake: Any, kind: type[Section]) -> str:
    """Where, what, and what was found, as one line."""
    where = ".".join(map(str, mistake["loc"])) or "the file"
    if mistake["type"] == "missing":
        return f"{where}: is missing"
    if mistake["type"] == "extra_forbidden":
        section = kind.model_fields.get(str(mistake["loc"][0]))
        known = getattr(section and section.annotation, "model_fields", kind.model_fields)
        return f"{where}: unknown key; known here: {', '.join(known)}"
    words = _WORDS.get(mistake["type"])
    message = words.format(**mistake.get("ctx", {})) if words else mistake["msg"]
    found = mistake["input"]
    return f"{where}: {message}" + ("" if isinstance(found, dict) else f", got {_plain(found)!r}")


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


if __name__ == "__main__":
    try:
        chosen = load()
        if not chosen.has_stages:
            parameters(chosen.method)
    except UserError as mistake:
        sys.exit(str(mistake))
