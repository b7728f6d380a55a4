"""Tell what each cell depends on, so that it runs again when that changed and only then."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from experiments.settings import KNOWN
from wscpml import artifacts
from wscpml.datasets.files import OWN, File, digest
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.methods import PLACES

ROOT = Path(__file__).parents[1]
NEVER_CHANGE_RESULTS = {
    "wscpml/evaluation/memory.py",
    "experiments/settings.py",
    "stages/__init__.py",
    "wscpml/methods/__init__.py",
    "wscpml/errors.py",
    "wscpml/settings.py",
}


def identities() -> dict[str, dict[str, str]]:
    """A digest of the code behind each method and task, and of the data of each benchmark."""
    near, text = cache(imports), cache(lambda file: essence((ROOT / file).read_text()))

    def digest_of(*entries: str) -> str:
        files = sorted(set().union(*(code_behind(Path(entry), near) for entry in entries)))
        return _short("\n".join(f"{file.as_posix()}\n{text(file)}" for file in files))

    modules = {name: place.partition(":")[0].replace(".", "/") for name, place in PLACES.items()}
    code = {
        name: digest_of("experiments/folds.py", f"wscpml/methods/{module}.py")
        for name, module in modules.items()
    }
    code |= {name: digest_of(f"experiments/{name}.py") for name in ("convergence", "cost")}
    return {"code": code, "data": {name: _data(name) for name in KNOWN}}


def _data(benchmark: str) -> str:
    dataset, r = BENCHMARKS.get(benchmark, (benchmark, 0))
    entry = REGISTRY[dataset]
    contents = [_content(file) for file in entry.files] or [f"river {version('river')}"]
    return _short(repr([r, entry.label_count, entry.average_candidates, *contents]))


def _content(file: File) -> str | None:
    """The sha256 of a file, if it is known: one that a person supplies may not be there."""
    if file.sha256 is None and (OWN / file.name).is_file():
        return digest(OWN / file.name)
    return file.sha256


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def essence(source: str) -> str:
    """What of a module can change a result: no comments, docstrings and blank lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            first, last = body[0].lineno, body[0].end_lineno or body[0].lineno
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _is_text(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Expr) and isinstance(getattr(value, "value", None), str)


def imports(file: Path) -> set[Path]:
    """Files of this project that a file imports."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {path for name in names if (path := module_file(name))}
    return found - {file, Path("wscpml/__init__.py")}


def code_behind(file: Path, near: Callable[[Path], set[Path]] = imports) -> set[Path]:
    """The file and all of this project that it imports, near and far, if it can change results."""
    seen: set[Path] = set()
    waiting = {file}
    while waiting:
        seen |= waiting
        imported = set().union(*(near(each) for each in waiting))
        waiting = {f for f in imported if f.as_posix() not in NEVER_CHANGE_RESULTS} - seen
    return seen


def module_file(name: str) -> Path | None:
    """The file of a module of this project, from its root."""
    path = ROOT / name.replace(".", "/")
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.relative_to(ROOT)
    return None


if __name__ == "__main__":
    artifacts.write("experiments/identity.json", identities())
