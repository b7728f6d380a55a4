"""Every knob of the method: its default and what is allowed, once, for every door.

A door is where values come in: params.yaml, `--set` of the command, or the parameters of an
estimator. `check` gives the values back typed; mistakes are one UserError, a line for each, in the
words of the door.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    create_model,
)

from wscpml import blocks
from wscpml.errors import UserError

STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
LARGEST = 1e9  # of what is a factor in float32
NOTHING = object()  # of a mistake that is not about a value


def _plain_number(value: object) -> object:
    """YAML reads `yes` as True, and True would pass for 1; numpy's numbers are numbers too."""
    if isinstance(value, bool | np.bool_):
        raise ValueError("must be a number")
    return value.item() if isinstance(value, np.generic) else value


def _adaptive_or_share(value: Any) -> Literal["adaptive"] | float:
    if value == "adaptive":
        return "adaptive"
    try:
        share = float(_plain_number(value))  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise ValueError("must be `adaptive` or a number from 0 to 1")
    return share


def _not_tiny(value: float) -> float:
    """What float32 can divide by."""
    if value < 1 / LARGEST:
        raise ValueError(f"must be >= {1 / LARGEST:g}")
    return value


def _memory(value: Any) -> str | float:
    given: Any = _plain_number(value)
    blocks.budget(given)
    return given


Float = Annotated[float, BeforeValidator(_plain_number)]
Int = Annotated[int, BeforeValidator(_plain_number)]
NotNegative = Annotated[Float, Field(ge=0)]
Positive = Annotated[Float, Field(gt=0)]
Rate = Annotated[Float, Field(gt=0, le=LARGEST)]
Weight = Annotated[Rate, AfterValidator(_not_tiny)]
Share = Annotated[Float, Field(gt=0, lt=1)]
Count = Annotated[Int, Field(ge=1)]
Seed = Annotated[Int, Field(ge=0)]
Device = Literal["auto", "cpu", "cuda"]
Memory = Annotated[str | int | float, PlainValidator(_memory)]
Address = Annotated[str, Field(min_length=1)]
Labels = Literal["printed", "cleaned"]


@dataclass(kw_only=True, eq=False)
class FeatureSettings:
    """Scaling and kernel map; params.yaml explains each."""

    __pydantic_config__ = STRICT

    scaling: Literal["quantile", "minmax", "zscore", "none"] = "quantile"
    kernel: Literal["laplace", "rbf", "none"] = "laplace"
    anchors_per_feature: Count = 5
    bandwidth: Positive = 0.5
    energy: Annotated[Float, Field(gt=0, le=1)] = 0.999


@dataclass(kw_only=True, eq=False)
class WeakSupervisionSettings:
    """Weak supervision B, Eqs. 4-5."""

    __pydantic_config__ = STRICT

    theta: Annotated[Literal["adaptive"] | float, PlainValidator(_adaptive_or_share)] = "adaptive"


@dataclass(kw_only=True, eq=False)
class ClusteringSettings:
    """Weakly-supervised clustering, Eq. 10."""

    __pydantic_config__ = STRICT

    alpha: Weight = 10.0
    beta: Weight = 10.0
    rule: Literal["paper", "constrained"] = "paper"
    max_iterations: Count = 50
    tolerance: Positive = 0.001


@dataclass(kw_only=True, eq=False)
class NetworkSettings:
    """The training of the networks of Eq. 11."""

    __pydantic_config__ = STRICT

    width: Annotated[Count, Field(le=1000)] = 4
    learning_rate: Rate = 0.001
    weight_decay: NotNegative = 0.01
    batch_size: Count = 256
    max_epochs: Count = 20
    patience: Count = 2
    validation_share: Share = 0.1


@dataclass(kw_only=True, eq=False)
class ClassifierSettings(NetworkSettings):
    """Which classifier, what it learns, and the training if it is a network."""

    kind: Literal["network", "kernel_ridge"] = "network"
    labels: Labels = "cleaned"


T = TypeVar("T")


@dataclass(frozen=True)
class Mistake:
    """What is wrong with one value."""

    where: str  # name of the knob, with its sections
    problem: str  # and what is allowed
    found: Any = NOTHING

    def in_python(self) -> str:
        """In the words of an estimator's parameters."""
        given = "" if self.found is NOTHING else f"={self.found!r}"
        return f"{self.where}{given}: {self.problem}"

    def in_file(self, source: object) -> str:
        """In the words of a file of settings."""
        got = "" if self.found is NOTHING else f", got {self.found!r}"
        return f"{source}: {self.where}: {self.problem}{got}"


class ParameterError(UserError, ValueError):
    """A wrong value of an estimator's parameter, a ValueError as scikit-learn's users expect."""


def check(kind: type[T], values: Any, words: Callable[[Mistake], str]) -> T:
    """The values as that kind of settings, a dataclass or a pydantic model."""
    try:
        return _adapter(kind).validate_python(values)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [words(_mistake(found, kind)) for found in error.errors()]
        raise UserError(*lines) from None


def check_estimator(estimator: Any) -> None:
    """Refuse wrong values among the parameters of an estimator."""
    try:
        allowed = parameters_of(type(estimator))  # type: ignore[arg-type]
        values = estimator.get_params(deep=False)
        values.pop("random_state")
        allowed.model_validate(values, strict=True)
    except ValidationError as error:
        lines = [_mistake(found, type(estimator)).in_python() for found in error.errors()]
        raise ParameterError(*lines) from None


def part_of(estimator: Any, kind: type[T]) -> T:
    """Those parameters of an estimator that are settings of some kind, typed."""
    return kind(**{field.name: getattr(estimator, field.name) for field in fields(kind)})  # type: ignore[arg-type]


@cache
def parameters_of(kind: Any) -> type[BaseModel]:
    """What an estimator's signature says of its parameters.

    Where it names just a type, numbers are not negative and counts begin at 1.
    """
    ranges: dict[Any, Any] = {float: NotNegative, int: Count, int | None: Count | None}
    hints = get_type_hints(kind.__init__, include_extras=True)
    known: dict[str, Any] = {
        name: (ranges.get(hint, hint), ...)
        for name, hint in hints.items()
        if name not in ("return", "random_state")  # the latter is numpy's to check
    }
    return create_model(kind.__name__, __config__=STRICT, **known)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


WORDS = {
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
    "dataclass_type": "must be a section with keys of its own",
    **dict.fromkeys(["int_type", "int_parsing", "int_from_float"], "must be a whole number"),
    **dict.fromkeys(["float_type", "float_parsing"], "must be a number"),
    **dict.fromkeys(["bool_type", "bool_parsing"], "must be true or false"),
}


def _mistake(found: Any, kind: type) -> Mistake:
    """One of pydantic's errors in our words."""
    where = ".".join(map(str, found["loc"])) or "the file"
    if found["type"] in ("missing", "missing_argument"):
        return Mistake(where, "is missing")
    if found["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = ", ".join(_keys_beside(kind, found["loc"]))
        return Mistake(where, f"unknown key; known here: {known}")
    words = WORDS.get(found["type"])
    problem = words.format(**found.get("ctx", {})) if words else found["msg"]
    value = found["input"]
    return Mistake(where, problem, NOTHING if isinstance(value, dict) else _printable(value))


def _keys_beside(kind: Any, place: tuple[Any, ...]) -> list[str]:
    """The keys that are known where an unknown one was found."""
    names: Mapping[str, Any] = (
        {field.name: field.type for field in fields(kind)}
        if is_dataclass(kind)
        else {name: field.annotation for name, field in kind.model_fields.items()}
    )
    return _keys_beside(names[place[0]], place[1:]) if len(place) > 1 else list(names)


def _printable(value: object) -> object:
    return value if isinstance(value, str | int | float | list | bool | None) else str(value)
