"""A digest of what code does, to tell what has to run again.

It is of one function, class or constant and of all code of the project behind it. Moved and renamed
files and definitions, imports, docstrings, comments and annotations of functions leave it as it is;
so does all that the definition does not use. Files that code reads are no part of it.
"""

import ast
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

Names = dict[str, str | None]  # of a scope: the dotted origin of an import, None for a variable
Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Definition = Function | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.AugAssign

ON_IMPORT = ""  # stands for the name of what a module does when it is imported
GUARDS = ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")
NOT_CODE = {"ctx", "kind", "type_comment"}  # fields of an AST that say nothing more


@dataclass(frozen=True)
class Module:
    """A module's statements by the name that they define, and the origins of what it imports."""

    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, str]


@dataclass(frozen=True)
class Place:
    """Where a piece of code stands: in the definition of a name, inside of these scopes."""

    module: str
    name: str
    package: str  # that relative imports start from
    scopes: tuple[Names, ...] = ()

    def inside(self, names: Names) -> "Place":
        """One scope further in."""
        return replace(self, scopes=(*self.scopes, names))


class CodeDigest:
    """Digests of the code of some packages.

    Parameters
    ----------
    root : Path
        The directory that the packages are in.
    packages : sequence of str
        Those whose code counts. What comes from elsewhere counts by its dotted name.
    excluded : frozenset of str
        Modules, and definitions as ``module:name``, that change no result: they count by name.
    """

    def __init__(
        self, root: Path, packages: Sequence[str], excluded: frozenset[str] = frozenset()
    ) -> None:
        self.root, self.packages, self.excluded = root, packages, excluded
        self._modules: dict[str, Module | None] = {}
        self._known: dict[tuple[str, str], str] = {}  # of definitions on no cycle
        self._stack: list[tuple[str, str]] = []  # definitions under way
        self._lowest = 0  # of the stack, that the definition under way comes back to

    def of(self, module: str, name: str | None = None) -> str:
        """Digest a definition, or all those of a module: 16 hex digits."""
        found = self._module(module)
        if found is None or (name is not None and name not in found.definitions):
            raise ValueError(f"{module}{f':{name}' if name else ''}: is not there")
        return self._whole(module) if name is None else self._definition(module, name)

    @property
    def files(self) -> list[Path]:
        """The files with the code of all digests so far, without modules that are excluded."""
        found = [self._file(name) for name in self._modules if name not in self.excluded]
        return sorted(file for file in found if file)

    def _module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = None
            if file := self._file(name):
                self._modules[name] = _parsed(file.read_text(encoding="utf-8"), self._package(name))
        return self._modules[name]

    def _file(self, module: str) -> Path | None:
        if module.partition(".")[0] not in self.packages:
            return None
        path = self.root / module.replace(".", "/")
        files = path / "__init__.py", path.with_suffix(".py")
        return next((file for file in files if file.is_file()), None)

    def _package(self, module: str) -> str:
        file = self._file(module)
        is_package = file is not None and file.name == "__init__.py"
        return module if is_package else module.rpartition(".")[0]

    def _whole(self, module: str) -> str:
        found = self._module(module)
        names = sorted(found.definitions) if found else []
        return _hash("".join(f"{name} {self._definition(module, name)}\n" for name in names))

    def _definition(self, module: str, name: str) -> str:
        """Digest a definition, or say how far up the stack it is under way."""
        key = module, name
        if {module, f"{module}:{name}"} & self.excluded:
            return name
        if key in self._known:
            return self._known[key]
        depth = len(self._stack)
        if key in self._stack:
            position = self._stack.index(key)
            self._lowest = min(self._lowest, position)
            return f"up {depth - position}"
        before, self._lowest = self._lowest, depth + 1
        self._stack.append(key)
        digest = _hash(self._statements(module, name))
        self._stack.pop()
        if self._lowest > depth:  # on a cycle it would depend on where the cycle was entered
            self._known[key] = digest
        self._lowest = min(before, self._lowest)
        return digest

    def _statements(self, module: str, name: str) -> str:
        found = self._module(module)
        assert found is not None
        place = Place(module, name, self._package(module))
        text = self._text(found.definitions[name], place)
        if ON_IMPORT in found.definitions and name != ON_IMPORT:
            text += self._definition(module, ON_IMPORT)
        return text

    def _text(self, node: object, place: Place) -> str:
        """What counts of a piece of code, with digests in place of the names of definitions."""
        match node:
            case list():
                kept = [each for each in node if not _says_nothing(each)]
                return f"[{', '.join(self._text(each, place) for each in kept)}]"
            case ast.Name(ctx=ast.Load()) | ast.Attribute():
                return self._reference(node, place)
            case ast.Name():
                return self._bound_name(node.id, place)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return self._function(node, place)
            case ast.ClassDef():
                return self._class(node, place)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node, place)
            case ast.AnnAssign(value=ast.expr() as value):
                return self._fields(ast.Assign([node.target], value), place)
            case ast.AST():
                return self._fields(node, place)
        return f"{type(node).__name__} {node!r}"

    def _fields(self, node: ast.AST, place: Place) -> str:
        fields = [
            f"{name}={self._text(value, place)}"
            for name, value in ast.iter_fields(node)
            if name not in NOT_CODE and value != [] and (value is not None or name == "value")
        ]
        return f"{type(node).__name__}({', '.join(fields)})"

    def _bound_name(self, name: str, place: Place) -> str:
        if place.scopes:
            return name
        return "own name" if name == place.name else "other name"

    def _function(self, node: Function | ast.Lambda, place: Place) -> str:
        body: Sequence[ast.AST]
        if isinstance(node, ast.Lambda):
            name, decorators, body = "", "", [node.body]
        else:
            name = self._bound_name(node.name, place)
            decorators, body = self._text(node.decorator_list, place), node.body
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        names = [each.arg if each else "" for each in every]
        inside = place.inside(_bound(body, place.package) | dict.fromkeys(names))
        head = [
            name,
            decorators,
            *names,
            f"{len(args.posonlyargs)} {len(args.args)}",
            self._text(args.defaults, place),
            self._text(args.kw_defaults, place),
        ]
        return f"{type(node).__name__}({', '.join(head)}, {self._text(body, inside)})"

    def _class(self, node: ast.ClassDef, place: Place) -> str:
        """Names of its body are visible to none of its methods, so that its scope has none."""
        inside = place.inside({})
        body = [
            self._fields(each, inside)  # annotations make the fields of a data class
            if isinstance(each, ast.AnnAssign)
            else self._text(each, inside)
            for each in node.body
            if isinstance(each, ast.AnnAssign) or not _says_nothing(each)
        ]
        head = [node.decorator_list, node.bases, node.keywords]
        parts = [self._bound_name(node.name, place), *(self._text(each, place) for each in head)]
        return f"ClassDef({', '.join([*parts, *body])})"

    def _comprehension(self, node: Comprehension, place: Place) -> str:
        """The first iterable belongs to the scope outside."""
        targets = [each.target for each in node.generators]
        inside = place.inside(_bound(targets, place.package))
        first = self._text(node.generators[0].iter, place)
        return f"{first} {self._fields(node, inside)}"

    def _reference(self, node: ast.Name | ast.Attribute, place: Place) -> str:
        attributes: list[str] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            attributes.insert(0, root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            return ".".join([self._text(root, place), *attributes])
        for scope in reversed(place.scopes):
            if root.id in scope:
                origin = scope[root.id]
                break
        else:
            found = self._module(place.module)
            assert found is not None
            if root.id in found.definitions:
                return ".".join([self._definition(place.module, root.id), *attributes])
            origin = found.imports.get(root.id)
        if origin is None:
            return ".".join([root.id, *attributes])
        return self._imported([*origin.split("."), *attributes])

    def _imported(self, path: list[str]) -> str:
        """What a dotted path leads to, which starts with the name of a module."""
        for length in range(len(path), 0, -1):
            name = ".".join(path[:length])
            module, rest = self._module(name), path[length:]
            if module is None:
                continue
            if name in self.excluded:
                return ".".join(rest or path[-1:])
            if rest and rest[0] in module.definitions:
                return ".".join([self._definition(name, rest[0]), *rest[1:]])
            if rest and rest[0] in module.imports:
                return self._imported([*module.imports[rest[0]].split("."), *rest[1:]])
            return ".".join([self._whole(name), *rest])
        return ".".join(path)


def _parsed(source: str, package: str) -> Module:
    definitions: dict[str, list[ast.stmt]] = {}
    imports: dict[str, str] = {}
    for statement in ast.parse(source).body:
        names = _bound([statement], package)
        imports |= {name: origin for name, origin in names.items() if origin is not None}
        if _says_nothing(statement) or _is_guard(statement):
            continue
        variables = [name for name, origin in names.items() if origin is None]
        if not (variables and isinstance(statement, Definition)):
            variables.append(ON_IMPORT)
        for name in variables:
            definitions.setdefault(name, []).append(statement)
    return Module(definitions, imports)


def _says_nothing(node: object) -> bool:
    """Whether it is an import, whose names count where they are used, or does nothing."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            return True
        case ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None):
            return True
    return False


def _is_guard(statement: ast.stmt) -> bool:
    """Whether it is not executed when the module is imported."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) in GUARDS


def _bound(nodes: Iterable[ast.AST], package: str) -> Names:
    """The names that code binds in its own scope, not in those inside of it."""
    names: Names = {}
    elsewhere: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Import():
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    names[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom():
                start = _start(node, package)
                names |= {each.asname or each.name: f"{start}.{each.name}" for each in node.names}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.setdefault(node.name, None)
                continue
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.setdefault(node.id, None)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.setdefault(name, None)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.setdefault(name, None)
            case ast.Global() | ast.Nonlocal():
                elsewhere.update(node.names)
        if not isinstance(node, ast.Lambda | Comprehension):
            waiting.extend(ast.iter_child_nodes(node))
    return {name: origin for name, origin in names.items() if name not in elsewhere}


def _start(node: ast.ImportFrom, package: str) -> str:
    """The module that names are imported from."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join(
        [*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])]
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
