"""What `alike` leaves alone makes the same operations in TensorFlow 1 and 2, whatever it is given of what it allows."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from towermigrate.symbols import rewrite_symbols
from towermigrate.symbols.alike import ALIKE
from towermigrate.symbols.tables import load_names

HEAD = "import tensorflow as tf\ntf.placeholder\n"
OLD = "import tensorflow as tf\ntf.compat.v1.placeholder\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tf.reduce_mean(x)", "tf.reduce_mean(x)"),
        ("tf.reduce_mean(x, [1, 2], name='m')", "tf.reduce_mean(x, [1, 2], name='m')"),
        ("tf.reduce_mean(x, 1, True)", "tf.compat.v1.reduce_mean(x, 1, True)"),
        ("tf.reduce_mean(x, keep_dims=True)", "tf.compat.v1.reduce_mean(x, keep_dims=True)"),
        ("tf.reduce_mean(*x)", "tf.compat.v1.reduce_mean(*x)"),
        ("tf.reduce_mean(x, **more)", "tf.compat.v1.reduce_mean(x, **more)"),
        ("tf.map_fn(tf.reduce_mean, x)", "tf.compat.v1.map_fn(tf.compat.v1.reduce_mean, x)"),
        ("tf.constant([1], tf.int64)", "tf.constant([1], tf.int64)"),
        ("tf.constant(0., shape=[2])", "tf.compat.v1.constant(0., shape=[2])"),
        ("tf.shape(x)[0]", "tf.shape(x)[0]"),
        ("tf.shape(x, 's')", "tf.compat.v1.shape(x, 's')"),
        ("tf.where(x > 0)", "tf.where(x > 0)"),
        ("tf.where(x > 0, x, y)", "tf.compat.v1.where(x > 0, x, y)"),
        ("tf.name_scope('a')", "tf.name_scope('a')"),
        ("tf.name_scope(name='%s_%d' % (NAME, i))", "tf.name_scope(name='%s_%d' % (NAME, i))"),
        ("tf.name_scope('t_{}'.format(i))", "tf.name_scope('t_{}'.format(i))"),
        ("tf.name_scope(f'{a}')", "tf.name_scope(f'{a}')"),
        ("tf.name_scope(name)", "tf.compat.v1.name_scope(name)"),
        ("tf.name_scope('a', 'b', [x])", "tf.compat.v1.name_scope('a', 'b', [x])"),
        ("tf.name_scope(scope or 'a')", "tf.compat.v1.name_scope(scope or 'a')"),
        ("tf.log(x)", "tf.math.log(x)"),
        ("tf.map_fn(tf.log, x)", "tf.compat.v1.map_fn(tf.math.log, x)"),
        ("tf.random_normal([2], 0, 1)", "tf.random.normal([2], 0, 1)"),
        ("tf . log(x)", "tf.math.log(x)"),
        ("tf.compat.v1.log(x)", "tf.compat.v1.log(x)"),
    ],
)  # fmt: skip
def test_what_means_the_same_keeps_its_name(line: str, expected: str) -> None:
    made = rewrite_symbols(f"{HEAD}{line}\n", "m.py").text
    assert made == f"{OLD}{expected}\n"
    assert rewrite_symbols(made, "m.py").text == made


def test_names_have_moved_to_what_they_were() -> None:
    tf = pytest.importorskip("tensorflow")
    moved = load_names().moved
    assert len(moved) > 100
    for old, new in moved.items():
        one, other = _of(tf.compat.v1, old), _of(tf, new)
        assert inspect.unwrap(one) is inspect.unwrap(other), old


def _of(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _values(tf: Any, name: str) -> dict[str, Any]:
    """An argument of each name, made in the graph that is open."""
    x = tf.compat.v1.placeholder(tf.float32, [None, 3, 1], "x")
    flat = tf.compat.v1.placeholder(tf.float32, [4, 3], "flat")
    values = {
        **dict.fromkeys(("input_tensor", "input", "tensor", "a", "params", "condition"), x),
        "axis": 1, "keepdims": True, "name": "named", "output_type": tf.int32, "out_type": tf.int64,
        "logits": flat, "labels": flat, "dtype": tf.float64, "mask": tf.constant([True, False, True]),
        "value": [1.0, 2.0], "indices": [0, 0], "batch_dims": 0, "mode": "CONSTANT", "constant_values": 2.0,
        "paddings": [[0, 0], [1, 1], [0, 1]], "perm": [2, 0, 1], "conjugate": True,
    }  # fmt: skip
    if name == "squeeze":
        values["axis"] = [2]
    if name.endswith(("reduce_all", "reduce_any", "where")):
        values["input_tensor"] = values["condition"] = x > 0.0
    if name.startswith("nn.sparse"):
        values["labels"] = tf.compat.v1.placeholder(tf.int32, [4], "ids")
    if name.endswith(("argmax", "argmin")):
        values["axis"] = 2
    return values


def _calls(name: str, first: Any, second: Any) -> Iterator[tuple[list[str], list[str]]]:
    """What is given by position and by name: all that `ALIKE` allows."""
    alike = ALIKE[name]
    for places in range(alike.places + 1):
        given = [list(inspect.signature(each).parameters)[:places] for each in (first, second)]
        positional = given[1]
        names = sorted(alike.names - set(given[0]) - set(given[1]))
        for count in range(len(names) + 1):
            for chosen in itertools.combinations(names, count):
                yield positional, list(chosen)


def test_name_scopes_are_alike() -> None:
    tf = pytest.importorskip("tensorflow")
    made = []
    for function in (tf.compat.v1.name_scope, tf.name_scope):
        with tf.Graph().as_default() as graph:
            scopes = []
            for name in ("a", "a", "b/c"):
                with function(name) as scope, function(name=name) as inner:
                    scopes += [scope, inner, tf.no_op().name]
            with function(scopes[0]) as again:
                scopes += [again, tf.no_op().name]
            made.append((scopes, str(graph.as_graph_def())))
    assert made[0] == made[1]


@pytest.mark.parametrize("name", sorted(ALIKE.keys() - {"name_scope"}))
def test_what_is_left_alone_makes_the_same_operations(name: str) -> None:
    tf = pytest.importorskip("tensorflow")
    first, second = _of(tf.compat.v1, name), _of(tf, name)
    same = 0
    for positional, named in _calls(name, first, second):
        made = []
        for function in (first, second):
            with tf.Graph().as_default() as graph:
                values = _values(tf, name)
                args = [values.get(each, values["input"]) for each in positional]
                try:
                    result = function(*args, **{each: values[each] for each in named})
                except (TypeError, ValueError):
                    made.append("an error")
                else:
                    made.append((str(graph.as_graph_def()), result.name, str(result.shape)))
        assert made[0] == made[1], (positional, named)
        same += not isinstance(made[0], str)
    assert same > 1
