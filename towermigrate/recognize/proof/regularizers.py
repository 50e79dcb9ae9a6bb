"""Run what reads the losses of regularisers, and tell whether every tower finds the same ones.

A regulariser registers its loss once, where its variable is made: in TF1 in the first tower. What reads all of these
losses finds the same ones in every tower, if the tower has made all of its variables by then and nothing outside of the
towers registers any. What reads those of the tower's own name scope finds none but in the first tower; the helpers
keep the names, so a replica finds what its tower found.
"""

from __future__ import annotations

import ast
import re

from towermigrate.flow.values import Const, External, Value
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.branches import Branches
from towermigrate.recognize.proof.code import Code, Codes, last_name
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.live import is_dead, live_functions
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.values import (
    Items,
    Tensor,
    Text,
    needs_of,
    text_of,
)

_KEYS = ("tf.GraphKeys.REGULARIZATION_LOSSES", "regularization_losses")
_LOSSES = "losses of tf.losses"
"""What `tf.losses` collects, among the proof's own collections."""
_READS = {
    "tf.losses.get_regularization_losses": 0,
    "tf.losses.get_regularization_loss": 0,
    "tf.losses.get_losses": 0,
    "tf.losses.get_total_loss": 2,
}
"""Functions that read the collections of losses, and where the scope stands among their arguments."""
_PLAIN_SCOPE = re.compile(r"[A-Za-z0-9_/]+")
_MENTIONS = re.compile(r"regularizer|regularization_loss", re.IGNORECASE)
_ADDS = frozenset("set_regularizer add_loss add_to_collections get_collection_ref".split())


class Regularizers(Branches):
    """Evaluates what reads the losses of regularisers.

    `losses_read` are the places that read what is not the tower's alone; `moved_calls` and `staying_calls` are the calls
    that were run, in code that moves and in code that stays.
    """

    def __init__(self, codes: Codes) -> None:
        super().__init__(codes)
        self.losses_read: list[tuple[Code, ast.Call]] = []
        self.moved_calls: set[int] = set()
        self.staying_calls: set[int] = set()

    def call(self, function: Value, node: ast.Call, frame: Frame) -> Value:
        self.ran(node)
        return super().call(function, node, frame)

    def ran(self, node: ast.expr) -> None:
        """Note a call that is run, or a scope that is entered."""
        (self.moved_calls if self.strict else self.staying_calls).add(id(node))

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        if not self.strict or self.evaluates or self.where != "a tower" or args.starred:
            return super().tf_call(name, args, node, frame)
        if name == "tf.get_collection" and len(args.all()) <= 2:
            key = args.get(0, "key")
            text = key.name if isinstance(key, External) else text_of(key)
            if text in _KEYS and self._reads(args.get(1, "scope"), node, frame):
                return Items([(Tensor(), False)], False)
        if name in _READS and len(args.all()) <= 3:
            made = self._of_losses(name, args, node, frame)
            if made is not None:
                return made
        made = super().tf_call(name, args, node, frame)
        if name in library.LOSSES:
            self.collections.setdefault(_LOSSES, []).append((made, not self.maybe))
        return made

    def _of_losses(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        """What `tf.losses.get_…` gives; None where towers would find each other's losses."""
        scope = args.get(_READS[name], "scope")
        of_all = name in ("tf.losses.get_losses", "tf.losses.get_total_loss")
        if of_all and not (isinstance(scope, Text) and scope.of == "scope"):
            return None
        if not self._reads(scope, node, frame):
            return None
        found = list(self.collections.get(_LOSSES, [])) if of_all else []
        if name.endswith("losses"):
            return Items([*found, (Tensor(), False)], False)
        return Tensor(needs_of(Items(found, False)))

    def _reads(self, scope: Value | None, node: ast.Call, frame: Frame) -> bool:
        """Whether a tower finds the same losses by this scope, or by none, as its replica does."""
        if self.collections.keys() & _KEYS:
            return False
        self.lists_read.append((frame.code, node, self.made_variables))
        if isinstance(scope, Text):
            return scope.of == "scope"
        if scope is not None:
            text = scope.value if isinstance(scope, Const) else False
            plain = isinstance(text, str) and _PLAIN_SCOPE.fullmatch(text)
            if text is not None and (not plain or _MENTIONS.search(str(text))):
                return False
        self.losses_read.append((frame.code, node))
        return True


def check_regularizers(proof: Regularizers, home: Code) -> None:
    """Report reads of all losses of regularisers where any may come from elsewhere than the towers.

    Args:
        proof: the run of the program.
        home: its file.
    """
    if not proof.losses_read:
        return
    files = files_beside(proof.codes, home.path)
    added = proof.collections.keys() & _KEYS
    where = None if files is None or added else _elsewhere(proof, files)
    if files is not None and not added and where is None:
        return
    for code, node in proof.losses_read:
        said = f" (line {where[0].place(where[1])[0]} of {where[0].path})" if where else ""
        proof.always(
            "TM219", code, node,
            f"`{code.said(node)}` may find losses that were not registered in this tower{said}",
        )  # fmt: skip


def _elsewhere(proof: Regularizers, files: list[Code]) -> tuple[Code, ast.AST] | None:
    """A place that may register a loss and that is not run in towers alone."""
    live = live_functions(proof.codes, files)
    for code in files:
        reads = {id(n) for _, call in proof.losses_read for n in ast.walk(call)}
        for node in code.nodes:
            if id(node) in reads or not _may_register(node):
                continue
            moved = id(node) in proof.moved_calls and id(node) not in proof.staying_calls
            if not moved and not is_dead(code, node, live):
                return code, node
    return None


def _may_register(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in _ADDS:
        return True
    if name == "add_to_collection":
        key = node.args[0] if node.args else None
        if isinstance(key, ast.Attribute):
            return key.attr == "REGULARIZATION_LOSSES"
        return not isinstance(key, ast.Constant) or key.value == _KEYS[1]
    if name == "get_collection" or name.startswith("DEFINE_"):
        return False
    if any(k.arg is None or _MENTIONS.search(k.arg) for k in node.keywords):
        return any(k.arg is not None or _mentions(k.value) for k in node.keywords)
    return any(_mentions(each) for each in node.args)


def _mentions(node: ast.AST) -> bool:
    """Whether an expression names a regulariser, itself or by a key."""
    for inner in ast.walk(node):
        named = (
            getattr(inner, "id", None)
            or getattr(inner, "attr", None)
            or getattr(inner, "arg", None)
        )
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            named = inner.value if inner.value.isidentifier() else None
        if isinstance(named, str) and _MENTIONS.search(named):
            return True
    return False
