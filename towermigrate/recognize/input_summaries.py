"""What input pipelines of the towers' own summarize: the tower's summaries hold it, and in a step it is not there.

A queue tells how full it is, a reader shows its images. Where the towers' summaries are read by their scope, merged and
fetched, those of the last tower's pipeline go to what the run gives.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import Run, Scope
from towermigrate.recognize.kinds import OPS, collection_key
from towermigrate.recognize.own_inputs import makes_summaries
from towermigrate.recognize.scope import Item, bare_call
from towermigrate.recognize.source import Function, SourceFile
from towermigrate.recognize.syntax import argument, assigned, calls, code, reads, walk
from towermigrate.recognize.tower import Body

_GETS = ("tf.get_collection", "tf.get_collection_ref")
_MERGES = ("tf.summary.merge", "tf.merge_summary")
_KEYS = ("SUMMARIES", "summaries")


def merged_with_inputs(
    scope: Scope,
    body: Body,
    after: Sequence[Item],
    runs: Sequence[Run],
    functions: Sequence[Function],
) -> frozenset[str]:
    """The names of merged summaries, fetched by runs, that hold what the towers' own input pipelines summarize.

    Where the pipelines' summaries go another way, that is a reason.
    """
    kinds, file = scope.kinds, scope.file
    given = [each for each in body.inputs if each.kind == "own" and each.statement is not None]
    summarizing = []
    for each in given:
        found = assigned(each.statement) if each.statement is not None else None
        if found is not None and makes_summaries(kinds, found[1]):
            summarizing.append(each.statement)
    if not summarizing:
        return frozenset()
    roots: list[tuple[SourceFile, cst.CSTNode]] = [(file, node) for node in body.kept]
    roots += [(file, item.node) for item in after]
    roots += [(each.file, each.node) for each in functions]
    readers = [
        (where, call)
        for where, root in roots
        for call in calls(root)
        if where.tf(call.func) in _GETS and collection_key(where, call) in (*_KEYS, None)
    ]
    if not readers:
        return frozenset()
    name = _read_by_scope(scope, body, summarizing, [call for _, call in readers])
    merged = _merged(file, after, name) if name is not None else None
    if merged is None or not _fetched_alone(scope, runs, merged, after):
        where, call = readers[0]
        scope.reasons.say(
            "TM219", where, call,
            f"`{code(call)}` also holds what the towers' input pipelines summarize; it is understood where it is read by the "
            "scope of its tower, merged behind the towers, and fetched alone",
        )  # fmt: skip
        return frozenset()
    return merged


def _read_by_scope(
    scope: Scope,
    body: Body,
    made: Sequence[cst.BaseStatement | None],
    readers: Sequence[cst.Call],
) -> str | None:
    """`summaries` of the one statement `summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)` in the tower's scope."""
    if len(readers) != 1:
        return None
    reader = readers[0]
    for node in walk(body.node):
        if not isinstance(node, cst.With):
            continue
        inner = [each for each in walk(node.body) if isinstance(each, cst.SimpleStatementLine)]
        holders = [each for each in inner if (pair := assigned(each)) and pair[1] is reader]
        names = [
            item.asname.name.value
            for item in node.items
            if item.asname is not None
            and isinstance(item.asname.name, cst.Name)
            and isinstance(item.item, cst.Call)
            and scope.file.tf(item.item.func) == "tf.name_scope"
            and item.item.args
            and code(item.item.args[0].value) == body.name_scope
        ]
        read = argument(reader, 1, "scope")
        if not holders or read is None or code(read) not in names:
            continue
        own = [each for each in inner if any(each is one for one in made)]
        line = scope.file.line
        target = assigned(holders[0])
        if len(own) != len(made) or any(line(each) > line(holders[0]) for each in own):
            return None
        if any(isinstance(each, cst.With) for each in walk(node.body)) or target is None:
            return None  # another scope may stand around the pipelines
        if code(read) in {n for each in inner if (pair := assigned(each)) for n in pair[0]}:
            return None
        return target[0][0] if len(target[0]) == 1 else None
    return None


def _merged(file: SourceFile, after: Sequence[Item], name: str) -> frozenset[str] | None:
    """The names of `merged = tf.summary.merge(summaries)`; None where anything else is done but to append to the list."""
    merged: set[str] = set()
    for item in after:
        found = assigned(item.node)
        if found is not None and isinstance(found[1], cst.Call) and len(found[0]) == 1:
            inputs = argument(found[1], 0, "inputs")
            if file.tf(found[1].func) in _MERGES and inputs is not None and code(inputs) == name:
                merged.add(found[0][0])
                continue
        if name in item.binds:
            return None
        appended = [
            call
            for line in walk(item.node)
            if isinstance(line, cst.SimpleStatementLine)
            and (call := bare_call(line)) is not None
            and isinstance(call.func, cst.Attribute)
            and code(call.func) == f"{name}.append"
            and not any(name in reads(arg.value) for arg in call.args)
        ]
        if sum(isinstance(n, cst.Name) and n.value == name for n in walk(item.node)) != len(
            appended
        ):
            return None
    return frozenset(merged)


def _fetched_alone(
    scope: Scope, runs: Sequence[Run], merged: frozenset[str], after: Sequence[Item]
) -> bool:
    """Whether merged summaries are fetched by runs that give nothing else, and are used for nothing else."""
    fetched = {id(run.item.node) for run in runs}
    if any(item.reads & merged and id(item.node) not in fetched for item in after):
        return False
    for run in runs:
        values = [each for each in run.fetches if scope.kinds.of_name(each) not in OPS]
        if merged & set(values) and len(values) != 1:
            return False
    return True
