"""Continuation lines move with the brackets that they are aligned with, and nothing else moves."""

from __future__ import annotations

import pytest

from towermigrate.symbols import rewrite_symbols

CASES = {
    "below the first argument": (
        """\
        x = tf.placeholder(tf.float32,
                           [None],  # rows
                           # by name
                           name='x')
        """,
        """\
        x = tf.compat.v1.placeholder(tf.float32,
                                     [None],  # rows
                                     # by name
                                     name='x')
        """,
    ),
    "brackets in brackets": (
        """\
        y = tf.layers.dense(tf.reshape(x, [1,
                                           2]), 3,
                            kernel_initializer=tf.constant_initializer(0.0,
                                                                       tf.float32),
                            )
        """,
        """\
        y = tf.compat.v1.layers.dense(tf.reshape(x, [1,
                                                     2]), 3,
                                      kernel_initializer=tf.compat.v1.constant_initializer(0.0,
                                                                                           tf.float32),
                                      )
        """,
    ),
    "a bracket at the end of its line, in one that moves": (
        """\
        y = tf.layers.dense(x, size(
                                1, 2),
                            other=[
                                3,
                            ])
        """,
        """\
        y = tf.compat.v1.layers.dense(x, size(
                                1, 2),
                                      other=[
                                          3,
                                      ])
        """,
    ),
    "what the author aligned with nothing": (
        """\
        y = tf.layers.dense(x, 3,
            name='y')
        z = tf.layers.dense(
            x, 3, name='z')
        if (tf.train.get_global_step() is None and
            x):
            pass
        """,
        """\
        y = tf.compat.v1.layers.dense(x, 3,
            name='y')
        z = tf.compat.v1.layers.dense(
            x, 3, name='z')
        if (tf.compat.v1.train.get_global_step() is None and
            x):
            pass
        """,
    ),
    "text over several lines": (
        '''\
        tf.app.flags.DEFINE_string('folder', '',
                                   """Where to
                                   write.""" f"""{a
                                   }""",
                                   required=True)
        ''',
        '''\
        tf.compat.v1.app.flags.DEFINE_string('folder', '',
                                             """Where to
                                   write.""" f"""{a
                                   }""",
                                             required=True)
        ''',
    ),
    "heads of functions": (
        """\
        @tf.make_template(a,
                          b)
        def f(x=tf.zeros_initializer(a,
                                     b), y=1):
            with tf.variable_scope('f', [x,
                                         y]) as scope:
                return scope
        """,
        """\
        @tf.compat.v1.make_template(a,
                                    b)
        def f(x=tf.compat.v1.zeros_initializer(a,
                                               b), y=1):
            with tf.compat.v1.variable_scope('f', [x,
                                                   y]) as scope:
                return scope
        """,
    ),
    "names that become shorter": (
        """\
        y = tf.contrib.slim.conv2d(x,
                                   3)
        """,
        """\
        y = tf_slim.conv2d(x,
                           3)
        """,
    ),
    "tabs stay as they are": (
        "y = tf.layers.dense(x,\n\t\t\t\t\t\t\t\t\t  3,\n                    name='y')\n",
        "y = tf.compat.v1.layers.dense(x,\n\t\t\t\t\t\t\t\t\t  3,\n                    name='y')\n",
    ),
}


def _dedented(text: str) -> str:
    lines = text.splitlines(keepends=True)
    whole = all(line.startswith(" " * 8) for line in lines)
    return "".join(line[8:] if whole else line for line in lines)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_lines_move_with_their_bracket(name: str, newline: str) -> None:
    before, after = map(_dedented, CASES[name])
    source = ("import tensorflow as tf\n\n" + before).replace("\n", newline)
    result = rewrite_symbols(source, "a.py").text
    assert result.partition(newline * 2)[2] == after.replace("\n", newline)
    assert rewrite_symbols(result, "a.py").text == result
