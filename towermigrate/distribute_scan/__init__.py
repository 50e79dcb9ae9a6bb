"""Find the classic mistakes in code that already uses `tf.distribute`: rules TM401 to TM410.

Only findings, no rewrite. Values are followed through assignments, calls of the tree's own functions and
`strategy.run`; what cannot be followed gives no finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from towermigrate.distribute_scan.checks import old_runs
from towermigrate.distribute_scan.interpret import Interpreter
from towermigrate.findings import Finding

__all__ = ["scan_distribution"]

_OLD_RUNS = {
    "experimental_run_v2": "is called `run` since TensorFlow 2.2",
    "experimental_run": "is deprecated: `run` takes the values, not an iterator",
}
_NAMES = ("strategy", "distribution", "mirrored", "experimental_run")
# `tf.app.run(main)` and `session.run(fetches)` start no replicas.
_STARTS = re.compile(
    r"(?<!app)(?<!sess)(?<!session)\.\s*(run|experimental_run|experimental_run_v2|scope)\s*\("
)


def scan_distribution(
    sources: Mapping[str, str], only: Iterable[str] | None = None
) -> dict[str, list[Finding]]:
    """What is wrong with the `tf.distribute` code of a tree.

    Args:
        sources: texts that parse, by path relative to the tree's root.
        only: the files to read (functions that they import are followed all the same); None is all.

    Returns:
        Findings by the path of the file they are in, in the order of its lines.

    Example:
        >>> text = '''import tensorflow as tf
        ... strategy = tf.distribute.MirroredStrategy()
        ... def step(x):
        ...     with tf.GradientTape() as tape:
        ...         loss = tf.reduce_mean(model(x))
        ...     grads = tape.gradient(loss, model.trainable_variables)
        ...     optimizer.apply_gradients(zip(grads, model.trainable_variables))
        ... strategy.run(step, args=(batch,))
        ... '''
        >>> [(f.rule, f.line) for f in scan_distribution({"train.py": text})["train.py"]]
        [('TM401', 5)]
    """
    reader = Interpreter(sources)
    found: dict[str, list[Finding]] = {}
    for path in sorted(sources if only is None else only):
        text = sources[path]
        if not _may_start_replicas(text):
            continue
        try:
            reader.read(path)
        except RecursionError:
            # Expressions or calls nested so deep that they cannot be followed: what was found so far stands.
            continue
        if "experimental_run" not in text:
            continue
        for call, name in old_runs(reader.tree(path)):
            place = reader.place(call, reader.module(path))
            reader.report("TM406", place, f"`{name}` {_OLD_RUNS[name]}")
    corrected = {(place.path, place.line, place.column) for place in reader.corrected}
    for finding in reader.findings:
        if finding.rule == "TM403" and (finding.path, finding.line, finding.column) in corrected:
            continue
        found.setdefault(finding.path, []).append(finding)
    for findings in found.values():
        findings.sort(key=lambda f: (f.line, f.column, f.rule, f.message))
    return found


def _may_start_replicas(text: str) -> bool:
    """Whether a file names a strategy, and starts replicas or enters a scope: no rule asks about others."""
    lower = text.lower()
    return any(name in lower for name in _NAMES) and _STARTS.search(text) is not None
