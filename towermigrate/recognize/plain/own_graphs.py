"""Other ways to run a program, in the default graph: `test(args)` beside `train(args)`, in a graph of its own.

`if mode == 'train': train() else: test()` builds one graph or the other. What `test` builds is built in an empty graph, and
nobody sees that graph behind it: one that is made for it is the same to it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.loops import LoopFinder
from towermigrate.recognize.plain.changes import ALWAYS, Change, PlainFile
from towermigrate.recognize.reach import tower_functions
from towermigrate.recognize.shown import QUIET, is_name, shows_tensors
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import children, code, dotted, reads, statements, walk

_OPENS = re.compile(r"\b(?:Session|InteractiveSession|MonitoredTrainingSession|Supervisor)\(")
_ELSEWHERE = re.compile(
    # What may look for the default graph of the process, or run behind the call: threads have a graph of their own.
    r"reset_default_graph|\bThread|multiprocessing|concurrent|atexit|enable_eager|^\s*global\s|\bglobals\(",
    re.MULTILINE,
)
_OPERATIONS = re.compile(
    r"\.(?:get_operations|as_graph_def|graph_def|get_operation_by_name)\b|write_graph\("
)
_LIBRARIES = frozenset(sys.stdlib_module_names) - {"threading", "multiprocessing", "atexit"} | {
    "numpy", "six", "absl", "yaml", "scipy", "matplotlib", "pandas", "PIL", "cv2", "tqdm", "easydict",
}  # fmt: skip
_BUILTINS = frozenset(
    "abs all any bool bytes dict enumerate filter float format frozenset getattr hasattr id input int isinstance iter len "
    "list map max min next object open ord pow print range repr reversed round set setattr slice sorted str sum super "
    "tuple type vars xrange zip".split()
)
_DEPTH = 3
"""How many functions may only call others."""


def own_graphs(tree: Tree, file: PlainFile) -> list[Change]:
    """Calls of functions that build and run a graph of the process's, each in a new one."""
    if not _OPENS.search(file.text):
        return []
    source = tree.file(file.path)
    if source is None or source.text != file.text:
        source = SourceFile.parse(file.path, file.text, tree)
    if source.imports.get("tf") != "tensorflow" or _looks_elsewhere(tree, source):
        return []
    towers = {id(each.function) for each in LoopFinder(tree).loops(source) if each.turns is None}
    outer = [each.node for each in source.functions.values() if not each.is_method]
    builders = [node for node in outer if id(node) in towers]
    if len(towers) != 1 or len(builders) != 1:
        return []
    (builder,) = builders
    try:
        entries = list(_Starts(tree, source).entries(_block(source), True, _DEPTH))
    except _Unknown:
        return []
    by_name = {id(each.function.node): each for each in entries}
    if len(by_name) != len(entries) or id(builder) not in by_name:
        return []
    found: list[Change] = []
    for each in entries:
        if each.own or each.function.node is builder:
            continue
        reached = [each.function, *tower_functions(tree, each.function.file, [each.function.node])]
        if not each.last or any(one.node is builder for one in reached):
            return []
        if any(shows_tensors(one.file, one.node) for one in reached):
            return []
        if any(_OPERATIONS.search(code(one.node)) for one in reached):
            return []  # variables of TensorFlow 2 are made of other operations
        if any(builder.name.value in reads(one.node.body) for one in reached):
            return []
        change = _in_own_graph(file, source, each)
        if change is None:
            return []
        found.append(change)
    main = by_name[id(builder)]
    return found if main.last or _has_own_graph(tree, source, builder) else []


class _Unknown(Exception):
    """Something runs of which it is not known whether it has to do with a graph."""


@dataclass(frozen=True)
class _Entry:
    """A call of a function that has to do with a graph.

    `own` says that it stands in a graph that was made for it, `last` that nothing runs behind it.
    """

    statement: cst.SimpleStatementLine
    function: Function
    last: bool
    own: bool


class _Starts:
    """What a process runs before it comes to functions that have to do with graphs."""

    def __init__(
        self, tree: Tree, source: SourceFile, asked: set[tuple[str, str]] | None = None
    ) -> None:
        self.tree, self.source = tree, source
        self._asked = set() if asked is None else asked
        """The names, by their files, of which it is being asked what they hold."""

    def entries(
        self, block: Sequence[cst.BaseStatement], last: bool, depth: int, own: bool = False
    ) -> Iterator[_Entry]:
        """The calls in a block of statements, behind which nothing runs if `last`."""
        for number, node in enumerate(block):
            final = last and number == len(block) - 1
            if isinstance(node, cst.FunctionDef | cst.ClassDef):
                self._quiet([*node.decorators])
            elif isinstance(node, cst.If):
                branch: cst.If | cst.Else | None = node
                while branch is not None:
                    if isinstance(branch, cst.If):
                        self._quiet([branch.test])
                    yield from self.entries(statements(branch.body), final, depth, own)
                    branch = branch.orelse if isinstance(branch, cst.If) else None
            elif isinstance(node, cst.With) and _is_new_graph(self.source, node):
                yield from self.entries(statements(node.body), False, depth, True)
            elif isinstance(node, cst.SimpleStatementLine):
                yield from self._line(node, final, depth, own)
            else:
                self._quiet([node])

    def _line(
        self, node: cst.SimpleStatementLine, last: bool, depth: int, own: bool
    ) -> Iterator[_Entry]:
        only = node.body[0] if len(node.body) == 1 else None
        call = only.value if isinstance(only, cst.Expr) else None
        if isinstance(call, cst.Call):
            function = self._called(call)
            if function is not None:
                self._quiet([each.value for each in call.args if not is_name(each.value)])
                if function.file is self.source and depth and self._only_calls(function):
                    inner = _Starts(self.tree, function.file)
                    yield from inner.entries(statements(function.node.body), last, depth - 1, own)
                else:
                    yield _Entry(node, function, last, own)
                return
        self._quiet([node])

    def _called(self, call: cst.Call) -> Function | None:
        """The function that a statement begins: that which it names, or the `main` that TensorFlow calls."""
        if self.source.tf(call.func) == "tf.app.run":
            given = [each.value for each in call.args]
            main = cst.Name("main") if not given else given[0] if len(given) == 1 else None
            if main is None or not isinstance(main, cst.Name):
                raise _Unknown
            found = self.source.functions.get(main.value)
            if found is None:
                raise _Unknown
            return found
        found = self.tree.resolve(self.source, call.func)
        return None if found is None or found.is_method or self._is_quiet(found) else found

    def _only_calls(self, function: Function) -> bool:
        """Whether a function does nothing with TensorFlow itself."""
        own = [each for each in walk(function.node.body) if isinstance(each, cst.Call)]
        names = [function.file.tf(each.func) for each in own]
        return all(name is None or name.startswith(QUIET) for name in names)

    def _quiet(self, nodes: Sequence[cst.CSTNode]) -> None:
        """Raise where nodes may have to do with a graph."""
        for node in nodes:
            for each in walk(node):
                if isinstance(each, cst.Await | cst.Yield) or not self.is_harmless(each, 2):
                    raise _Unknown

    def _is_quiet(self, function: Function, depth: int = 2) -> bool:
        inner = _Starts(self.tree, function.file, self._asked)
        return depth > 0 and all(
            inner.is_harmless(each, depth - 1) for each in walk(function.node.body)
        )

    def is_harmless(self, node: cst.CSTNode, depth: int) -> bool:
        if not isinstance(node, cst.Call):
            return not isinstance(node, cst.With) or not any(
                "tf." in code(item.item) for item in node.items
            )
        name = self.source.tf(node.func)
        if name is not None:
            return name.startswith(QUIET)
        chain = dotted(node.func)
        function = self.tree.resolve(self.source, node.func)
        if function is not None:
            return not function.is_method and self._is_quiet(function, depth)
        if chain is None:
            return isinstance(
                node.func, cst.Attribute
            )  # of what another call gives, which is asked too
        root, _, rest = chain.partition(".")
        origin = self.source.imports.get(root)
        if origin is not None:
            top = origin.partition(".")[0]
            return top in _LIBRARIES and self.tree.module_path(self.source.path, origin) is None
        if rest:
            return self._is_plain(root)
        return root in _BUILTINS or self._is_tuple(root)

    def _is_plain(self, name: str) -> bool:
        """Whether an object of the file is one of a library's that knows no graphs: `parser.add_argument(…)`.

        Not one that is made of itself, `name = name.strip()`: what it was first, nothing here tells.
        """
        key = (self.source.path, name)
        if key in self._asked:
            return False
        self._asked.add(key)
        try:
            return self._is_made_plain(name)
        finally:
            self._asked.remove(key)

    def _is_made_plain(self, name: str) -> bool:
        made = [
            each.value
            for each in walk(self.source.module)
            if isinstance(each, cst.Assign)
            for target in each.targets
            if code(target.target) == name
        ]
        return bool(made) and all(
            isinstance(each, cst.Call)
            and self.is_harmless(each, 1)
            or isinstance(
                each, cst.BaseNumber | cst.BaseString | cst.List | cst.Dict | cst.Attribute
            )
            and not any(isinstance(one, cst.Call) for one in walk(each))
            for each in made
        )

    def _is_tuple(self, name: str) -> bool:
        """Whether a name is that of a `namedtuple`, here or in a file that a star takes all of."""
        files = [self.source]
        for star in self.source.star_imports:
            path = self.tree.module_path(self.source.path, star) if star.strip(".") else None
            other = self.tree.file(path) if path else None
            if other is None:
                return False
            files.append(other)
        made = [
            each.value
            for file in files
            for each in walk(file.module)
            if isinstance(each, cst.Assign) and any(code(t.target) == name for t in each.targets)
        ]
        return (
            len(made) == 1
            and re.match(r"(?:collections\.)?namedtuple\(", code(made[0])) is not None
        )


def _looks_elsewhere(tree: Tree, source: SourceFile) -> bool:
    """Whether anything that the program may run looks for a graph, or runs, where it would not be the same."""
    seen: set[str] = set()
    waiting = [source.path]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += tree.imports.get(path, ())
    if any(_ELSEWHERE.search(tree.sources.get(path, "")) for path in seen):
        return True
    return any(_begins_a_graph(tree.file(path)) for path in seen - {source.path})


def _begins_a_graph(file: SourceFile | None) -> bool:
    """Whether a file does anything with a graph when it is read."""
    read = (
        [] if file is None else [n for n in file.module.body if not isinstance(n, cst.FunctionDef)]
    )
    return file is None or any(
        not (file.tf(call.func) or "tf.app.").startswith(QUIET)
        for node in read
        if not (isinstance(node, cst.If) and "__name__" in code(node.test))
        for call in walk(node, into_functions=False)
        if isinstance(call, cst.Call)
    )


def _block(source: SourceFile) -> Sequence[cst.BaseStatement]:
    return statements(source.module)


def _is_new_graph(source: SourceFile, node: cst.With) -> bool:
    """`with tf.Graph().as_default():`, and nothing that needs more of the graph around it."""
    first = node.items[0].item
    return (
        isinstance(first, cst.Call)
        and isinstance(first.func, cst.Attribute)
        and first.func.attr.value == "as_default"
        and isinstance(first.func.value, cst.Call)
        and source.tf(first.func.value.func) == "tf.Graph"
    )


def _has_own_graph(tree: Tree, source: SourceFile, function: cst.FunctionDef) -> bool:
    """Whether all that a function does with TensorFlow stands in a graph that it makes."""
    around = _Starts(tree, source)
    waiting: list[cst.CSTNode] = list(statements(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.With) and _is_new_graph(source, node):
            continue
        if not around.is_harmless(node, 2):
            return False
        waiting += children(node)
    return True


def _in_own_graph(file: PlainFile, source: SourceFile, entry: _Entry) -> Change | None:
    """The call's line in a block of its own; None where it shares one."""
    where = source.span(entry.statement)
    start = file.starts[where.line - 1]
    margin = file.text[start : start + where.column]
    if margin.strip():
        return None
    begin = start + where.column
    end = file.starts[where.end_line - 1] + where.end_column
    parts = ("with tf.Graph().as_default():\n", f"{margin}    ", (begin, end))
    return Change(begin, end, parts, ALWAYS)
