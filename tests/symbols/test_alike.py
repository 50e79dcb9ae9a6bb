"""What `alike` leaves alone makes the same operations in TensorFlow 1 and 2, whatever it is given of what it allows."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
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
        ("tf.reduce_mean(x, 1, keep_dims=True)", "tf.reduce_mean(x, 1, keepdims=True)"),
        ("tf.reduce_sum(x, reduction_indices = [1])", "tf.reduce_sum(x, axis = [1])"),
        ("tf.reduce_sum(x, axis=1, reduction_indices=1)", "tf.compat.v1.reduce_sum(x, axis=1, reduction_indices=1)"),
        ("tf.squeeze(tf.argmax(x, dimension=1), squeeze_dims=[0])", "tf.squeeze(tf.argmax(x, axis=1), axis=[0])"),
        ("tf.nn.conv2d(x, filter=w, strides=s, padding='SAME')", "tf.nn.conv2d(x, filters=w, strides=s, padding='SAME')"),
        ("tf.nn.conv2d(x, w, s, 'SAME', False)", "tf.compat.v1.nn.conv2d(x, w, s, 'SAME', False)"),
        ("tf.device('/gpu:%d' % i)", "tf.device('/gpu:%d' % i)"),
        ("tf.device(chosen)", "tf.compat.v1.device(chosen)"),
        ("tf.gfile.Exists(path)", "tf.io.gfile.exists(path)"),
        ("tf.gfile.Exists(filename=path)", "tf.compat.v1.gfile.Exists(filename=path)"),
        ("tf.gfile.Copy(a, b, overwrite=True)", "tf.io.gfile.copy(a, b, overwrite=True)"),
        ("map(tf.gfile.Exists, paths)", "map(tf.compat.v1.gfile.Exists, paths)"),
        ("tf.reduce_mean(tf.reduce_sum(x,  # rows\n    keep_dims=True))", "tf.reduce_mean(tf.reduce_sum(x,  # rows\n    keepdims=True))"),
        ("tf.reduce_mean(*x)", "tf.compat.v1.reduce_mean(*x)"),
        ("tf.reduce_mean(x, **more)", "tf.compat.v1.reduce_mean(x, **more)"),
        ("tf.map_fn(tf.reduce_mean, x)", "tf.compat.v1.map_fn(tf.compat.v1.reduce_mean, x)"),
        ("tf.constant([1], tf.int64)", "tf.constant([1], tf.int64)"),
        ("tf.constant(0., shape=[2])", "tf.constant(0., shape=[2])"),
        ("tf.constant(-1, tf.int32, shape)", "tf.constant(-1, tf.int32, shape)"),
        ("tf.constant(dtype=tf.int32, value=1, shape=s)", "tf.constant(dtype=tf.int32, value=1, shape=s)"),
        ("tf.constant(start, shape=[2])", "tf.compat.v1.constant(start, shape=[2])"),
        ("tf.constant([1, 2], shape=[4])", "tf.compat.v1.constant([1, 2], shape=[4])"),
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
        "x": x, "axes": [0, 1], "shift": 1.0, "ord": 1,
    }  # fmt: skip
    if name == "squeeze":
        values["axis"] = [2]
    if name.endswith(("reduce_all", "reduce_any", "where")):
        values["input_tensor"] = values["condition"] = x > 0.0
    if name.startswith("nn.sparse"):
        values["labels"] = tf.compat.v1.placeholder(tf.int32, [4], "ids")
    if name.endswith(("argmax", "argmin")):
        values["axis"] = 2
    if name == "constant":
        values |= {"value": -1.5, "shape": [tf.compat.v1.Dimension(3), 2]}
    if name == "nn.conv2d":
        values["input"] = tf.compat.v1.placeholder(tf.float32, [None, 5, 5, 2], "images")
        values["filters"] = tf.compat.v1.placeholder(tf.float32, [3, 3, 2, 4], "kernel")
        values |= {
            "strides": [1, 2, 2, 1],
            "padding": "SAME",
            "data_format": "NHWC",
            "dilations": [1, 1, 1, 1],
        }
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
                said = ", ".join([*["0"] * places, *(f"{each}=0" for each in chosen)])
                call = ast.parse(f"f({said})", mode="eval").body
                if isinstance(call, ast.Call) and alike.holds(call):
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


def test_devices_are_alike() -> None:
    tf = pytest.importorskip("tensorflow")
    made = []
    for function in (tf.compat.v1.device, tf.device):
        with tf.Graph().as_default() as graph:
            with function("/job:worker"), function("/gpu:1"):
                tf.no_op()
            with function("/cpu:0"):
                tf.no_op()
            made.append(str(graph.as_graph_def()))
    assert made[0] == made[1]


def test_files_are_alike(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    names = {old: one.now for old, one in ALIKE.items() if one.now is not None}
    assert len(names) == 11

    def all_of(files: Any, folder: Path) -> list[Any]:
        said: list[Any] = []

        def note(name: str, *args: Any, **kwargs: Any) -> None:
            given = [str(folder / each) for each in args]
            try:
                result = _of(tf, files(name))(*given, **kwargs)
            except tf.errors.OpError as error:
                result = type(error).__name__
            result = getattr(result, "length", result)
            if name == "Glob":
                result = [Path(each).name for each in result]
            said.append(result)

        note("Exists", "a")
        note("MakeDirs", "a/b")
        note("MkDir", "a/b")
        note("MkDir", "c/d/e")
        (folder / "a" / "f").write_text("text")
        note("Stat", "a/f")
        note("Stat", "a/g")
        note("Copy", "a/f", "a/g")
        note("Copy", "a/f", "a/g")
        note("Copy", "a/f", "a/g", overwrite=True)
        note("Rename", "a/f", "a/g")
        note("Rename", "a/f", "a/h", overwrite=True)
        for name in ("IsDirectory", "ListDirectory", "Glob", "Exists"):
            for given in ("a", "a/g", "a/none", "a/*"):
                note(name, given)
        note("Remove", "a/g")
        note("Remove", "a/g")
        note("DeleteRecursively", "a")
        note("DeleteRecursively", "a")
        assert not (folder / "a").exists()
        return said

    ends = []
    for number, spelled in enumerate(
        (lambda name: f"compat.v1.gfile.{name}", lambda name: names[f"gfile.{name}"])
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        ends.append(all_of(spelled, folder))
    assert ends[0] == ends[1]
    assert "AlreadyExistsError" in ends[0] and "NotFoundError" in ends[0]


_OF_GRAPHS = {name for name, one in ALIKE.items() if one.now is None} - {"name_scope", "device"}


@pytest.mark.parametrize("name", sorted(_OF_GRAPHS))
def test_what_is_left_alone_makes_the_same_operations(name: str) -> None:
    tf = pytest.importorskip("tensorflow")
    first, second = _of(tf.compat.v1, name), _of(tf, name)
    same = 0
    old = {new: one for one, new in ALIKE[name].renamed.items()}
    for positional, named in _calls(name, first, second):
        made: list[Any] = []
        # TensorFlow 1's function by its own names too.
        spelled = [
            dict(zip(named, named, strict=True)),
            {each: old.get(each, each) for each in named},
        ]
        for function, names in ((second, spelled[0]), (first, spelled[0]), (first, spelled[1])):
            with tf.Graph().as_default() as graph:
                values = _values(tf, name)
                args = [values.get(each, values["input"]) for each in positional]
                try:
                    result = function(*args, **{names[each]: values[each] for each in named})
                except (TypeError, ValueError):
                    made.append("an error")
                else:
                    results = result if isinstance(result, tuple) else [result]
                    said = [(each.name, str(each.shape)) for each in results]
                    made.append((str(graph.as_graph_def()), said))
        assert made[0] == made[2], (positional, named)
        assert made[1] in (made[0], "an error"), (positional, named)
        same += not isinstance(made[0], str)
    assert same > 1
