"""Session style: graph and session stay, the towers become replicas where they stand.

Three things change in the text, and nothing moves: the loop goes over `tm.towers(…)`, the devices of the towers go,
and `tm.mirror_variables(…)` stands where the graph begins. No function is made of the body, so Python runs each
tower once, in order, as before. All else is done by the helpers at run time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import libcst as cst

from towermigrate.emit.openings import Opening, openings
from towermigrate.emit.splices import Splices
from towermigrate.emit.tower_devices import drop_devices, kept_devices, names_of, soften_devices
from towermigrate.findings import Finding
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.part_loops import Part
from towermigrate.recognize.reach import tower_functions
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import dotted, statements, walk
from towermigrate.tree import is_script

HELPERS = "towermigrate.helpers"
_CODING = re.compile(r"[ \t\f]*#.*?coding[:=]")


@dataclass(frozen=True)
class Headline:
    """A tower loop by what is written at its head.

    Attributes:
        file: the file that it stands in.
        function: the function that it stands in, None at module level.
        node: the `for`, or the comprehension.
        target: what the loop binds.
        over: what it goes over.
        body: the statements of a `for`; None for a comprehension.
        turns: the `while` where the loop is one.
        part: what it goes over a part of, where another loop of its graph goes over all of it.
    """

    file: SourceFile
    function: cst.FunctionDef | None
    node: cst.CSTNode
    target: cst.BaseExpression
    over: cst.BaseExpression
    body: cst.BaseSuite | None
    turns: cst.While | None = None
    part: Part | None = None

    @classmethod
    def of(cls, candidate: Candidate, part: Part | None = None) -> Headline:
        loop, turns = candidate.loop, candidate.turns
        file, function, node = candidate.file, candidate.function, turns or loop
        return cls(file, function, node, loop.target, loop.iter, loop.body, turns, part)


class SessionStyle:
    """Writes the tower loops of a tree in session style, each into the texts that the earlier ones left.

    Args:
        tree: the tree as it was parsed for recognition.
        fixed: files that must not change. What would be put into one of them is left out where the program means
            the same without it.
    """

    def __init__(self, tree: Tree, fixed: Collection[str] = ()) -> None:
        self.tree = tree
        self.fixed = frozenset(fixed)
        self._splices: dict[str, Splices] = {}
        self._aliases: dict[str, str] = {}
        self._loops: set[str] = set()
        self._opened: dict[tuple[str, int], list[Opening]] = {}
        self._softened: set[tuple[str, int]] = set()
        self._heard: list[tuple[SourceFile, cst.CSTNode]] = []

    def convert(self, head: Headline) -> list[Finding]:
        """Put the edits for one loop on record; what is to be said of them."""
        file = head.file
        self._loops.add(file.path)
        self._heard.append((file, head.node))
        splices, alias = self._file(file)
        if head.turns is None:
            self._go_over_towers(splices, head.over, alias, head.part)
        else:
            self._turn_by_turn(splices, head.turns, alias)
        if head.body is not None:
            drop_devices(splices, head.body, set(names_of(head.target)), alias)
        kept = list(statements(head.body)) if head.body is not None else []
        nodes: Iterable[cst.CSTNode] = kept or [head.node]
        for function in tower_functions(self.tree, file, list(nodes)):  # type: ignore[arg-type]
            self._soften(function.file, function.node, head)
        return self._open(head)

    def left(self, towers: Collection[tuple[str, int]]) -> dict[str, Finding]:
        """By path, what is to be said of loops in the files of towers that keep a device for each turn.

        Args:
            towers: where tower loops stand, those too that are not converted.
        """
        said: dict[str, Finding] = {}
        for path in sorted(self._loops):
            file = self._splices[path].file
            lines: list[int] = []
            devices: list[str] = []
            heard = [file.span(node) for each, node in self._heard if each is file]
            for loop in walk(file.module):
                line = file.line(loop) if isinstance(loop, cst.For) else 0
                if not isinstance(loop, cst.For) or (path, line) in towers:
                    continue
                if not any(each.line <= line <= each.end_line for each in heard):
                    kept = kept_devices(file, loop)
                    devices += kept
                    lines += [line] * bool(kept)
            if lines:
                listed = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
                message = f"`{devices[0]}` stays in what is taken for no towers: {listed}"
                said[path] = Finding("TM317", path, lines[0], 0, message)
        return said

    def texts(self) -> dict[str, str]:
        """The new texts of the files that change; raises ValueError where edits overlap."""
        for opened in self._opened.values():
            self._put(opened[0], _most(each.count for each in opened))
        for path, splices in self._splices.items():
            if splices.edits:
                self._import(splices, self._aliases[path])
                if path in self._loops:
                    self._switch(splices)
        return {path: each.result() for path, each in self._splices.items() if each.edits}

    # ---- one loop --------------------------------------------------------------------------------

    def _file(self, file: SourceFile) -> tuple[Splices, str]:
        if file.path not in self._splices:
            self._splices[file.path] = Splices(file)
            self._aliases[file.path] = _alias(file)
        return self._splices[file.path], self._aliases[file.path]

    def _go_over_towers(
        self, splices: Splices, over: cst.BaseExpression, alias: str, part: Part | None
    ) -> None:
        start, end = splices.whole(over)
        place = "" if part is None or part.first is None else f", first={part.first}"
        spaced = "" if splices.text.text[start - 1 : start].isspace() else " "  # `for i in[0, 1]:`
        own = isinstance(over, cst.Tuple)  # the innermost brackets are the tuple's
        if len(over.lpar) > own:  # brackets that only group become those of the call
            splices.insert(start, f"{spaced}{alias}.towers")
            if place:
                splices.insert(end - 1, place)
            return
        bare = own and not over.lpar
        splices.insert(start, f"{spaced}{alias}.towers(" + "(" * bare)
        splices.insert(end, ")" * bare + place + ")")

    def _turn_by_turn(self, splices: Splices, loop: cst.While, alias: str) -> None:
        """`for _ in tm.towers(lambda: i < n):`, which asks before each turn and leaves a tower however it ends."""
        used = _names(splices.file)
        name = next(each for each in ("_", "_turn", "_tower_turn") if each not in used)
        start, _ = splices.span(loop)
        asked, end = splices.whole(loop.test)
        splices.replace(start, asked, f"for {name} in {alias}.towers(lambda: ")
        splices.insert(end, ")")

    def _soften(self, file: SourceFile, node: cst.FunctionDef, head: Headline) -> None:
        """Let a function that the towers call hear no devices in them."""
        if file.path in self.fixed or "device" not in file.text:
            return
        splices, alias = self._file(file)
        where = file.span(node)
        own = head.file.span(head.node)
        around = file is head.file and where.line <= own.line and own.end_line <= where.end_line
        if around or (file.path, where.line) in self._softened:
            return  # the function that the loop stands in; it calls itself, or its name is another's too
        self._softened.add((file.path, where.line))
        self._heard.append((file, node))
        soften_devices(splices, node.body, alias)

    def _open(self, head: Headline) -> list[Finding]:
        findings: list[Finding] = []
        places = openings(self.tree, head.file, head.function, head.node, head.over)
        said: list[str] = []
        for opening in places:
            if opening.file.path in self.fixed:
                continue
            node = opening.before
            offset, _ = self._file(opening.file)[0].span(node)
            self._opened.setdefault((opening.file.path, offset), []).append(opening)
            said.append(f"{opening.file.path}:{opening.file.line(node)}")
            if opening.count is None and head.part is None:  # that of the whole counts
                findings.append(
                    Finding(
                        "TM311",
                        head.file.path,
                        head.file.line(head.node),
                        0,
                        f"how many towers there are is not known at {said[-1]}, from where on variables are mirrored",
                    )  # fmt: skip
                )
        where = " and ".join(sorted(set(said))) or "the first tower"
        message = f"variables are mirrored from {where} on, where the graph of the towers begins"
        if not all(each.sure for each in places):
            message = (
                f"variables are mirrored from {where} on, where the graph of the towers seems to begin: where it has "
                "variables by then, none is mirrored, which a warning says in the run"
            )
        line = head.file.line(head.node)
        return [Finding("TM310", head.file.path, line, 0, message), *findings]

    def _put(self, opening: Opening, count: str) -> None:
        node = opening.before
        splices, alias = self._file(opening.file)
        offset, _ = splices.span(node)
        call = f"{alias}.mirror_variables({count})"
        indentation = splices.text.indentation(offset)
        if indentation is None:  # `with graph.as_default(): build()`
            splices.insert(offset, f"{call}; ", depth=-1)
            return
        line = opening.file.line(node)
        if isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
            line = opening.file.line(node.decorators[0])
        while (
            line > 1
            and splices.text.line(line - 1).startswith(f"{indentation}#")
            and not splices.inside_string(line - 1)
        ):
            line -= 1
        at = splices.text.starts[line - 1]
        splices.insert(at, f"{indentation}{call}{splices.text.newline}", depth=-1)

    def _import(self, splices: Splices, alias: str) -> None:
        if _imported(splices.file) is not None:
            return
        line = f"import {HELPERS} as {alias}"
        newline = splices.text.newline
        anchor, behind = _anchor(splices)
        if anchor is None:
            top = _top(splices.file)
            blank = (
                newline
                * 2
                * isinstance(splices.file.module.body[0], cst.FunctionDef | cst.ClassDef)
            )
            splices.insert(splices.text.starts[top], line + newline + blank, depth=-2)
        elif behind:
            _, end = splices.span(anchor)
            splices.insert(splices.text.line_end(end), newline + line, depth=-2)
        else:
            splices.insert(splices.text.starts[splices.file.line(anchor) - 1], line + newline, -2)

    def _switch(self, splices: Splices) -> None:
        """Let a module that no script of TensorFlow's runs turn the behaviour of TensorFlow 2 off itself.

        A script gets the switch with its new names.
        """
        path, file = splices.file.path, splices.file
        if "disable_v2_behavior" in file.text or "disable_eager_execution" in file.text:
            return
        for other in self.tree.users[path]:
            text = self.tree.sources[other]
            if "tensorflow" in text and "__main__" in text and is_script(text):
                return
        anchor, behind = _anchor(splices)
        body: list[cst.CSTNode] = list(file.module.body)
        if not behind or anchor not in body or not _of_tensorflow_below(anchor):
            return
        place = body.index(anchor)
        while place + 1 < len(body) and _is_import(body[place + 1]):
            place += 1
        called = next(
            (f"{n}.compat.v1" for n, o in file.imports.items() if o == "tensorflow"), None
        )
        called = called or next(
            (n for n, o in file.imports.items() if o == "tensorflow.compat.v1"), None
        )
        if called is not None:
            _, end = splices.span(body[place])
            newline = splices.text.newline
            line = f"{newline * 2}{called}.disable_v2_behavior()"
            splices.insert(splices.text.line_end(end), line, depth=-1)


def _most(counts: Iterable[str | None]) -> str:
    """The numbers of towers of the loops of one graph, as they are written; those that are known, and may be the largest."""
    known = dict.fromkeys(each for each in counts if each is not None)
    written = [each for each in known if not each.isdecimal()]
    largest = max((int(each) for each in known if each.isdecimal()), default=0)
    return ", ".join([*written, *([str(largest)] if largest > bool(written) else [])])


def _is_import(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(each, cst.Import | cst.ImportFrom) for each in node.body
    )


def _of_tensorflow_below(node: cst.CSTNode) -> bool:
    return any(
        _of_tensorflow(each) for each in walk(node) if isinstance(each, cst.Import | cst.ImportFrom)
    )


def _imported(file: SourceFile) -> str | None:
    """What the helpers are called in a file that imports them already."""
    for local, origin in file.imports.items():
        if origin == HELPERS and local != "towermigrate":
            return local
    return None


def _alias(file: SourceFile) -> str:
    """A name for the helpers that means nothing else in a file."""
    known = _imported(file)
    if known is not None:
        return known
    used = _names(file) | file.starred_words
    return next(
        name for name in ("tm", "towermigrate_helpers", "_towermigrate") if name not in used
    )


def _names(file: SourceFile) -> set[str]:
    """Every name of a file, attributes and keywords aside."""
    module = file.module
    labels = {id(node.attr) for node in walk(module) if isinstance(node, cst.Attribute)}
    labels |= {id(node.keyword) for node in walk(module) if isinstance(node, cst.Arg)}
    return {n.value for n in walk(module) if isinstance(n, cst.Name) and id(n) not in labels}


def _anchor(splices: Splices) -> tuple[cst.CSTNode | None, bool]:
    """The statement at module level that the import goes behind (True), or in front of (False).

    Behind TensorFlow's, where it is imported there before the helpers are called there.
    """
    file = splices.file
    outside = [
        node for node in file.module.body if not isinstance(node, cst.FunctionDef | cst.ClassDef)
    ]
    inner = [splices.span(node) for node in file.module.body if node not in outside]
    used = [
        edit.start
        for edit in splices.edits
        if not any(start <= edit.start < end for start, end in inner)
    ]
    head: cst.CSTNode | None = None
    first: cst.CSTNode | None = None
    other: cst.CSTNode | None = None
    for node in outside:
        if splices.span(node)[1] > min(used, default=len(splices.text.text)):
            break
        inside = [each for each in walk(node) if isinstance(each, cst.Import | cst.ImportFrom)]
        if any(_of_tensorflow(each) for each in inside):
            return node, True
        if any(_from_tensorflow(each) for each in inside):
            other = node
        if any(_module(each) == "__future__" for each in inside) or (
            node is file.module.body[0]
            and isinstance(node, cst.SimpleStatementLine)
            and isinstance(node.body[0], cst.Expr)
            and isinstance(node.body[0].value, cst.SimpleString | cst.ConcatenatedString)
        ):
            head = node
        elif inside and first is None:
            first = node
    last = other or head
    return (last, True) if last is not None else (first, False)


def _top(file: SourceFile) -> int:
    """The number of lines at the top of a file that must stay there: what a shell reads, the coding, a licence."""
    lines = file.text.split("\n", 2)[:2]
    fixed = [n for n, line in enumerate(lines, 1) if line.startswith("#!") or _CODING.match(line)]
    blank = [n for n, line in enumerate(file.module.header, 1) if line.comment is None]
    return max(*fixed, *blank, 0, 0)


def _of_tensorflow(node: cst.Import | cst.ImportFrom) -> bool:
    if isinstance(node, cst.Import):
        return any(
            _dotted(alias.name) in ("tensorflow", "tensorflow.compat.v1") for alias in node.names
        )
    return _module(node) == "tensorflow.compat"


def _from_tensorflow(node: cst.Import | cst.ImportFrom) -> bool:
    """`from tensorflow import *`, `import tensorflow.contrib.slim as slim`."""
    names = [_module(node)]
    if isinstance(node, cst.Import):
        names = [_dotted(alias.name) for alias in node.names]
    return any(name.partition(".")[0] == "tensorflow" for name in names)


def _module(node: cst.Import | cst.ImportFrom) -> str:
    if isinstance(node, cst.Import) or node.module is None:
        return ""
    return _dotted(node.module)


def _dotted(node: cst.CSTNode) -> str:
    return dotted(node) or ""
