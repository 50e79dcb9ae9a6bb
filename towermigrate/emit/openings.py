"""Where a program begins the graph that its towers are built in: there its variables start to be mirrored.

From the tower loop up: the innermost `with graph.as_default():` around it, or `tf.reset_default_graph()` before
it, in the function of the loop or in one that calls it; without either, the function where the calls start.
The runtime says so where a variable was made earlier all the same, and then mirrors none.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from towermigrate.emit.blocks import Scope, guards, lines_of, path_to, scope_of
from towermigrate.emit.inherited import Class, Classes, of_its_class
from towermigrate.emit.tower_count import TowerCount, tower_count_of
from towermigrate.recognize.reach import reached
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import argument, binds, calls, dotted, walk

_DEPTH = 6
"""How many calls up from the loop are followed."""
_MANY = 8
"""A function that is called in more places than this begins the graph itself."""

_HARMLESS_TF = (
    "tf.app.", "tf.flags.", "tf.logging.", "tf.gfile.", "tf.ConfigProto", "tf.GPUOptions", "tf.test.", "tf.errors.",
    "tf.set_random_seed", "tf.disable_v2_behavior", "tf.disable_eager_execution", "tf.disable_v2_tensorshape",
    "tf.disable_resource_variables", "tf.disable_control_flow_v2", "tf.train.latest_checkpoint", "tf.train.checkpoint_exists", "tf.__version__", "tf.contrib.training.HParams",
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


@dataclass(frozen=True)
class Opening:
    """A place for `tm.mirror_variables(…)` in a file.

    Attributes:
        file: the file.
        before: the statement in front of which it goes.
        count: the number of towers as it is written there; None where it is not known there.
        sure: whether nothing of the graph can have been made by then.
    """

    file: SourceFile
    before: cst.CSTNode
    count: str | None
    sure: bool = True


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
    start = Scope(file, function)
    counted = tower_count_of(over)
    search = _Search(tree, start, counted)
    found: dict[tuple[str, int], Opening] = {}
    for opening in search.up(start, loop, _DEPTH, frozenset(), search.counted):
        key = opening.file.path, id(opening.before)
        known = found.setdefault(key, opening)
        found[key] = replace(known, sure=known.sure and opening.sure)
    return list(found.values())


def above(tree: Tree, file: SourceFile, function: cst.FunctionDef | None) -> list[Function]:
    """The functions that call one, directly or not."""
    found: dict[int, Function] = {}
    search = _Search(tree, Scope(file, function), None)
    waiting = [(Scope(file, function), _DEPTH)]
    while waiting:
        scope, depth = waiting.pop()
        if scope.function is None or not depth:
            continue
        for caller, _ in search.callers(scope):
            if caller.function is not None and id(caller.function) not in found:
                found[id(caller.function)] = Function(caller.file, caller.function, "")
                waiting.append((caller, depth - 1))
    return list(found.values())


def callers(tree: Tree, scope: Scope) -> list[tuple[Scope, cst.Call]]:
    """The calls of a function in the tree, each with the scope that it stands in."""
    return _Search(tree, scope, None).callers(scope)


def runs_again(
    tree: Tree, file: SourceFile, function: cst.FunctionDef | None
) -> tuple[SourceFile, cst.Call] | None:
    """A call because of which a program may run more than once in a process: a second one, or one in a loop."""
    search = _Search(tree, Scope(file, function), None)
    scope, seen = Scope(file, function), {id(function)}
    for _ in range(_DEPTH):
        sites = [] if scope.function is None else search.callers(scope)
        if not sites:
            return None
        if len(sites) > 1:
            return sites[1][0].file, sites[1][1]
        caller, call = sites[0]
        ways = path_to(caller.file, caller.block, call)
        if any(isinstance(block[index], cst.For | cst.While) for block, index in ways):
            return caller.file, call
        if id(caller.function) in seen:
            return caller.file, call
        seen.add(id(caller.function))
        scope = caller
    return None


class _Search:
    def __init__(self, tree: Tree, start: Scope, counted: cst.BaseExpression | None) -> None:
        self.tree = tree
        self.classes = Classes(tree)
        self.counted = None if counted is None else TowerCount(tree, counted, start)

    def up(
        self,
        scope: Scope,
        node: cst.CSTNode,
        depth: int,
        seen: frozenset[int],
        counted: TowerCount | None,
        own: Class | None = None,
        sure: bool = True,
    ) -> Iterator[Opening]:
        """Where the graph begins that is the default one at `node`, which stands in `scope`.

        Args:
            scope: the function that is looked at, one of those that call the loop's.
            node: the loop, or the call that leads to it.
            depth: how many calls up are still followed.
            seen: the functions that were looked at on the way.
            counted: the number of towers, as it is written in `scope`.
            own: the class of the object that the towers are built in, where `scope` is a method of it.
            sure: whether every call on the way up to here is seen to lead to the towers.
        """
        self.counted = counted
        path = path_to(scope.file, scope.block, node)
        begun = self._begun(scope, path)
        if begun is not None:
            yield replace(begun, sure=begun.sure and sure)
            return
        function = scope.function
        sites, direct = self._sites(scope, own) if function is not None else ([], True)
        starts = all(self._starts(caller, call) for caller, call, _ in sites)
        followed = function is not None and depth and id(function) not in seen
        if sites and not starts and followed and len({id(call) for _, call, _ in sites}) <= _MANY:
            for caller, call, kind in sites:
                given = None if counted is None else counted.at(scope, caller, call)
                yield from self.up(
                    caller, call, depth - 1, seen | {id(function)}, given, kind, sure and direct
                )
            return
        # What stands under `if __name__ == "__main__":` is to run in the program only.
        path = [*path[guards(path) :]]
        if path:
            is_entry = function is None or bool(sites) and starts and direct or _is_main(scope)
            while (inside := self._into_branch(scope, path)) is not None:
                path = [*inside]
            found = self._in_block(scope, path[0][0], 0, path[0][1], late=True)
            yield replace(found, sure=sure and is_entry)

    def _sites(
        self, scope: Scope, own: Class | None
    ) -> tuple[list[tuple[Scope, cst.Call, Class | None]], bool]:
        """The calls that reach a function, each with the class of the object at hand; and whether they name it."""
        by_name, of_class = self._named_calls(scope)
        of = self.classes.of(scope)
        if of is None:
            return [(*each, None) for each in by_name], True
        assert scope.function is not None
        is_made = scope.function.name.value == "__init__"
        found: list[tuple[Scope, cst.Call, Class | None]] = []
        kinds = [own] if own is not None and of in self.classes.line(own) else self.classes.made(of)
        for kind in kinds:
            found += [(*each, kind) for each in self.classes.calls(kind, scope)]
            if is_made and self.classes.takes(kind, "__init__") is scope.function:
                found += [(*each, None) for each in self._making(kind)]
        for caller, call in by_name:
            if not of_its_class(call) or self.classes.of(caller) is None:
                found.append((caller, call, None))
        if found or is_made:
            return found, True
        # A method that nobody is seen to call is reached through its class.
        return [(*each, None) for each in of_class], False

    def _making(self, kind: Class) -> list[tuple[Scope, cst.Call]]:
        """The calls that make an object of a class."""
        found: list[tuple[Scope, cst.Call]] = []
        for path in sorted(self.tree.users[kind.file.path]):
            other = None if _is_test(path) else self.tree.file(path)
            if other is not None and kind.name in other.text:
                for call in self.tree.calls_of(path, kind.name):
                    if self.classes.named(other, dotted(call.func) or "") == kind:
                        found.append((scope_of(other, call), call))
        return found

    def _into_branch(
        self, scope: Scope, path: Sequence[tuple[Sequence[cst.CSTNode], int]]
    ) -> Sequence[tuple[Sequence[cst.CSTNode], int]] | None:
        """The rest of the way, inside of the branch of an `if` in front of which nothing is made; None where it is no such one."""
        block, index = path[0]
        node = block[index]
        if not isinstance(node, cst.If) or len(path) < 2:
            return None
        harmless = _Harmless(self.tree, scope)
        if not all(harmless.statement(each) for each in block[:index]):
            return None
        return path[1:] if all(map(harmless.expression, _asked(node))) else None

    def _starts(self, caller: Scope, call: cst.Call) -> bool:
        """Whether a call at module level starts the program: nothing before it makes anything of a graph."""
        if caller.function is not None:
            return False
        harmless = _Harmless(self.tree, caller)
        path = path_to(caller.file, caller.block, call)
        return all(
            all(harmless.statement(each) for each in block[:index])
            and (level + 1 == len(path) or all(map(harmless.expression, _asked(block[index]))))
            for level, (block, index) in enumerate(path)
        )

    def _begun(
        self, scope: Scope, path: Sequence[tuple[Sequence[cst.CSTNode], int]]
    ) -> Opening | None:
        """The innermost place on the way to a node where a graph becomes the default one."""
        for level in range(len(path) - 1, -1, -1):
            block, index = path[level]
            for earlier in range(index - 1, -1, -1):
                if self._resets(scope.file, block[earlier]):
                    found = self._in_block(scope, block, earlier + 1, index, late=False)
                    return replace(found, sure=not isinstance(block[earlier], cst.If | cst.Try))
            if level and isinstance(owner := path[level - 1][0][path[level - 1][1]], cst.With):
                entered = [item for item in owner.items if _enters_graph(scope.file, item)]
                if entered:
                    is_new = _is_new(scope.file, entered[-1])
                    begun = self._entered_before(scope, owner, entered[-1])
                    begun = begun or self._in_block(scope, block, 0, index, late=False)
                    return replace(begun, sure=is_new)
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

    def _entered_before(self, scope: Scope, owner: cst.With, item: cst.WithItem) -> Opening | None:
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
            around = scope_of(scope.file, node)
            same = around.function is scope.function or around.function is None
            if "." in name:
                same = around.function is not None and around.function.name.value == "__init__"
            if same:
                return self._in_block(around, lines_of(node.body), 0, 0, late=False)
        return None

    def _in_block(
        self, scope: Scope, block: Sequence[cst.CSTNode], first: int, last: int, *, late: bool
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
        return Opening(scope.file, block[place], known)

    def _count_at(self, scope: Scope, block: Sequence[cst.CSTNode], place: int) -> str | None:
        return None if self.counted is None else self.counted.known_at(scope, block, place)

    def callers(self, scope: Scope) -> list[tuple[Scope, cst.Call]]:
        """The calls of a function in the tree, each with the scope that it stands in."""
        found, of_class = self._named_calls(scope)
        return found or of_class

    def _named_calls(
        self, scope: Scope
    ) -> tuple[list[tuple[Scope, cst.Call]], list[tuple[Scope, cst.Call]]]:
        """The calls by a function's name, and those by the name of the class that it is a method of."""
        function = scope.function
        assert function is not None
        names = {function.name.value}
        for qualified, each in scope.file.functions.items():
            if each.node is function and "." in qualified:
                names.add(qualified.split(".")[0])
        found: list[tuple[Scope, cst.Call]] = []
        of_class: list[tuple[Scope, cst.Call]] = []
        for path in sorted(self.tree.users[scope.file.path]):
            text = self.tree.sources[path]
            if _is_test(path) or not any(name in text for name in names):
                continue
            for name in names:
                for call in self.tree.calls_of(path, name):
                    other = self.tree.file(path)
                    assert other is not None
                    if any(each.node is function for each in reached(self.tree, other, call)):
                        inside = scope_of(other, call)
                        if inside.function is not function:
                            direct = name == function.name.value
                            (found if direct else of_class).append((inside, call))
        return found, of_class


class _Harmless:
    """Tells the statements that make nothing of a graph; remembers what they bind."""

    def __init__(self, tree: Tree, scope: Scope, depth: int = 3) -> None:
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

    def expression(self, node: cst.CSTNode) -> bool:
        """Whether what is asked makes nothing of a graph."""
        return all(self._call(call) for call in calls(node))

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
            inside = _Harmless(self.tree, Scope(function.file, function.node), self.depth - 1)
            return inside.function(function.node)
        origin = file.imports.get(root)
        if origin is not None:
            top = origin.partition(".")[0]
            return top in _LIBRARIES and self.tree.module_path(file.path, origin) is None
        if root == chain:
            return root in _PLAIN_FUNCTIONS and root not in file.functions
        return root in self.bound


def _asked(node: cst.CSTNode) -> list[cst.CSTNode]:
    """What an `if` asks before one of its branches is taken, those of `elif` too."""
    found: list[cst.CSTNode] = []
    branch: cst.CSTNode | None = node
    while isinstance(branch, cst.If):
        found.append(branch.test)
        branch = branch.orelse
    return found


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


def _is_new(file: SourceFile, item: cst.WithItem) -> bool:
    """Whether the graph that is entered is `tf.Graph()`, or has a name that only such ones are given in its file."""
    call = item.item
    assert isinstance(call, cst.Call)
    graph = call.func.value if isinstance(call.func, cst.Attribute) else None
    if file.tf(call.func) in ("tf.Session", "tf.InteractiveSession"):
        graph = argument(call, None, "graph")
    if isinstance(graph, cst.Call):
        return file.tf(graph.func) == "tf.Graph"
    name = None if graph is None else dotted(graph)
    given = [
        each.value
        for each in walk(file.module)
        if isinstance(each, cst.Assign)
        and any(dotted(target.target) == name for target in each.targets)
    ]
    return bool(given) and all(
        isinstance(each, cst.Call) and file.tf(each.func) == "tf.Graph" for each in given
    )


def _is_main(scope: Scope) -> bool:
    """Whether a function that nobody calls is what a program starts with: `main`, which `tf.app.run()` calls."""
    return scope.function is not None and scope.function.name.value in ("main", "_main")


def _graph_name(item: cst.WithItem) -> str | None:
    """`graph` of `graph.as_default()`; None where the graph has no name."""
    call = item.item
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    return dotted(call.func.value) if call.func.attr.value == "as_default" else None


def _is_test(path: str) -> bool:
    base = posixpath.basename(path)
    return base.startswith("test_") or base.endswith("_test.py")
