"""Scripts that run a graph in a session: under TensorFlow 2 they must say so first.

Such a script gets `tf.compat.v1.disable_v2_behavior()` after its imports, unless something that it imports runs
eagerly, as rewritten tower programs do: one process cannot do both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace

from towermigrate.findings import Finding
from towermigrate.symbols.edits import Edit, splice
from towermigrate.symbols.switch import CALL, import_of, switch_edit
from towermigrate.symbols.tables import normal, prefix_in
from towermigrate.symbols.work import Mode, Pass, Script, SymbolResult
from towermigrate.tree import calls_entry

_SESSIONS = frozenset(
    "Session InteractiveSession train.MonitoredSession train.MonitoredTrainingSession "
    "train.SingularMonitoredSession train.Supervisor".split()
)
_RUNS_GRAPH = _SESSIONS | frozenset(
    "placeholder test.main contrib.slim.learning.train contrib.slim.evaluation.evaluate_once "
    "contrib.slim.evaluation.evaluation_loop".split()
)
_STARTS = _SESSIONS | {"app.run"}
_RUNS_EAGERLY = frozenset(
    "function GradientTape enable_eager_execution enable_v2_behavior contrib.eager".split()
)
_SWITCHES = frozenset("disable_v2_behavior disable_eager_execution".split())
# What is called as a module is imported, and would be the same under TensorFlow 2.
_DECLARES = frozenset(
    "app flags logging gfile io.gfile ConfigProto GPUOptions OptimizerOptions GraphOptions errors VERSION "
    "contrib.training.HParams contrib.framework.arg_scope contrib.framework.add_arg_scope contrib.slim.add_arg_scope "
    "contrib.slim.arg_scope compat.v1 load_op_library RegisterGradient NoGradient NotDifferentiable "
    "OpError TensorShape Dimension as_dtype FixedLenFeature VarLenFeature parse_version make_template".split()
)
_DECLARED = (
    "initializer",
    "initializer_conv2d",
    "regularizer",
    "Optimizer",
    "set_verbosity",
    "Feature",
)
_TOWERS = ("mirror_variables", "towers")


def mode(dotted: Iterable[str]) -> Mode:
    """What the names of a file, as `FileNames.dotted` gives them, say about how it runs."""
    dotted = set(dotted)
    plain = {found[0] for name in dotted if (found := normal(_as_contrib(name)))}
    return Mode(
        graph=any(prefix_in(name, _RUNS_GRAPH) for name in plain)
        or any(map(_is_of_session_style, dotted)),
        eager=any(prefix_in(name, _RUNS_EAGERLY) for name in plain),
        switched=bool(plain & _SWITCHES),
    )


def _is_of_session_style(dotted: str) -> bool:
    """Whether a name is one that only programs in session style call, which are graphs whatever else they say."""
    root, _, last = dotted.rpartition(".")
    return last in _TOWERS and root in ("towermigrate.helpers", "towermigrate_helpers")


def _as_contrib(dotted: str) -> str:
    return dotted.replace("tf_slim", "tensorflow.contrib.slim", 1)


def script_of(work: Pass, others: Sequence[Edit]) -> Script | None:
    """What a file that is run needs to be switched later; None for a module. `others` are the edits of its names."""
    if not is_script(work):
        return None
    first = next((u.chain for u in work.names.uses if _runs_graph(u.dotted)), None)
    node: ast.expr | ast.stmt = first or work.tree.body[0]
    finding = work.finding("TM119", node, "this script runs a graph in a session")
    late, early = (_switched(work, others, early=early) for early in (False, True))
    return Script(finding, late, early, _guarded(work, others))


def _guarded(work: Pass, others: Sequence[Edit]) -> str | None:
    """The new text of a script with the switch behind its `__main__` test; None where what it imports begins a graph."""
    alias, text = work.alias(), work.text
    guards = [each for each in work.tree.body if isinstance(each, ast.If) and _is_main_guard(each)]
    if alias is None or len(guards) != 1 or at_import(work)[0]:
        return None
    first = guards[0].body[0]
    start = text.span(first)[0]
    margin = text.text[text.text.rfind("\n", 0, start) + 1 : start]
    if margin.strip() or any(edit.start <= start < edit.end for edit in others):
        return None
    new = f"{alias.compat}.{CALL}{text.newline}{margin}"
    return splice(text.text, [*others, Edit(start, start, new)])


def _switched(work: Pass, others: Sequence[Edit], *, early: bool) -> str | None:
    """The new text of a script with the switch in it."""
    alias = work.alias()
    switch = switch_edit(work.text, work.tree, work.names, alias, early=early)
    if switch is None:
        return None
    around = next((edit for edit in others if edit.start < switch.start < edit.end), None)
    if around is not None:  # the line goes, so the switch stands behind the one before
        before = work.text.text[: around.start]
        line_end = next((end for end in ("\r\n", "\n", "\r") if before.endswith(end)), "")
        at = around.start - len(line_end)
        new = switch.new if line_end else switch.new.lstrip() + work.text.newline
        switch = replace(switch, start=at, end=at, new=new)
    if work.adds_tensorflow is not None:
        line = import_of(work.adds_tensorflow)
        if any(line in edit.new and edit.start <= switch.start for edit in others):
            switch = replace(switch, new=switch.new.replace(f"{line}{work.text.newline}", "", 1))
    return splice(work.text.text, [*others, switch])


def at_import(work: Pass) -> tuple[bool, bool]:
    """What a file does when it is imported: whether it builds a part of a graph, and whether it has the switch."""
    guards = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in work.tree.body
        if isinstance(node, ast.If) and _is_main_guard(node)
    ]
    module = work.names.module
    builds = switches = False
    for use in work.names.uses:
        outermost = use.scope is module or (
            isinstance(use.scope.node, ast.ClassDef) and use.scope.parent is module
        )
        line = use.root.lineno
        if not outermost or any(first <= line <= last for first, last in guards):
            continue
        found = normal(_as_contrib(use.dotted))
        if found is None or id(use.chain) not in work.calls:
            continue
        switches = switches or found[0] in _SWITCHES
        builds = builds or not (found[0] in _SWITCHES or _is_declaration(found[0]))
    return builds, switches


def _is_declaration(name: str) -> bool:
    """Whether a call of `tf.<name>` leaves the graph as it is: flags, initializers, optimizers and their like."""
    last = name.rpartition(".")[2]
    return prefix_in(name, _DECLARES) is not None or last.endswith(_DECLARED)


def needs_graph(work: Pass, runs: Mode) -> Finding | None:
    """The first place of a module that works in the graph that it finds; None for a script, and without one."""
    if not runs.graph or runs.eager or runs.switched or is_script(work):
        return None
    found = [
        (use, known[0]) for use in work.names.uses if (known := normal(_as_contrib(use.dotted)))
    ]
    if any(name == "Graph" for _, name in found):
        return None  # it makes its own, which TensorFlow 2 runs as it is
    for use, name in found:
        if prefix_in(name, _RUNS_GRAPH):
            message = f"`tf.{name}` needs a graph; no script is seen to turn eager execution off"
            return work.finding("TM120", use.chain, message)
    return None


def settled(
    result: SymbolResult,
    imported: Sequence[tuple[str, SymbolResult]] | None,
    *,
    used_eagerly: bool = False,
) -> SymbolResult:
    """The result with the switch put into a script that runs a graph; a finding where that cannot be done.

    Args:
        result: the result for one file.
        imported: path and result of every file of the tree that it imports, directly or through others, to tell
            whether it may turn off the behaviour of TensorFlow 2; None never turns it off.
        used_eagerly: a file that runs eagerly imports it, as a rewritten tower program does: it switches where it is run only.
    """
    own, script = result.mode, result.script
    if script is None or own.switched or (own.eager and imported is None):
        return result
    others = imported or ()
    if any(other.switches for _, other in others):
        return result
    if not own.graph and not any(other.mode.graph for _, other in others):
        return result
    eager = [path for path, other in others if other.mode.eager]
    finding = script.first
    if own.eager or eager:
        where = f"{eager[0]}, which it imports, runs" if eager else "another part of it runs"
        finding = replace(finding, message=f"{finding.message}, and {where} eagerly")
    elif imported is not None:
        builds = any(other.builds for _, other in others)
        if used_eagerly and script.guarded is not None and not builds:
            return replace(result, text=script.guarded, mode=replace(own, switched=True))
        text = script.early if builds and script.early is not None else script.switched
        if text is not None:
            return replace(result, text=text, mode=replace(own, switched=True), switches=True)
    return replace(result, findings=in_order([*result.findings, finding]))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings by their places, each once."""
    return tuple(sorted(set(findings), key=lambda f: (f.line, f.column, f.rule)))


def is_script(work: Pass) -> bool:
    """Whether a file is run rather than imported.

    That is one with a `__main__` test, or with a session, `main()`, `train()` or `tf.app.run()` at its outermost level,
    or a call of a function of its own that runs a graph.
    """
    if any(
        (isinstance(node, ast.If) and _is_main_guard(node))
        or calls_entry(node)
        or _calls_runner(work, node)
        for node in work.tree.body
    ):
        return True
    outermost = (use for use in work.names.uses if use.scope is work.names.module)
    return any(found[0] in _STARTS for use in outermost if (found := normal(use.dotted)))


def _calls_runner(work: Pass, node: ast.stmt) -> bool:
    """Whether a statement is a bare call of a function of the file that runs a graph in a session."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return False
    bodies = [
        (each.lineno, each.end_lineno or each.lineno)
        for each in work.tree.body
        if isinstance(each, ast.FunctionDef) and each.name == call.func.id
    ]
    return any(
        first <= use.root.lineno <= last
        for use in work.names.uses
        if _runs_graph(use.dotted)
        for first, last in bodies
    )


def _runs_graph(dotted: str) -> bool:
    found = normal(_as_contrib(dotted))
    return found is not None and prefix_in(found[0], _RUNS_GRAPH) is not None


def _is_main_guard(node: ast.If) -> bool:
    test = node.test
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Name) and part.id == "__name__"
        for part in [test.left, *test.comparators]
    )
