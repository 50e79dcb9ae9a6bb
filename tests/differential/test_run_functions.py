"""Functions that run what a session is asked, called several times: what loop style takes, and what it leaves."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of

MAIN = "def train():\n"
SAVER = "    saver = tf.train.Saver()\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
SHOWN = "            print('step', step, 'loss', '%.6f' % value)\n"
FIRST = "        first = batch(4)\n"


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, *changes: Change, rule: str = "TM205") -> Any:
    return pytest.param(changes, rule, id=name)


def text(lines: str, margin: str) -> str:
    return "".join(f"{margin}{line}\n" if line else "\n" for line in lines.strip("\n").split("\n"))


def inner(lines: str, *shown: str, setup: str = "") -> tuple[Change, ...]:
    """A function among the statements of the session, and what each step prints of it."""
    made = INIT + text(setup, "        ") if setup else INIT
    return (INIT, made + text(lines, "        ")), behind(*shown)


def outer(lines: str, *shown: str) -> tuple[Change, ...]:
    """A function of the module."""
    return (MAIN, text(lines, "") + "\n\n" + MAIN), behind(*shown)


def behind(*lines: str) -> Change:
    return SHOWN, SHOWN + "".join(f"            {line}\n" for line in lines)


LOOK = "def look(x, y):\n    return sess.run(loss, feed_dict={X: x, Y: y})"
ASKED = "def look(sess, loss, X, Y, x, y):\n    return sess.run(loss, feed_dict={X: x, Y: y})"
OTHERS = "def look(session, cost, images, targets, x, y):\n    return session.run(cost, feed_dict={images: x, targets: y})"
PRINTED = "print('%.6f' % look(bx, by))"
GIVEN = "print('%.6f' % look(sess, loss, X, Y, bx, by))"
TWICE = (GIVEN, "again = look(sess, loss, X, Y, by[:, :1] * bx, by)", "print('%.6f' % again)")
TRAINS = "def move(x, y):\n    _, found = sess.run([train_op, loss], feed_dict={X: x, Y: y})\n    return found"

TAKEN = [
    case("an inner function", *inner(LOOK, PRINTED)),
    case("an inner function, called before the first step", *inner(LOOK + "\n\nprint('%.6f' % look(*batch(4)))", PRINTED)),
    case("an inner function in a comprehension", *inner(LOOK, "print(['%.6f' % look(bx * k, by) for k in range(3)])")),
    case("an inner function with a loop", *inner("def look(x, y):\n    total = 0.0\n    for _ in range(2):\n        total += sess.run(loss, feed_dict={X: x, Y: y})\n    return total / 2", PRINTED)),
    case("an inner function with a dict of feeds", *inner("def look(x, y):\n    feed = {X: x, Y: y}\n    return sess.run(loss, feed_dict=feed)", PRINTED)),
    case("an inner function that is handed the session", *inner(ASKED.replace("loss, X, Y, ", ""), "print('%.6f' % look(sess, bx, by))")),
    case("an inner function that trains", *inner(TRAINS, "print('%.6f' % move(bx, by))")),
    case("an inner function that calls another", *inner(LOOK + "\n\ndef twice(x, y):\n    return look(x, y) + look(2 * x, y)", "print('%.6f' % twice(bx, by))")),
    case("an inner function that keeps what it saw", *inner("seen = []\n\n" + LOOK.replace("    return ", "    seen.append(") + ")\n    return seen[-1]", PRINTED, "print(len(seen))")),
    case("a function of the module, in an expression", *outer(ASKED, GIVEN)),
    case("a function of the module, twice", *outer(ASKED, *TWICE)),
    case("a function of the module, twice, by other names", *outer(OTHERS, *TWICE)),
    case("a function of the module, by keywords", *outer(OTHERS, "print('%.6f' % look(sess, cost=loss, images=X, targets=Y, y=by, x=bx))")),
    case("a function of the module, with a default", *outer(ASKED.replace("x, y)", "x, y, scale=1.0)").replace("X: x", "X: x * scale"), GIVEN, "print('%.6f' % look(sess, loss, X, Y, bx, by, scale=0.5))")),
    case("a function of the module, in lines", *outer(ASKED.replace("(sess, loss, ", "(sess, loss,\n         "), "print('%.6f' % look(sess, loss, X, Y,", "                    bx, by))")),
    case("a function of the module with values of its own by the names of others", *outer("def look(sess, loss, X, Y, x, y):\n    value, tower_grads = 0.0, []\n    for step in range(2):\n        value += sess.run(loss, feed_dict={X: x * step, Y: y})\n        tower_grads.append(value)\n    return sum([value for value in tower_grads])", *TWICE)),
    case("a function of the module with an early end", *outer("def look(sess, loss, X, Y, x, y):\n    # Nothing to look at.\n    if len(x) == 0:\n        return 0.0\n    return sess.run(loss, feed_dict={X: x, Y: y})", GIVEN)),
    case("a function of the module with a text of several lines", *outer('def look(sess, loss, X, Y, x, y):\n    """What is lost.\n\n    Of a batch.\n    """\n    said = """a\n  b"""\n    return sess.run(loss, feed_dict={X: x, Y: y}) + len(said)', *TWICE)),
    case("a lambda", *inner("look = lambda x, y: sess.run(loss, feed_dict={X: x, Y: y})", PRINTED)),
    case("a function of the module that trains", *outer("def move(sess, train_op, loss, X, Y, x, y):\n    _, found = sess.run([train_op, loss], feed_dict={X: x, Y: y})\n    return found", "for _ in range(2):", "    print('%.6f' % move(sess, train_op, loss, X, Y, bx, by))", "print('%.6f' % move(sess, train_op, loss, X, Y, by[:, :1] * bx, by))")),
]  # fmt: skip

LEFT = [
    other("an inner function that is handed on", *inner(LOOK, "print(['%.6f' % v for v in map(look, [bx], [by])])")),
    other("an inner function that is kept", *inner(LOOK + "\n\nkept = look", PRINTED)),
    other("an inner function with a name of the graph of its own", *inner("def look(X, Y, loss=loss):\n    return sess.run(loss, feed_dict={X: bx, Y: by})", "print(look(1, 2))")),
    other("an inner function whose fetch is bound anew behind it", *inner(LOOK, PRINTED), (RUN, RUN + "            loss = train_op\n"), rule="TM209"),
    other("an inner function behind the session", *inner(LOOK, PRINTED), ("        print('draws', drawn[0])\n", "        print('draws', drawn[0])\n    try:\n        look(*batch(4))\n    except RuntimeError:\n        print('closed')\n")),
    other("a function of the module with a default that is made", *outer("def look(sess, loss, X, Y, x, y, rng=np.random.RandomState(3)):\n    return sess.run(loss, feed_dict={X: x * rng.rand(), Y: y})", *TWICE)),
    other("an inner function that waits", *inner(LOOK.replace("return", "yield"), "print(['%.6f' % v for v in look(bx, by)])")),
    other("an inner function, decorated", *inner("def kept(f):\n    return f\n\n@kept\n" + LOOK, PRINTED)),
    other("an inner function of two", *inner("if len(DEVICES) > 1:\n" + text(LOOK, "    ") + "else:\n" + text(LOOK, "    "), PRINTED)),
    other("an inner function of a class", *inner("class Looks(object):\n    def look(self, x, y):\n        return sess.run(loss, feed_dict={X: x, Y: y})\n\nlook = Looks().look", PRINTED)),
    other("an inner function that initialises", *inner("def again():\n    sess.run(tf.global_variables_initializer())", "if step == 2:", "    again()"), rule="TM209"),
    other("a function of the module, with another value each time", *outer(ASKED, GIVEN, "print('%.6f' % look(sess, loss, X, Y, bx, by))", "print('%.6f' % look(sess, train_op if False else loss, X, Y, bx, by))")),
    other("a function of the module that is handed on", *outer(ASKED, GIVEN, "print(['%.6f' % v for v in map(look, [sess], [loss], [X], [Y], [bx], [by])])")),
]  # fmt: skip


def at_the_top(*changes: Change) -> dict[str, str]:
    """The program without a function of its own: the file trains when it is read."""
    (text,) = program(*changes).values()
    start, end = text.index(MAIN), text.index("if __name__")
    return {"train.py": text[:start] + textwrap.dedent(text[start + len(MAIN) : end])}


def beside(name: str, *changes: Change, rule: str = "TM205") -> Any:
    """A row for the program without a function, with `look` behind the towers."""
    return other(name, (SAVER, SAVER + text(LOOK, "    ") + "\n"), *changes, rule=rule)


TOP = [
    case("behind the towers", (SAVER, SAVER + text(LOOK, "    ") + "\n"), behind(PRINTED)),
    case("behind the towers, that reads what is bound anew", (SAVER, "    loss = tf.identity(loss, name='now')\n" + SAVER + text(LOOK, "    ") + "\n"), behind(PRINTED)),
    case("behind the towers, given the session", (SAVER, SAVER + text(LOOK.replace("(x, y)", "(sess, x, y)"), "    ") + "\n"), behind("print('%.6f' % look(sess, bx, by))", "print('%.6f' % look(sess, bx * 2, by))")),
]  # fmt: skip

TOP_LEFT = [
    beside("called by what stands in front", (MAIN, "def first(x, y):\n    return look(x, y)\n\n\n" + MAIN), behind("print('%.6f' % first(bx, by))")),
    beside("called in front of the session", ("    with tf.Session(", "    try:\n        look(*batch(4))\n    except NameError:\n        print('none')\n    with tf.Session("), behind(PRINTED)),
    beside("the session bound anew", behind(PRINTED, "sess = sess")),
    beside("that is handed on", behind("print(['%.6f' % v for v in map(look, [bx], [by])])")),
    beside("that another function reads a tensor beside", ("    with tf.Session(", "    def named():\n        return loss.name\n\n    with tf.Session("), behind(PRINTED, "print(named())"), rule="TM210"),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)
(
    test_it_is_in_loop_style_at_the_top,
    test_its_neighbour_is_not_at_the_top,
    test_all_of_them_do_the_same_at_the_top,
) = asked_of(
    [*(each for each in TAKEN if each.id != "a lambda"), *TOP], [*LEFT, *TOP_LEFT], at_the_top
)
