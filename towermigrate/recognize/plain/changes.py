"""A file whose spellings are looked at, and the changes that make them plain."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from towermigrate.recognize.python_scopes import Module, own_nodes
from towermigrate.tree import all_nodes

_BY_TEXT = frozenset({"locals", "vars", "globals", "eval", "exec", "dir"})
"""What finds names by a text."""
NOTHING = "towermigrate_none"
"""What a run gives of an operation is bound to, so that a rewritten program must be without that name."""
ALWAYS = "*"
"""The scope of a change that is made wherever it stands: it has nothing to do with functions."""
OF_TOWERS = "of towers: "
"""What the scope of a change begins with that is made in functions that the towers call too."""
Scope = ast.Module | ast.FunctionDef
Part = str | tuple[int, int]
Changed = tuple[int, int, tuple[Part, ...]]


@dataclass(frozen=True)
class Change:
    """A stretch of a text and what stands there instead: texts, and stretches of the author's own.

    `scope` is the outermost function that it stands in, or `""`.
    """

    start: int
    end: int
    parts: tuple[Part, ...]
    scope: str


class PlainFile(Module):
    """One file as Python reads it, and what its changes are made of; `words_of_users` are all of the files that import it.

    `twice` are names that one run fetches several times, as a change found: one value is bound to several names then.
    `imported` gives the texts of the files that it imports, at whatever remove; `module_path` the file of the tree that a module is.
    """

    def __init__(self, path: str, text: str, words_of_users: frozenset[str] = frozenset()) -> None:
        super().__init__(path, text)
        self.words_of_users = words_of_users
        self.imported: Callable[[], Sequence[str]] = list
        self.module_path: Callable[[str], str | None] = lambda module: None
        self.words = frozenset(re.findall(r"\w+", text))
        self.begin()

    def begin(self) -> None:
        """Forget the names that were given to changes: those of one reader are made, or dropped, before the next reads."""
        self._fresh: set[str] = set()
        self._of_scopes: dict[int, set[str]] = {}
        self._given: set[str] = set()
        self.twice: set[str] = set()

    def start(self, node: ast.stmt | ast.expr) -> int:
        return self.block.start(node)

    def end(self, node: ast.stmt | ast.expr) -> int:
        return self.block.end(node)

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        return self.start(node), self.end(node)

    def of(self, node: ast.stmt | ast.expr) -> str:
        return self.text[self.start(node) : self.end(node)]

    @cached_property
    def scopes(self) -> Sequence[tuple[str, Scope]]:
        """The module and every function of it, methods and inner ones too, each with its outermost one's name."""
        inner: list[tuple[str, Scope]] = [
            (getattr(top, "name", ""), node)
            for top in self.tree.body
            for node in all_nodes(top)
            if isinstance(node, ast.FunctionDef)
        ]
        return [("", self.tree), *inner]

    @cached_property
    def shared_between_functions(self) -> frozenset[str]:
        """Names that a function binds of the module or of the function around it."""
        return frozenset(
            name
            for each in self.nodes
            if isinstance(each, ast.Global | ast.Nonlocal)
            for name in each.names
        )

    @cached_property
    def finds_names_by_text(self) -> bool:
        """Whether something in the file may find, or change, a name by a text: `eval`, `locals()`."""
        if self.words & {"builtins", "__builtins__"}:
            return True
        nodes = [each for each in self.nodes if isinstance(each, ast.Name)]
        bound = {each.id for each in nodes if not isinstance(each.ctx, ast.Load)}
        called = {
            each.func.id
            for each in self.nodes
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
        }
        read = {each.id for each in nodes} & _BY_TEXT
        return bool(read & called or read - bound)

    @cached_property
    def in_texts(self) -> frozenset[int]:
        """What stands in f-strings: older Pythons do not tell where."""
        texts = [each for each in self.nodes if isinstance(each, ast.JoinedStr)]
        return frozenset(id(one) for each in texts for one in all_nodes(each))

    def reads(self, name: str) -> bool:
        """Whether a name is read anywhere in the file."""
        return any(isinstance(each.ctx, ast.Load) for each in self.uses(name))

    def fresh(self, name: str) -> str:
        """A name that the file does not have."""
        taken = self.words.union(self._fresh, *self._of_scopes.values())
        names = (f"{name}{'' if more < 2 else f'_{more}'}" for more in range(1, 100))
        found = next(each for each in names if each not in taken)
        self._fresh.add(found)
        return found

    def free(self, scope: Scope, *names: str) -> str:
        """The first of some names that a scope, and what it sees, has not; a new one where it has all of them."""
        own = {each.id for each in all_nodes(scope) if isinstance(each, ast.Name)}
        own |= {each.arg for each in all_nodes(scope) if isinstance(each, ast.arg)}
        own |= {
            (each.asname or each.name).partition(".")[0]
            for each in all_nodes(scope)
            if isinstance(each, ast.alias)
        }
        own |= {
            each.name
            for each in all_nodes(scope)
            if isinstance(each, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        }
        known = self._of_scopes.setdefault(id(scope), set())
        seen = set(self._of_scopes.get(id(self.tree), ()))
        if scope is self.tree:
            seen = seen.union(*self._of_scopes.values())  # which functions see
        taken = own.union(known, seen, self._fresh, self.shared_between_functions)
        for each in names:
            if each not in taken and not (scope is self.tree and each in self.words_of_users):
                known.add(each)
                return each
        return self.fresh(names[0])

    def once(self, name: str) -> str:
        """The name itself the first time that it is asked for, then others."""
        if name in self._given:
            return self.fresh(name)
        self._given.add(name)
        return name

    def commented(self, start: int, end: int) -> bool:
        """Whether a stretch may hold a comment."""
        return "#" in self.text[start:end]

    def alone(self, statement: ast.stmt) -> str | None:
        """The margin of a statement that has its lines for itself, but for a comment behind it."""
        start, end = self.span(statement)
        margin = self.text[self.starts[statement.lineno - 1] : start]
        behind = self.text[end:].split("\n", 1)[0].strip()
        return margin if not margin.strip() and (not behind or behind[0] == "#") else None

    def above(self, statement: ast.stmt) -> int:
        """Where the line of a statement begins, or the first of the comments right above it."""
        line, rows = statement.lineno, self.text.split("\n")
        while line > 1 and rows[line - 2].strip().startswith("#"):
            line -= 1
        return self.starts[line - 1]

    def without(self, statement: ast.stmt) -> tuple[int, int]:
        """The stretch that goes with a statement that is `alone`: its lines, or all of them but the comment."""
        start, end = self.span(statement)
        if self.text[end:].split("\n", 1)[0].strip():
            return start, end + len(self.text[end:]) - len(self.text[end:].lstrip(" "))
        stop = self.text.find("\n", end)
        return self.starts[statement.lineno - 1], len(self.text) if stop < 0 else stop + 1


def blocks(scope: Scope) -> Iterator[tuple[list[ast.stmt], bool]]:
    """The blocks of a scope, and whether each runs once, whenever the scope does, and to its end."""
    waiting: list[tuple[list[ast.stmt], bool]] = [(scope.body, True)]
    while waiting:
        body, always = waiting.pop()
        yield body, always
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(each, name, None)
                if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                    certain = isinstance(each, ast.With) or is_main(scope, each)
                    waiting.append((inner, always and certain))
            for handler in getattr(each, "handlers", []):
                waiting.append((handler.body, False))


def is_main(scope: ast.AST, statement: ast.stmt) -> bool:
    """Whether a statement is a module's `if __name__ == "__main__":`: who runs the file runs what stands in it."""
    match statement:
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id="__name__"),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value="__main__")],
            ),
            orelse=[],
        ):
            return isinstance(scope, ast.Module)
    return False


def stores(scope: ast.AST, name: str) -> Sequence[ast.Name]:
    """Where a name is bound, or deleted, in a scope and the functions in it."""
    return _bound(scope)[0].get(name, ())


def names_in(scope: ast.AST, name: str) -> Sequence[ast.Name]:
    """Where a name stands in a scope, read or bound, in functions in it too."""
    return _names(scope).get(name, ())


@lru_cache(maxsize=64)
def _names(scope: ast.AST) -> Mapping[str, Sequence[ast.Name]]:
    found: dict[str, list[ast.Name]] = {}
    for each in all_nodes(scope):
        if isinstance(each, ast.Name):
            found.setdefault(each.id, []).append(each)
    return found


def bindings(scope: Scope, name: str) -> int:
    """How often a scope binds a name, as a parameter too; what binds it unseen counts twice."""
    return _bound(scope)[1][name]


def own_bindings(scope: Scope, name: str) -> int:
    """How often a scope itself binds a name, as a parameter too; the functions in it aside."""
    spec = scope.args if isinstance(scope, ast.FunctionDef) else None
    given = [each for each in all_nodes(spec) if isinstance(each, ast.arg)] if spec else []
    stored = [
        each
        for each in own_nodes(scope)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]
    return len(stored) + sum(each.arg == name for each in given)


@lru_cache(maxsize=64)
def _bound(scope: ast.AST) -> tuple[Mapping[str, Sequence[ast.Name]], Counter[str]]:
    """Where each name of a scope is bound, and how often: asked for many names of few scopes."""
    names: dict[str, list[ast.Name]] = {}
    count: Counter[str] = Counter()
    for each in all_nodes(scope):
        if isinstance(each, ast.Name):
            if not isinstance(each.ctx, ast.Load):
                names.setdefault(each.id, []).append(each)
                count[each.id] += 1
        elif isinstance(each, ast.arg):
            count[each.arg] += 1
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            count[each.name] += each is not scope
        elif isinstance(each, ast.alias):
            count[(each.asname or each.name).partition(".")[0]] += 1
        elif isinstance(each, ast.ExceptHandler) and each.name:
            count[each.name] += 1
        elif isinstance(each, ast.Global | ast.Nonlocal):
            for name in each.names:
                count[name] += 2
    return names, count


def settled(file: PlainFile, node: ast.expr) -> bool:
    """Whether an attribute of a name (`FLAGS.batch_size`) is set once at most in a file, so that it is the same wherever it is read."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    if re.search(r"\bsetattr\b|__dict__|\bvars\(", file.text):
        return False
    return len(sets_of(file, node.attr)) <= 1 and len(stores(file.tree, node.value.id)) <= 1


def sets_of(file: PlainFile, attribute: str) -> list[ast.Attribute]:
    """Where a file sets, or deletes, an attribute of that name, of whatever object."""
    return [
        each
        for each in file.nodes
        if isinstance(each, ast.Attribute)
        and each.attr == attribute
        and not isinstance(each.ctx, ast.Load)
    ]


def own_calls(scope: Scope) -> Iterator[ast.Call]:
    """The calls of a scope itself, in no function, lambda or class in it."""
    for each in own_nodes(scope):
        if isinstance(each, ast.Call):
            yield each


def run_of(node: ast.expr | None) -> ast.Call | None:
    """The call `name.run(fetches, …)` that an expression is."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run"
        and isinstance(node.func.value, ast.Name)
        and fetches_of(node) is not None
    ):
        return node
    return None


def fetches_of(call: ast.Call) -> ast.expr | None:
    """What a run fetches, as it is written."""
    if call.args:
        return None if isinstance(call.args[0], ast.Starred) else call.args[0]
    return next((each.value for each in call.keywords if each.arg == "fetches"), None)


def leaves_of(node: ast.expr) -> list[str] | None:
    """The names that a structure of displays holds, in order; None where it holds anything else."""
    if isinstance(node, ast.Name):
        return [node.id]
    found: list[str] = []
    if isinstance(node, ast.Dict):
        if not all(isinstance(key, ast.Constant) for key in node.keys):
            return None
        if len({key.value for key in node.keys if isinstance(key, ast.Constant)}) < len(node.keys):
            return None
        inner: list[ast.expr] = node.values
    elif isinstance(node, ast.List | ast.Tuple):
        inner = node.elts
    else:
        return None
    for each in inner:
        leaves = leaves_of(each)
        if leaves is None:
            return None
        found += leaves
    return found
