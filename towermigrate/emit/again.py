"""Programs that run more than once in a process, each time in a graph of their own."""

from __future__ import annotations

import re

import libcst as cst

from towermigrate.emit.count_changes import CountChanges
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.scope import bare_call
from towermigrate.recognize.syntax import assigned, binds, calls, code, parameters, walk


def may_run_again(analysis: Analysis) -> bool:
    """Whether every run of a program begins anew in loop style too; `analysis.anew` then says that it is to be seen to.

    Variables, steps and savers are made by each call. What TensorFlow keeps of a program beside them is the global step,
    which goes with the graph that its function makes. The number of towers must be the same each time: devices are
    set up once in a process. What draws by a seed must not be there: in each graph it began anew, and eager operations go on.
    """
    function, program = analysis.candidate.function, analysis.program
    if function is None or program is None or analysis.joined is not None:
        return False
    if _draws_by_seeds(analysis):
        return False
    own = {*parameters(function), *binds(function.body)}
    counted = program.loop.count.expression
    if own & set(re.findall(r"\w+", counted)):
        return False
    if CountChanges(analysis.tree, analysis.file.path, counted).may_be_by(function):
        return False
    analysis.anew = _begins_anew(analysis, function)
    return analysis.anew


def _draws_by_seeds(analysis: Analysis) -> bool:
    """Whether anything of the program may be drawn by a seed of its own."""
    for file in analysis.tree.near(analysis.file):
        for call in calls(file.module):
            name = file.tf(call.func) or ""
            keywords = {each.keyword.value for each in call.args if each.keyword is not None}
            if name and "seed" in keywords or name.endswith("set_random_seed"):
                return True
            if _RANDOM.search(name) and _may_be_given_one(
                call, 0 if _SEED_FIRST.search(name) else 1
            ):
                return True
    return False


_RANDOM = re.compile("random|truncated|scaling|xavier|glorot|he_|lecun|orthogonal|dropout|shuffle")
_SEED_FIRST = re.compile("glorot|he_|lecun")


def _may_be_given_one(call: cst.Call, first: int) -> bool:
    """Whether a whole number, or what is not written out, stands where a seed may be given by its place."""
    given = [each.value for each in call.args if each.keyword is None and not each.star]
    plain = (cst.Float, cst.List, cst.Tuple, cst.Attribute, cst.SimpleString, cst.UnaryOperation)
    return any(each.star for each in call.args) or any(
        not isinstance(each, plain) for each in given[first:]
    )


def _begins_anew(analysis: Analysis, function: cst.FunctionDef) -> bool:
    """Whether a function makes the graph of its towers: it resets the default one first, or enters one that it makes."""
    file = analysis.file
    for node in function.body.body:
        if isinstance(node, cst.SimpleStatementLine):
            call = bare_call(node)
            if call is not None and file.tf(call.func) == "tf.reset_default_graph":
                return True
    made: set[str] = set()
    for each in walk(function.body):
        if isinstance(each, cst.SimpleStatementLine) and (found := assigned(each)) is not None:
            names, value = found
            if isinstance(value, cst.Call) and file.tf(value.func) == "tf.Graph":
                made.update(names)
    return any(
        _enters(analysis, item, made)
        for each in walk(function.body)
        if isinstance(each, cst.With) and any(n is analysis.candidate.loop for n in walk(each))
        for item in each.items
    )


def _enters(analysis: Analysis, item: cst.WithItem, made: set[str]) -> bool:
    """Whether `with` enters `tf.Graph()`, or one of the names that are bound to such."""
    call = item.item
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    if call.func.attr.value != "as_default":
        return False
    graph = call.func.value
    if isinstance(graph, cst.Call):
        return analysis.file.tf(graph.func) == "tf.Graph"
    return code(graph) in made
