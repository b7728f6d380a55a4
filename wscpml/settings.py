"""The one module that knows params.yaml: typed, validated, one line per mistake.

`python -m wscpml.settings` checks the file and says nothing if it is right. So are the files
models/NAME/params.yaml, the parameters of the methods to compare with. What is loaded are the
settings that count: short names are spelled out, and one that changes nothing beside the others is
as if it had not been touched.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from wscpml import stopping

if __name__ == "__main__":
    stopping.install()

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from wscpml import blocks, yaml_files
from wscpml.arrays import EVEN_ODDS
from wscpml.datasets.columns import Role
from wscpml.datasets.files import OWN
from wscpml.datasets.noise import Kind
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.errors import UserError
from wscpml.methods import METHODS, method
from wscpml.parameters import (
    STRICT,
    Address,
    ClassifierSettings,
    ClusteringSettings,
    Count,
    Device,
    FeatureSettings,
    Float,
    Int,
    Memory,
    Mistake,
    Seed,
    Share,
    WeakSupervisionSettings,
    check,
    parameters_of,
)


def _known_name(value: str) -> str:
    if value not in REGISTRY and value not in BENCHMARKS:
        raise ValueError(f"must be one of {', '.join(REGISTRY)}, or of {', '.join(BENCHMARKS)}")
    return value


def _known_method(value: str) -> str:
    if value not in METHODS:
        raise ValueError(f"must be one of {', '.join(METHODS)}")
    return value


def _watched(directory: Path) -> AfterValidator:
    """DVC sees a change of a file only if the pipeline names its directory."""

    def watched(value: Path) -> Path:
        if directory not in Path(os.path.normpath(value)).parents:
            raise ValueError(f"must be in {directory}/, which DVC watches")
        return value

    return AfterValidator(watched)


MOST_TEXT = 200_000  # bytes of a file of settings
LOADED = Path("metrics/settings.json")
DECISIONS = Path("data/decisions")
OF_WSC_PML = ("device", "features", "weak_supervision", "clustering", "classifier")
OWN_FILES = ("features", "candidates", "truth", "id", "tags", "label_count", "show")

OwnPath = Annotated[Path, _watched(OWN)]
DecisionsPath = Annotated[Path, _watched(DECISIONS)]


class Section(BaseModel):
    """A part of params.yaml: every key is there, and no other."""

    model_config = STRICT


S = TypeVar("S", bound=Section)


class DatasetSettings(Section):
    """Which data: a named set, or files of one's own."""

    name: Annotated[str, AfterValidator(_known_name)] | None = None
    features: OwnPath | None = None
    candidates: OwnPath | None = None
    truth: OwnPath | None = None
    id: str | None = None
    tags: str | None = None
    separator: Annotated[str, Field(min_length=1)] | None = None
    merge_variants: bool = False
    min_count: Count = 1
    complete: bool = True
    label_count: Count | None = None
    columns: dict[str, Role] = Field(default_factory=dict)
    show: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        own = [key for key in OWN_FILES if getattr(self, key)]
        if self.name is None and self.features is None:
            raise ValueError("give the name of a data set, or features of your own")
        if self.name is not None and own:
            raise ValueError(f"{own[0]} is for files of your own; set name to null to use them")
        return self

    @property
    def title(self) -> str:
        """What to call the data set."""
        return title(self.name, self.features)


class SplitSettings(Section):
    """Which rows are held out for the test."""

    folds: Annotated[Int, Field(ge=2)] | None  # None: no fold is held out
    fold: Annotated[Int, Field(ge=0)] | None

    @field_validator("fold")
    @classmethod
    def _one_of_the_folds(cls, fold: int | None, info: ValidationInfo) -> int | None:
        if fold is None or "folds" not in info.data:
            return fold
        folds = info.data["folds"]
        if folds is None:
            raise ValueError("split.folds says of how many, and is null")
        if fold >= folds:
            raise ValueError(f"must be < split.folds = {folds}")
        return fold


class NoiseSettings(Section):
    """How candidates are made of true labels."""

    kind: Kind
    candidates: Count | None  # of pad alone
    rate: Share | None  # of all others
    missing: Annotated[Float, Field(ge=0, lt=1)]

    @field_validator("rate")
    @classmethod
    def _there_unless_padded(cls, rate: float | None, info: ValidationInfo) -> float | None:
        if rate is None and info.data.get("kind", "pad") != "pad":
            raise ValueError(f"must be a number, for noise.kind is {info.data['kind']}")
        return rate


class ReviewSettings(Section):
    """What people have decided."""

    decisions: DecisionsPath | None


class EvaluationSettings(Section):
    """From probabilities to predicted labels."""

    threshold: Share


class TrackingSettings(Section):
    """Where the run is filed, and its model registered."""

    experiment: Annotated[str, Field(min_length=1)]
    register_as: Annotated[str, Field(min_length=1)] | None


class Settings(Section):
    """The whole of params.yaml."""

    method: Annotated[str, AfterValidator(_known_method)]
    seed: Seed
    device: Device
    memory: Memory
    scheduler: Address | None
    checkpoint: Address | None
    dataset: DatasetSettings
    split: SplitSettings
    noise: NoiseSettings
    review: ReviewSettings
    features: FeatureSettings
    weak_supervision: WeakSupervisionSettings
    clustering: ClusteringSettings
    classifier: ClassifierSettings
    evaluation: EvaluationSettings
    tracking: TrackingSettings

    @property
    def has_stages(self) -> bool:
        """Whether the method is fitted by stages of its own."""
        return has_stages(self.method)


def title(name: str | None, features: Path | None) -> str:
    """What to call a data set."""
    return name or str(features)


def has_stages(method: str) -> bool:
    """Whether a method is fitted by stages of its own."""
    return method == "wsc-pml"


class EstimatorSettings(Section):
    """What of params.yaml is for the estimator WSCPML."""

    seed: Seed = 0
    device: Device = "auto"
    memory: Memory = blocks.AUTO
    scheduler: Address | None = None
    checkpoint: Address | None = None
    features: FeatureSettings = Field(default_factory=FeatureSettings)
    weak_supervision: WeakSupervisionSettings = Field(default_factory=WeakSupervisionSettings)
    clustering: ClusteringSettings = Field(default_factory=ClusteringSettings)
    classifier: ClassifierSettings = Field(default_factory=ClassifierSettings)


def load(path: Path = Path("params.yaml")) -> Settings:
    """Read and check the settings; all mistakes come in one UserError, a line each."""
    return _that_count(_spelled_out(checked(path, Settings)))


def loaded() -> Settings:
    """The settings as `load` gave them to the stage `identify`: DVC compares these."""
    return checked(LOADED, Settings)


def parameters(name: str) -> dict[str, Any]:
    """Read and check the parameters of a method to compare with."""
    path = Path("models", name, "params.yaml")
    allowed: type[BaseModel] = parameters_of(method(name))  # type: ignore[arg-type]
    return check(allowed, _yaml(path), lambda mistake: mistake.in_file(path)).model_dump()


def for_estimator(path: Path | None, changes: Sequence[str]) -> dict[str, Any]:
    """Parameters of WSCPML: its defaults, those of a params.yaml, and changes as SECTION.KEY=VALUE.

    The seed is its `random_state`.
    """
    content: dict[str, Any] = {}
    complete = True
    if path:
        found = _yaml(path)
        if not isinstance(found, dict):
            raise UserError(f"{path}: must have sections with keys of their own")
        content = {name: found[name] for name in EstimatorSettings.model_fields if name in found}
        data = found.get("dataset")
        complete = data.get("complete", True) if isinstance(data, dict) else True
    known = EstimatorSettings.model_fields
    sections = [name for name, field in known.items() if _is_section(field)]
    changed = {}
    for change in changes:
        where, given, value = change.partition("=")
        section, _, key = where.rpartition(".")
        if not given or section not in ("", *sections) or not (section or key in known):
            raise UserError(
                f"--set {change}: must be KEY=VALUE, with a key such as classifier.kind; known are "
                f"{', '.join(known)}"
            )
        place = content.setdefault(section, {}) if section else content
        if not isinstance(place, dict):
            raise UserError(f"--set {change}: {section} is no section in {path or 'the defaults'}")
        place[key] = _parsed(value, f"--set {change}")
        changed[where] = change

    def words(mistake: Mistake) -> str:
        if mistake.where in changed:
            return f"--set {changed[mistake.where]}: {mistake.problem}"
        return mistake.in_file(path)

    chosen = check(EstimatorSettings, content, words).model_dump()
    values = {
        "random_state": chosen.pop("seed"),
        **{name: chosen.pop(name) for name in ("device", "memory", "scheduler", "checkpoint")},
        "complete": complete,
    }
    for section in chosen.values():
        values |= section
    return values


def _is_section(field: Any) -> bool:
    return is_dataclass(field.annotation)


def checked(path: Path, kind: type[S]) -> S:
    """Read a file of settings of some kind; all mistakes come in one UserError, a line each."""
    content = _yaml(path)
    lines = [Mistake(where, "is missing").in_file(path) for where in _left_out(content, kind)]
    try:
        found = check(kind, content, lambda mistake: mistake.in_file(path))
    except UserError as mistakes:
        lines += mistakes.args
    if lines:
        raise UserError(*lines)
    return found


def _left_out(content: Any, kind: type[S]) -> list[str]:
    """Keys that a file must have though they have a default: what DVC sees must be all there is."""
    found = []
    for name, section in kind.model_fields.items():
        there = content.get(name) if isinstance(content, dict) else None
        if isinstance(there, dict) and _is_section(section):
            found += [f"{name}.{f.name}" for f in fields(section.annotation) if f.name not in there]  # type: ignore[arg-type]
    return found


def _yaml(path: Path) -> Any:
    try:
        return _parsed(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise UserError(f"{path}: is missing; run from the project's root") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def _parsed(text: str | bytes, source: str) -> Any:
    if len(text) > MOST_TEXT:
        raise UserError(f"{source}: is larger than settings are, {MOST_TEXT:,} bytes at most")
    try:
        return yaml_files.parsed(text)
    except ValueError as error:
        raise UserError(f"{source}: is not valid YAML: {error}") from None


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


def _that_count(settings: Settings) -> Settings:
    """The same, without what changes nothing beside the other settings."""
    dataset, split, noise = settings.dataset, settings.split, settings.noise
    changes: dict[str, Any] = {}
    if dataset.name:
        dataset = DatasetSettings(name=dataset.name, complete=dataset.complete)
    if split.fold is None:
        split = split.model_copy(update={"folds": None})
    if not dataset.name or REGISTRY[dataset.name].average_candidates is not None:
        noise = NoiseSettings(kind="pad", candidates=None, rate=None, missing=0)
    else:
        unused = "rate" if noise.kind == "pad" else "candidates"
        noise = noise.model_copy(update={unused: None})
    if settings.has_stages:
        if settings.features.kernel == "none":
            changes["features"] = FeatureSettings(scaling=settings.features.scaling, kernel="none")
        if settings.classifier.kind == "kernel_ridge":
            labels = settings.classifier.labels
            changes["classifier"] = ClassifierSettings(kind="kernel_ridge", labels=labels)
    else:
        dataset = dataset.model_copy(update={"complete": True})
        default = EstimatorSettings()
        changes = {name: getattr(default, name) for name in OF_WSC_PML}
        changes["tracking"] = settings.tracking.model_copy(update={"register_as": None})
        if method(settings.method).OWN_RULE:
            changes["evaluation"] = EvaluationSettings(threshold=EVEN_ODDS)
    return settings.model_copy(
        update={"dataset": dataset, "split": split, "noise": noise} | changes
    )


if __name__ == "__main__":
    try:
        chosen = load()
        if not chosen.has_stages:
            parameters(chosen.method)
    except UserError as mistake:
        sys.exit(str(mistake))
