"""Flags that are True for all towers but the first, and what goes by them that is no reuse of variables."""

from __future__ import annotations

import pytest

from tests.towers.looping import towers
from towermigrate.towers.twice import Turns

NET = "def net(x, reuse=None):\n    with tf.variable_scope('net', reuse=reuse):\n        return tf.identity(x)\n"
START = "reuse = None\n"
SET = "reuse = True\n"


def of_flag(body: str, before: str = NET, inside: str = START) -> Turns:
    return towers(body + SET, before, inside)


ONLY_REUSE = [
    pytest.param(of_flag("net(config, reuse)\n"), id="an argument"),
    pytest.param(of_flag("net(config, reuse=reuse)\n"), id="a keyword"),
    pytest.param(of_flag("net(*(config, reuse))\n"), id="one of several arguments"),
    pytest.param(of_flag("net(config, **dict(reuse=reuse))\n"), id="a table"),
    pytest.param(of_flag("tf.layers.dense(config, 1, name='a', reuse=reuse)\n"), id="a layer's keyword"),
    pytest.param(of_flag("tf.layers.dense(config, 1, name='a', reuse=reuse)\n", inside="reuse = False\n"), id="False at first"),
    pytest.param(
        of_flag("net(config, reuse)\n",
                "def net(x, again):\n    with tf.variable_scope('net') as scope:\n        if again:\n"
                "            scope.reuse_variables()\n        return x\n"),
        id="an `if` that only reuses",
    ),
    pytest.param(
        of_flag("net = Net(reuse)\nnet.build(config)\n",
                "class Net(object):\n    def __init__(self, reuse):\n        self.given = {'reuse': reuse}\n"
                "    def build(self, x):\n        with tf.variable_scope('net', **self.given):\n            return x\n"),
        id="an object of the tower",
    ),
    pytest.param(
        of_flag("net(config, reuse)\n",
                "def net(x, again):\n    return inner(x, again)\n\ndef inner(x, flag):\n"
                "    kind = config_of(x)\n    return kind(x, reuse=flag)\n\ndef config_of(x):\n    return tf.layers.dense\n"),
        id="a function that calls another, which picks what to call",
    ),
]  # fmt: skip


@pytest.mark.parametrize("found", ONLY_REUSE)
def test_a_flag_that_says_nothing_but_reuse(found: Turns) -> None:
    assert found.whole
    assert list(found.flags) == ["reuse"]
    assert not found.decides


MORE = [
    pytest.param(of_flag("x = 1.0 if reuse else 2.0\n"), id="a choice"),
    pytest.param(of_flag("net(config * (2.0 + reuse))\n"), id="a factor"),
    pytest.param(of_flag("tf.multiply(config, reuse)\n"), id="an argument of TensorFlow's"),
    pytest.param(of_flag("tf.layers.dense(config, 1, use_bias=reuse)\n"), id="another keyword of a layer"),
    pytest.param(of_flag("x = [config, names][reuse]\n"), id="which of two"),
    pytest.param(of_flag("x = {None: 1, True: 2}[reuse]\n"), id="an entry of a table"),
    pytest.param(of_flag("seen.append(reuse)\n", inside=START + "seen = []\n"), id="an entry of a list"),
    pytest.param(
        of_flag("net.reuse = reuse\n", "class Net(object):\n    pass\n", START + "net = Net()\n"), id="an attribute of an object"
    ),
    pytest.param(
        of_flag("put(reuse)\n", "", START + "seen = []\ndef put(value):\n    seen.append(value)\n"), id="what a function keeps"
    ),
    pytest.param(of_flag("config.reuse = reuse\n"), id="an attribute"),
    pytest.param(of_flag("config['reuse'] = reuse\n"), id="an entry"),
    pytest.param(of_flag("print(reuse)\n"), id="a line that is printed"),
    pytest.param(of_flag("config(reuse)\n"), id="a function that is not known"),
    pytest.param(
        of_flag("config.net(names, reuse)\n", "class A(object):\n    def net(self, x, reuse):\n        return x\n"),
        id="a method of what is not known",
    ),
    pytest.param(
        of_flag("build(config, reuse)\n", NET, START + "build = net if config else config.build\n"),
        id="a function of which one is not known",
    ),
    pytest.param(of_flag("first = reuse\n"), id="another name"),
    pytest.param(of_flag("while reuse:\n    break\n"), id="a loop"),
    pytest.param(of_flag("x = names[:reuse]\n"), id="a slice"),
    pytest.param(of_flag("x = f'{reuse}'\nnet(config)\n"), id="a text"),
    pytest.param(of_flag("net(config, reuse)\n", NET.replace("    with", "    x = x if reuse else x * 2.0\n    with")), id="a choice in a function"),
    pytest.param(
        of_flag("net(config, reuse)\n", "def net(x, again):\n    scope = tf.get_variable_scope()\n    if again:\n"
                "        scope.reuse_variables()\n        x = x * 2.0\n    return x\n"),
        id="an `if` that reuses and does more",
    ),
    pytest.param(
        towers("net(config, reuse=i > 0)\n", NET.replace("    with", "    x = x if reuse else x * 2.0\n    with")),
        id="what the index says",
    ),
]  # fmt: skip


@pytest.mark.parametrize("found", MORE)
def test_a_flag_that_decides_more(found: Turns) -> None:
    assert found.whole
    assert found.decides


NO_FLAGS = [
    pytest.param(towers("reuse = not reuse\nnet(config, reuse)\n", NET, "reuse = False\n"), id="one that turns"),
    pytest.param(towers("reuse = i > 0\nnet(config, reuse)\n", NET, "reuse = False\n"), id="one that the index sets"),
    pytest.param(towers("net(config)\nreuse = i > 0\n", NET, "reuse = False\n"), id="one that the index sets at the end"),
    pytest.param(towers("net(config, reuse)\nreuse = True\n", NET, "reuse = config.reuse\n"), id="one that is not known at first"),
    pytest.param(towers("net(config, reuse)\nif config.share:\n    reuse = True\n", NET, "reuse = None\n"), id="one that a setting sets"),
]  # fmt: skip


@pytest.mark.parametrize("found", NO_FLAGS)
def test_what_is_no_flag(found: Turns) -> None:
    assert not found.flags
