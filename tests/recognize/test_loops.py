"""Which loops count as tower loops, however they are spelled, and which do not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import libcst as cst
import pytest

from towermigrate.recognize.loops import LoopFinder
from towermigrate.recognize.source import Tree
from towermigrate.recognize.syntax import walk

_HEAD = "import tensorflow as tf\nfrom compat import tfv1\n"


def found(text: str) -> list[int]:
    """Lines of the tower loops of a text, counted from the text's own first line."""
    tree = Tree({"program.py": _HEAD + textwrap.dedent(text)})
    file = tree.file("program.py")
    assert file is not None
    return [file.line(c.loop) - 2 for c in LoopFinder(tree).loops(file)]


def _placed(
    test: str, place: str, work: str, other: str = "", before: str = "", after: str = ""
) -> str:
    """A loop that does something on a device or on none."""
    lines = [
        before,
        f"if {test}:\n    with tf.device({place}):\n        {work}\nelse:\n    {other or work}",
        after,
    ]
    body = "\n".join(each for each in lines if each)
    return f"for k in count:\n{textwrap.indent(body, '    ')}\n"


TOWERS = {
    "range": (
        "for k in range(count):\n    with tf.device('/gpu:%d' % k):\n        loss = model(x[k])\n",
        [1],
    ),
    "zip of devices and parts": (
        "for place, (part, label) in zip(places, parts):\n    with tf.device(place):\n        make(part)\n",
        [1],
    ),
    "name made from the index": (
        "for k in ids:\n    name = '/gpu:{}'.format(k)\n    with tfv1.device(name):\n        make(k)\n",
        [1],
    ),
    "the function called hands it on to one that opens the device": (
        """\
        def on(x, place):
            with tf.device(place):
                return model(x)
        def with_scope(place, x):
            with tf.name_scope('s'):
                return on(x, place)
        for k in ids:
            make(with_scope('/gpu:%d' % k, x))
        """,
        [7],
    ),
    "the function called opens the device": (
        """\
        class Net:
            def one(self, place):
                with tf.device(place):
                    return self.forward()

            def all(self):
                for k in range(self.n):
                    self.outs.append(self.one('/gpu:%d' % k))
        """,
        [7],
    ),
    "a context manager of the program opens it": (
        """\
        def on(k):
            with tf.device('/gpu:%d' % k):
                yield

        for k in range(4):
            with on(k):
                tf.layers.dense(x, 1)
        """,
        [5],
    ),
    "inside epochs": (
        """\
        for epoch in range(9):
            if epoch == 0:
                for k in range(2):
                    with tf.device('/gpu:%d' % k):
                        loss = model(x)
        """,
        [3],
    ),
    "no device at all": (
        "for k in range(num_gpus):\n    tower_grads.append(opt.compute_gradients(loss(k)))\n",
        [1],
    ),
    "while": (
        "k = 0\nwhile k < count:\n    with tf.device('/gpu:%d' % k):\n        model(x[k])\n    k += 1\n",
        [2],
    ),
    "while, in a while": (
        "while True:\n    k = 0\n    while k < n:\n        with tf.device('/gpu:%d' % k):\n            model(k)\n"
        "        k = k + 1\n",
        [3],
    ),
    "a sweep over numbers of towers": (
        "n = 1\nwhile n < 9:\n    for k in range(n):\n        with tf.device('/gpu:%d' % k):\n            model(k)\n"
        "    n *= 2\n",
        [3],
    ),
    "while devices are left": (
        "while devices:\n    with tf.device(devices.pop()):\n        loss = model(x)\n",
        [1],
    ),
    "the function called opens the device that a keyword says": (
        """\
        def one(x, name=None, place='/cpu:0'):
            with tf.device(place):
                return model(x)
        for k in ids:
            outs.append(one(x, place='/gpu:%d' % k))
        """,
        [4],
    ),
    "a function in a function opens the device": (
        """\
        def main():
            def one(place, x):
                with tf.device(place):
                    return model(x)
            for k in ids:
                outs.append(one('/gpu:%d' % k, x))
        """,
        [5],
    ),
    "the arguments are given as one": (
        """\
        def one(x, place):
            with tf.device(place):
                return model(x)
        for pair in pairs:
            outs.append(one(*pair))
        """,
        [4],
    ),
    "each tower placed or not, by a setting of the program": (
        _placed("use_gpus", "'/gpu:%d' % k", "total = model(xs[k], total)"),
        [1],
    ),
    "each tower placed or not, by its own setting": (
        _placed("places[k]", "places[k]", "loss = model(xs[k])"),
        [1],
    ),
    "placed or not, with other work where it is not": (
        _placed(
            "places[k]", "places[k]", "total = model(xs[k], total)", "total = other(xs[k], total)"
        ),
        [1],
    ),
    "placed or not, with an input of its own": (
        _placed("places[k]", "places[k]", "x = model(x)", before="x = xs[k]"),
        [1],
    ),
    "placed or not, with gradients": (
        _placed(
            "places[k]", "places[k]", "x = model(x)", after="grads.append(opt.compute_gradients(x))"
        ),
        [1],
    ),
    "placed or not, over devices": (
        _placed("place", "place", "total = model(place, total)").replace(
            "for k in count", "for place in devices"
        ),
        [1],
    ),
    "in layers, each of which goes over the devices": (
        """\
        def layer(parts, size):
            for k in range(len(parts)):
                with tf.device('/gpu:%d' % k):
                    parts[k] = tf.layers.dense(parts[k], size)
            return parts
        for k in range(3):
            parts = layer(parts, sizes[k])
        """,
        [2],
    ),
    "in layers that are given a device": (
        """\
        def layer(x, size, place):
            for k in range(len(place)):
                with tf.device(place[k]):
                    x = tf.layers.dense(x, size)
            return x
        for k in range(3):
            xs.append(layer(x, 4, places[k]))
        """,
        [2, 6],
    ),
    "clones, each with its own device": (
        "for clone in clones:\n    with tf.device(clone.device):\n        loss = model(clone)\n",
        [1],
    ),
}

OTHERS = {
    "beside each variable": (
        "for v in variables:\n    with tf.device(v.device):\n        ops.append(tf.nn.l2_loss(v))\n"
    ),
    "beside each variable, by name": (
        "for v in variables:\n    where = where or v.device\n    with tf.device(where):\n"
        "        copies.append(copy(v))\n"
    ),
    "work on gradients": (
        "for device, grads in zip(devices, all_grads):\n    with tf.device(device):\n"
        "        packed.append(pack(grads))\n"
    ),
    "one operation per device": (
        "for device in devices:\n    with tf.device(device):\n        ops.append(tf.no_op())\n"
    ),
    "a session per pass": (
        "for k in range(num_gpus):\n    with tf.device('/gpu:%d' % k):\n"
        "        sess.run(step, feed_dict={x: batch(k)})\n"
    ),
    "layers some of which have a device": (
        _placed(
            "'place' in layer",
            "layer['place']",
            "h = dense(h, layer)",
            before="layer = layers[k]",
            after="hs.append(h)",
        )
    ),
    "layers on another device each": (
        "while k < n:\n    with tf.device(places[0]):\n        h = tf.layers.dense(h, 4)\n    k += 1\n"
    ),
    "a session per turn": (
        "while k < n:\n    with tf.device('/gpu:%d' % k):\n        sess.run(step, feed_dict={x: batch(k)})\n"
        "    k += 1\n"
    ),
    "layers whose variables are kept on a device": (
        """\
        def weights(name, shape, place='/cpu:0'):
            with tf.device(place):
                return tf.get_variable(name, shape)
        def layer(x, size, name):
            return tf.matmul(x, weights(name, [x.shape[-1], size]))
        for k in range(3):
            x = layer(x, sizes[k], name='layer_%d' % k)
        """
    ),
    "layers of an object that has a device": (
        """\
        class Net:
            def layer(self, x, size):
                with tf.device(self.place):
                    return tf.layers.dense(x, size)
            def all(self, x):
                for size in self.sizes:
                    x = self.layer(x, size)
                return x
        """
    ),
    "two programs of a test": (
        "for dtype in kinds:\n    grad = opt.compute_gradients(model(dtype))[0][0]\n"
    ),
    "gradients in parts of one layer": (
        "for part in range(splits):\n    grads.append(tf.gradients(outs[part], xs[part]))\n"
    ),
}


@pytest.mark.parametrize("name", TOWERS)
def test_tower_loop_is_found(name: str) -> None:
    text, lines = TOWERS[name]
    assert found(text) == lines


@pytest.mark.parametrize("name", OTHERS)
def test_other_loop_is_not(name: str) -> None:
    assert found(OTHERS[name]) == []


def test_walk_gives_names_in_source_order() -> None:
    text = Path(__file__).read_text()
    file = Tree({"a.py": text}).file("a.py")
    assert file is not None
    places = [
        (file.span(n).line, file.span(n).column)
        for n in walk(file.module)
        if isinstance(n, cst.Name | cst.SimpleString)
    ]
    assert len(places) > 100
    assert places == sorted(places)
