"""Programs meant to fool who follows values: loop style only where it is right, and what is rewritten does the same."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from tests.differential import running, trying
from tests.differential.loop_programs import Change, program
from tests.differential.test_loop_style import (
    APPENDED,
    APPLIED,
    AVERAGED,
    FORWARD,
    GRADS,
    LOSS,
    MATMUL,
    REUSED,
    RUN,
    SAVER,
    START,
)
from towermigrate.rewrite import rewrite_tree

HEAD = "drawn = [0]\n"
W = "initializer=init(3, 1))"
MAIN = "\n\nif __name__ == '__main__':\n    train()\n"
SCALED = (FORWARD, "                    out = net(x) * SCALES[0]\n")
LATER = "    tower_done = True\n"
CLASS = "class Config(object):\n    def __init__(self):\n        self.reads = 0\n\n"
PROPERTY = (
    CLASS
    + "    @property\n    def scale(self):\n        self.reads += 1\n        return 1.0 / self.reads\n"
)


def top(text: str) -> Change:
    """More at the top of the module."""
    return (HEAD, f"{HEAD}{text}\n")


def behind(text: str) -> Change:
    """A statement behind the towers, before their average."""
    return (AVERAGED, f"    {text}\n{AVERAGED}")


def case(name: str, *changes: Change, other: str = "") -> Any:
    return pytest.param(changes, other, id=name)


def scales(name: str, made: str, then: str, *changes: Change) -> Any:
    """The towers read a list that changes behind them, by some way that does not show it."""
    return case(name, top(made), SCALED, behind(then), *changes)


def given(text: str, *changes: Change) -> tuple[Change, ...]:
    """`train` is called with an argument by `main`."""
    parameter = ("def train():", "def train(cfg):")
    called = (MAIN, f"\n\ndef main():\n{text}\n\n\nif __name__ == '__main__':\n    main()\n")
    return parameter, called, *changes


def reading(what: str) -> Change:
    return (FORWARD, f"                    out = net(x) * {what}\n")


IN_PLACE = "def clip(pairs):\n    for k, (g, v) in enumerate(pairs):\n        pairs[k] = (tf.clip_by_norm(g, 0.1), v)\n"
OWN = "def own(shape, dtype=None, partition_info=None):\n    return {}\n"
VALUES = [
    case("a function that clips in place", top(IN_PLACE), (AVERAGED, AVERAGED + "    clip(grads)\n")),
    case("what it returns is dropped", top(IN_PLACE + "    return pairs\n"), (AVERAGED, AVERAGED + "    _ = clip(grads)\n")),
    case("a function that takes one away", top("def drop(pairs):\n    pairs.pop()\n"), (AVERAGED, AVERAGED + "    drop(grads)\n")),
    scales("a list times a number", "SCALES = [1.0] * 2", "SCALES[0] = 0.5"),
    scales("a split text", "SCALES = [float(s) for s in '1.0,2.0'.split(',')]", "SCALES[0] = 0.5"),
    scales("a deep copy", "import copy\nSCALES = copy.deepcopy([1.0])", "SCALES[0] = 0.5"),
    scales("the largest of two", "SCALES = max([[1.0], [0.7]])", "SCALES[0] = 0.5"),
    scales("by an alias of the module", "SCALES = [1.0]\nCURRENT = SCALES", "CURRENT[0] = 0.5"),
    scales("by an attribute of a class", "SCALES = [1.0]\n\n\nclass Current(object):\n    scales = SCALES", "Current.scales[0] = 0.5"),
    scales("by what a loop goes over", "SCALES = [1.0]\nGROUPS = [SCALES]", "for group in GROUPS:\n        group[0] = 0.5"),
    scales("by what a dict holds", "SCALES = [1.0]\nstate = {}\nstate['scales'] = SCALES", "state['scales'][0] = 0.5"),
    scales("by what a function gives", "SCALES = [1.0]\n\n\ndef current():\n    return SCALES", "current()[0] = 0.5"),
    scales("by what a generator gives", "SCALES = [1.0]\n\n\ndef all_of_them():\n    yield SCALES", "list(all_of_them())[0][0] = 0.5"),
    scales("by a default", "SCALES = [1.0]\n\n\ndef halve(scales=SCALES):\n    scales[0] *= 0.5", "halve()"),
    scales("in a function of a function", "SCALES = [1.0]\n\n\ndef halve(scales):\n    scales[0] *= 0.5\n\n\ndef anneal(scales):\n    halve(scales)", "anneal(SCALES)"),
    scales("by an unbound method", "SCALES = [1.0]", "list.insert(SCALES, 0, 0.5)"),
    scales("by vars()", "SCALES = [1.0]\nimport sys", "vars(sys.modules[__name__]).update(SCALES=[0.5])"),
    scales("by globals()", "SCALES = [1.0]", "globals()['SCALES'] = [0.5]"),
    scales("by exec", "SCALES = [1.0]", "exec('SCALES[0] = 0.5', globals())"),
    scales("an array times a number", "SCALES = np.ones(2)\n\n\ndef halve(values):\n    values *= 0.5", "halve(SCALES)"),
    scales("an array that NumPy writes to", "SCALES = np.ones(2)", "np.multiply(SCALES, 0.5, SCALES)"),
    scales("an array that an operator writes to", "import operator\nSCALES = np.ones(2)", "operator.imul(SCALES, 0.5)"),
    case("a list that changes behind the graph", top("SCALES = [1.0]\n\n\ndef current():\n    return SCALES"), SCALED, (SAVER, "    current()[0] = 0.5\n" + SAVER)),
    case("a rate that changes behind the graph", top("RATES = np.full([], 0.1)"), ("MomentumOptimizer(0.1, 0.9)", "MomentumOptimizer(RATES, 0.9)"),
         (SAVER, "    np.multiply(RATES, 0.1, RATES)\n" + SAVER)),
    case("a list that changes while it trains", top("SCALES = [1.0]\n\n\ndef current():\n    return SCALES"), SCALED,
         (RUN, RUN + "            current()[0] = 0.5\n            print('%.6f' % sess.run(loss, feed_dict={X: bx, Y: by}))\n")),
    case("a module's list", ("import numpy as np\n", "import numpy as np\nimport other\n"), reading("other.SCALES[0]"), behind("other.SCALES[0] = 0.5"), other="SCALES = [1.0]\n"),
    case("a module's dict", ("import numpy as np\n", "import numpy as np\nimport other\n"), reading("other.OPTIONS['scale']"), behind("other.OPTIONS.update(scale=0.5)"), other="OPTIONS = {'scale': 1.0}\n"),
    case("a module's number", ("import numpy as np\n", "import numpy as np\nimport other\n"), reading("other.scale"), behind("vars(other).update(scale=0.5)"), other="scale = 1.0\n"),
    case("an object's attribute", top(CLASS + "        self.scale = 1.0\n\n\ndef anneal(cfg):\n    cfg.__dict__['scale'] = 0.5\n"), behind("anneal(cfg)"),
         *given("    train(Config())", reading("cfg.scale"))),
    case("a property", top(PROPERTY), *given("    cfg = Config()\n    train(cfg)", reading("cfg.scale"))),
    case("a property by its function", top(CLASS + "    def _scale(self):\n        self.reads += 1\n        return 1.0 / self.reads\n\n    scale = property(_scale)\n"),
         *given("    train(cfg=Config())", reading("cfg.scale"))),
    case("a property by a default", top(PROPERTY), ("def train():", "def train(cfg=Config()):"), reading("cfg.scale")),
    case("a property of a part", top(PROPERTY + "\n\nclass Options(object):\n    def __init__(self):\n        self.schedule = Config()\n\n\noptions = Options()\n"), reading("options.schedule.scale")),
    case("a property of a copy", top("import copy\n\n\n" + PROPERTY + "\n\ncfg = copy.deepcopy(Config())\n"), reading("cfg.scale")),
    case("a descriptor", top("class Reads(object):\n    count = 0\n\n    def __get__(self, owner, kind):\n        Reads.count += 1\n        return 1.0 / Reads.count\n\n\n"
         "class Config(object):\n    scale = Reads()\n"), *given("    cfg = Config()\n    train(cfg)", reading("cfg.scale"))),
    case("items that count", top(CLASS + "    def __getitem__(self, key):\n        self.reads += 1\n        return 1.0 / self.reads\n"),
         *given("    cfg = Config()\n    train(cfg)", reading("cfg['scale']"))),
    case("a truth that counts", top(CLASS + "    def __bool__(self):\n        self.reads += 1\n        return self.reads > 1\n"),
         *given("    cfg = Config()\n    train(cfg)", reading("(2.0 if cfg else 1.0)"))),
    case("an iterator that is asked", *given("    train(map(str.strip, 'a, double'.split(',')))", reading("(2.0 if 'double' in cfg else 1.0)"))),
    case("an initializer that draws by a seed", top(OWN.format("tf.truncated_normal(shape, seed=7)")), (W, "initializer=own)"), ("initializer=tf.constant_initializer(0.1)", "initializer=own")),
    case("an initializer of NumPy's", top(OWN.format("np.random.uniform(size=shape).astype(np.float32)")), (W, "initializer=own)"),
         (START, "    np.random.seed(1)\n" + START), (SAVER, "    print('%.6f' % np.random.rand())\n" + SAVER)),
    case("an initializer that reads a name", top("gain = 1.0\n\n\ndef finish():\n    global gain\n    gain = 0.2\n\n\n" + OWN.format("tf.ones(shape) * gain")), (W, "initializer=own)"),
         (SAVER, "    finish()\n" + SAVER)),
    case("a function that a library calls", top("import functools\n\n\ndef times(a, b):\n    print('times')\n    return a * b\n"), (MATMUL, MATMUL.replace("+ b", "+ b * functools.reduce(times, [1.0, 0.5])"))),
    case("a function set by its name", top("mean = tf.reduce_mean\nsetattr(tf.nn, 'tanh', lambda x, name=None: x)\n"), reading("1.0 + tf.nn.tanh(x[0, 0]) * 0.0")),
    case("a function set by an alias", top("nn = tf.nn\nrelu = nn.relu\n\n\ndef leaky(x, name=None):\n    return tf.maximum(x, 0.5 * x)\n\n\ndef use(made):\n    nn.relu = made\n"),
         (MATMUL, "    return tf.nn.relu(tf.matmul(x, w) - b)\n"), (START, "    use(leaky)\n" + START), (SAVER, "    use(relu)\n" + SAVER)),
    case("a star below a definition", ("\n\ndef average_gradients(", "\n\nfrom other import *\n\n\ndef average_gradients("),
         other="import tensorflow as tf\n\n\ndef net(x):\n    return tf.matmul(x, tf.get_variable('w', [3, 1], initializer=tf.ones_initializer()))\n"),
    case("a star that brings the helpers' name", ("import tensorflow as tf\n", "import tensorflow as tf\nfrom other import *\n"), other="import time as tm\n\nscale = 1.0\n"),
    case("an underscore that is read", ("for step in range(4)", "for _ in range(4)"), ("print('step', step,", "print('step', _,")),
    case("an underscore in a list", (SAVER, "    kept = []\n" + SAVER), ("_, value = sess", "__, value = sess"), (RUN.replace("_, value", "__, value"), RUN.replace("_, value", "__, value") + "            kept.append(__)\n")),
    case("feeds in another order", top("now = {}\n\n\ndef labels():\n    now['x'], y = batch(4)\n    return y\n"), ("            bx, by = batch(4)\n", "            now.setdefault('x', np.zeros((4, 3)))\n"),
         ("feed_dict={X: bx, Y: by}", "feed_dict={Y: labels(), X: now['x']}")),
    case("feeds that change when they are bound", top("def shrink(rows):\n    rows *= 0.5\n"),
         (RUN, "            feed = {X: bx, Y: by}\n            shrink(bx)\n" + RUN.replace("feed_dict={X: bx, Y: by}", "feed_dict=feed"))),
    case("a tensor that is handed in", ("    step_count = tf.train.get_or_create_global_step()\n", "    step_count = tf.train.get_global_step()\n"),
         *given("    count = tf.train.get_or_create_global_step()\n    cfg = 1.0 / (1.0 + tf.cast(count, tf.float32))\n    train(cfg)", reading("cfg"))),
]  # fmt: skip
TWO = ("def net(x):\n", "def net(x, name='net'):\n  with tf.variable_scope(name):\n")
BOTH = (
    FORWARD + LOSS,
    "                    a, c = net(x, 'a'), net(x, 'b')\n                    loss = tf.reduce_mean(tf.square(a + c - y))\n",
)
B_GRADS = (START, START + "    b_grads = []\n")
B_RUN = (
    RUN,
    RUN
    + "            _, other = sess.run([b_op, loss], feed_dict={X: bx, Y: by})\n            print('b', '%.6f' % other)\n",
)
B_OP = (
    APPLIED,
    APPLIED + "    b_pairs = average_gradients(b_grads)\n    b_op = opt.apply_gradients(b_pairs)\n",
)
LOSSES = (
    (START, START + "    losses = []\n"),
    (APPENDED, APPENDED + "                    losses.append(loss)\n"),
)
ROWS = (LOSS, "                    loss = tf.reduce_mean(tf.square(out - y), 1)\n")
MEAN = (
    (RUN, RUN.replace("loss]", "mean]")),
    ("'%.6f' % value", "np.shape(value), '%.6f' % np.sum(value)"),
)
RATED = (
    "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n",
    "    rate = tf.train.exponential_decay(0.1, step_count, 1, 0.5)\n    opt = tf.train.MomentumOptimizer(rate, 0.9)\n",
)
NO_STEP = (
    ("    step_count = tf.train.get_or_create_global_step()\n", ""),
    (APPLIED, APPLIED.replace(", global_step=step_count", "")),
)
WRITER = (SAVER, SAVER + "    writer = tf.summary.FileWriter('logs')\n")
WRITTEN = (
    RUN,
    "            _, value, note = sess.run([train_op, loss, shown], feed_dict={X: bx, Y: by})\n            writer.add_summary(note, step)\n",
)
CLOSED = ("        print('draws'", "        writer.close()\n        print('draws'")


def rebound(first: str, second: str) -> tuple[Change, ...]:
    """Two lists of variables by one name, each for gradients of its own."""
    made = "                    params = {}\n                    {} = opt.compute_gradients(loss, var_list=params)\n                    {}.append({})\n"
    grads = made.format(first, "grads", "tower_grads", "grads") + made.format(
        second, "more", "b_grads", "more"
    )
    return TWO, BOTH, B_GRADS, (GRADS + APPENDED, grads), B_OP, B_RUN


def summary(tag: str, *changes: Change) -> tuple[Change, ...]:
    return (
        *changes,
        (SAVER, f"    shown = tf.summary.scalar({tag})\n{SAVER}"),
        (WRITER[0], WRITER[1]),
        WRITTEN,
        CLOSED,
    )


def caught(made: str, error: str, *changes: Change) -> tuple[Change, ...]:
    """A batch of another size, and what the program does about it."""
    tried = f"            try:\n    {RUN}            except {error}:\n                print('left out')\n                continue\n"
    return (*changes, ("bx, by = batch(4)", f"bx, by = batch({made})"), (RUN, tried))


VALUES += [
    case("a list of variables bound anew", *rebound("tf.trainable_variables('a')", "tf.trainable_variables('b')")),
    case("a list of variables that grows", *rebound("tf.trainable_variables('a')", "params + tf.trainable_variables('b')")),
    case("a list of variables that is filtered", *rebound("tf.trainable_variables()", "[v for v in params if 'a/' in v.op.name]")),
    case("a variable that is listed twice", (GRADS, "                    grads = opt.compute_gradients(loss, tf.trainable_variables() + tf.trainable_variables('w'))\n")),
    case("gradients before the last variables", TWO, B_GRADS, (FORWARD, FORWARD.replace("net(x)", "net(x, 'a')")),
         (REUSED, ""), (APPENDED, APPENDED + "                    b_loss = tf.reduce_mean(tf.square(out + net(x, 'b') - y))\n" + REUSED
          + "                    more = opt.compute_gradients(b_loss)\n                    b_grads.append(more)\n"), B_OP, (B_RUN[0], B_RUN[1].replace("[b_op, loss]", "[b_op, b_loss]"))),
    case("the mean of losses of rows", *LOSSES, ROWS, (SAVER, "    mean = tf.reduce_mean(losses)\n" + SAVER), *MEAN),
    case("the mean of stacked losses of rows", *LOSSES, ROWS, (SAVER, "    mean = tf.reduce_mean(tf.stack(losses, axis=1), 0)\n" + SAVER), *MEAN),
    case("a mean that keeps its dimension", *LOSSES, (SAVER, "    mean = tf.reduce_mean(losses, 0, keepdims=True)\n" + SAVER), *MEAN),
    case("a global step made in a schedule", *NO_STEP, ("MomentumOptimizer(0.1, 0.9)", "MomentumOptimizer(tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 2, 0.5), 0.9)")),
    case("a flag set in the middle", ("def net(x):\n", "def net(x, reuse):\n  with tf.variable_scope('net', reuse=reuse):\n"), (START, START + "    reuse = False\n"), (REUSED, ""),
         (FORWARD + LOSS, "                    out = net(x, reuse)\n                    reuse = True\n                    again = net(x * 0.5, reuse)\n                    loss = tf.reduce_mean(tf.square(out + again - y))\n")),
    case("a variable's dtype", (APPENDED, "                    grads = [(g * 0.1 if v.dtype == tf.float32 else g, v) for g, v in grads]\n" + APPENDED)),
    case("a rate that is read behind the update", *summary("'lr', rate", RATED)),
    case("a schedule of an optimizer that calls none", (RATED[0], RATED[1].replace("MomentumOptimizer(rate, 0.9)", "FtrlOptimizer(rate)"))),
    case("a schedule in a tower", (RATED[0], RATED[1].replace("Optimizer(rate", "Optimizer(0.1")), (LOSS, LOSS.rstrip() + " + rate * tf.reduce_mean(tf.square(out))\n")),
    case("a batch of fewer rows than its placeholder", *caught("4 if step < 3 else 2", "ValueError", ("[None, 3]", "[4, 3]"), ("[None, 1]", "[4, 1]"))),
    case("a batch that has no equal parts", *caught("4 if step < 3 else 3", "tf.errors.InvalidArgumentError", (START, "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n" + START),
         ("x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "x, y = xs[i], ys[i]"))),
    case("rows that are known, in slices", ("[None, 3]", "[4, 3]"), ("[None, 1]", "[4, 1]"), (FORWARD, FORWARD.replace("net(x)", "net(x) * sum([0.5, 0.25, 2.0][:x.get_shape().as_list()[0]])"))),
    case("rows that are known, in parts", ("[None, 3]", "[4, 3]"), ("[None, 1]", "[4, 1]"), (START, "    xs, ys = tf.split(X, 2), tf.split(Y, 2)\n" + START),
         ("x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "x, y = xs[i], ys[i]"), (FORWARD, FORWARD.replace("net(x)", "net(x) / x.get_shape().as_list()[0]"))),
    case("a tuple that is fed", ("bx, by = batch(4)", "bx, by = zip(*zip(*batch(4)))")),
    case("a constant of fewer values", (W, "initializer=tf.constant_initializer([0.5, -0.25]))")),
    case("a sum over the rows of all towers", (LOSS, LOSS.replace("reduce_mean", "reduce_sum").rstrip() + " / 4.0\n")),
    case("a sum over a count of all rows", (LOSS, LOSS.replace("reduce_mean", "reduce_sum").rstrip() + " / tf.cast(tf.shape(X)[0], tf.float32)\n")),
    case("losses over a count of all rows", (LOSS, LOSS.replace("reduce_mean", "reduce_sum").replace("y))", "y) / 4.0)"))),
    case("half a sum of squares over the rows of all towers", (LOSS, LOSS.replace("tf.reduce_mean(tf.square(out - y))", "tf.nn.l2_loss(out - y) / 4.0"))),
    case("half a mean", (LOSS, LOSS.replace("tf.reduce_mean", "0.5 * tf.reduce_mean"))),
    case("half a mean by name", (LOSS, LOSS.replace("tf.reduce_mean(tf.square(out - y))", "tf.multiply(y=0.5, x=tf.reduce_mean(tf.square(out - y)))"))),
    case("half weights", (LOSS, LOSS.replace("tf.reduce_mean(tf.square(out - y))", "tf.losses.mean_squared_error(y, out, weights=0.5)"))),
    case("half a mean, clipped", (LOSS, LOSS.replace("tf.reduce_mean", "0.5 * tf.reduce_mean")), (APPLIED, "    grads = [(tf.clip_by_norm(g, 0.5), v) for g, v in grads]\n" + APPLIED)),
    case("an average run by hand", (SAVER, "    ema = tf.train.ExponentialMovingAverage(0.6)\n    ema_op = ema.apply(tf.trainable_variables())\n" + SAVER),
         (RUN, RUN + "            sess.run(ema_op, feed_dict={X: bx, Y: by})\n")),
    case("the name of an operation as a tag", *summary("loss.op.name, loss")),
    case("a tag like a tower's scope", *summary("'tower_1/loss', loss", (LOSS, LOSS.replace("out - y))", "out - y), name='loss')")))),
]  # fmt: skip
RIGHT = {
    "feeds in another order",
    "feeds that change when they are bound",
    "the mean of losses of rows",
    "the mean of stacked losses of rows",
    "a mean that keeps its dimension",
    "a rate that is read behind the update",
    "a batch of fewer rows than its placeholder",
    "a batch that has no equal parts",
    "rows that are known, in slices",
    "rows that are known, in parts",
    "a tuple that is fed",
    "a constant of fewer values",
    "an average run by hand",
    "a sum over the rows of all towers",
    "a sum over a count of all rows",
    "losses over a count of all rows",
    "half a sum of squares over the rows of all towers",
    "half a mean",
    "half a mean by name",
    "half weights",
    "half a mean, clipped",
    "a list that changes behind the graph",
    "a rate that changes behind the graph",
    "a list that changes while it trains",
    "a global step made in a schedule",
}
"""These are in loop style, and right."""


def files(changes: tuple[Change, ...], other: str) -> dict[str, str]:
    return {**program(*changes), **({"other.py": other} if other else {})}


@pytest.mark.parametrize(("changes", "other"), VALUES)
def test_it_is_not_fooled(
    changes: tuple[Change, ...], other: str, request: pytest.FixtureRequest
) -> None:
    (result,) = rewrite_tree(files(changes, other)).programs
    right = request.node.callspec.id in RIGHT
    assert result.style == ("loop" if right else "session"), result.not_loop
    assert right or result.not_loop


@pytest.mark.full
def test_all_of_them_do_the_same() -> None:
    pytest.importorskip("tensorflow")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=running.prepare) as pool:
        jobs = {
            str(one.id): pool.submit(
                trying.try_program,
                files(*one.values),
                2,
                trying.Wish(),  # type: ignore[misc]
            )
            for one in VALUES
        }
        found = {name: (job.result().outcome, job.result().cause) for name, job in jobs.items()}
    good = (trying.LOOP, trying.SESSION)
    assert {name: one for name, one in found.items() if one[0] not in good} == {}
