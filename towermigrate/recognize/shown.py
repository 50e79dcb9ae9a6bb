"""What functions that build parts of a graph print of it: TensorFlow 2 writes tensors and their shapes otherwise."""

from __future__ import annotations

import re

import libcst as cst

from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import children, code, elements, parameters, walk

QUIET = (
    "tf.app.", "tf.flags.", "tf.logging.", "tf.gfile.", "tf.ConfigProto", "tf.GPUOptions", "tf.python_io.",
    "tf.train.latest_checkpoint", "tf.train.get_checkpoint_state", "tf.train.checkpoint_exists",
    "tf.contrib.training.HParams",
)  # fmt: skip
"""What has nothing to do with a graph, or begins with it."""
_NO_TENSORS = (
    *QUIET, "tf.Session", "tf.InteractiveSession", "tf.train.Saver", "tf.summary.FileWriter", "tf.train.SummaryWriter",
    "tf.train.Coordinator", "tf.train.start_queue_runners", "tf.global_variables_initializer",
)  # fmt: skip


def shows_tensors(file: SourceFile, function: cst.FunctionDef) -> bool:
    """Whether a function may print a tensor or a static shape: TensorFlow 2 writes `None` where TensorFlow 1 wrote `?`."""
    body, given = function.body, set(parameters(function))
    of_graph: set[str] = set()
    while True:
        before = len(of_graph)
        for each in walk(body):
            if isinstance(each, cst.Assign | cst.For | cst.AugAssign):
                value = each.iter if isinstance(each, cst.For) else each.value
                if _is_of_graph(file, value, of_graph):
                    targets = each.targets if isinstance(each, cst.Assign) else [each]
                    for target in targets:
                        for one in elements(target.target) or [target.target]:
                            of_graph.add(code(one))
            elif isinstance(each, cst.Call) and _builds(file, each) and each.args:
                # What a function of TensorFlow takes first is what it computes with.
                first = code(each.args[0].value)
                if first in given and not code(each.func).endswith("_producer"):
                    of_graph.add(first)
        if len(of_graph) == before:
            break
    return any(
        isinstance(each, cst.Call)
        and re.search(
            r"(?:^print|\bwrite|\binfo|\bdebug|\bwarning|\bwarn|^str|^repr|format)$",
            code(each.func),
        )
        and any(_is_of_graph(file, arg.value, of_graph) for arg in each.args)
        for each in walk(body)
    )


def _builds(file: SourceFile, call: cst.Call) -> bool:
    name = file.tf(call.func)
    return name is not None and not name.startswith(_NO_TENSORS)


def _is_of_graph(file: SourceFile, node: cst.CSTNode, of_graph: set[str]) -> bool:
    """Whether an expression may be a tensor, or the static shape of one; what a run gives of it is none."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("run", "eval"):
            return False
        if code(node.func) == "len":
            return False
        if _builds(file, node) or "get_shape" in code(node.func):
            return True
    if isinstance(node, cst.Name | cst.Attribute) and code(node) in of_graph:
        return True
    if isinstance(node, cst.Attribute) and node.attr.value == "name":
        return False
    if isinstance(node, cst.BaseSimpleComp):
        own = (
            {code(node.for_in.target)} if _is_of_graph(file, node.for_in.iter, of_graph) else set()
        )
        return _is_of_graph(file, node.elt, of_graph | own)
    return any(_is_of_graph(file, each, of_graph) for each in children(node))


def is_name(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) or isinstance(node, cst.Attribute) and is_name(node.value)
