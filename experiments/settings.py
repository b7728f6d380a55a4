"""The study's own settings, experiments/params.yaml: typed and checked."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.methods import PLACES
from wscpml.parameters import Count, Int
from wscpml.settings import Section, checked

PATH = Path("experiments/params.yaml")
# The paper's 24: sets with candidates of their own, and clean ones padded to so many.
KNOWN = [name for name, entry in REGISTRY.items() if not entry.levels] + list(BENCHMARKS)


def _benchmark(value: str) -> str:
    if value not in KNOWN:
        raise ValueError(f"must be one of {', '.join(KNOWN)}")
    return value


def _method(value: str) -> str:
    if value not in PLACES:
        raise ValueError(f"must be one of {', '.join(PLACES)}")
    return value


class Part(Section):
    """A matrix of benchmarks and methods."""

    folds: Count
    benchmarks: list[Annotated[str, AfterValidator(_benchmark)]]
    methods: list[Annotated[str, AfterValidator(_method)]]


class Study(Section):
    """The whole of experiments/params.yaml."""

    seed: Annotated[Int, Field(ge=0)]
    folds: Annotated[Int, Field(ge=2)]
    experiment: Annotated[str, Field(min_length=1)]
    scheduler: Annotated[str, Field(min_length=1)] | None
    full: Part
    ablation: Part
    features: Part
    quick: Part

    @model_validator(mode="after")
    def _folds_are_there(self) -> "Study":
        for name in ("full", "ablation", "features", "quick"):
            held_out = getattr(self, name).folds
            if held_out > self.folds:
                raise ValueError(f"{name}.folds must be <= folds = {self.folds}, got {held_out}")
        return self


def load(path: Path = PATH) -> Study:
    """Read and check the study's settings."""
    return checked(path, Study)
