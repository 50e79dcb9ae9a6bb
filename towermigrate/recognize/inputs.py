"""Where the towers' inputs come from: a slice of a placeholder, one of several splits or placeholders, a queue, an iterator."""

from __future__ import annotations

import libcst as cst

from towermigrate.program import InputKind
from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.own_inputs import is_pipeline, what_acts
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.slices import counted_rows, slice_size
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import assigned, binds, code, elements, reads, walk
from towermigrate.recognize.tower import Body, Input, outer_reads

_NAMES_OR_PLACES = ("tf.device", "tf.name_scope", "tf.op_scope", "tf.variable_scope")


class InputReader:
    """Adds to `body.inputs` what the statements of a tower loop's body read.

    Args:
        file: the file of the tower loop.
        kinds: the kinds of the names bound before it.
        body: the body as far as it has been taken apart.
        splits: the rows of one part, by the name of a list of parts (`tf.split`).
    """

    def __init__(self, file: SourceFile, kinds: Kinds, body: Body, splits: dict[str, str]) -> None:
        self.file = file
        self.kinds = kinds
        self.body = body
        self.splits = splits
        self.own: list[Input] = []

    def bound(
        self,
        node: cst.BaseStatement,
        names: list[str],
        value: cst.BaseExpression,
        lead: list[cst.EmptyLine],
    ) -> bool:
        """Whether the assignment `names = value` binds inputs and nothing else."""
        if self._own(node, names, value, lead):
            return True
        parts = elements(value)
        if parts is not None and len(parts) == len(names) and len(names) > 1:
            pieces = [self._piece(p) for p in parts]
            if all(p is not None for p in pieces):
                for name, piece in zip(names, pieces, strict=True):
                    assert piece is not None
                    self._once(node, piece)
                    self.body.inputs.append(
                        Input((name,), piece[0], piece[1], node, piece[2], lead)
                    )
                return True
            return False
        if len(names) == 1:
            piece = self._piece(value)
            if piece is not None:
                self._once(node, piece)
                self.body.inputs.append(
                    Input((names[0],), piece[0], piece[1], node, piece[2], lead)
                )
                return True
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            receiver = self.kinds.of(value.func.value)
            method = value.func.attr.value
            if receiver in (Kind.QUEUE, Kind.PIPELINE) and method in ("dequeue", "get_next"):
                kind: InputKind = "queue" if method == "dequeue" else "iterator"
                self.body.inputs.append(
                    Input(tuple(names), kind, code(value.func.value), node, None, lead)
                )
                return True
        return False

    def _own(
        self,
        node: cst.BaseStatement,
        names: list[str],
        value: cst.BaseExpression,
        lead: list[cst.EmptyLine],
    ) -> bool:
        """Whether an assignment makes a pipeline of the tower's own, or takes what one gives next."""
        made = {name for given in self.own for name in given.names}
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            receiver = value.func.value
            shared = isinstance(receiver, cst.Name | cst.Attribute) and not made & set(
                reads(receiver)
            )
            if shared and self.kinds.of(receiver) in (Kind.QUEUE, Kind.PIPELINE):
                return False  # what one pipeline for all towers gives next
        if not is_pipeline(self.kinds, value):
            return False
        around = self._entered(node)
        if around is not None:
            raise refuse(
                "TM208", self.file, node, f"`{code(value)}` makes inputs in the tower under `{around}`"
            )  # fmt: skip
        inside = (set(binds(self.body.node)) | set(binds(self.body.node.body))) - made
        of_tower = sorted(set(reads(value)) & (inside - {self.body.index}))
        acts = what_acts(self.kinds, value)
        if of_tower or acts is not None:
            raise refuse(
                "TM208", self.file, node,
                f"`{code(value)}` makes inputs in the tower, and reads `{of_tower[0]}` of it"
                if of_tower
                else f"`{code(value)}` makes inputs in the tower, and it is not known that `{acts}` has nothing to do with the rest of the graph",
            )  # fmt: skip
        before = sorted(
            name
            for name in reads(value)
            if name not in made and self.kinds.of_name(name) not in (Kind.PYTHON, Kind.TOWER_LIST)
        )
        if before:
            raise refuse(
                "TM208", self.file, node,
                f"`{code(value)}` makes inputs in the tower of `{before[0]}`, which is made once for all towers",
            )  # fmt: skip
        again = sorted(made & set(names))
        if again:
            raise refuse(
                "TM208", self.file, node, f"the input `{again[0]}` is bound anew in the tower"
            )
        source = " ".join(code(value).split())
        self.own.append(Input(tuple(names), "own", source, node, None, lead))
        self.body.inputs.append(self.own[-1])
        self.kinds.env.update(dict.fromkeys(names, self.kinds.of(value)))
        return True

    def _entered(self, node: cst.BaseStatement) -> str | None:
        """What a statement of the tower stands under that may do more than name and place."""
        for outer in walk(self.body.node):
            if isinstance(outer, cst.With) and any(each is node for each in walk(outer.body)):
                for item in outer.items:
                    call = item.item
                    name = self.file.tf(call.func) if isinstance(call, cst.Call) else None
                    if name not in _NAMES_OR_PLACES:
                        return code(item.item)
        return None

    def made(self) -> None:
        """Of pipelines of the towers' own: only what the towers read is an input, the rest are parts of the pipelines."""
        read = {name for node in self.body.kept for name in outer_reads(node, self.body.inline)}
        for compute in self.body.computes:
            read |= set(reads(compute.loss))
        for given in self.own:
            later = {
                name for other in self.own if other.statement is not None and other is not given
                for found in [assigned(other.statement)] if found is not None for name in reads(found[1])
            }  # fmt: skip
            parts = later & set(given.names)
            if parts & read or parts and parts != set(given.names):
                raise refuse(
                    "TM208", self.file, given.statement or self.body.node,
                    f"`{sorted(parts)[0]}` is a part of the towers' input pipelines, and the towers read more of it",
                )  # fmt: skip
            if parts:
                given.names = ()
            for name in given.names:
                del self.kinds.env[name]

    def inline(self, node: cst.CSTNode) -> None:
        """Inputs that stand in an expression without a name: they get that of their source."""
        for inner in walk(node):
            piece = self._piece(inner)
            if piece is not None:
                name = piece[1]  # BodyChecks sees that nothing else reads the source by it
                self.body.inline[inner] = name
                if name not in self.body.parameters:
                    self._once(inner, piece)
                    self.body.inputs.append(Input((name,), piece[0], piece[1], None, piece[2]))
                elif not any(
                    i.names == (name,) and (i.kind, i.size) == (piece[0], piece[2])
                    for i in self.body.inputs
                ):
                    self._twice(inner, name)

    def _once(self, node: cst.CSTNode, piece: tuple[InputKind, str, str | None]) -> None:
        """Refuse a second part of one source: a step is given each source once."""
        source = self.splits.get(piece[1], piece[1])
        if any(self.splits.get(i.source, i.source) == source for i in self.body.inputs):
            self._twice(node, source)

    def _twice(self, node: cst.CSTNode, source: str) -> None:
        raise refuse("TM208", self.file, node, f"the towers take two different parts of `{source}`")

    def same(self) -> None:
        """Placeholders and pipeline tensors that the body reads whole: every tower gets the same."""
        taken = set(self.body.parameters)
        for node in self.body.kept:
            for name in outer_reads(node, self.body.inline):
                kind = self.kinds.of_name(name)
                if name in taken or name in self.body.bound and kind is Kind.PYTHON:
                    continue
                if kind is Kind.SPLITS or name in self.kinds.listed:
                    raise refuse(
                        "TM208",
                        self.file,
                        node,
                        f"`{name}` is used other than as `{name}[{self.body.index}]`",
                    )
                if kind in (Kind.PLACEHOLDER, Kind.PIPELINE):
                    self.body.inputs.append(Input((name,), "same", name))
                    taken.add(name)

    def _is_known(self, size: str) -> bool:
        """Whether the rows of a tower are a number of Python's, or those of a placeholder that is fed any number of them."""
        counted = counted_rows(size)
        if counted is None:
            return True
        source, _ = counted
        return self.kinds.of_name(source) is Kind.PLACEHOLDER

    def _piece(self, value: cst.CSTNode) -> tuple[InputKind, str, str | None] | None:
        """`(kind, source, size)` of `x[i * b:(i + 1) * b]` or `splits[i]`."""
        index = self.body.index
        if not isinstance(value, cst.Subscript) or not isinstance(value.value, cst.Name):
            return None
        source = value.value.value
        first = value.slice[0].slice
        kind = self.kinds.of_name(source)
        if kind is Kind.SPLITS and len(value.slice) == 1 and isinstance(first, cst.Index):
            if code(first.value) == index:
                return "split", self.splits.get(source, source), None
            return None
        if source in self.kinds.listed:
            one = len(value.slice) == 1 and isinstance(first, cst.Index)
            return ("per_tower", source, None) if one and code(first) == index else None
        if kind is Kind.PLACEHOLDER and isinstance(first, cst.Slice) and index in reads(value):
            rest = [code(s.slice) for s in value.slice[1:]]
            if any(r not in (":", "...") for r in rest):
                return None
            size = slice_size(first, index)
            if size is not None and self._is_known(size):
                return "slice", source, size
        return None
