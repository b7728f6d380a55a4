"""What our pages share: one HTML file that needs nothing else, with tables to sort and filter."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

STYLE = "audit.css"
TABLES = "tables.js"


def render(template: str, *scripts: str, **values: Any) -> str:
    """A page: HTML that asks for no other file and runs no script but its own.

    The scripts come after that of the tables, in one scope with it.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_packaged),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {"counted": counted, "percent": percent}
    style, script = _packaged(STYLE), "".join(map(_packaged, (TABLES, *scripts)))
    return environment.get_template(template).render(
        **values,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def table(
    name: str,
    table: "pd.DataFrame",
    columns: Mapping[str, tuple[str, str]],
    sorted_by: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """A table as columns and rows of plain values; of numbers three digits, for people.

    Of each of its columns it is given what people read, and how it is shown.
    """
    return {
        "name": name,
        "sorted": sorted_by,
        "columns": [(column, *columns[column]) for column in map(str, table)],
        "rows": [list(map(_plain, row)) for row in table.itertuples(index=False, name=None)],
    }


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def percent(share: float) -> str:
    """A share for people; what is small is not told to be nothing."""
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else float(f"{value:.3g}")


def _packaged(name: str) -> str:
    """A file of a page's, from wherever the package is installed."""
    return files("wscpml.quality").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
