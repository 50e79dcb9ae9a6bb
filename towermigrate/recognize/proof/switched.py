"""What rests on TensorFlow 1's behaviour around a program, where loop style has TensorFlow 2's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External
from towermigrate.recognize.proof import library
from towermigrate.recognize.proof.code import Code, last_name
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.tree import all_nodes

_ASKS = frozenset({
    "executing_eagerly", "executing_eagerly_outside_functions", "enable_eager_execution", "enable_v2_behavior",
    "control_flow_v2_enabled", "resource_variables_enabled",
})  # fmt: skip
_MAY_REST = (ast.Attribute, ast.Name, ast.ImportFrom, ast.Call)
_SHAPES = frozenset({"tf.TensorShape", "tf.Dimension"})
_MAKES = frozenset({
    "tf.constant", "tf.Variable", "tf.get_variable", "tf.placeholder", "tf.placeholder_with_default",
    "tf.train.get_or_create_global_step", "tf.train.create_global_step", "tf.contrib.framework.get_or_create_global_step",
})  # fmt: skip


def check_switches(proof: TowerProof) -> None:
    """Report what, in the process of a program, switches TensorFlow 2 off, asks which of the two it is, or builds a graph by itself."""
    files = proof.files
    moved = {id(n) for statement in proof.moved_nodes for n in all_nodes(statement)}
    for code in files:
        for switch in code.switches:
            proof.always(
                "TM236", code, switch,
                f"`{code.said(switch)}` switches off what loop style is made of",
            )  # fmt: skip
        for node in code.nodes:
            how = _rests(proof, code, node) if isinstance(node, _MAY_REST) else None
            if how is not None:
                proof.always("TM236", code, node, f"`{code.said(node)}` {how}")
        for call, name in calls_of_tensorflow(proof, code):
            if name in _SHAPES and id(call) not in moved:
                proof.always(
                    "TM228", code, call,
                    f"`{code.said(call)}` gives sizes that are numbers in TensorFlow 2, and objects in TensorFlow 1",
                )  # fmt: skip
        if proof.function or code is not proof.code:
            at_import = {id(node) for node in own_nodes(read_at_once(proof, code))}
            for call, name in calls_of_tensorflow(proof, code):
                if id(call) in at_import and id(call) not in moved and makes_tensors(name):
                    proof.always(
                        "TM217", code, call,
                        f"`{code.said(call)}` is made when its file is read: in loop style at once, and not in a graph",
                    )  # fmt: skip


def read_at_once(proof: TowerProof, code: Code) -> list[ast.stmt]:
    """The statements of a file that run when it is read: of a file that the program imports, not what it does as a script."""
    scripts = proof.codes.tree.users.get(proof.code.path, {proof.code.path})
    return [
        node
        for node in code.tree.body
        if code.path in scripts
        or not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
    ]


def _rests(proof: TowerProof, code: Code, node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute | ast.Name) and last_name(node) in _ASKS:
        return "asks for, or sets, the behaviour that loop style changes"
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow.python"):
        if any(alias.name == "tf2" for alias in node.names):
            return "asks for the behaviour that loop style changes"
    if isinstance(node, ast.Call) and last_name(node.func) == "getattr" and node.args:
        of = node.args[0]
        if isinstance(of, ast.Name) and of.id in code.bindings:
            with proof.mode(False):
                value = proof.value(of, proof.module(code))
            if isinstance(value, External) and (value.name == "tf" or value.name.startswith("tf.")):
                return "may be any function of TensorFlow"
    return None


def calls_of_tensorflow(proof: TowerProof, code: Code) -> Iterator[tuple[ast.Call, str]]:
    """The calls of a file of what its names say is TensorFlow's."""
    for node in code.calls_of_imports:
        with proof.mode(False):
            value = proof.value(node.func, proof.module(code))
        if isinstance(value, External) and value.name.startswith("tf."):
            yield node, value.name


def makes_tensors(name: str) -> bool:
    """Whether a function of TensorFlow makes something of a graph as soon as it is called."""
    return name in _MAKES or name in library.PURE - library.INITIALIZERS - library.SUMMARIES
