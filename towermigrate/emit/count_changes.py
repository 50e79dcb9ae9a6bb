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
_CONTENTS_CHANGE = frozenset(
    "append extend insert pop popleft popitem remove discard clear add update setdefault fill put "
    "difference_update intersection_update symmetric_difference_update __setitem__ __delitem__ __iadd__".split()
)
"""Methods that change what a list, a set, a dict or an array holds."""
_READERS = frozenset("len enumerate zip range list tuple sorted print str repr set".split())
_MAKERS = frozenset("list sorted dict set tuple range frozenset deque array arange split".split())
"""What is called so gives a new object each time."""
_FRESH = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.Constant, ast.BinOp, ast.JoinedStr,
)  # fmt: skip
_ON_ASKING = ("__getattr__", "__getattribute__", "__getitem__", "__len__", "__iter__")
"""Methods that Python calls when an object is asked for something."""
_SETS = (
    "update", "set", "merge", "load", "parse", "add", "override", "setattr", "delattr", "__setattr__", "__delattr__", "__setitem__",
)  # fmt: skip
"""How functions are called that set what a text or a keyword names."""


class CountChanges:
    """Looks for what may change a number that is written as an expression.

    Args:
        tree: the files of the program.
        path: the file of its towers.
        expression: the number of towers, as the program has it.

    Attributes:
        asked: the names that functions read which give the number.
    """

    def __init__(self, tree: Tree, path: str, expression: str) -> None:
        self.tree, self.path = tree, path
        node = ast.parse(expression, mode="eval").body
        self.names = {*_words(node)} - _OF_PYTHON
        # A number under a name of its own is the same until that name is bound anew.
        self.is_name = isinstance(node, ast.Name)
        self.contents = list(_contents(node))
        self.roots = [*_roots(node)]
        self.asked: set[str] = set()
        if not self.is_name:
            self._add_what_is_asked(node)

    def _add_what_is_asked(self, node: ast.expr) -> None:
        """What the functions and properties read that give the number."""
        asked = [word for word in _words(node) if word not in _OF_PYTHON]
        seen: set[str] = set()
        while asked:
            name = asked.pop()
            if name in seen:
                continue
            seen.add(name)
            for each in self._functions.get(name, ()):
                if isinstance(each, ast.FunctionDef | ast.Lambda):
                    read = {*_read(each)} - _OF_PYTHON
                    self.names |= read
                    self.asked |= {
                        one.id for one in ast.walk(each) if isinstance(one, ast.Name)
                    } & read
                    asked += read
                    self.contents += [one for inner in ast.walk(each) for one in _contents(inner)]

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
                if self._sets_part(each):
                    return True
            elif isinstance(each, ast.AugAssign):
                if self._by_any_name:
                    return True
            elif isinstance(each, ast.NamedExpr):
                if each.target.id in self.names:
                    return True
            elif isinstance(each, ast.Call) and self._may_set(each):
                return True
        return False

    def _sets_part(self, node: ast.Attribute | ast.Subscript) -> bool:
        """Whether a part of something is bound or deleted that the number reads, or a method is named that does so."""
        if not isinstance(node.ctx, ast.Load):
            if self.names & {*_words(node)} or self._is_computed:
                return True
            if not isinstance(node, ast.Subscript):
                return False
            return self._by_any_name or not _is_text(node.slice) and self._is_in_another
        if not isinstance(node, ast.Attribute) or node.attr not in _CONTENTS_CHANGE:
            return False
        return self._by_any_name or not self.is_name and bool(self.names & {*_words(node.value)})

    def _may_set(self, call: ast.Call) -> bool:
        """Whether a call is one of a method of what the number reads, or says by a text or a keyword what it sets."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if isinstance(call.func, ast.Attribute) and not self.is_name:
            if method not in _ONLY_READ and self.names & {*_words(call.func.value)}:
                return True
        last = method or (call.func.id if isinstance(call.func, ast.Name) else "")
        if self.contents and last not in _READERS and last not in self._functions:
            # What is handed to a library's function, as `out` too, may be filled there.
            given = [*call.args, *(each.value for each in call.keywords)]
            if any(ast.unparse(one) in self.contents for one in given):
                return True
            if self._by_any_name and any(each.arg == "out" for each in call.keywords):
                return True
        if self._says_no_name(call, last) and self._is_in_another:
            return True
        if not last.startswith(_SETS):
            return False
        keywords = (each for each in ast.walk(call) if isinstance(each, ast.keyword))
        return bool(self.names & {*_words(call), *(each.arg for each in keywords)})

    def _says_no_name(self, call: ast.Call, last: str) -> bool:
        """Whether a call sets an attribute or items by names that are computed: `setattr(config, key, value)`, `config.update(given)`."""
        if last in ("setattr", "delattr", "__setattr__", "__delattr__", "__setitem__"):
            place = 1 if isinstance(call.func, ast.Name) else 0
            return len(call.args) <= place or not _is_text(call.args[place])
        if last != "update" or not isinstance(call.func, ast.Attribute):
            return False
        named = all(isinstance(each, ast.Dict) and all(k is not None and _is_text(k) for k in each.keys) for each in call.args)  # fmt: skip
        return not named or any(each.arg is None for each in call.keywords)

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
    def _by_any_name(self) -> bool:
        """Whether what the number counts, or is in, may be known by another name: handed on, kept, made elsewhere."""
        words = [*map(_last_word, self.contents)]
        return self._is_computed or any(w is None or self._has_other_names(w) for w in words)

    @cached_property
    def _is_in_another(self) -> bool:
        """Whether what the number is read of may be known by another name, so that a computed name may set it."""
        return any(map(self._has_other_names, self.roots))

    @cached_property
    def _is_computed(self) -> bool:
        """Whether an object of the program's may compute the number when it is asked."""
        asked = bool(self.contents or self.roots)
        return asked and any(name in self._functions for name in _ON_ASKING)

    def _has_other_names(self, word: str) -> bool:
        for tree in self._trees:
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
                if _is_called(each, word) and id(each) not in plain:
                    if isinstance(getattr(each, "ctx", None), ast.Load):
                        return True
                if any(not _is_new(value) for value in _bound(each, word)):
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
                elif isinstance(each, ast.Assign):
                    for target in each.targets if isinstance(each.value, ast.Lambda) else ():
                        if isinstance(target, ast.Name):
                            found.setdefault(target.id, []).append(each.value)
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


def _read(function: ast.FunctionDef | ast.Lambda) -> Iterator[str]:
    """What a function reads of what is not its own."""
    own = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    for each in body:
        yield from (word for word in _words(each) if word not in own)


def _roots(node: ast.AST) -> Iterator[str]:
    """The names whose attributes and items a number is read of."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute | ast.Subscript):
            word = _last_word(ast.unparse(each.value))
            if word is not None and word not in ("self", "cls"):
                yield word


def _contents(node: ast.AST) -> Iterator[str]:
    """What a number is the length or an item of, as it is written: no word says of which item, or that there is one more."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "len" and len(each.args) == 1:
            if isinstance(each.args[0], ast.Name | ast.Attribute | ast.Subscript):
                yield ast.unparse(each.args[0])
        elif isinstance(each, ast.Subscript) and not _is_text(each.slice):
            yield ast.unparse(each.value)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _last_word(expression: str) -> str | None:
    """`devices` of `devices`, `config.devices` and `config['devices']`."""
    node = ast.parse(expression, mode="eval").body
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else None
    return None


def _is_called(node: ast.AST, word: str) -> bool:
    """Whether a node is a name, an attribute or an item by this word."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == word
    return (
        isinstance(node, ast.Name)
        and node.id == word
        or (isinstance(node, ast.Attribute) and node.attr == word)
    )


def _bound(node: ast.AST, word: str) -> Iterator[ast.expr | None]:
    """What a node binds to a word, None where that cannot be seen."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if _is_called(target, word):
                yield node.value
            elif any(_is_called(each, word) for each in _elements(target)):
                yield None
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == word:
                yield value
    elif isinstance(node, ast.keyword) and node.arg == word:
        yield node.value
    elif isinstance(node, ast.arg) and node.arg == word:
        yield None
    elif isinstance(node, ast.alias) and node.asname == word != node.name:
        yield None


def _elements(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple | ast.List) else []


def _is_new(value: ast.expr | None) -> bool:
    """Whether an expression gives an object that nothing else has a name for."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _MAKERS
    return isinstance(value, _FRESH)
