"""Which files are worth the time of looking for tower loops."""

import textwrap

import pytest

from towermigrate.hints import hints_of, may_hold_towers
from towermigrate.recognize import recognize_tree

TF = "import tensorflow as tf\n"
MODEL = (
    TF
    + "def build(device, x):\n    with tf.device(device):\n        return tf.layers.dense(x, 1)\n"
)

HELD = [
    pytest.param(
        {"a.py": "for i in range(2):\n    with tf.device('/gpu:%d' % i):\n        tf.layers.dense(x, 1)\n"},
        id="a device for each value",
    ),
    pytest.param(
        {"a.py": "i = 0\nwhile i < 2:\n    with tf.device('/gpu:%d' % i):\n        tf.layers.dense(x, 1)\n    i += 1\n"},
        id="a device for each turn",
    ),
    pytest.param(
        {"a.py": "while True:\n    i = next(it)\n    with tf.device('/gpu:%d' % i):\n        tf.layers.dense(x, 1)\n"},
        id="a device for each turn, taken in the body",
    ),
    pytest.param(
        {"a.py": "for i in range(2):\n    grads.append(opt.compute_gradients(loss))\n"},
        id="gradients for each value",
    ),
    pytest.param(
        {"a.py": "for gpu in gpus:\n    opt.minimize(losses[gpu])  # tf.device('/gpu:0')\n"},
        id="a loop over devices that minimizes",
    ),
    pytest.param(
        {"a.py": "from model import build\nfor i in range(2):\n    build(i, x)\n    tf.gradients(x, x)\n", "model.py": MODEL},
        id="a function of another file that opens the device",
    ),
    pytest.param(
        {"a.py": "from model import build as make\nfor i in range(2):\n    make(i, x)\n    tf.gradients(x, x)\n", "model.py": MODEL},
        id="the same function under another name",
    ),
    pytest.param(
        {"a.py": "from model import outer\nfor i in range(2):\n    outer(i)\n    tf.gradients(x, x)\n",
         "model.py": MODEL + "def place(d):\n    return tf.device(d)\ndef outer(d):\n    with build(d, 1):\n        pass\n"},
        id="a function that enters what opens the device",
    ),
    pytest.param(
        {"a.py": "from model import train\nfor gpu in gpus:\n    train()  # tf.device(gpu)\n",
         "model.py": TF + "def train():\n    opt.minimize(loss)\n"},
        id="a loop over devices that calls a function of the tree",
    ),
    pytest.param(
        {"a.py": "class Net:\n    def build(self, d):\n        with tf.device(d):\n            tf.layers.dense(x, 1)\n"
                 "    def towers(self):\n        for i in range(2):\n            self.build(i)\n"},
        id="a method of its own that opens the device",
    ),
    pytest.param(
        {"a.py": "import model\ndef build(d):\n    pass\nfor i in range(2):\n    model.build(i, x)\n    tf.gradients(x, x)\n",
         "model.py": MODEL},
        id="a function of another file beside one of its own of that name",
    ),
]  # fmt: skip

NOT_HELD = [
    pytest.param("for i in range(2):\n    tf.layers.dense(x, 1)\n", id="layers without a device"),
    pytest.param(
        "with tf.device('/cpu:0'):\n    for step in range(9):\n        sess.run(op, feed)\n",
        id="a training loop under a device",
    ),
    pytest.param(
        "for i in range(2):\n    with tf.device('/cpu:0'):\n        tf.layers.dense(x, 1)\n",
        id="the same device each time",
    ),
    pytest.param(
        "for device in devices:\n    print(device)  # tf.device(device)\n",
        id="a loop over devices that builds nothing",
    ),
    pytest.param(
        "for step in range(9):\n    pairs = opt.compute_gradients(loss)\n",
        id="gradients that no list collects",
    ),
]


@pytest.mark.parametrize("sources", HELD)
def test_held(sources: dict[str, str]) -> None:
    whole = {path: text if text.startswith(TF) else TF + text for path, text in sources.items()}
    assert "a.py" in may_hold_towers(hints_of(whole))


def test_a_function_of_its_own_is_not_taken_for_one_of_another_file() -> None:
    own = TF + "def build(x):\n    return x\nfor i in range(2):\n    build(i)  # tf.device(i)\n"
    assert "a.py" not in may_hold_towers(hints_of({"a.py": own, "model.py": MODEL}))


@pytest.mark.parametrize("text", NOT_HELD)
def test_not_held(text: str) -> None:
    sources = {"a.py": TF + textwrap.dedent(text)}
    assert not may_hold_towers(hints_of(sources))
    assert not recognize_tree(sources, ["a.py"])
