"""What is built behind the towers of their variables, to be looked at by runs of its own: `test_out = net(test_x)`."""

from __future__ import annotations

import libcst as cst

from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.scope import Item
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import assigned, calls

_PLAIN = frozenset({Kind.PYTHON, Kind.PLACEHOLDER, Kind.VARIABLE, Kind.EVALUATION, Kind.WEIGHTS})
"""What an evaluation may read: nothing of the towers, and nothing that draws."""
_MAKERS = ("tf.layers.", "tf.Variable", "tf.variable_scope")


def makes_variables(kinds: Kinds, file: SourceFile, call: cst.Call) -> bool:
    """Whether a call makes or reuses variables, itself or by a function of the tree."""
    return any(
        called == "tf.get_variable" or called.startswith(_MAKERS)
        for called in called_by(kinds, file, call)
    )


def called_by(kinds: Kinds, file: SourceFile, call: cst.Call) -> frozenset[str]:
    """The TF1 names that a call calls, itself or by a function of the tree."""
    name = file.tf(call.func)
    function = None if name else kinds.traits.tree.resolve(file, call.func)
    return kinds.traits.called(function) if function is not None else frozenset({name or ""})


def is_evaluation(kinds: Kinds, file: SourceFile, item: Item) -> bool:
    """Whether a statement of the graph builds the model once more, of inputs or of what was built so.

    What it binds must be new names, and what it reads nothing of the towers: then no step needs it.
    """
    if not item.binds or item.changes or isinstance(item.node, cst.FunctionDef | cst.ClassDef):
        return False
    known = {kinds.env[name] for name in item.binds if name in kinds.env}
    read = {kinds.of_name(name) for name in item.reads | item.ordered_after}
    if known - {Kind.EVALUATION} or not read <= _PLAIN:
        return False
    found = assigned(item.node)
    if found is not None:
        value = found[1]
        if isinstance(value, cst.Dict | cst.List | cst.Tuple):
            return False
        if kinds.of(value) not in (Kind.TENSOR, Kind.SPLITS, Kind.EVALUATION):
            return False
    if read & {Kind.PLACEHOLDER, Kind.EVALUATION}:
        return True
    return any(makes_variables(kinds, file, call) for call in calls(item.node))
