"""Asserts, `raise` and questions about values: spellings that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

AVERAGED = "    grads = average_gradients(tower_grads)\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
NET = "def net(x):\n"
SAVER = "    saver = tf.train.Saver()\n"
START = "    tower_grads = []\n"


def in_tower(text: str) -> Change:
    """Statements of the tower, behind its loss."""
    return (LOSS, LOSS + "".join(f"                    {line}\n" for line in text.split("\n")))


def in_net(text: str) -> Change:
    """Statements of the model's function."""
    return (NET, NET + "".join(f"    {line}\n" for line in text.split("\n")))


def behind(text: str) -> Change:
    return (AVERAGED, AVERAGED + text)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


TAKEN = [
    case("a rank", in_tower("assert loss.get_shape().ndims == 0, loss")),
    case("a rank of some", in_tower("assert out.shape.ndims in (1, 2) and loss.shape.ndims == 0")),
    case("how many sizes", in_tower("assert len(out.get_shape()) == 2")),
    case("a setting", (START, START + "    width = 3\n"), in_tower("assert width > 2, 'too narrow: %d' % width")),
    case("in the model", in_net("assert x is not None")),
    case("a raise for a setting", (NET, "MODE = 'plain'\n\n\n" + NET), in_net("if MODE not in ('plain', 'other'):\n    raise ValueError('no mode %s' % MODE)")),
    case("a raise instead of a return", (NET, "def scaled(value, kind):\n    if kind == 'half':\n        return value * 0.5\n    elif kind == 'same':\n        return value\n    raise ValueError(kind)\n\n\n" + NET), in_net("x = scaled(x, 'half')")),
    case("a raise for what is not there", in_net("if x is None:\n    raise NotImplementedError")),
    case("a list or a tensor", in_net("if isinstance(x, (list, tuple)):\n    x = tf.concat(x, 1)\nelse:\n    x = x * 0.5")),
    case("a list of tensors", (NET, "def joined(parts):\n    if isinstance(parts, list):\n        return tf.add_n(parts)\n    return parts\n\n\n" + NET), in_net("x = joined([x, x * 0.5])")),
    case("a kind of number", (NET, "def scaled(value, by):\n    if isinstance(by, int):\n        by = float(by)\n    assert isinstance(by, float)\n    return value * by\n\n\n" + NET), in_net("x = scaled(x, 2)")),
    case("a sorted list of numbers", in_net("for factor in sorted([2.0, 0.5]):\n    x = x * factor + 0.125")),
    case("any of some settings", in_net("if any([False, True]) and all((1, 2)):\n    x = x * 0.5")),
]  # fmt: skip

LEFT = [
    other("a size", "TM228", in_tower("assert out.get_shape()[1] == 1")),
    other("a size that TF1 did not know", "TM228", in_tower("assert x.get_shape()[0].value is None")),
    other("all sizes", "TM228", in_tower("assert x.get_shape().as_list() == [None, 3]")),
    other("two ranks that are one", "TM228", in_tower("assert x.shape.ndims == y.shape.ndims")),
    other("a rank that is another", "TM228", in_tower("assert out.shape.ndims != 3")),
    other("not a rank", "TM228", in_tower("assert not out.shape.ndims == 3")),
    other("a rank or something else", "TM228", in_tower("assert out.shape.ndims == 3 or True")),
    other("a rank that decides", "TM228", in_tower("if out.shape.ndims == 2:\n    loss = loss * 2.0")),
    other("the truth of a tensor", "TM226", in_tower("assert not loss")),
    other("whether two tensors are one", "TM226", in_tower("assert loss == loss")),
    other("the index", "TM227", in_tower("assert i < 5")),
    other("an effect in a test", "TM223", in_tower("assert print('asked') is None")),
    other("a list that a test empties", "TM222", (START, START + "    left = [1, 2, 3]\n"), in_tower("assert left.pop() > 0")),
    other("an iterator that a test moves on", "TM223", (START, START + "    left = iter([1, 2, 3])\n"), in_tower("assert next(left) > 0")),
    other("a setting that is changed behind", "TM224", (START, START + "    width = 3\n"), in_tower("assert width > 2"), (SAVER, SAVER + "    width = 1\n")),
    other("behind the towers", "TM223", behind("    assert len(grads) == 2\n")),
    other("a raise behind the towers", "TM223", behind("    if len(grads) > 5:\n        raise ValueError\n")),
    other("a raise for a tower", "TM214", in_tower("if i > 5:\n    raise ValueError(i)")),
    other("a raise for a tensor", "TM226", in_tower("if loss:\n    raise ValueError(loss)")),
    other("a raise for a size", "TM228", in_tower("if x.get_shape()[0].value is not None:\n    raise ValueError(x)")),
    other("a raise that is caught", "TM223", in_tower("try:\n    if out is None:\n        raise ValueError(out)\nexcept ValueError:\n    pass")),
    other("a variable's class", "TM222", ("    return tf.matmul(x, w) + b\n", "    if isinstance(w, tf.Variable):\n        x = x * 0.5\n    return tf.matmul(x, w) + b\n")),
    other("a list's class, for a print", "TM223", in_tower("parts = tf.split(out, 2)\nif isinstance(parts, list):\n    print('a list')")),
    other("a size's class", "TM222", in_tower("if isinstance(out.get_shape()[1], int):\n    loss = loss * 2.0")),
    other("a tensor's class", "TM222", in_tower("if isinstance(loss, tf.Tensor):\n    loss = loss * 2.0")),
    other("a set of tensors", "TM222", in_tower("seen = set([loss, out])\nloss = loss * len(seen)")),
    other("any of some tensors", "TM222", in_tower("if any([loss, out]):\n    loss = loss * 2.0")),
    other("variables that are sorted", "TM222", ("    return tf.matmul(x, w) + b\n", "    first = sorted([w, b], key=lambda v: v.name)[0]\n    return tf.matmul(x, w) + b * tf.reduce_sum(first)\n")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
