"""Run sums of a collection that towers share: `tf.add_n(tf.get_collection('losses'))` counts those of the towers before.

The graph has one collection for all towers, so a tower that sums it without a scope sums what the towers before it added
too. In a step each replica adds to a collection of its own, and the helpers' `with_towers_before` adds the sums of the
replicas before it: the same number, with the same gradients, averaged over the towers. It is so where towers alone add to
the collection, each before it sums it, and where the gradients of one tower are nothing but averaged.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from towermigrate.flow.values import Unknown, Value
from towermigrate.recognize.proof.code import Code, Codes, last_name
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.live import is_dead, live_functions
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.regularizers import Regularizers
from towermigrate.recognize.proof.values import (
    SHARED,
    Collected,
    needs_of,
    text_of,
)

_ADDS = frozenset("add_to_collection add_to_collections get_collection_ref".split())
_OF_LIBRARY = frozenset("losses LOSSES add_loss".split())
"""What TensorFlow collects its own losses by, under a key that a program may have too."""


@dataclass(frozen=True)
class Sum:
    """A call that sums what a `read` finds in a collection of all towers.

    `function` is that of its file which it stands in, or the class, `key` the collection's; `added` counts what its tower had added to
    collections by then.
    """

    code: Code
    call: ast.Call
    read: ast.Call
    function: str
    key: str
    added: int


class SoFar(Regularizers):
    """Evaluates sums of collections that towers share; `sums` are those, by what stands for them in the needs of tensors."""

    def __init__(self, codes: Codes) -> None:
        super().__init__(codes)
        self.sums: dict[str, Sum] = {}
        self.added: list[tuple[str, Code, ast.Call]] = []
        """What towers add to collections, with its key."""
        self._used: set[str] = set()

    @property
    def used_sums(self) -> list[Sum]:
        """Those that something depends on which is trained or fetched; others are thrown away."""
        return [one for need, one in self.sums.items() if need in self._used]

    def all_towers(self, needs: frozenset[str]) -> None:
        self._used |= needs & self.sums.keys()
        super().all_towers(needs)

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if self.strict and self.where == "a tower" and not self.evaluates:
            if name == "tf.add_n":
                self._sum(args, node, frame)
            elif name == "tf.add_to_collection":
                self.added.append((text_of(args.get(0, "name")) or "", frame.code, node))
        if self.strict and name == "tf.gradients":
            self._takes_gradients(args, node, frame)
        return super().tf_call(name, args, node, frame)

    def gradient_needs(self, needs: frozenset[str]) -> frozenset[str]:
        """What gradients need of what their loss needs: those of one tower are no tower's of the author, but their mean is."""
        needs = super().gradient_needs(needs)
        for key in sorted(needs & self.sums.keys()) if self.where == "a tower" else ():
            one = self.sums[key]
            alone = f"{key} by itself"
            self.unscoped[alone] = one.code, one.read
            needs |= {alone}
        return needs

    def averaged_needs(self, needs: frozenset[str]) -> frozenset[str]:
        """What the mean over the towers needs of what their gradients need."""
        return needs - {f"{key} by itself" for key in self.sums}

    def _sum(self, args: Arguments, node: ast.Call, frame: Frame) -> None:
        """Note a sum of all that a collection holds, where that is all that is done with what it holds."""
        given = args.get(0, "inputs")
        read = node.args[0] if node.args else None
        if not isinstance(given, Collected) or not isinstance(read, ast.Call) or self.maybe:
            return
        code = frame.code
        line, column = code.place(read)
        key = read.args[0] if len(read.args) == 1 and not read.keywords else None
        if given.need != f"{SHARED}{code.path}:{line}:{column}" or code is not self.home:
            return
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        around = [each for each in code.tree.body if any(n is node for n in ast.walk(each))]
        if len(around) != 1 or not isinstance(around[0], ast.FunctionDef | ast.ClassDef):
            return
        if (
            len([each for each in self.added if each[0] == key.value]) < 2
            and "name" not in args.named
        ):
            return  # of one part the first tower's sum is that part, with its name
        self.unscoped.pop(given.need, None)
        made = Sum(code, node, read, around[0].name, key.value, len(self.added))
        self.sums.setdefault(given.need, made)

    def _takes_gradients(self, args: Arguments, node: ast.Call, frame: Frame) -> None:
        if needs_of(args.get(0, "ys") or Unknown()) & self.sums.keys():
            self.always(
                "TM219", frame.code, node,
                f"`{frame.code.said(node)}` takes gradients of a loss that counts those of the towers before",
            )  # fmt: skip

    def _belongs(self) -> tuple[object, ...]:
        return *super()._belongs(), len(self.sums)


def check_sums(proof: SoFar, home: Code) -> None:
    """Report sums of collections to which anything may add that is not run in towers alone.

    Args:
        proof: the run of the program.
        home: its file.
    """
    files = files_beside(proof.codes, home.path) if proof.sums else None
    live = live_functions(proof.codes, files or [])
    for one in proof.used_sums:
        for key, code, node in proof.added[one.added :]:
            if key == one.key:
                proof.always(
                    "TM219", code, node,
                    f"`{code.said(node)}` adds to a collection that its tower has summed, and that the towers behind it sum",
                )  # fmt: skip
        where = None if files is None else added_elsewhere(proof, files, live, one.key)
        if files is None or where is not None:
            said = f" (line {where[0].place(where[1])[0]} of {where[0].path})" if where else ""
            proof.always(
                "TM219", one.code, one.call,
                f"`{one.code.said(one.call)}` may find what was not added by the towers{said}",
            )  # fmt: skip


def added_elsewhere(
    proof: SoFar, files: list[Code], live: frozenset[tuple[str, str]], key: str
) -> tuple[Code, ast.AST] | None:
    """A place that may add to a collection and that is not run in towers alone."""
    for code in files:
        for node in code.nodes:
            if not _may_add(node, key):
                continue
            moved = id(node) in proof.moved_calls and id(node) not in proof.staying_calls
            added = isinstance(node, ast.Call) and last_name(node.func) == "add_to_collection"
            if not (moved and added) and not is_dead(code, node, live):
                return code, node
    return None


def _may_add(node: ast.AST, key: str) -> bool:
    if isinstance(node, ast.Attribute) and key == "losses" and node.attr in _OF_LIBRARY:
        return True
    if not isinstance(node, ast.Call):
        return False
    if any(each.arg is None or "collection" in each.arg for each in node.keywords):
        return True
    if last_name(node.func) not in _ADDS:
        return False
    given = node.args[0] if node.args else None
    if isinstance(given, ast.Attribute):
        return given.attr.lower() == key.lower() or last_name(node.func) != "add_to_collection"
    return not isinstance(given, ast.Constant) or given.value == key
