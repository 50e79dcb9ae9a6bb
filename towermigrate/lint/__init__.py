"""Find the classic mistakes in code that already uses `tf.distribute`: rules TM401 to TM410.

Only findings, no rewrite. Values are followed through assignments, calls of the tree's own functions and
`strategy.run` (`flow`); what cannot be followed gives no finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from towermigrate.findings import Finding
from towermigrate.flow import Interpreter, Limits
from towermigrate.flow.values import Class, Instance, Scope
from towermigrate.lint.checks import old_runs
from towermigrate.lint.domain import Lint

__all__ = ["scan_distribution"]

_OLD_RUNS = {
    "experimental_run_v2": "is called `run` since TensorFlow 2.2",
    "experimental_run": "is deprecated: `run` takes the values, not an iterator",
}
_NAMES = ("strategy", "experimental_run")
_RECEIVER = re.compile(r"(distribution|mirrored)\s*\.\s*(run|scope)\s*\(", re.IGNORECASE)
# `tf.app.run(main)` and `session.run(fetches)` start no replicas.
_STARTS = re.compile(
    r"(?<!app)(?<!sess)(?<!session)\.\s*(run|experimental_run|experimental_run_v2|scope)\s*\("
)
_LIMITS = Limits(steps=80_000, calls=4000, depth=12, recursion=0, turns=16)
"""For one file."""


def scan_distribution(
    sources: Mapping[str, str], only: Iterable[str] | None = None, limits: Limits = _LIMITS
) -> dict[str, list[Finding]]:
    """What is wrong with the `tf.distribute` code of a tree.

    Args:
        sources: texts that parse, by path relative to the tree's root.
        only: the files to read (functions that they import are followed all the same); None is all.
        limits: how much of one file is followed.

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
    notes = Lint()
    reader = _Reader(sources, notes, limits)
    found: dict[str, list[Finding]] = {}
    for path in sorted(sources if only is None else only):
        text = sources[path]
        if not _may_start_replicas(text):
            continue
        try:
            reader.read(path)
        except RecursionError:
            # Expressions or calls nested so deep that they cannot be followed: what was found so far stands.
            notes.modes[1:] = []
            continue
        if "experimental_run" not in text:
            continue
        for call, name in old_runs(reader.tree(path)):
            notes.report("TM406", reader.place(call, path), f"`{name}` {_OLD_RUNS[name]}")
    corrected = {(place.path, place.line, place.column) for place in notes.corrected}
    for finding in notes.findings:
        if finding.rule == "TM403" and (finding.path, finding.line, finding.column) in corrected:
            continue
        found.setdefault(finding.path, []).append(finding)
    for findings in found.values():
        findings.sort(key=lambda f: (f.line, f.column, f.rule, f.message))
    return found


class _Reader(Interpreter):
    """Reads a file: its statements, then each of its functions by itself."""

    def read(self, path: str) -> None:
        self.steps = self.calls = 0
        self.forget(path)
        self.defined = []
        self.module(path)
        objects: dict[int, Instance] = {}
        waiting = [each for each in self.defined if each.scope.path == path]
        waiting.sort(key=lambda each: each.name != "__init__")
        known = {id(each.node) for each in waiting}
        done = 0
        while done < len(waiting):
            function = waiting[done]
            done += 1
            self.defined = []
            if function.owner is not None and function.form != "static":
                function = self.bound_to(function, self._object(function.owner, objects))
            self.call_unknown(function)
            nested = [f for f in self.defined if f.scope.path == path and id(f.node) not in known]
            known.update(id(each.node) for each in nested)
            waiting += nested

    def _object(self, kind: Class, objects: dict[int, Instance]) -> Instance:
        """The one object of a class whose methods are read by themselves."""
        if id(kind) not in objects:
            objects[id(kind)] = Instance(kind.place, kind=kind)
        return objects[id(kind)]

    def module(self, path: str, main: bool | None = None) -> Scope:
        notes = self.domain
        assert isinstance(notes, Lint)
        notes.modes.append("plain")
        try:
            return super().module(path, main)
        finally:
            notes.modes.pop()


def _may_start_replicas(text: str) -> bool:
    """Whether a file names a strategy, and starts replicas or enters a scope: no rule asks about others."""
    lower = text.lower()
    named = any(name in lower for name in _NAMES) or _RECEIVER.search(text) is not None
    return named and _STARTS.search(text) is not None
