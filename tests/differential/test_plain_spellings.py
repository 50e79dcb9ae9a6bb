"""Runs and feeds in other spellings of the same: those that loop style takes, and neighbours that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import all_do_the_same, leaves, takes
from towermigrate.rewrite import rewrite_tree

AVERAGED = "    grads = average_gradients(tower_grads)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
FEED = "feed_dict={X: bx, Y: by}"
APPLY = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
OPEN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
BATCH = "            bx, by = batch(4)\n"
TRAIN = "def train():\n"
MADE = "def batch(rows):\n"
SHOWN = "'%.6f' % value"
INDENT = "            "


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def run(*lines: str) -> Change:
    """Other statements in place of the run of each step."""
    return RUN, "".join(f"{INDENT}{line}\n" for line in lines)


def feed_function(*lines: str, at: str = MADE, margin: str = "") -> Change:
    """A function in front of another one, or of a statement."""
    text = "".join(f"{margin}{line}\n" for line in lines)
    return at, text + ("\n\n" if not margin else "") + at


MNIST = feed_function(
    "def fill_feed(x_pl, y_pl, rows):",
    '    """What one run is fed."""',
    "    # The batch of a step.",
    "    x_feed, y_feed = batch(rows)",
    "    feed_dict = {",
    "        x_pl: x_feed,",
    "        y_pl: y_feed,",
    "    }",
    "    return feed_dict",
)
PLAIN_FEED = feed_function("def make_feed(x, y, bx, by):", "    return {x: bx, y: by}")
FROM_FEED = run("_, value = sess.run([train_op, loss], feed_dict=feed)")
EMA = (
    APPLY,
    APPLY.replace("train_op", "apply_op")
    + "    ema = tf.train.ExponentialMovingAverage(0.9)\n    with tf.control_dependencies([apply_op]):\n        ema_op = ema.apply(tf.trainable_variables())\n",
)

OPENED = "    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))\n"
LAST = "        print('draws', drawn[0])\n"


def closed(*lines: str, handler: str = "", behind: str = "") -> tuple[Change, Change]:
    """A session that `finally` closes, with other statements of it and behind it."""
    end = "    finally:\n" + "".join(f"        {line}\n" for line in lines)
    return (OPEN, OPENED + "    try:\n"), (LAST, LAST + handler + end + behind)


TAKEN = [
    case("a part of what a run gives", run("value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})[1]")),
    case("a part of it, from the end", run("value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})[-1]")),
    case("a part of it, computed with", run("value = sess.run([loss, train_op], {X: bx, Y: by})[0] * 2.0")),
    case("a part of several", run("value = sess.run([train_op, loss, out], {X: bx, Y: by})[2].sum()")),
    case("closed by finally", *closed("sess.close()")),
    case("closed by finally among others", *closed("print('over')", "sess.close()")),
    case("closed by finally, with a handler", *closed("sess.close()", handler="    except KeyboardInterrupt:\n        print('stopped')\n")),
    case("a keyword named as a tensor", (SHOWN, "'{loss:.6f}'.format(loss=value)")),
    # What is fetched.
    case("a dict", run(f"got = sess.run({{'op': train_op, 'loss': loss}}, {FEED})", "assert got['op'] is None and sorted(got) == ['loss', 'op']", "value = got['loss']")),
    case("a dict of values", run(f"sess.run(train_op, {FEED})", f"got = sess.run({{'loss': loss, 'out': out}}, {FEED})", "print(got['out'].shape, list(got))", "value = got['loss']")),
    case("a dict of one value", run(f"sess.run(train_op, {FEED})", f"got = sess.run({{'loss': loss}}, {FEED})", "value = got['loss']")),
    case("a dict of one update", run(f"got = sess.run({{'op': train_op}}, {FEED})", f"value = sess.run(loss, {FEED})", "print(got)")),
    case("an item of a dict", run(f"value = sess.run({{'op': train_op, 'loss': loss}}, {FEED})['loss']")),
    case("an item of a list", run(f"value = sess.run([train_op, loss], {FEED})[1]")),
    case("the last item of a tuple", run(f"value = sess.run((train_op, loss), {FEED})[-1]")),
    case("a list kept whole", run(f"got = sess.run([train_op, loss], {FEED})", "print(type(got).__name__, len(got), got[0])", "value = got[1]")),
    case("a tuple kept whole", run(f"got = sess.run((train_op, loss), {FEED})", "print(type(got).__name__, len(got), got[0])", "value = got[1]")),
    case("a list in a list", run(f"_, (value, shown) = sess.run([train_op, [loss, out]], {FEED})", "print(shown.shape)")),
    case("a list in a list, kept", run(f"_, got = sess.run([train_op, [loss, out]], {FEED})", "print(type(got).__name__, len(got))", "value = got[0]")),
    case("a dict in a tuple", run(f"_, got = sess.run((train_op, {{'loss': loss, 'all': (loss, out)}}), {FEED})", "assert got['all'][0] is got['loss'] and type(got['all']) is tuple", "value = got['loss']")),
    case("a value twice", run(f"_, value, again = sess.run([train_op, loss, loss], {FEED})", "assert again is value")),
    case("a value twice, once for nobody", run(f"_, _, value = sess.run([train_op, loss, loss], {FEED})")),
    case("for nobody", run(f"sess.run({{'op': train_op}}, {FEED})", f"value = sess.run(loss, {FEED})")),
    case("an attribute holds it", (MADE, "class Seen(object):\n    pass\n\n\n" + MADE), run("seen = Seen()", f"seen.got = sess.run({{'op': train_op, 'loss': loss}}, {FEED})", "value = seen.got['loss']")),
    case("a named list whose value is bound anew", (SAVER, SAVER + "    fetches = [train_op, loss]\n    loss = loss * 2.0\n"), run(f"_, value = sess.run(fetches, {FEED})")),
    case("a named list", (SAVER, SAVER + "    fetches = [train_op, loss]  # of each step\n"), run(f"_, value = sess.run(fetches, {FEED})")),
    case("a named dict", (SAVER, SAVER + "    fetches = {'op': train_op, 'loss': loss}\n"), run(f"value = sess.run(fetches, {FEED})['loss']")),
    case("a named list, run twice", (SAVER, SAVER + "    fetches = [loss, out]\n"), run(f"sess.run(train_op, {FEED})", f"value, _ = sess.run(fetches, {FEED})", f"got = sess.run(fetches, {FEED})", "print(len(got), got[0])")),
    # Methods.
    case("run of an update", run(f"train_op.run({FEED})", f"value = loss.eval({FEED})")),
    case("run by a session that is given", run(f"train_op.run(session=sess, {FEED})", f"value = loss.eval({FEED}, session=sess)")),
    case("run by place", run("train_op.run({X: bx, Y: by}, sess)", "value = loss.eval({X: bx, Y: by})")),
    case("run in a format", run(f"train_op.run({FEED})", f"value = float('%.6f' % loss.eval({FEED}))")),
    case("run of an initialiser", ("        sess.run(tf.global_variables_initializer())\n", "        tf.global_variables_initializer().run()\n")),
    case("run of a named initialiser", (SAVER, SAVER + "    init = tf.global_variables_initializer()\n"), ("sess.run(tf.global_variables_initializer())", "init.run()")),
    case("a variable's value", ("            print('step'", "            print(step_count.eval(), step_count.eval(sess), step_count.eval(session=sess))\n            print('step'")),
    # Operations that wait.
    case("a group with what does nothing", (APPLY, APPLY.replace("train_op", "apply_op") + "    train_op = tf.group(apply_op, tf.no_op(name='nothing'), name='train')\n")),
    case("what does nothing behind an update", (APPLY, APPLY.replace("train_op", "apply_op") + "    with tf.control_dependencies([apply_op]):\n        train_op = tf.no_op(name='train')\n")),
    case("what does nothing behind an update and its average", (EMA[0], EMA[1] + "    with tf.control_dependencies([apply_op, ema_op]):\n        train_op = tf.no_op(name='train')\n")),
    # What is fed.
    case("a dict filled by items", (BATCH, BATCH + "            feed = {}\n            feed[X] = bx\n            feed[Y] = by\n"), FROM_FEED),
    case("a dict filled by one item", (BATCH, BATCH + "            feed = {X: bx}\n            feed[Y] = by\n"), FROM_FEED),
    case("a dict that is updated", (BATCH, BATCH + "            feed = dict()\n            feed.update({X: bx, Y: by})\n"), FROM_FEED),
    case("a dict that a function makes", PLAIN_FEED, run("_, value = sess.run([train_op, loss], feed_dict=make_feed(X, Y, bx, by))")),
    case("a named dict that a function makes", PLAIN_FEED, (BATCH, BATCH + "            feed = make_feed(X, Y, bx, by)\n"), FROM_FEED),
    case("a dict that a function makes of a call's values", PLAIN_FEED, (BATCH, "            feed = make_feed(X, Y, *batch(4))\n"), FROM_FEED),
    case("a dict that a function makes by keywords", PLAIN_FEED, (BATCH, BATCH + "            feed = make_feed(X, by=by, bx=bx * 1.0, y=Y)\n"), FROM_FEED),
    case("a function that draws", MNIST, (BATCH, ""), run("_, value = sess.run([train_op, loss], feed_dict=fill_feed(X, Y, 4))")),
    case("a function that draws, named", MNIST, (BATCH, "            feed_dict = fill_feed(X, Y, 4)\n"), run("_, value = sess.run([train_op, loss], feed_dict=feed_dict)")),
    case("a function that draws, for two runs", MNIST, (BATCH, ""), run("_, value = sess.run([train_op, loss], feed_dict=fill_feed(X, Y, 4))", "print('%.5f' % sess.run(loss, feed_dict={X: np.ones((4, 3)), Y: np.ones((4, 1))}))", "seen = sess.run(loss, feed_dict=fill_feed(X, Y, 4))", "print('%.5f' % seen)")),
    case("a function of the scope", (OPEN, "    def given(rows):\n        xs, ys = batch(rows)\n        return {X: xs, Y: ys}\n\n" + OPEN), (BATCH, ""), run("_, value = sess.run([train_op, loss], feed_dict=given(4))")),
    case("a function whose names the caller has", PLAIN_FEED, ("{x: bx, y: by}", "{x: value, y: step}"), ("make_feed(x, y, bx, by)", "make_feed(x, y, value, step)"), (BATCH, BATCH + "            feed = make_feed(X, Y, bx * 1.0, by)\n"), FROM_FEED),
    case("a dict filled with one item twice", (BATCH, BATCH + "            feed = {X: bx, Y: bx}\n            feed[Y] = by\n"), FROM_FEED),
]  # fmt: skip

LEFT = [
    other("the update of what a run gives", "TM209", run("value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})[0]", "value = 0.0")),
    other("closed by finally, and used behind it", "TM205", *closed("sess.close()", behind="    print(type(sess).__name__)\n")),
    other("a dict with a key that is no text of its own", "TM209", run("key = 'loss'", f"value = sess.run({{key: loss}}, {FEED})[key]", f"sess.run(train_op, {FEED})")),
    other("a dict in the middle of a line", "TM231", run(f"sess.run(train_op, {FEED})", f"print(sess.run({{'loss': loss}}, {FEED}))", "value = 0.0")),
    other("a list of what is computed", "TM209", run(f"_, value = sess.run([train_op, [loss * 2.0]], {FEED})", "value = value[0]")),
    other("a comprehension", "TM209", run(f"_, value = sess.run([each for each in (train_op, loss)], {FEED})")),
    other("what is kept by a name that is read for nothing", "TM209", run(f"_, (value, shown) = sess.run([train_op, [loss, out]], {FEED})", "print(_)")),
    other("a named list that grows", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n    fetches.append(out)\n"), run(f"value = sess.run(fetches, {FEED})[1]")),
    other("a named list that is changed in place", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n    fetches[1] = out\n"), run(f"value = sess.run(fetches, {FEED})[1].mean()")),
    other("a named list that is bound anew", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n"), run(f"_, value = sess.run(fetches, {FEED})", "fetches = [train_op, loss]")),
    other("a named list whose value a branch binds anew", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n    if DEVICES:\n        loss = loss * 2.0\n"), run(f"_, value = sess.run(fetches, {FEED})")),
    other("a named list that a step binds what it holds anew", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n"), run(f"_, loss = sess.run(fetches, {FEED})", "value = loss")),
    other("a named list that is printed", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n"), run(f"_, value = sess.run(fetches, {FEED})", "print(len(fetches))")),
    other("a named list under another name", "TM209", (SAVER, SAVER + "    fetches = [train_op, loss]\n    wanted = fetches\n"), run(f"_, value = sess.run(wanted, {FEED})")),
    other("a named list of one branch", "TM209", (SAVER, SAVER + "    if DEVICES:\n        fetches = [train_op, loss]\n    else:\n        fetches = [train_op, out]\n"), run(f"_, value = sess.run(fetches, {FEED})")),
    other("a run of another's session", "TM205", (OPEN, "    more = tf.Session()\n" + OPEN), run(f"sess.run(train_op, {FEED})", "more.run(tf.global_variables_initializer())", f"value = loss.eval({FEED}, session=more)")),
    other("a run where another session is the default", "TM205", (OPEN, "    more = tf.Session()\n" + OPEN), run(f"sess.run(train_op, {FEED})", "with more.as_default():", "    tf.global_variables_initializer().run()", f"    value = loss.eval({FEED})")),
    other("a run in a function", "TM210", (SAVER, SAVER + "    def look(bx, by):\n        return loss.eval(feed_dict={X: bx, Y: by})\n\n"), run(f"sess.run(train_op, {FEED})", "value = look(bx, by)")),
    other("the value of what is computed", "TM210", run(f"train_op.run({FEED})", f"value = (loss * 2.0).eval({FEED})")),
    other("a group with what is printed", "TM204", (APPLY, APPLY.replace("train_op", "apply_op") + "    train_op = tf.group(apply_op, tf.print('trained'))\n")),
    other("what does nothing behind a value that is printed", "TM209", (APPLY, APPLY.replace("train_op", "apply_op") + "    shown = tf.Print(loss, [loss])\n    with tf.control_dependencies([apply_op, shown]):\n        train_op = tf.no_op()\n")),
    other("a dict filled under a condition", "TM209", (BATCH, BATCH + "            feed = {X: bx}\n            if step < 9:\n                feed[Y] = by\n"), FROM_FEED),
    other("a dict of which an item is read", "TM209", (BATCH, BATCH + "            feed = {X: bx}\n            feed[Y] = feed[X].sum(1, keepdims=True)\n"), FROM_FEED),
    other("a dict from which an item goes", "TM209", (BATCH, BATCH + "            feed = {X: bx, Y: by, loss: 1.0}\n            feed.pop(loss)\n"), FROM_FEED),
    other("a dict that is kept for the next step", "TM209", (OPEN, "    feed = {}\n" + OPEN), (BATCH, BATCH + "            feed[X] = bx\n            feed[Y] = by\n"), FROM_FEED),
    other("a function that returns in two places", "TM209", feed_function("def make_feed(x, y, bx, by):", "    if len(bx) > 99:", "        return {}", "    return {x: bx, y: by}"), (BATCH, BATCH + "            feed = make_feed(X, Y, bx, by)\n"), FROM_FEED),
    other("a function with a default", "TM209", feed_function("def make_feed(x, y, bx, by=drawn):", "    return {x: bx, y: by}"), (BATCH, BATCH + "            feed = make_feed(X, Y, bx, by)\n"), FROM_FEED),
    other("a function that is bound anew", "TM209", PLAIN_FEED, (TRAIN, "if len(DEVICES) > 9:\n    make_feed = dict\n\n\n" + TRAIN), (BATCH, BATCH + "            feed = make_feed(X, Y, bx, by)\n"), FROM_FEED),
    other("a function that is decorated", "TM209", feed_function("def twice(function):", "    return lambda *given: function(*given)", "", "", "@twice", "def make_feed(x, y, bx, by):", "    return {x: bx, y: by}"), (BATCH, BATCH + "            feed = make_feed(X, Y, bx, by)\n"), FROM_FEED),
    other("a function that reads what its caller has for something else", "TM209", feed_function("scale = 0.5", "", "", "def make_feed(x, y, bx, by):", "    return {x: bx * scale, y: by}"), (BATCH, BATCH + "            scale = 2.0\n            feed = make_feed(X, Y, bx, by)\n            print(scale)\n"), FROM_FEED),
    other("a placeholder that is asked for its name", "TM210", (RUN, RUN + "            print(X.name)\n")),
    other("a placeholder that is a key of another dict", "TM210", (RUN, RUN + "            print(len({X: 1, Y: 2}))\n")),
    other("a method that makes it", "TM209", feed_function("class Feeder(object):", "    def make_feed(self, x, y, bx, by):", "        return {x: bx, y: by}"), (BATCH, BATCH + "            feed = Feeder().make_feed(X, Y, bx, by)\n"), FROM_FEED),
]  # fmt: skip


@pytest.mark.parametrize("changes", TAKEN)
def test_it_is_in_loop_style(changes: tuple[Change, ...]) -> None:
    takes(changes)


@pytest.mark.parametrize(("changes", "rule"), LEFT)
def test_its_neighbour_is_not(changes: tuple[Change, ...], rule: str) -> None:
    leaves(changes, rule)


def test_places_are_those_of_the_authors_text() -> None:
    """What else keeps a program from loop style is told at its own line, though lines in front of it changed."""
    fetched = run(f"_, value = sess.run(fetches, {FEED})", "print(out)")
    files = program((SAVER, SAVER + "    fetches = [train_op, loss]\n"), fetched)
    (result,) = rewrite_tree(files).programs
    lines = files["train.py"].split("\n")
    told = [one for one in result.not_loop if "`out`, which only a step" in one.message]
    assert [lines[one.line - 1].strip() for one in told] == ["print(out)"]


def test_a_function_that_others_use_stays() -> None:
    files = program(
        PLAIN_FEED, (BATCH, BATCH + "            feed = make_feed(X, Y, bx, by)\n"), FROM_FEED
    )
    alone = rewrite_tree(files).texts["train.py"]
    both = rewrite_tree({**files, "other.py": "from train import make_feed\n"}).texts["train.py"]
    assert "make_feed" not in alone
    assert "def make_feed" in both and "feed = make_feed" not in both


def test_functions_that_are_not_the_programs_stay_as_they_are() -> None:
    """They may be spelled otherwise too."""
    score = "def score(sess, accuracy, x, batch):\n    return accuracy.eval({x: batch}, session=sess)\n\n\n"
    text = program((TRAIN, score + TRAIN), run(f"value = sess.run([train_op, loss], {FEED})[1]"))
    result = rewrite_tree(text)
    assert result.programs[0].style == "loop"
    assert "return accuracy.eval({x: batch}, session=sess)" in result.texts["train.py"]


@pytest.mark.full
def test_all_of_them_do_the_same_rewritten() -> None:
    all_do_the_same(TAKEN)
