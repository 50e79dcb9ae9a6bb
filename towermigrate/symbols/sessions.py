"""Scripts that run a graph in a session: under TensorFlow 2 they must say so first.

Such a script gets `tf.compat.v1.disable_v2_behavior()` after its imports, unless something that it imports runs
eagerly, as rewritten tower programs do: one process cannot do both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from towermigrate.findings import Finding
from towermigrate.symbols.edits import Edit, splice
from towermigrate.symbols.tables import normal, prefix_in

if TYPE_CHECKING:
    from towermigrate.symbols.apply import Pass, SymbolResult

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


@dataclass(frozen=True)
class Mode:
    """What one file says about how it runs."""

    graph: bool = False
    eager: bool = False
    switched: bool = False


@dataclass(frozen=True)
class Script:
    """A file that is run. `switched` is its new text with the switch, None where there is no place for it."""

    first: Finding
    switched: str | None


def mode(dotted: Iterable[str]) -> Mode:
    """What the names of a file, as `FileNames.dotted` gives them, say about how it runs."""
    plain = {found[0] for name in dotted if (found := normal(_as_contrib(name)))}
    return Mode(
        graph=any(prefix_in(name, _RUNS_GRAPH) for name in plain),
        eager=any(prefix_in(name, _RUNS_EAGERLY) for name in plain),
        switched=bool(plain & _SWITCHES),
    )


def _as_contrib(dotted: str) -> str:
    return dotted.replace("tf_slim", "tensorflow.contrib.slim", 1)


def switch_edit(work: Pass) -> Edit | None:
    """The edit that puts the switch into a file, None where there is no place for it."""
    place = _place(work)
    alias = work.tensorflow_alias()
    if place is None or alias is None:
        return None
    # After the imports that are put behind the same line.
    call = f"{alias}.compat.v1.disable_v2_behavior()"
    return Edit(place, place, f"{work.text.newline * 2}{call}", depth=2)


def script_of(work: Pass, switch: Edit | None) -> Script | None:
    """What a file that is run needs to be switched later; None for a module. Call it after the other edits."""
    if not is_script(work):
        return None
    first = next((u.chain for u in work.names.uses if _runs_graph(u.dotted)), None)
    node: ast.expr | ast.stmt = first or work.tree.body[0]
    finding = work.finding("TM119", node, "this script runs a graph in a session")
    text = None if switch is None else splice(work.text.text, [*work.edits, switch])
    return Script(finding, text)


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


def settled(result: SymbolResult, imported: Sequence[tuple[str, Mode]] | None) -> SymbolResult:
    """The result with the switch put into a script that runs a graph; a finding where that cannot be done.

    Args:
        result: the result for one file.
        imported: path and mode of every file of the tree that it imports, directly or through others, to tell
            whether it may turn off the behaviour of TensorFlow 2; None never turns it off.
    """
    own, script = result.mode, result.script
    if script is None or own.switched or (own.eager and imported is None):
        return result
    others = imported or ()
    if any(other.switched for _, other in others):
        return result
    if not own.graph and not any(other.graph for _, other in others):
        return result
    eager = [path for path, other in others if other.eager]
    finding = script.first
    if own.eager or eager:
        where = f"{eager[0]}, which it imports, runs" if eager else "another part of it runs"
        finding = replace(finding, message=f"{finding.message}, and {where} eagerly")
    elif imported is not None and script.switched is not None:
        return replace(result, text=script.switched, mode=replace(own, switched=True))
    return replace(result, findings=in_order([*result.findings, finding]))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings by their places, each once."""
    return tuple(sorted(set(findings), key=lambda f: (f.line, f.column, f.rule)))


def is_script(work: Pass) -> bool:
    """Whether a file is run rather than imported.

    That is one with a `__main__` test, or with a session, `main()` or `tf.app.run()` at its outermost level.
    """
    if any(
        (isinstance(node, ast.If) and _is_main_guard(node)) or _calls_main(node)
        for node in work.tree.body
    ):
        return True
    outermost = (use for use in work.names.uses if use.scope is work.names.module)
    return any(found[0] in _STARTS for use in outermost if (found := normal(use.dotted)))


def _runs_graph(dotted: str) -> bool:
    found = normal(_as_contrib(dotted))
    return found is not None and prefix_in(found[0], _RUNS_GRAPH) is not None


def _is_main_guard(node: ast.If) -> bool:
    test = node.test
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Name) and part.id == "__name__"
        for part in [test.left, *test.comparators]
    )


def _calls_main(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "main"


def _place(work: Pass) -> int | None:
    """The end of the last import that follows the import of TensorFlow without a statement between them."""
    place: int | None = None
    for node in work.tree.body:
        first = place is None
        if not (_imports_tensorflow(node) if first else _imports(node)):
            if first:
                continue
            break
        end = work.text.span(node)[1]
        at = work.text.line_end(end)
        alone = not work.text.text[end:at].partition("#")[0].strip()
        if alone and not any(edit.start < at < edit.end for edit in work.edits):
            place = at
    return place


def _imports(node: ast.stmt) -> bool:
    """An import, or a `try` around imports."""
    return isinstance(node, ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Try) and all(_imports(inner) for inner in node.body)
    )


def _imports_tensorflow(node: ast.stmt) -> bool:
    if isinstance(node, ast.Try):
        return any(_imports_tensorflow(inner) for inner in node.body)
    return isinstance(node, ast.Import) and any(
        alias.name in ("tensorflow", "tensorflow.compat.v1") for alias in node.names
    )
