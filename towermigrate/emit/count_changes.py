"""What may set the number of towers anew in front of them: `config.num_gpus = 1`, or a function that does so."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from towermigrate.recognize.source import Tree
from towermigrate.recognize.syntax import code
from towermigrate.tree import import_closure

_OF_PYTHON = frozenset({"self", "cls", "len", "int", "range", "split", "strip"})
_ONLY_READ = frozenset(
    "get keys values items copy count index split strip format join lower upper startswith endswith".split()
)
"""Methods that change nothing."""
_LISTS_CHANGE = frozenset("append extend insert pop remove clear".split())
_READERS = frozenset("len enumerate zip range list tuple sorted print str repr set".split())
_SETS = ("update", "set", "merge", "load", "parse", "add", "override", "setattr", "delattr")
"""How functions are called that set what a text or a keyword names."""


class CountChanges:
    """Looks for what may change a number that is written as an expression.

    Args:
        tree: the files of the program.
        path: the file of its towers.
        expression: the number of towers, as the program has it.
    """

    def __init__(self, tree: Tree, path: str, expression: str) -> None:
        self.tree, self.path = tree, path
        node = ast.parse(expression, mode="eval").body
        self.names = {*_words(node)} - _OF_PYTHON
        # A number under a name of its own is the same until that name is bound anew.
        self.is_name = isinstance(node, ast.Name)
        counted = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
        self.listed = counted.id if isinstance(counted, ast.Name) else None

    def may_be_by(self, statement: cst.CSTNode) -> bool:
        """Whether a statement, or a function that it may call, sets something that the number reads."""
        if not self.names:
            return False
        try:
            waiting: list[ast.AST] = [ast.parse(textwrap.dedent(code(statement)))]
        except SyntaxError:  # a part of a block that does not stand by itself
            return True
        seen: set[str] = set()
        while waiting:
            node = waiting.pop()
            if self._sets(node):
                return True
            for name in {*self._called(node)} - seen:
                seen.add(name)
                waiting += self._functions.get(name, ())
        return False

    def _sets(self, node: ast.AST) -> bool:
        shared = {
            name
            for each in ast.walk(node)
            if isinstance(each, ast.Global | ast.Nonlocal)
            for name in each.names
        }
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
                if each.id in self.names & shared:
                    return True
            elif isinstance(each, ast.Attribute | ast.Subscript):
                if not isinstance(each.ctx, ast.Load) and self.names & {*_words(each)}:
                    return True
            elif isinstance(each, ast.Call) and self._may_set(each):
                return True
        return False

    def _may_set(self, call: ast.Call) -> bool:
        """Whether a call is one of a method of what the number reads, or says by a text or a keyword what it sets."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method in _LISTS_CHANGE and self._has_other_names:
            return True
        if isinstance(call.func, ast.Attribute) and not self.is_name:
            if method not in _ONLY_READ and self.names & {*_words(call.func.value)}:
                return True
        last = method or (call.func.id if isinstance(call.func, ast.Name) else "")
        if not last.startswith(_SETS):
            return False
        keywords = (each for each in ast.walk(call) if isinstance(each, ast.keyword))
        return bool(self.names & {*_words(call), *(each.arg for each in keywords)})

    def _called(self, node: ast.AST) -> Iterator[str]:
        """The names by which something of the program's own may be called; those of libraries are none."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                yield each.id
            elif isinstance(each, ast.Attribute):
                root: ast.expr = each
                while isinstance(root, ast.Attribute):
                    root = root.value
                if not isinstance(root, ast.Name) or root.id not in self._libraries:
                    yield each.attr

    @cached_property
    def _libraries(self) -> frozenset[str]:
        """What the file of the towers calls modules that are none of the tree's."""
        file = self.tree.file(self.path)
        imports = {} if file is None else file.imports
        return frozenset(
            name
            for name, origin in imports.items()
            if self.tree.module_path(self.path, origin) is None
            and self.tree.module_path(self.path, origin.rpartition(".")[0] or origin) is None
        )

    @cached_property
    def _has_other_names(self) -> bool:
        """Whether a list that is counted may be known by another name: handed on, kept, or bound to one."""
        for tree in self._trees if self.listed is not None else ():
            plain: set[int] = set()
            for each in ast.walk(tree):
                if isinstance(each, ast.Call):
                    if isinstance(each.func, ast.Name) and each.func.id in _READERS:
                        plain |= {id(one) for one in each.args}
                elif isinstance(each, ast.Subscript | ast.Attribute):
                    plain.add(id(each.value))
                elif isinstance(each, ast.For | ast.comprehension):
                    plain.add(id(each.iter))
                elif isinstance(each, ast.BinOp):
                    plain |= {id(each.left), id(each.right)}
            for each in ast.walk(tree):
                if isinstance(each, ast.Name) and each.id == self.listed and id(each) not in plain:
                    if isinstance(each.ctx, ast.Load):
                        return True
        return False

    @cached_property
    def _trees(self) -> list[ast.Module]:
        found: list[ast.Module] = []
        for path in sorted(import_closure({}, [self.path], self.tree.imports)):
            try:
                found.append(ast.parse(self.tree.sources.get(path, "")))
            except (SyntaxError, ValueError):
                continue
        return found

    @cached_property
    def _functions(self) -> dict[str, list[ast.AST]]:
        """The functions and classes of the program's files, and what its modules bind, by name."""
        found: dict[str, list[ast.AST]] = {}
        for tree in self._trees:
            for each in ast.walk(tree):
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    found.setdefault(each.name, []).append(each)
            for top in tree.body:
                for target in top.targets if isinstance(top, ast.Assign) else ():
                    if isinstance(target, ast.Name) and isinstance(top, ast.Assign):
                        found.setdefault(target.id, []).append(top.value)
        return found


def _words(node: ast.AST) -> Iterator[str]:
    """Every name, attribute and key of an expression."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
