"""Rows of what a step returned: values of towers, names, learning rates, summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import towermigrate.helpers as tm
from tests.helpers.conformance import XLA, XLA_2, Results, Rows, Runner, numbers
from tests.helpers.conformance_rows.reasons import MEETS_TOWERS, NO_STRINGS, NO_TEXTS

v1 = tf.compat.v1

ROWS = Rows()


def result(name: str, expect: Callable[[int], Any]) -> None:
    """A row of a function of per-tower values: on what a step returned, and in the step."""

    @ROWS.case(name, expect=lambda n: {"after the step": expect(n), "in the step": expect(n)})
    def _(run: Runner) -> Results:
        helper = getattr(tm, name)
        batch = run.feed([[2.0 * x] for x in numbers(run.towers)])
        values = run.step(lambda x: x / 2.0)(batch)

        def after(values: Any) -> Any:
            return helper(values, **run.where)

        in_step = run.step(lambda x: x / 2.0, after=after)(batch)
        return {"after the step": after(values), "in the step": in_step}


result("last_tower", lambda n: [n])
result("first_tower", lambda n: [1.0])
result("each_tower", lambda n: [[x] for x in numbers(n)])
result("mean_over_towers", lambda n: [(n + 1) / 2])
result("sum_over_towers", lambda n: [n * (n + 1) / 2])
result("concat_towers", lambda n: numbers(n))


@ROWS.case(
    "each_tower",
    row="each_tower of strings",
    expect=lambda n: {where: [float(x) for x in numbers(n)] for where in ("after", "in the step")},
    cannot={XLA: NO_TEXTS, XLA_2: NO_TEXTS},
)
def _(run: Runner) -> Results:
    """Each tower's string has a length of its own, and bytes that are no text."""

    def tower(x: Any) -> Any:
        number = tf.reshape(x, [])
        return tf.strings.join([b"\xff\x00", tf.strings.as_string(tf.cast(10**number, tf.int64))])

    def after(values: Any) -> Any:
        return tm.each_tower(values, **run.where)

    def read(values: Any) -> list[float]:
        texts = [one.removeprefix(b"\xff\x00") for one in tm.as_numpy(values)]
        return [float(len(one) - 1) for one in texts]

    batch = run.feed(numbers(run.towers))
    in_step = run.step(tower, after=after)(batch)
    return {"after": read(after(run.step(tower)(batch))), "in the step": read(in_step)}


@ROWS.case(
    "with_towers_before",
    expect=lambda n: {"sums": [k * (k + 1) / 2 for k in range(1, n + 1)], "rows": [n * (n + 1) / 8, n * (n + 1) * 3 / 8]},
    cannot={XLA_2: MEETS_TOWERS},
)  # fmt: skip
def _(run: Runner) -> Results:
    def tower(x: Any) -> Any:
        x = tf.reshape(x, [])
        parts = [0.25 * x, 0.75 * x]
        return tuple(tf.add_n(tm.with_towers_before(each)) for each in (parts, [tf.stack(parts)]))

    sums, rows = run.step(tower)(run.feed(numbers(run.towers)))
    return {"sums": tm.each_tower(sums, **run.where), "rows": tm.last_tower(rows, **run.where)}


@ROWS.case(
    "scope_in_replica",
    expect=lambda n: {"found": [float(x) for x in numbers(n)]},
)
def _(run: Runner) -> Results:
    """Of what stands in a scope and beside it, a tower finds what stands in it."""

    def tower(x: Any) -> Any:
        with tf.name_scope("tower"):
            inside = tf.identity(x)
        if tf.executing_eagerly():  # which names nothing
            return x
        named = [
            one for one in (inside, x * 8.0) if one.name.startswith(tm.scope_in_replica("tower"))
        ]
        return tf.add_n(named)

    values = run.step(tower)(run.feed(numbers(run.towers)))
    return {"found": tm.each_tower(values, **run.where)}


@ROWS.case(
    "shown_variables",
    "ShownVariable",
    expect=lambda n: {
        "said": ["<tf.Variable 'shown:0' shape=(2,) dtype=float32_ref>"],
        "size": 2.0,
        "held": [1.0, 2.0],
        "set": [3.0, 4.0],
    },
)
def _(run: Runner) -> Results:
    with run.scope():
        variable = tf.Variable([1.0, 2.0], name="shown")
    made = tm.shown_variables(variable)
    assert all(isinstance(one, tm.ShownVariable) for one in made)
    held = made[0].numpy().tolist()
    made[0].assign([3.0, 4.0])
    return {
        "said": [repr(one) for one in made],
        "size": float(made[0].get_shape().as_list()[0]),
        "held": held,
        "set": variable.numpy().tolist(),
    }


@ROWS.case(
    "as_numpy", expect=lambda n: {"last": float(n), "types": ["float32", "NoneType", "bytes"]}
)
def _(run: Runner) -> Results:
    values = run.step(lambda x: x / 2.0)(run.feed([2.0 * x for x in numbers(run.towers)]))
    last = tm.as_numpy((tm.last_tower(values, **run.where), None, tf.constant(b"text")))
    towers = tm.as_numpy(values)
    assert len(towers if isinstance(towers, list) else [towers]) == len(run.local)
    return {"last": last[0], "types": [type(one).__name__ for one in last]}


@ROWS.case(
    "summary_writer",
    "SummaryWriter",
    expect=lambda n: {"tags": ["loss"], "values": [1.0], "steps": [3]},
    cannot={XLA: NO_STRINGS, XLA_2: NO_STRINGS},
)
def _(run: Runner) -> Results:
    folder = run.folder / "summaries"
    serialized = run.step(lambda x: v1.summary.scalar("loss", x))(run.feed(numbers(run.towers)))
    writer = tm.summary_writer(str(folder))
    assert isinstance(writer, tm.SummaryWriter)
    writer.add_summary(tm.first_tower(serialized, **run.where), 3)
    writer.close()
    run.wait()
    events = [e for path in folder.iterdir() for e in v1.train.summary_iterator(str(path))]
    values = [(one.tag, one.simple_value, e.step) for e in events for one in e.summary.value]
    tags, numbers_, steps = zip(*values, strict=True)
    return {"tags": tags, "values": numbers_, "steps": steps}


@ROWS.case("op_name", expect=lambda n: {"variable": "w", "each": [2.0 * x for x in numbers(n)]})
def _(run: Runner) -> Results:
    w = run.variable(2.0, "w")
    names = set()

    def tower(x: Any) -> Any:
        names.add(tm.op_name(w))
        if not tf.executing_eagerly():  # eager tensors have no names in TensorFlow
            assert tm.op_name(tf.identity(x, "loss")).endswith("loss")
        return x * w

    values = run.step(tower)(run.feed(numbers(run.towers)))
    [name] = names
    return {"variable": name, "each": run.each(values)}


@ROWS.case("value", expect=lambda n: {"each": [0.25 * x for x in numbers(n)], "after": 0.25})
def _(run: Runner) -> Results:
    with run.scope():
        step = tf.Variable(4)
        rate = v1.train.exponential_decay(1.0, step, 2, 0.5)
    values = run.step(lambda x: x * tm.value(rate))(run.feed(numbers(run.towers)))
    return {"each": run.each(values), "after": tm.value(rate)}
