"""Where a program begins the graph that its towers are built in: there its variables start to be mirrored.

From the tower loop up: the innermost `with graph.as_default():` around it, or `tf.reset_default_graph()` before
it, in the function of the loop or in one that calls it; without either, the function where the calls start.
The runtime says so where a variable was made earlier all the same, and then mirrors none.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.reach import reached
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import (
    argument,
    binds,
    calls,
    children,
    dotted,
    elements,
    parameters,
    reads,
    walk,
)

_DEPTH = 6
"""How many calls up from the loop are followed."""
_MANY = 8
"""A function that is called in more places than this begins the graph itself."""

_HARMLESS_TF = (
    "tf.app.", "tf.flags.", "tf.logging.", "tf.gfile.", "tf.ConfigProto", "tf.GPUOptions", "tf.test.", "tf.errors.",
    "tf.set_random_seed", "tf.disable_v2_behavior", "tf.disable_eager_execution", "tf.disable_v2_tensorshape",
    "tf.disable_resource_variables", "tf.disable_control_flow_v2", "tf.train.latest_checkpoint", "tf.__version__", "tf.contrib.training.HParams",
)  # fmt: skip
_LIBRARIES = frozenset(sys.stdlib_module_names) | {
    "numpy", "scipy", "pandas", "matplotlib", "yaml", "absl", "six", "tqdm", "cv2", "PIL", "h5py", "skimage", "sklearn",
    "easydict", "nltk", "future", "past",
}  # fmt: skip
_PLAIN_FUNCTIONS = frozenset(
    "len int float str bool list tuple dict set range xrange enumerate zip sorted min max sum abs round print "
    "isinstance hasattr getattr open repr type map filter any all reversed id format input".split()
)
_PLAIN_METHODS = frozenset(
    "split strip rstrip lstrip format join append extend lower upper replace startswith endswith items keys values "
    "get copy count index encode decode isdigit update add insert sort".split()
)
_COUNTED = frozenset({"split", "strip"})


@dataclass(frozen=True)
class Opening:
    """A place for `tm.mirror_variables(…)` in a file.

    Attributes:
        file: the file.
        before: the statement in front of which it goes, None where `after` is given.
        after: the statement behind which it goes.
        count: the number of towers as it is written there; None where it is not known there.
    """

    file: SourceFile
    before: cst.CSTNode | None
    after: cst.CSTNode | None
    count: str | None


@dataclass(frozen=True)
class _Scope:
    """A function, or a module's outermost level (`function` None)."""

    file: SourceFile
    function: cst.FunctionDef | None

    @property
    def block(self) -> cst.BaseSuite | cst.Module:
        return self.file.module if self.function is None else self.function.body


def openings(
    tree: Tree, file: SourceFile, function: cst.FunctionDef | None, loop: cst.CSTNode, over: cst.BaseExpression
) -> list[Opening]:  # fmt: skip
    """Every place where the graph of a tower loop begins.

    Args:
        tree: the tree of files.
        file: the file of the loop.
        function: the function that the loop stands in, None at module level.
        loop: the loop.
        over: what it goes over.
    """
    start = _Scope(file, function)
    counted = tower_count_of(over)
    search = _Search(tree, start, counted)
    found: dict[tuple[str, int], Opening] = {}
    for opening in search.up(start, loop, _DEPTH, frozenset(), search.counted):
        place = opening.before or opening.after
        found.setdefault((opening.file.path, id(place)), opening)
    return list(found.values())


def tower_count_of(over: cst.BaseExpression) -> cst.BaseExpression | None:
    """The number of towers that a loop's iterable says, as an expression; None where it says none.

    Example:
        >>> counted = tower_count_of(cst.parse_expression("enumerate(zip(devices, parts))"))
        >>> cst.Module([]).code_for_node(counted)
        'len(devices)'
    """
    while isinstance(over, cst.Call) and over.args and isinstance(over.func, cst.Name):
        name, first = over.func.value, over.args[0].value
        if name in ("range", "xrange"):
            return first if len(over.args) == 1 else None
        if name not in ("enumerate", "zip", "list", "tuple", "sorted", "reversed"):
            return None
        if over.args[0].star:
            return None
        over = first
    if isinstance(over, cst.Call):  # six.moves.xrange(n), six.moves.range(n)
        name = (dotted(over.func) or "").rpartition(".")[2]
        return over.args[0].value if name in ("range", "xrange") and len(over.args) == 1 else None
    shown = elements(over)
    if shown is not None:
        return cst.Integer(str(len(shown)))
    if isinstance(over, cst.Name | cst.Attribute):
        return cst.Call(cst.Name("len"), [cst.Arg(over)])
    return None


def above(tree: Tree, file: SourceFile, function: cst.FunctionDef | None) -> list[Function]:
    """The functions that call one, directly or not."""
    found: dict[int, Function] = {}
    search = _Search(tree, _Scope(file, function), None)
    waiting = [(_Scope(file, function), _DEPTH)]
    while waiting:
        scope, depth = waiting.pop()
        if scope.function is None or not depth:
            continue
        for caller, _ in search.callers(scope):
            if caller.function is not None and id(caller.function) not in found:
                found[id(caller.function)] = Function(caller.file, caller.function, "")
                waiting.append((caller, depth - 1))
    return list(found.values())


@dataclass(frozen=True)
class _Counted:
    """The number of towers as an expression, and the scope whose names it reads."""

    expression: cst.BaseExpression
    scope: _Scope

    def at(self, caller: _Scope, call: cst.Call) -> _Counted | None:
        """The number as the caller of a function gives it; None where that is not plain."""
        function = self.scope.function
        if function is None:
            return self
        names = set(reads(self.expression)) & {*parameters(function), *binds(function.body)}
        if not names or (names == {"self"} and (dotted(call.func) or "").startswith("self.")):
            return self
        if names & set(binds(function.body)) or any(arg.star for arg in call.args):
            return None
        given: dict[str, cst.BaseExpression] = {}
        positions = [name for name in parameters(function) if name != "self"]
        for name in names:
            position = positions.index(name) if name in positions else None
            value = argument(call, position, name) or _default(function, name)
            if name == "self":
                value = call.func.value if isinstance(call.func, cst.Attribute) else None
                value = value if value is not None and dotted(value) == "self" else None
            if value is None:
                return None
            given[name] = value
        changed = self.expression.visit(_Names(given))
        assert isinstance(changed, cst.BaseExpression)
        return _Counted(changed, caller)


def _default(function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """The number that a parameter has where a call does not give it."""
    for each in (*function.params.params, *function.params.kwonly_params):
        if each.name.value == name and isinstance(each.default, cst.Integer):
            return each.default
    return None


class _Names(cst.CSTTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, given: Mapping[str, cst.BaseExpression]) -> None:
        self.given = given

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.given.get(original_node.value, updated_node)


class _Search:
    def __init__(self, tree: Tree, start: _Scope, counted: cst.BaseExpression | None) -> None:
        self.tree = tree
        self.counted = None if counted is None else _Counted(counted, start)

    def up(
        self,
        scope: _Scope,
        node: cst.CSTNode,
        depth: int,
        seen: frozenset[int],
        counted: _Counted | None,
    ) -> Iterator[Opening]:
        """Where the graph begins that is the default one at `node`, which stands in `scope`."""
        self.counted = counted
        path = path_to(scope.file, scope.block, node)
        begun = self._begun(scope, path)
        if begun is not None:
            yield begun
            return
        function = scope.function
        sites = self.callers(scope) if function is not None and depth else []
        if all(self._starts(caller, call) for caller, call in sites):
            sites = []
        if function is not None and id(function) not in seen and 0 < len(sites) <= _MANY:
            for caller, call in sites:
                given = None if counted is None else counted.at(caller, call)
                yield from self.up(caller, call, depth - 1, seen | {id(function)}, given)
            return
        # What stands under `if __name__ == "__main__":` is to run in the program only.
        path = [*path[_guards(path) :]]
        if path:
            yield self._in_block(scope, path[0][0], 0, path[0][1], late=True)

    def _starts(self, caller: _Scope, call: cst.Call) -> bool:
        """Whether a call at module level starts the program: nothing before it makes anything of a graph."""
        if caller.function is not None:
            return False
        harmless = _Harmless(self.tree, caller)
        return all(
            harmless.statement(each)
            for block, index in path_to(caller.file, caller.block, call)
            for each in block[:index]
        )

    def _begun(
        self, scope: _Scope, path: Sequence[tuple[Sequence[cst.CSTNode], int]]
    ) -> Opening | None:
        """The innermost place on the way to a node where a graph becomes the default one."""
        for level in range(len(path) - 1, -1, -1):
            block, index = path[level]
            for earlier in range(index - 1, -1, -1):
                if self._resets(scope.file, block[earlier]):
                    return self._in_block(scope, block, earlier + 1, index, late=False)
            if level and isinstance(owner := path[level - 1][0][path[level - 1][1]], cst.With):
                entered = [item for item in owner.items if _enters_graph(scope.file, item)]
                if entered:
                    earlier_block = self._entered_before(scope, owner, entered[-1])
                    if earlier_block is not None:
                        return earlier_block
                    return self._in_block(scope, block, 0, index, late=False)
        return None

    def _resets(self, file: SourceFile, node: cst.CSTNode) -> bool:
        """Whether a statement may make another graph the default one, itself or by a function that it calls."""
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            return False
        for call in calls(node):
            function = self.tree.resolve(file, call.func)
            if (
                _resets(file, call)
                or function is not None
                and any(_resets(function.file, inner) for inner in calls(function.node.body))
            ):
                return True
        return False

    def _entered_before(self, scope: _Scope, owner: cst.With, item: cst.WithItem) -> Opening | None:
        """The place in the first block of the program that enters the same graph by its name, if that is another.

        Notebooks and classes make a graph once and enter it again and again.
        """
        name = _graph_name(item)
        if name is None:
            return None
        for node in walk(scope.file.module):
            if node is owner:
                return None
            if not isinstance(node, cst.With) or name not in map(_graph_name, node.items):
                continue
            around = _scope_of(scope.file, node)
            same = around.function is scope.function or around.function is None
            if "." in name:
                same = around.function is not None and around.function.name.value == "__init__"
            if same:
                return self._in_block(around, _lines(node.body), 0, 0, late=False)
        return None

    def _in_block(
        self, scope: _Scope, block: Sequence[cst.CSTNode], first: int, last: int, *, late: bool
    ) -> Opening:
        """The place in `block[first:last + 1]`, where nothing of the graph has been made yet.

        As early as the number of towers is known; with `late` behind everything that makes nothing.
        """
        harmless = _Harmless(self.tree, scope)
        place = first
        known = self._count_at(scope, block, first)
        stop = first
        while stop < last and harmless.statement(block[stop]):
            stop += 1
            if known is None or late:
                place, known = stop, self._count_at(scope, block, stop)
        if known is None and not late:
            place = first
        return Opening(scope.file, block[place], None, known)

    def _count_at(self, scope: _Scope, block: Sequence[cst.CSTNode], place: int) -> str | None:
        """The number of towers, where all that it reads is known in front of `block[place]`."""
        if self.counted is None or not _is_plain(self.counted.expression):
            return None
        counted = self.counted.expression
        line = scope.file.line(block[place])
        for name in reads(counted):
            if name == "len":
                continue
            known = self._self_is_known if name == "self" else self._is_known
            if not known(scope, name, line):
                return None
        if isinstance(counted, cst.Call) and dotted(counted.func) == "len":
            if not self._has_length(counted.args[0].value):
                return None
        return cst.Module(body=[]).code_for_node(counted)

    def _kept_before(self, scope: _Scope, counted: cst.BaseExpression, line: int) -> bool:
        """Whether `self.num_gpus` was set before a line of another method of the same class."""
        assert self.counted is not None
        own, other = self.counted.scope, scope.function
        if own.file is not scope.file or other is None or own.function is None:
            return False
        named = {each.node: qualified for qualified, each in scope.file.functions.items()}
        classes = [named.get(each, "").rpartition(".")[0] for each in (own.function, other)]
        if classes[0] != classes[1] or not classes[0]:
            return False
        wanted = {dotted(each) for each in walk(counted) if isinstance(each, cst.Attribute)}
        return all(
            any(
                isinstance(each, cst.Assign)
                and scope.file.span(each).end_line < line
                and any(dotted(target.target) == name for target in each.targets)
                for each in walk(other.body)
            )
            for name in wanted
            if name is not None and name.startswith("self.")
        )

    def _is_known(self, scope: _Scope, name: str, line: int) -> bool:
        assert self.counted is not None
        function = scope.function
        if scope.file is not self.counted.scope.file:
            return self._is_everywhere(scope, name, line)
        own = self._owner(name)
        if own is not None and function is own:
            if name in parameters(own) and name not in binds(own.body):
                return True
            return _bound_before(scope, own.body, name, line)
        if own is not None or (
            function is not None and name in (*parameters(function), *binds(function.body))
        ):
            return False  # another value of that name
        if function is None:
            return _bound_before(scope, scope.file.module, name, line)
        return name in binds(scope.file.module)

    def _is_everywhere(self, scope: _Scope, name: str, line: int) -> bool:
        """Whether a name means the same in another file: one module, or the flags of the program."""
        assert self.counted is not None
        own = self.counted.scope
        if any(
            each is not None and name in (*parameters(each), *binds(each.body))
            for each in (own.function, scope.function)
        ):
            return False
        modules = [
            self.tree.module_path(file.path, file.imports[name])
            for file in (own.file, scope.file)
            if name in file.imports
        ]
        if len(modules) == 2:
            return modules[0] is not None and modules[0] == modules[1]
        values = [_module_values(file, name) for file in (own.file, scope.file)]
        flags = all(
            len(found) == 1 and (file.tf(found[0]) or "").endswith("flags.FLAGS")
            for found, file in zip(values, (own.file, scope.file), strict=True)
        )
        return flags and (
            scope.function is not None or _bound_before(scope, scope.file.module, name, line)
        )

    def _owner(self, name: str) -> cst.FunctionDef | None:
        """The innermost function around what reads the number whose own name this is; None where it is global."""
        assert self.counted is not None
        scope = self.counted.scope
        while scope.function is not None:
            if name in (*parameters(scope.function), *binds(scope.function.body)):
                return scope.function
            scope = _around(scope)
        return None

    def _self_is_known(self, scope: _Scope, name: str, line: int) -> bool:
        """Whether the attributes of `self` that the number reads have their values in front of a line."""
        assert self.counted is not None
        function = scope.function
        if function is not None and function is not self.counted.scope.function:
            return self._kept_before(scope, self.counted.expression, line)
        if function is None:
            return False
        wanted = {
            chain
            for node in walk(self.counted.expression)
            if isinstance(node, cst.Attribute)
            and (chain := dotted(node) or "").startswith("self.")
            and chain.count(".") == 1
        }
        return name in parameters(function) and all(
            _attribute_bound_before(scope, function, chain, line) for chain in wanted
        )

    def _has_length(self, node: cst.BaseExpression) -> bool:
        """Whether `len` of it is certainly allowed: a list, and no iterator."""
        if isinstance(node, cst.Call):
            return isinstance(node.func, cst.Attribute) and node.func.attr.value == "split"
        assert self.counted is not None
        file = self.counted.scope.file
        root, _, name = (dotted(node) or "").rpartition(".")
        if root:
            path = self.tree.module_path(file.path, file.imports.get(root, ""))
            other = self.tree.file(path) if path and root in file.imports else None
            if other is None:
                return False
            file = other
        values = _module_values(file, name) if root else _values(file, name)
        return bool(values) and all(_is_list(value) for value in values)

    def callers(self, scope: _Scope) -> list[tuple[_Scope, cst.Call]]:
        """The calls of a function in the tree, each with the scope that it stands in."""
        function = scope.function
        assert function is not None
        names = {function.name.value}
        for qualified, each in scope.file.functions.items():
            if each.node is function and "." in qualified:
                names.add(qualified.split(".")[0])
        found: list[tuple[_Scope, cst.Call]] = []
        of_class: list[tuple[_Scope, cst.Call]] = []
        for path in sorted(self.tree.users[scope.file.path]):
            text = self.tree.sources[path]
            if _is_test(path) or not any(name in text for name in names):
                continue
            for name in names:
                for call in self.tree.calls_of(path, name):
                    other = self.tree.file(path)
                    assert other is not None
                    if any(each.node is function for each in reached(self.tree, other, call)):
                        inside = _scope_of(other, call)
                        if inside.function is not function:
                            direct = name == function.name.value
                            (found if direct else of_class).append((inside, call))
        return (
            found or of_class
        )  # a method that nobody is seen to call is reached through its class


class _Harmless:
    """Tells the statements that make nothing of a graph; remembers what they bind."""

    def __init__(self, tree: Tree, scope: _Scope, depth: int = 3) -> None:
        self.tree = tree
        self.scope = scope
        self.depth = depth
        self.bound: set[str] = set()

    def statement(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            return not node.decorators
        if not all(self._call(call) for call in calls(node)):
            return False
        if any(isinstance(each, cst.Yield | cst.Return) for each in walk(node)):
            return False
        self.bound |= set(binds(node)) if isinstance(node, cst.BaseStatement) else set()
        return True

    def function(self, node: cst.FunctionDef) -> bool:
        """Whether a call of the function makes nothing of a graph."""
        for each in walk(node.body):
            if isinstance(each, cst.BaseSmallStatement):
                self.bound |= set(binds(each))
        return all(self._call(call) for call in calls(node.body))

    def _call(self, call: cst.Call) -> bool:
        file = self.scope.file
        name = file.tf(call.func)
        if name is not None:
            return name.startswith(_HARMLESS_TF)
        if isinstance(call.func, cst.Attribute):
            method = call.func.attr.value
            if method in _PLAIN_METHODS or method.startswith(("DEFINE_", "add_argument", "parse_")):
                return True
        chain = dotted(call.func)
        if chain is None:
            return False
        root = chain.partition(".")[0]
        function = self.tree.resolve(file, call.func) if self.depth else None
        if function is not None:
            inside = _Harmless(self.tree, _Scope(function.file, function.node), self.depth - 1)
            return inside.function(function.node)
        origin = file.imports.get(root)
        if origin is not None:
            top = origin.partition(".")[0]
            return top in _LIBRARIES and self.tree.module_path(file.path, origin) is None
        if root == chain:
            return root in _PLAIN_FUNCTIONS and root not in file.functions
        return root in self.bound


def _values(file: SourceFile, name: str) -> list[cst.BaseExpression]:
    """Everything that is assigned to a name anywhere in a file."""
    return [
        found.value
        for found in walk(file.module)
        if isinstance(found, cst.Assign)
        and any(dotted(target.target) == name for target in found.targets)
    ]


def _module_values(file: SourceFile, name: str) -> list[cst.BaseExpression]:
    """What is assigned to a name of a module, at its outermost level; nothing where a function does it too."""
    outermost = [
        each.value
        for line in file.module.body
        if isinstance(line, cst.SimpleStatementLine)
        for each in line.body
        if isinstance(each, cst.Assign)
        and any(dotted(target.target) == name for target in each.targets)
    ]
    return outermost if len(outermost) == len(_values(file, name)) else []


def path_to(
    file: SourceFile, block: cst.BaseSuite | cst.Module, node: cst.CSTNode
) -> list[tuple[Sequence[cst.CSTNode], int]]:
    """The blocks from a scope's outermost one down to a node: each with the place of its statement."""
    where = file.span(node)
    wanted = (where.line, where.column)
    found: list[tuple[Sequence[cst.CSTNode], int]] = []
    inside: list[Sequence[cst.CSTNode]] = [_lines(block)]
    while inside:
        for lines in inside:
            index = next((i for i, each in enumerate(lines) if _holds(file, each, wanted)), None)
            if index is not None:
                found.append((lines, index))
                inside = [_lines(suite) for suite in _suites(lines[index])]
                break
        else:
            return found
    return found


def _holds(file: SourceFile, node: cst.CSTNode, place: tuple[int, int]) -> bool:
    where = file.span(node)
    return (where.line, where.column) <= place < (where.end_line, where.end_column)


def _has_line(file: SourceFile, node: cst.CSTNode, line: int) -> bool:
    where = file.span(node)
    return where.line <= line <= where.end_line


def _lines(block: cst.CSTNode) -> Sequence[cst.CSTNode]:
    if isinstance(block, cst.SimpleStatementSuite):
        return [block]
    return [each for each in getattr(block, "body", ()) if isinstance(each, cst.BaseStatement)]


def _suites(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The blocks of a compound statement, but for those of functions and classes, which are scopes of their own."""
    if isinstance(node, cst.FunctionDef) or not isinstance(node, cst.CSTNode):
        return []
    found: list[cst.CSTNode] = []
    for child in children(node):
        if isinstance(child, cst.BaseSuite):
            found.append(child)
        elif isinstance(child, cst.If | cst.Else | cst.ExceptHandler | cst.Finally):
            found.extend(_suites(child))
    return found


def _scope_of(file: SourceFile, node: cst.CSTNode) -> _Scope:
    """The innermost function around a node."""
    where = file.span(node)
    best: cst.FunctionDef | None = None
    size: tuple[int, int] | None = None
    for function in file.functions.values():
        around = file.span(function.node)
        if (around.line, around.column) <= (where.line, where.column) and (
            where.end_line, where.end_column) <= (around.end_line, around.end_column):  # fmt: skip
            extent = (around.end_line - around.line, around.end_column)
            if size is None or extent < size:
                best, size = function.node, extent
    return _Scope(file, best)


def _around(scope: _Scope) -> _Scope:
    """The function that a function is defined in."""
    assert scope.function is not None
    own = scope.file.span(scope.function)
    best, line = None, 0
    for each in scope.file.functions.values():
        around = scope.file.span(each.node)
        if line < around.line < own.line and own.end_line <= around.end_line:
            best, line = each.node, around.line
    return _Scope(scope.file, best)


def _guards(path: Sequence[tuple[Sequence[cst.CSTNode], int]]) -> int:
    """How many blocks on the way to a node are left by entering `if __name__ == "__main__":`."""
    for level, (block, index) in enumerate(path[:-1]):
        node = block[index]
        if isinstance(node, cst.If) and "__name__" in reads(node.test):
            if all(line is not each for line in path[level + 1][0] for each in _else_of(node)):
                return level + 1
    return 0


def _else_of(node: cst.If) -> Sequence[cst.CSTNode]:
    return _lines(node.orelse.body) if isinstance(node.orelse, cst.Else) else ()


def _resets(file: SourceFile, call: cst.Call) -> bool:
    return file.tf(call.func) in (
        "tf.reset_default_graph",
        "tf.python.framework.ops.reset_default_graph",
    ) or (dotted(call.func) or "").endswith("reset_default_graph")


def _enters_graph(file: SourceFile, item: cst.WithItem) -> bool:
    """`graph.as_default()`, or a session of a graph of its own."""
    call = item.item
    if not isinstance(call, cst.Call):
        return False
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "as_default":
        return "sess" not in (dotted(call.func) or "").lower()
    return file.tf(call.func) in ("tf.Session", "tf.InteractiveSession") and any(
        arg.keyword is not None and arg.keyword.value == "graph" for arg in call.args
    )


def _graph_name(item: cst.WithItem) -> str | None:
    """`graph` of `graph.as_default()`; None where the graph has no name."""
    call = item.item
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    return dotted(call.func.value) if call.func.attr.value == "as_default" else None


def _is_plain(node: cst.CSTNode) -> bool:
    """Whether an expression may be written once more, elsewhere: names, attributes, numbers, lengths of them."""
    if isinstance(node, cst.Call):
        if dotted(node.func) in ("len", "int"):
            return len(node.args) == 1 and _is_plain(node.args[0].value)
        return (
            isinstance(node.func, cst.Attribute)
            and node.func.attr.value in _COUNTED
            and _is_plain(node.func.value)
            and all(isinstance(arg.value, cst.SimpleString) for arg in node.args)
        )
    if isinstance(node, cst.BinaryOperation):
        return _is_plain(node.left) and _is_plain(node.right)
    return isinstance(node, cst.Integer) or dotted(node) is not None


def _is_list(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.List | cst.Tuple | cst.ListComp):
        return True
    if isinstance(node, cst.BinaryOperation):
        return _is_list(node.left) or _is_list(node.right)
    return (
        isinstance(node, cst.Call)
        and (dotted(node.func) in ("list", "sorted") or re.search(r"\.r?split$", _callee(node)) is not None)
    )  # fmt: skip


def _callee(call: cst.Call) -> str:
    return f".{call.func.attr.value}" if isinstance(call.func, cst.Attribute) else ""


def _bound_before(scope: _Scope, block: cst.BaseSuite | cst.Module, name: str, line: int) -> bool:
    """Whether a name is bound, once, by a statement that ends before a line and surely runs."""
    found: list[int] = []

    def visit(lines: Iterable[cst.CSTNode], *, sure: bool) -> None:
        for each in lines:
            if isinstance(each, cst.FunctionDef | cst.ClassDef):
                if each.name.value == name:
                    found.append(sys.maxsize)
            elif isinstance(each, cst.SimpleStatementLine | cst.SimpleStatementSuite):
                if name in binds(each):
                    found.append(scope.file.span(each).end_line if sure else sys.maxsize)
            elif isinstance(each, cst.With):
                if any(item.asname is not None and name in binds(item) for item in each.items):
                    found.append(sys.maxsize)
                visit(_lines(each.body), sure=sure)
            elif _has_line(scope.file, each, line):
                for suite in _suites(
                    each
                ):  # whoever comes to the line comes from above it in its block
                    inside = _lines(suite)
                    here = any(_has_line(scope.file, one, line) for one in inside)
                    visit(inside, sure=sure and here)
            elif name in binds(each):
                # Bound in a branch or loop: surely bound behind it only where each way binds it.
                found.append(
                    scope.file.span(each).end_line if _both_bind(each, name) else sys.maxsize
                )

    visit(_lines(block), sure=True)
    return bool(found) and all(end < line for end in found)


def _attribute_bound_before(scope: _Scope, function: cst.FunctionDef, name: str, line: int) -> bool:
    """Whether `self.x` has its value in front of a line: from an earlier call, or set by a statement that surely runs."""
    found = [
        node
        for node in walk(function.body)
        if isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign)
        and name in map(dotted, _targets(node))
    ]
    if not found:
        return function.name.value != "__init__"
    sure = [
        small
        for each in _lines(function.body)
        if isinstance(each, cst.SimpleStatementLine)
        for small in each.body
    ]
    return all(scope.file.span(node).end_line < line for node in found) and any(
        node is each for node in found for each in sure
    )


def _targets(node: cst.Assign | cst.AnnAssign | cst.AugAssign) -> list[cst.CSTNode]:
    if not isinstance(node, cst.Assign):
        return [node.target]
    return [
        each for target in node.targets for each in (elements(target.target) or [target.target])
    ]


def _both_bind(node: cst.CSTNode, name: str) -> bool:
    if not isinstance(node, cst.If) or node.orelse is None:
        return isinstance(node, cst.Try)
    other = node.orelse
    rest = _both_bind(other, name) if isinstance(other, cst.If) else name in binds(other.body)
    return name in binds(node.body) and rest


def _is_test(path: str) -> bool:
    base = posixpath.basename(path)
    return base.startswith("test_") or base.endswith("_test.py")
