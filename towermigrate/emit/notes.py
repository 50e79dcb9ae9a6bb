"""What a rewrite tells the user beside the new source."""

from __future__ import annotations

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.refusal import note
from towermigrate.recognize.syntax import calls, code, walk


def notes(a: Analysis) -> list[Finding]:
    """Findings about meanings that were kept, odd as they are, or had to be chosen."""
    found: list[Finding] = []
    for run in a.runs:
        last = [
            f for f in run.fetches
            if a.kinds.of_name(f) is Kind.TOWER and f not in a.body.firsts
        ]  # fmt: skip
        if last:
            found.append(
                note(
                    "TM301",
                    a.file,
                    run.call,
                    f"{', '.join(f'`{n}`' for n in last)} is the value of the last tower, as it was",
                )  # fmt: skip
            )
        if len(run.trains) > 1:
            found.append(
                note(
                    "TM309",
                    a.file,
                    run.call,
                    f"{len(run.trains)} updates in one run had no fixed order; the gradients of all now come "
                    "first, then the updates in the order of the source",
                )
            )
    if len(a.stages) > 1:
        for stage in a.stages:
            if stage.compute.var_list is None and stage.how.none_policy == "crash":
                found.append(
                    note(
                        "TM303",
                        a.file,
                        stage.compute.call,
                        f"`{code(stage.compute.loss)}` may leave variables without gradients; the averaging "
                        "would crash on None, the rewrite gives zeros",
                    )  # fmt: skip
                )
    if a.normalizes:
        scope = a.candidate.function or a.file.module
        found += [
            note(
                "TM316",
                a.file,
                call,
                "the towers' updates of batch norm's moving averages had no order; they are made from the last tower to the first",
            )
            for call in calls(scope)
            if id(call) in a.kinds.updates_of_all
        ][:1]
    if "reuse_variables" in a.body.sharing and not _outer_scope(a):
        found.append(
            note(
                "TM308",
                a.file,
                a.candidate.loop,
                "reuse_variables() with no outer variable_scope: the original fails on TensorFlow 1.15",
            )  # fmt: skip
        )
    found += _of_configuration(a)
    return found


# What a session without them does too, for what loop style does.
_OF_PLACEMENT = frozenset({"allow_soft_placement", "log_device_placement", "gpu_options"})


def _of_configuration(a: Analysis) -> list[Finding]:
    """What sessions were configured with: one finding for each place."""
    scope = a.candidate.function or a.file.module
    found: list[Finding] = []
    for call in calls(scope):
        if a.file.tf(call.func) in ("tf.ConfigProto", "tf.GPUOptions"):
            gone = [each for each in call.args if each.keyword is not None]
            gone = [
                each for each in gone if each.keyword and each.keyword.value not in _OF_PLACEMENT
            ]
            texts = [f"{code(each.keyword)}={code(each.value)}" for each in gone if each.keyword]
            found += [_gone(a, call, texts)] if texts else []
    for node in walk(scope):
        if isinstance(node, cst.Assign) and isinstance(
            target := node.targets[0].target, cst.Attribute
        ):
            name, _, rest = code(target).partition(".")
            if a.kinds.of_name(name) is Kind.CONFIG and rest not in _OF_PLACEMENT:
                found.append(_gone(a, node, [f"{rest} = {code(node.value)}"]))
    return found


def _gone(a: Analysis, node: cst.CSTNode, texts: list[str]) -> Finding:
    return note("TM315", a.file, node, f"`{', '.join(texts)}` of the session is gone")


def _outer_scope(a: Analysis) -> bool:
    """Whether some `variable_scope(get_variable_scope())` keeps reuse from reaching the optimizers."""
    scope = a.candidate.function or a.file.module
    return any(
        a.file.tf(c.func) == "tf.variable_scope"
        and c.args
        and isinstance(c.args[0].value, cst.Call)
        and a.file.tf(c.args[0].value.func) == "tf.get_variable_scope"
        for c in calls(scope)
    )
