"""A file as Python itself reads it: its functions, the names each of them has, and their calls.

What is asked here must be known for certain, or `Unjoined` is raised: the functions of a program are read as one by it.
"""

from __future__ import annotations

import ast
import io
import re
import symtable
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Generic, TypeVar

from towermigrate.recognize.joined import MARK, line_starts
from towermigrate.tree import all_nodes

# They see, or change, names that no table of names tells of.
_REFLECTIVE = frozenset("locals globals vars eval exec dir super __class__ getattr_static".split())
# Ways to reach a function of a module by its name.
_BY_NAME = re.compile(r"\bglobals\(|\bsys\.modules\b|\b__dict__\b|\b__import__\b|\bimportlib\b")


class Unjoined(Exception):
    """The functions cannot be read as one."""


_Scope = TypeVar("_Scope", ast.FunctionDef, ast.Module)


@dataclass
class Block(Generic[_Scope]):
    """The statements of a function, or of a module, and the names they use."""

    path: str
    text: str
    node: _Scope
    starts: Sequence[int]
    names: symtable.SymbolTable

    @property
    def locals(self) -> set[str]:
        """Names that are its own, parameters too."""
        own = self.names.get_type() != "module"
        return {
            each.get_name()
            for each in self.names.get_symbols()
            if (
                each.is_local()
                if own
                else each.is_assigned() or each.is_imported() or each.is_namespace()
            )
        }

    @property
    def globals(self) -> set[str]:
        """Names of the module that it reads, in functions of its own too; for a module, those that its functions read."""
        return self._globals(frozenset())

    def _globals(self, without: frozenset[str]) -> set[str]:
        found: set[str] = set()
        of_module = self.names.get_type() == "module"
        waiting = list(self.names.get_children()) if of_module else [self.names]
        waiting = [each for each in waiting if each.get_name() not in without]
        while waiting:
            table = waiting.pop()
            found.update(each.get_name() for each in table.get_symbols() if each.is_global())
            waiting.extend(table.get_children())
        return found

    def outside(self, names: frozenset[str]) -> set[str]:
        """`globals`, those of the functions of these names aside."""
        return self._globals(names if self.names.get_type() == "module" else frozenset())

    @property
    def inner(self) -> set[str]:
        """Names that functions and comprehensions in it bind for themselves."""
        found: set[str] = set()
        if self.names.get_type() == "module":
            return found
        waiting = list(self.names.get_children())
        while waiting:
            table = waiting.pop()
            found.update(each.get_name() for each in table.get_symbols() if each.is_local())
            waiting.extend(table.get_children())
        return found

    def offset(self, line: int, byte: int) -> int:
        start = self.starts[line - 1]
        end = self.starts[line] - 1 if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:byte].decode())

    def start(self, node: ast.stmt | ast.expr) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.stmt | ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def end_of_line(self, node: ast.stmt) -> int:
        """Where a statement ends, or the comment that stands behind it."""
        end = self.end(node)
        behind = self.text[end:].split("\n", 1)[0]
        return end + len(behind) if behind.strip().startswith("#") else end


@lru_cache(maxsize=64)
def _parsed(path: str, text: str) -> tuple[ast.Module, symtable.SymbolTable]:
    """The syntax tree and the names of a file that is asked for again and again: nothing changes either."""
    return ast.parse(text), symtable.symtable(text, path, "exec")


Definition = Block[ast.FunctionDef]
Caller = Block[ast.FunctionDef] | Block[ast.Module]


class Module:
    """One file, parsed by Python itself; `joined` says that functions were joined in it, where marks are towermigrate's."""

    def __init__(self, path: str, text: str, *, joined: bool = False) -> None:
        marked = MARK in text and not joined
        if "\r" in text or "\f" in text or marked or _BY_NAME.search(text):
            raise Unjoined
        try:
            self.tree, table = _parsed(path, text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Unjoined from error
        self.path, self.text = path, text
        self.starts = line_starts(text)
        self.block = Block(path, text, self.tree, self.starts, table)
        self.tables = {each.get_name(): each for each in table.get_children()}
        self.symbols = {each.get_name(): each for each in table.get_symbols()}

    def definition(self, name: str) -> Definition:
        """The one function of a name among the file's own statements."""
        found = [
            each
            for each in self.tree.body
            if isinstance(each, ast.FunctionDef) and each.name == name
        ]
        bound = sum(
            name in bound_by(each) for each in self.tree.body if not isinstance(each, ast.ClassDef)
        )
        table = self.tables.get(name)
        if len(found) != 1 or bound != 1 or not isinstance(table, symtable.Function):
            raise Unjoined
        if self.declares_global(name):
            raise Unjoined
        return Definition(self.path, self.text, found[0], self.starts, table)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """Every node of the file, as `ast.walk` gives them."""
        return tuple(all_nodes(self.tree))

    @cached_property
    def imports(self) -> Sequence[ast.Import | ast.ImportFrom]:
        """Every import of the file, in functions too."""
        return [each for each in self.nodes if isinstance(each, ast.Import | ast.ImportFrom)]

    @cached_property
    def attributes(self) -> Mapping[str, Sequence[ast.Attribute]]:
        """Every `….name` of the file, by the name."""
        found: dict[str, list[ast.Attribute]] = {}
        for each in self.nodes:
            if isinstance(each, ast.Attribute):
                found.setdefault(each.attr, []).append(each)
        return found

    def uses(self, name: str) -> list[ast.Name]:
        """Where a name is read."""
        return list(self._names.get(name, ()))

    @cached_property
    def _names(self) -> dict[str, list[ast.Name]]:
        """All names of the file, each with its places."""
        found: dict[str, list[ast.Name]] = {}
        for each in self.nodes:
            if isinstance(each, ast.Name):
                found.setdefault(each.id, []).append(each)
        return found

    def declares_global(self, name: str) -> bool:
        """Whether a function of the file may bind a name of the module anew."""
        return name in self._globals

    @cached_property
    def _globals(self) -> frozenset[str]:
        found = [each.names for each in self.nodes if isinstance(each, ast.Global)]
        return frozenset(name for names in found for name in names)

    def uses_of_import(self, module: str, name: str) -> bool:
        """Whether this file may use a function of another one, whose last name is `module`: of it, or as others hand it on."""
        if name in self.attributes:
            return True
        for each in self.imports:
            if isinstance(each, ast.ImportFrom):
                if any(a.name == name for a in each.names):
                    return True
                starred = any(a.name == "*" for a in each.names)
                if starred and (each.module or module).split(".")[-1] == module:
                    return True
        return False


def bound_by(statement: ast.stmt) -> set[str]:
    """Names that a statement of a module binds, in the blocks that it holds too."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        waiting.extend(ast.iter_child_nodes(node))
    return found


def scopes(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.Module]:
    yield tree
    yield from (each for each in tree.body if isinstance(each, ast.FunctionDef))


def rates_of(node: ast.AST) -> list[ast.expr]:
    """What an optimizer is given as its rate; nothing where a node makes none."""
    if not isinstance(node, ast.Call):
        return []
    called = ast.unparse(node.func)
    if not called.startswith("tf.train.") or not called.endswith("Optimizer"):
        return []
    named = [each.value for each in node.keywords if each.arg == "learning_rate"]
    return [*node.args[:1], *named]


def own_nodes(node: ast.FunctionDef | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes in it."""
    return iter(_own_nodes(node))


@lru_cache(maxsize=64)
def _own_nodes(node: ast.FunctionDef | ast.Module) -> Sequence[ast.AST]:
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        each = waiting.pop()
        found.append(each)
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(each))
    return found


def only_plain(node: ast.FunctionDef, of_class: bool = False, shares: bool = False) -> None:
    """Raise where a function is more than its statements; `shares` says that it may bind names of its module."""
    for each in own_nodes(node):
        if isinstance(each, ast.Yield | ast.YieldFrom | ast.Await | ast.Nonlocal):
            raise Unjoined
        if isinstance(each, ast.Global) and not shares:
            raise Unjoined
    not_reflective(node, of_class)


def not_reflective(node: ast.FunctionDef, of_class: bool = False) -> None:
    """A function does not look into names, and does not use itself; a method's name is not the function's."""
    names = _REFLECTIVE if of_class else _REFLECTIVE | {node.name}
    if any(isinstance(each, ast.Name) and each.id in names for each in all_nodes(node)):
        raise Unjoined


def last_of(node: ast.FunctionDef) -> ast.stmt:
    """The last statement that a function runs."""
    last: ast.stmt = node.body[-1]
    while isinstance(last, ast.With):
        last = last.body[-1]
    return last


def returned_by(
    node: ast.FunctionDef, targets: tuple[str, ...] | None
) -> tuple[tuple[str, ...] | None, bool]:
    """The names that a function returns at its end, where it returns nowhere else; None where it returns nothing.

    An expression is bound to the caller's name for it, which the second value tells.
    """
    found = [each for each in own_nodes(node) if isinstance(each, ast.Return)]
    if not found:
        return None, False
    if found != [last_of(node)]:
        raise Unjoined
    value = found[0].value
    if isinstance(value, ast.Name):
        return (value.id,), False
    if isinstance(value, ast.Tuple):
        names = [each.id for each in value.elts if isinstance(each, ast.Name)]
        if len(names) == len(value.elts) == len(set(names)) and names:
            return tuple(names), False
    if value is not None and targets is not None and len(targets) == 1:
        return targets, True
    raise Unjoined


def call_of(statement: ast.stmt) -> ast.Call | None:
    if isinstance(statement, ast.If):
        statement = statement.body[0]
        return call_of(statement) if isinstance(statement, ast.Expr) else None
    if isinstance(statement, ast.Assign | ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value
    return None


def targets_of(statement: ast.stmt) -> tuple[str, ...] | None:
    """The names that a statement binds to what a call returns; None where that is dropped."""
    if not isinstance(statement, ast.Assign):
        return None
    if len(statement.targets) != 1:
        raise Unjoined
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        return (target.id,)
    if isinstance(target, ast.Tuple):
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) == len(target.elts) == len(set(names)):
            return tuple(names)
    raise Unjoined


def plain_calls(node: ast.FunctionDef | ast.Module) -> Iterator[ast.stmt]:
    """Statements that are a call, or bind what it returns, and that run once: in no block but a `with`.

    What a module does where it is the program may be one call, which then is the whole `if`.
    """
    waiting: list[ast.stmt] = list(reversed(node.body))
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.With):
            waiting.extend(reversed(each.body))
        elif isinstance(each, ast.If):
            if isinstance(node, ast.Module) and _is_entry(each) and call_of(each) is not None:
                yield each
        elif call_of(each) is not None:
            yield each


def calls_in(node: ast.FunctionDef | ast.Module) -> Iterator[ast.stmt]:
    """`plain_calls`, and those of a function that run in other blocks of it, in a loop say."""
    plain = list(plain_calls(node))
    yield from plain
    if isinstance(node, ast.FunctionDef):
        for each in own_nodes(node):
            if isinstance(each, ast.Assign | ast.Expr) and call_of(each) is not None:
                if not any(each is known for known in plain):
                    yield each


def _is_entry(node: ast.If) -> bool:
    """`if __name__ == "__main__":` with one statement and no `else`."""
    asks = ast.unparse(node.test) == "__name__ == '__main__'"
    return asks and len(node.body) == 1 and not node.orelse


def given_by(statement: ast.stmt) -> set[str]:
    call = call_of(statement)
    assert call is not None
    values = [*call.args, *(each.value for each in call.keywords)]
    return {each.id for each in values if isinstance(each, ast.Name)}


def opened_by(node: ast.FunctionDef | ast.Module) -> Iterator[str]:
    """Names that a `with` binds: a session, a graph."""
    for each in own_nodes(node):
        if isinstance(each, ast.withitem) and isinstance(each.optional_vars, ast.Name):
            yield each.optional_vars.id


def times_bound(node: ast.FunctionDef | ast.Module, name: str) -> int:
    return sum(
        isinstance(each, ast.Name)
        and each.id == name
        and not isinstance(each.ctx, ast.Load)
        or isinstance(each, ast.FunctionDef | ast.ClassDef)
        and each.name == name
        or isinstance(each, ast.alias)
        and (each.asname or each.name).partition(".")[0] == name
        or isinstance(each, ast.ExceptHandler)
        and each.name == name
        for each in all_nodes(node)
    )


def header_end(function: Definition) -> int:
    """Where the lines behind a function's header begin."""
    line = function.node.lineno
    rows = function.text.split("\n")[line - 1 :]
    return function.starts[line - 1 + header_lines("\n".join(rows))]


def header_lines(definition: str) -> int:
    """How many lines of a definition come before its body, which stands on others."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(definition).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                return token.end[0]
    raise Unjoined


def lines_in_texts(text: str) -> set[int]:
    """Lines that begin inside of a text of several lines."""
    found: set[int] = set()
    kinds = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds and token.end[0] > token.start[0]:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
    return found


def line_at(starts: Sequence[int], position: int) -> int:
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts[middle] <= position else (low, middle)
    return low + 1


def renamed_places(function: Definition, renames: Mapping[str, str]) -> list[tuple[int, int, str]]:
    """Where names stand that change, in order: the place, the length, the new name."""
    found: list[tuple[int, int, str]] = []
    for each in all_nodes(function.node):
        if isinstance(each, ast.Name) and each.id in renames:
            place = function.start(each)
            if not function.text.startswith(
                each.id, place
            ):  # in a text, of which older Pythons do not tell
                raise Unjoined
            found.append((place, len(each.id), renames[each.id]))
    return sorted(found)
