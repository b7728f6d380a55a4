from pathlib import Path

import pytest

from wscpml.code_digest import CodeDigest

ENTRY, MODELS, BASE, MATHS = (f"pkg/{name}.py" for name in ("entry", "models", "base", "maths"))
TREE = {
    "pkg/__init__.py": "",
    ENTRY: """\
from pkg import maths
from pkg.models import Model

def run(X):
    return Model().fit(X) + maths.solve(X)
""",
    MODELS: """\
from pkg.base import Base
from pkg.maths import solve

class Model(Base):
    WIDTH = 4

    def fit(self, X):
        return solve(X, self.WIDTH)
""",
    BASE: """\
class Base:
    name: str

    def check(self, X):
        return X > 0
""",
    MATHS: """\
import numpy as np

TOLERANCE: float = 1e-3
STEPS = [1, 2]
STEPS += [3]
LOW, HIGH = 0, 1
UNRELATED = 1

def logged(function):
    return function

@logged
def solve(X, width=2):
    return np.dot(X, X) + half(TOLERANCE) + len(STEPS) + LOW

def half(x):
    return x / 2

def unrelated(x):
    return x
""",
}
HALF = "def half(x):\n    return x / 2\n"


def edited(file: str, *changes: tuple[str, str]) -> dict[str, str]:
    """The tree with text replaced in a file."""
    text = TREE[file]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return TREE | {file: text}


def renamed(old: str, new: str) -> dict[str, str]:
    """The tree with a word replaced everywhere, in the names of files too."""
    return {name.replace(old, new): text.replace(old, new) for name, text in TREE.items()}


def digest(root: Path, files: dict[str, str], entry: str = "pkg.entry:run", *excluded: str) -> str:
    """Of an entry in a tree of just these files."""
    for old in root.rglob("*.py"):
        old.unlink()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    module, _, name = entry.partition(":")
    return CodeDigest(root, ["pkg"], frozenset(excluded)).of(module, name or None)


SAME = {
    "a renamed file": renamed("maths", "algebra"),
    "a renamed function": renamed("solve", "solution"),
    "a renamed class": renamed("Model", "Estimator"),
    "a renamed constant": renamed("TOLERANCE", "SMALL"),
    "a renamed constant of a pair": renamed("HIGH", "MOST"),
    "a function in another module": edited(
        MATHS, (HALF, ""), ("import numpy", "from pkg.halves import half\nimport numpy")
    )
    | {"pkg/halves.py": HALF},
    "a name that a package hands on": edited(ENTRY, ("from pkg.models", "from pkg"))
    | {"pkg/__init__.py": "from pkg.models import Model\n"},
    "an import of a module by its path": edited(
        ENTRY, ("from pkg import maths", "import pkg.maths"), ("maths.solve", "pkg.maths.solve")
    ),
    "an import of a name": edited(
        ENTRY,
        ("from pkg import maths", "from pkg.maths import solve as found"),
        ("maths.solve", "found"),
    ),
    "a local import": edited(
        ENTRY,
        ("from pkg import maths\n", ""),
        ("return", "from pkg.maths import solve\n    return"),
        ("maths.solve", "solve"),
    ),
    "a relative import": edited(MODELS, ("pkg.base", ".base"), ("pkg.maths", ".maths")),
    "an alias of a library": edited(MATHS, ("as np", "as num"), ("np.", "num.")),
    "a name from a library": edited(
        MATHS, ("import numpy as np", "from numpy import dot"), ("np.dot", "dot")
    ),
    "the docstring of a function": edited(MATHS, ("return x /", '"""Half."""\n    return x /')),
    "the docstring of a class": edited(MODELS, ("WIDTH =", '"""It fits."""\n\n    WIDTH =')),
    "the docstring of a module": edited(MATHS, ("import", '"""Equations."""\n\nimport')),
    "a comment": edited(MATHS, ("return x / 2", "# why\n    return x / 2")),
    "annotations of a function": edited(MATHS, ("half(x):", "half(x: float) -> float:")),
    "the annotation of a constant": edited(MATHS, (": float =", " =")),
    "a function that is not used": edited(MATHS, ("return x\n", "return x + 1\n")),
    "a constant that is not used": edited(MATHS, ("UNRELATED = 1", "UNRELATED = 2")),
    "another module": TREE | {"pkg/more.py": "print(1)\n"},
    "what runs as a script": edited(
        MATHS, ("LOW,", 'if __name__ == "__main__":\n    print(1)\nLOW,')
    ),
}

OTHER = {
    "a constant": edited(MATHS, ("1e-3", "1e-4")),
    "a constant added to": edited(MATHS, ("[3]", "[4]")),
    "one of two constants": edited(MATHS, ("+ LOW", "+ HIGH")),
    "a constant of a class": edited(MODELS, ("WIDTH = 4", "WIDTH = 5")),
    "a function two modules away": edited(MATHS, ("x / 2", "x / 3")),
    "a method": edited(MODELS, ("return solve", "return 2 * solve")),
    "the name of a method": edited(MODELS, ("def fit", "def fit_to")),
    "a base class": edited(BASE, ("X > 0", "X >= 0")),
    "a field": edited(BASE, ("name: str", "name: int")),
    "another base class": edited(MODELS, ("(Base)", "(object)")),
    "what a decorator does": edited(MATHS, ("return function", "return print")),
    "a decorator less": edited(MATHS, ("@logged\n", "")),
    "a default argument": edited(MATHS, ("width=2", "width=3")),
    "an argument by name only": edited(MATHS, ("X, width", "X, *, width")),
    "another function of a library": edited(MATHS, ("np.dot", "np.outer")),
    "the same name from another library": edited(MATHS, ("numpy", "jax.numpy")),
    "the same name from another module": edited(
        MODELS, ("pkg.maths import solve", "pkg.other import solve")
    )
    | {"pkg/other.py": "def solve(X, width):\n    return X\n"},
    "what an import does": edited(MATHS, ("LOW,", "np.seterr('raise')\nLOW,")),
    "a constant that is set again": edited(MATHS, ("LOW,", "if HIGH:\n    TOLERANCE = 1\nLOW,")),
}


@pytest.mark.parametrize("change", SAME)
def test_what_does_the_same_has_the_same_digest(tmp_path, change):
    assert digest(tmp_path, SAME[change]) == digest(tmp_path, TREE)


@pytest.mark.parametrize("change", OTHER)
def test_a_change_of_what_it_does_is_seen(tmp_path, change):
    assert digest(tmp_path, OTHER[change]) != digest(tmp_path, TREE)


def test_functions_of_the_same_name_that_change_places_are_seen(tmp_path):
    tree = {
        "pkg/a.py": "def step(x):\n    return x + 1\n",
        "pkg/b.py": "def step(x):\n    return x * 2\n",
        "pkg/run.py": "from pkg import a, b\ndef run(x):\n    return a.step(x) - b.step(x)\n",
    }
    swapped = tree | {"pkg/a.py": tree["pkg/b.py"], "pkg/b.py": tree["pkg/a.py"]}
    assert digest(tmp_path, tree, "pkg.run:run") != digest(tmp_path, swapped, "pkg.run:run")


def test_a_variable_is_not_the_definition_whose_name_it_has(tmp_path):
    tree = {
        "pkg/maths.py": "def solve(x):\n    return x\n",
        "pkg/run.py": "from pkg import maths\n"
        "def one(maths):\n    return maths.solve(1)\n"
        "def some(x):\n    return [maths for maths in x], maths.solve(1)\n"
        "class Kind:\n    maths = 1\n    def fit(self):\n        return maths.solve(1)\n",
    }
    changed = tree | {"pkg/maths.py": "def solve(x):\n    return 2 * x\n"}
    seen = {
        name: digest(tmp_path, tree, f"pkg.run:{name}")
        != digest(tmp_path, changed, f"pkg.run:{name}")
        for name in ("one", "some", "Kind")
    }
    assert seen == {"one": False, "some": True, "Kind": True}


def test_functions_that_call_each_other_have_digests_whatever_was_asked_for_before(tmp_path):
    source = (
        "def even(n):\n    return n == 0 or odd(n - 1)\n"
        "def odd(n):\n    return n != 0 and even(n - 1)\n"
        "def both(n):\n    return even(n), odd(n), deep(n)\n"
        "def deep(n):\n    return deep(n - 1) if n else odd(n)\n"
    )
    names = ["even", "odd", "both", "deep"]
    alone = {name: digest(tmp_path, {"pkg/a.py": source}, f"pkg.a:{name}") for name in names}
    assert len({*alone.values()}) == 4
    shared = CodeDigest(tmp_path, ["pkg"])
    assert {name: shared.of("pkg.a", name) for name in reversed(names)} == alone
    other = {"pkg/a.py": source.replace("n != 0", "n > 0")}
    assert all(digest(tmp_path, other, f"pkg.a:{name}") != alone[name] for name in names)


@pytest.mark.parametrize(
    "use", ["vars(maths)", "maths.missing", "[m for m in (maths,)]", "getattr(maths, 'half')"]
)
def test_a_module_that_is_handed_on_counts_whole(tmp_path, use):
    files = edited(ENTRY, ("maths.solve(X)", use))
    changed = files | {MATHS: SAME["a constant that is not used"][MATHS]}
    assert digest(tmp_path, files) != digest(tmp_path, changed)


def test_the_files_behind_digests_are_known(tmp_path):
    digest(tmp_path, TREE)
    code = CodeDigest(tmp_path, ["pkg"])
    code.of("pkg.models", "Model")
    assert code.files == [tmp_path / name for name in (BASE, MATHS, MODELS)]
    code.of("pkg.entry", "run")
    assert tmp_path / ENTRY in code.files


def test_without_a_name_a_module_counts_whole(tmp_path):
    before = digest(tmp_path, TREE, "pkg.maths")
    assert digest(tmp_path, SAME["a function that is not used"], "pkg.maths") != before
    assert digest(tmp_path, SAME["a comment"], "pkg.maths") == before


@pytest.mark.parametrize("excluded", ["pkg.maths", "pkg.maths:half"])
def test_what_is_excluded_counts_by_its_name(tmp_path, excluded):
    entry = "pkg.entry:run"
    before = digest(tmp_path, TREE, entry, excluded)
    assert digest(tmp_path, OTHER["a function two modules away"], entry, excluded) == before
    assert digest(tmp_path, OTHER["a base class"], entry, excluded) != before
    other = edited(MATHS, ("half(TOL", "abs(TOL"))
    assert (digest(tmp_path, other, entry, excluded) == before) == (excluded == "pkg.maths")


@pytest.mark.parametrize("entry", ["pkg.nowhere", "pkg.nowhere:run", "pkg.entry:missing"])
def test_an_entry_that_is_not_there_is_an_error(tmp_path, entry):
    with pytest.raises(ValueError, match=f"{entry}: is not there"):
        digest(tmp_path, TREE, entry)
