"""What is entered around the calls that lead to a program: graphs and devices that go, and what loop style leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.loop_programs import program as one_file
from tests.differential.spellings import asked_of, none_does_anything_else

START = "if __name__ == '__main__':\n"
MAIN = START + "    train()\n"
BIAS = "b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))"
GRAPH = "with tf.Graph().as_default():"
TRAIN = "def train():\n"
IN_GRAPH = "def in_graph(f):\n    def g():\n        with tf.Graph().as_default():\n            return f()\n    return g\n\n\n"
WITHIN = "def within(f):\n    with tf.Graph().as_default():\n        f()\n\n\n"
IMPORT = "import tensorflow as tf\n"


def begins(*lines: str, front: str = "") -> Change:
    """Another way to begin the program."""
    return MAIN, front + START + "".join(f"    {each}\n" for each in lines)


def main(*lines: str) -> Change:
    text = "def main():\n" + "".join(f"    {each}\n" for each in lines)
    return begins("main()", front=text + "\n\n")


def program(*changes: Change) -> dict[str, str]:
    """The program with its beginning in a file of its own, where the last change says so."""
    apart = bool(changes) and changes[-1] == APART
    (text,) = one_file(*(changes[:-1] if apart else changes)).values()
    if not apart:
        return {"train.py": text}
    at = text.index("def main")
    head = "import tensorflow as tf\nfrom towers import train\n\n\n"
    return {"towers.py": text[:at].rstrip() + "\n", "train.py": head + text[at:]}


APART = ("apart", "")
RANDOM = (BIAS, "b = tf.get_variable('b', [1], initializer=tf.random_normal_initializer())")


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, *changes: Change, rule: str = "TM210") -> Any:
    return pytest.param(changes, rule, id=name)


STEP = "    step_count = tf.train.get_or_create_global_step()\n"
ANEW = (STEP, "    tf.reset_default_graph()\n" + STEP)

TAKEN = [
    case("a graph", begins(GRAPH, "    train()")),
    case("a graph in a function", main(GRAPH, "    train()")),
    case("a graph by its name", main("g = tf.Graph()", "with g.as_default():", "    train()")),
    case("a graph by a name that functions have for other things", begins("g = tf.Graph()", "with g.as_default():", "    train()")),
    case("a graph by its name, and a device", main("graph = tf.Graph()", "", "# on two towers", "with graph.as_default(), tf.device('/cpu:0'):", "    train()")),
    case("a graph by its name in another file", main("g = tf.Graph()", "with g.as_default():", "    train()"), APART),
    case("a graph by its name, around TensorFlow's main", begins("g = tf.Graph()", "with g.as_default():", "    tf.app.run()", front="def main(_):\n    train()\n\n\n")),
    case("a graph that is named for nobody", main("with tf.Graph().as_default() as graph:", "    train()")),
    case("a graph in a function of another file", main(GRAPH, "    train()"), APART),
    case("a graph and a device", main("with tf.Graph().as_default(), tf.device('/cpu:0'):", "    train()")),
    case("a device", main("with tf.device('/cpu:0'):", "    train()")),
    case("a graph under a condition", main("if len(DEVICES) == 2:", f"    {GRAPH}", "        print('begins')", "", "        # train", "        train()")),
    case("a graph where errors are caught", main("try:", f"    {GRAPH}", "        train()", "except KeyboardInterrupt:", "    print('stopped')")),
    case("a graph that TensorFlow's main is called in", begins(GRAPH, "    tf.app.run()", front="def main(_):\n    train()\n\n\n")),
    case("a graph with a seed", main(GRAPH, "    tf.set_random_seed(3)", "    train()")),
    case("TensorFlow's own beginning", begins("tf.app.run(main=main)", front="def main(_):\n    train()\n\n\n")),
    case("TensorFlow's own beginning, by its place", begins("tf.app.run(main)", front="def main(_):\n    train()\n\n\n")),
    case("TensorFlow's own beginning, by a lambda", begins("tf.app.run(lambda _: train())")),
    case("a function of a table", begins("WAYS[WAY]()", front="WAY = 'train'\nWAYS = {'train': train, 'batch': batch}\n\n\n")),
    case("another thread", begins("import threading", "thread = threading.Thread(target=train)", "thread.start()", "thread.join()")),
    case("a file that a setting names", ("DEVICES = ", "FLAGS = tf.app.flags.FLAGS\ntf.app.flags.DEFINE_string('log', 'log.txt', '')\nDEVICES = "), begins("with open(FLAGS.log, 'w') as log:", "    log.write('begins')", "    train()")),
    case("files and options", main("with open('log.txt', 'w') as log, np.printoptions(precision=3):", "    log.write('begins')", "    train()")),
    case("a parameter that is called as the program", ("def batch(rows):\n", "def named(train, x):\n    with tf.name_scope('in'):\n        return tf.identity(x) if train else x\n\n\ndef batch(rows):\n"), ("out = net(x)", "out = net(named(True, x))")),
    case("a function that enters nothing of TensorFlow", begins("with timed():", "    train()", front="import contextlib\n\n\n@contextlib.contextmanager\ndef timed():\n    print('begins')\n    yield\n    print('ends')\n\n\n")),
]  # fmt: skip

LEFT = [
    other("a graph and another name of the function", main("go = train", GRAPH, "    go()")),
    other("a graph in each of several turns", main("for _ in range(2):", f"    {GRAPH}", "        train()"), rule="TM235"),
    other("a graph in a function that is called twice", begins("for go in (main, main):", "    go()", front=f"def main():\n    {GRAPH}\n        train()\n\n\n"), rule="TM235"),
    other("twice with fewer towers the second time", ANEW, ("DEVICES = ['/gpu:0', '/gpu:1']", "DEVICES = ['/gpu:0', '/gpu:1', '/gpu:2']"), ("range(2)", "range(len(DEVICES))"), (STEP, "    DEVICES.pop()\n" + STEP), begins("train()", "train()"), rule="TM235"),
    other("a tensor in front", main("two = tf.constant(2.0)", "train()")),
    other("a tensor in front, in the graph", main(GRAPH, "    two = tf.constant(2.0)", "    train()")),
    other("a tensor that a function makes in front", begins("prepare()", "train()", front="def prepare():\n    return tf.constant(2.0)\n\n\n"), rule="TM210"),
    other("a variable in front", main("more = tf.Variable(2.0, trainable=False, name='more')", "train()")),
    other("a global step in front", main("tf.train.get_or_create_global_step()", "train()")),
    other("a graph by its name that is asked for", main("g = tf.Graph()", "with g.as_default():", "    train()", "print(g is not None)")),
    other("a graph by its name that is given another name", main("g = tf.Graph()", "h = g", "with h.as_default():", "    train()")),
    other("a graph by its name that a function looks for", begins("main()", front="g = tf.Graph()\n\n\ndef main():\n    with g.as_default():\n        train()\n    print(g is not None)\n\n\n")),
    other("a graph by its name, another in one case", main("g = tf.Graph()", "if len(DEVICES) > 2:", "    g = tf.get_default_graph()", "with g.as_default():", "    train()")),
    other("a graph by its name, entered twice", main("g = tf.Graph()", "with g.as_default():", "    two = tf.constant(2.0)", "with g.as_default():", "    train()")),
    other("a graph by its name, in turns", main("for _ in range(2):", "    g = tf.Graph()", "    with g.as_default():", "        train()"), rule="TM235"),
    other("a graph that a function looks for", begins("with tf.Graph().as_default() as g:", "    train()", "    tell()", front="def tell():\n    print(g is not None)\n\n\n")),
    other("a graph that is asked for", main("with tf.Graph().as_default() as g:", "    train()", "    print(g is not None)")),
    other("a graph beside another's seed", RANDOM, main("tf.set_random_seed(3)", GRAPH, "    train()")),
    other("a device that is computed", main("with tf.device(DEVICES[0]):", "    train()")),
    other("a scope of variables", main("with tf.variable_scope('all'):", "    train()")),
    other("a scope of variables in another file", main("with tf.variable_scope('all'):", "    train()"), APART),
    other("a scope with an initialiser", (BIAS, "b = tf.get_variable('b', [1])"), main("with tf.variable_scope('all', initializer=tf.ones_initializer()):", "    train()")),
    other("a scope of names", main("with tf.name_scope('all'):", "    train()")),
    other("a scope around one that calls", begins("with tf.variable_scope('all'):", "    main()", front="def main():\n    train()\n\n\n")),
    other("a session", main("with tf.Session():", "    train()")),
    other("a scope of a function's", begins("with scoped():", "    train()", front="import contextlib\n\n\n@contextlib.contextmanager\ndef scoped():\n    with tf.variable_scope('all'):\n        yield\n\n\n")),
    other("a scope by its name", begins("with scope:", "    train()", front="scope = tf.variable_scope('all')\n\n\n")),
    other("a decorator", (TRAIN, IN_GRAPH + "@in_graph\n" + TRAIN)),
    other("a function that is handed the program's", begins("in_graph(train)()", front=IN_GRAPH)),
    other("a function that calls what it is handed", begins("within(train)", front=WITHIN)),
    other("a function that calls the main that it is handed", begins("within(main)", front=WITHIN + "def main():\n    train()\n\n\n")),
    other("a function that calls what it is handed by that name", begins("within(train)", front=WITHIN.replace("(f)", "(train)").replace("f()", "train()").replace("Graph().as_default()", "variable_scope('all')"))),
    other("entered by hand", main("tf.Graph().as_default().__enter__()", "train()")),
    other("entered by hand, by a name", main("entered = tf.Graph().as_default()", "entered.__enter__()", "train()")),
    other("entered on a stack", main("import contextlib", "with contextlib.ExitStack() as stack:", "    stack.enter_context(tf.variable_scope('all'))", "    train()")),
]  # fmt: skip

SHOWN = (
    "        print('draws', drawn[0])\n",
    "        print('draws', drawn[0], sess.run(step_count))\n",
)
TWICE: list[tuple[str, Change]] = [
    ("in a comprehension", begins("[train() for _ in range(2)]")),
    ("by a map of a lambda", begins("list(map(lambda _: train(), range(2)))")),
    ("by a loop over functions", begins("for go in (train, train):", "    go()")),
    ("by another name", begins("go = train", "go()", "go()")),
    ("by a lambda", begins("go = lambda: train()", "go()", "go()")),
    ("by a function that it is handed to", begins("twice(train)", front="def twice(f):\n    f()\n    f()\n\n\n")),
    ("by a decorator", begins("twice(train)()", front="def twice(f):\n    def g():\n        f()\n        f()\n    return g\n\n\n")),
    ("of a table", begins("for way in 'ab':", "    {'a': train, 'b': train}[way]()")),
    ("by a function that calls itself", begins("main(1)", front="def main(n):\n    train()\n    if n:\n        main(n - 1)\n\n\n")),
    ("by an object that is called", begins("go = Go()", "go()", "go()", front="class Go(object):\n    def __call__(self):\n        train()\n\n\n")),
]  # fmt: skip

TAKEN += [case(f"twice {name}", ANEW, SHOWN, change) for name, change in TWICE]
LEFT += [other(f"twice {name}", change, rule="TM235") for name, change in TWICE]

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
