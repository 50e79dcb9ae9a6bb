"""What towers call their variables by arguments that `arg_scope` hands to functions."""

from __future__ import annotations

import pytest

from tests.towers.looping import towers
from towermigrate.towers.names import differing_name
from towermigrate.towers.twice import Turns

SLIM = "from tensorflow.contrib import slim\n"
COUNTS = """
from tensorflow.contrib.framework.python.ops import add_arg_scope, arg_scope
@add_arg_scope
def dense(x, seen={}, name='w'):
    number = seen.setdefault('dense', 0)
    seen['dense'] = number + 1
    with tf.variable_scope('%s_%d' % (name, number)):
        return x
def plain(x, seen={}):
    with tf.variable_scope('w_%d' % len(seen)):
        seen['w%d' % len(seen)] = x
@add_arg_scope
def other(x, seen={}):
    return x
"""

OTHERS = [
    pytest.param(
        towers("with arg_scope([dense], seen=seen):\n    dense(config)\n", COUNTS, "seen = {}\n"),
        id="a counter that all towers have",
    ),
    pytest.param(towers("seen = {}\nwith arg_scope([other], seen=seen):\n    dense(config)\n", COUNTS),
                 id="a counter of another function"),
    pytest.param(towers("seen = {}\nwith arg_scope([dense], name='v'):\n    dense(config)\n", COUNTS),
                 id="a default that all calls have"),
    pytest.param(towers("seen = {}\nwith arg_scope([dense], seen=seen):\n    pass\ndense(config)\n", COUNTS),
                 id="a counter behind its scope"),
    pytest.param(
        towers("with arg_scope([dense], seen={}):\n    with arg_scope([dense], seen=seen):\n        dense(config)\n",
               COUNTS, "seen = {}\n"),
        id="a counter of the scope inside",
    ),
    pytest.param(
        towers("with arg_scope([dense], seen={}):\n    dense(config, seen=seen)\n", COUNTS, "seen = {}\n"),
        id="a counter that the call itself gives",
    ),
    pytest.param(towers("with arg_scope([plain], seen={}):\n    plain(config)\n", COUNTS),
                 id="a function that takes nothing of scopes"),
    pytest.param(towers("with arg_scope([dense], seen={}, name='w%d' % i):\n    dense(config)\n", COUNTS),
                 id="a name by the tower"),
    pytest.param(towers("with arg_scope([dense], seen={}, **names.of(i)):\n    dense(config)\n", COUNTS),
                 id="a name that a table by the tower may hold"),
    pytest.param(towers("with arg_scope(names.functions, name='w%d' % i):\n    dense(config, {})\n", COUNTS),
                 id="a name of functions that are not known"),
    pytest.param(towers("with arg_scope(names.scope(i)):\n    dense(config, {})\n", COUNTS),
                 id="a scope of the tower that is not known"),
    pytest.param(
        towers("with arg_scope([dense], name='w%d' % i) as scope:\n    pass\n"
               "with arg_scope(scope):\n    dense(config, {})\n", COUNTS),
        id="a scope that is entered again",
    ),
    pytest.param(
        towers("with slim.arg_scope([slim.conv2d], scope='w%d' % i):\n    slim.conv2d(config, 8, 3)\n", SLIM),
        id="a name of a layer",
    ),
]  # fmt: skip

ALIKE = [
    pytest.param(towers("seen = {}\nwith arg_scope([dense, other], seen=seen):\n    dense(config)\n    dense(config)\n", COUNTS),
                 id="a counter of the tower"),
    pytest.param(
        towers("with arg_scope([dense], seen={}):\n    with arg_scope([dense, other], name='v'):\n        dense(config)\n", COUNTS),
        id="a scope in a scope",
    ),
    pytest.param(
        towers("with start():\n    dense(config)\n",
               COUNTS + "def start():\n    with arg_scope([dense], seen={}) as scope:\n        return scope\n"),
        id="a scope that a function gives",
    ),
    pytest.param(towers("with arg_scope([dense], seen={}, name=names[0]):\n    dense(config)\n", COUNTS),
                 id="a name of which nothing is known"),
    pytest.param(
        towers("with slim.arg_scope([slim.conv2d], scope='w', stride=i):\n    slim.conv2d(config, 8, 3)\n", SLIM),
        id="a layer's own",
    ),
]  # fmt: skip


@pytest.mark.parametrize("found", OTHERS)
def test_towers_with_variables_of_their_own(found: Turns) -> None:
    assert found.whole
    assert differing_name(found) is not None


@pytest.mark.parametrize("found", ALIKE)
def test_towers_with_the_same_variables(found: Turns) -> None:
    assert found.whole
    assert differing_name(found) is None
