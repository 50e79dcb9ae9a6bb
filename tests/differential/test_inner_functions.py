"""Functions inside of the one that trains, and lambdas with a name: those that run a step, or evaluate, or make what is fed."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else

BATCH = "            bx, by = batch(4)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
PRINT = "            print('step', step, 'loss', '%.6f' % value)\n"
STEP = BATCH + RUN + PRINT
LOOP = "        for step in range(4):\n"
INIT = "        sess.run(tf.global_variables_initializer())\n"
SAVER = "    saver = tf.train.Saver()\n"
FED = "{X: bx, Y: by}"
ONE = "_, cost = sess.run([train_op, loss], feed_dict={X: bx, Y: by})"


def case(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


def before(*lines: str) -> Change:
    """In front of the initialiser."""
    return INIT, "\n" + "".join(
        f"        {each}\n" if each else "\n" for each in lines
    ) + "\n" + INIT


def behind(*lines: str) -> Change:
    return INIT, INIT + "\n" + "".join(
        f"        {each}\n" if each else "\n" for each in lines
    ) + "\n"


def steps(*lines: str) -> Change:
    """What each step does."""
    return STEP, "".join(f"            {each}\n" for each in lines)


def then(*lines: str) -> Change:
    """What each step does more."""
    return PRINT, PRINT + "".join(f"            {each}\n" for each in lines)


SHOW = "print('%.6f' % value)"
EVALUATE = (
    "def evaluate():",
    "    vx, vy = batch(4)",
    "    return sess.run(loss, feed_dict={X: vx, Y: vy})",
)
LOOK = then("if step % 2:", "    print('%.6f' % evaluate())")
ONCE = ("def step_once(bx, by):", f"    {ONE}", "    return cost")
CALL = ("bx, by = batch(4)", "value = step_once(bx, by)", SHOW)
EPOCH = ("def run_epoch(count):", '    """Some steps."""', "    total = 0.0", "    for _ in range(count):", "        bx, by = batch(4)", f"        {ONE}", "        total += cost", "    return total / count")  # fmt: skip

TAKEN = [
    case("an evaluation in front of the initialiser", LOOK, before(*EVALUATE)),
    case("an evaluation behind it", LOOK, behind(*EVALUATE)),
    case("an evaluation in front of the session", then("if step % 2:", "    print('%.6f' % evaluate(sess, *batch(4)))".replace("*batch(4)", "bx, by")), (SAVER, SAVER + "\n    # How well it does.\n    def evaluate(sess, x, y):\n        return sess.run(loss, feed_dict={X: x, Y: y})\n\n")),
    case("a step", steps(*CALL), behind(*ONCE)),
    case("a step in front of the initialiser", steps(*CALL), before(*ONCE)),
    case("a step by its keywords", steps(CALL[0], "value = step_once(by=by, bx=bx)", SHOW), behind(*ONCE)),
    case("a step that is given a whole batch", steps("bx, by = batch(4)", "value = step_once((bx, by))", SHOW), behind("def step_once(rows):", "    bx, by = rows", f"    {ONE}", "    return cost")),
    case("a step that is given what is computed", steps("bx, by = batch(4)", "value = step_once(bx + 0.0, by * 2.0)", SHOW), behind(*ONCE)),
    case("a step that prints", steps("show_step(step)"), behind("def show_step(number):", "    # on two towers", "    bx, by = batch(4)", f"    {ONE}", "    print(number, '%.6f' % cost)")),
    case("a step that returns two", steps("bx, by = batch(4)", "value, double = step_once(bx, by)", SHOW, "print('%.6f' % double)"), behind(*ONCE[:2], "    twice = cost * 2", "    return cost, twice")),
    case("a step that returns a part", steps(*CALL), behind("def step_once(x, y):", "    return sess.run([train_op, loss], feed_dict={X: x, Y: y})[1]")),
    case("a step with a number of its own", steps("bx, by = batch(rows())", "value = step_once(bx, by)", SHOW), behind("def rows():", "    return 4", "", "def step_once(bx, by, scale=2.0):", f"    {ONE}", "    return cost * scale")),
    case("names that the steps have for something else", (LOOP, "        cost, x = 3, 4\n" + LOOP), steps("bx, by = batch(x)", "value = step_once(bx, by)", SHOW, "print(cost, x)"), behind(*ONCE)),
    case("names in an other way", steps("by, bx = batch(4)", "value = step_once(by, bx)", SHOW), behind(*ONCE)),
    case("an epoch", (LOOP + STEP, "        for epoch in range(2):\n            print('%.6f' % run_epoch(2))\n"), behind(*EPOCH)),
    case("an epoch under a name", (LOOP + STEP, "        for epoch in range(2):\n            total = run_epoch(2)\n            print('%.6f' % total)\n"), before(*EPOCH)),
    case("a lambda that evaluates", then("if step % 2:", "    print('%.6f' % evaluate(*batch(4)))".replace("*batch(4)", "bx, by")), behind("evaluate = lambda x, y: sess.run(loss, feed_dict={X: x, Y: y})")),
    case("a lambda that evaluates, in front of the initialiser", LOOK, before("evaluate = lambda: sess.run(", "    loss, feed_dict={X: np.ones((4, 3)), Y: np.ones((4, 1))})")),
    case("a lambda that makes a step", steps("bx, by = batch(4)", "_, value = step_once(bx, by)", SHOW), behind("step_once = lambda x, y: sess.run([train_op, loss], feed_dict={X: x, Y: y})")),
    case("a lambda that runs what it is given", steps("bx, by = batch(4)", "_, value = run([train_op, loss])", SHOW), behind("run = lambda ops: sess.run(ops, feed_dict={X: bx, Y: by})")),
    case("a lambda that makes what is fed", (RUN, RUN.replace(FED, "feed(bx, by)")), (SAVER, SAVER + "    feed = lambda x, y: {X: x, Y: y}\n")),
    case("a function that makes what is fed", (RUN, RUN.replace(FED, "feed(bx, by)")), (SAVER, SAVER + "\n    def feed(x, y):\n        return {X: x, Y: y}\n\n")),
    case("a step that is called twice", steps(*CALL, "value = step_once(bx, by)"), behind(*ONCE)),
    case("a step in an expression", steps(CALL[0], "value = step_once(bx, by) * 2.0", SHOW), behind(*ONCE)),
    case("a step that returns in one case", steps(*CALL), behind(ONCE[0], "    if bx is None:", "        return 0.0", *ONCE[1:])),
]  # fmt: skip

LEFT = [
    other("two evaluations, in another order than they are called", "TM209", then("print('%.6f %.6f' % (evaluate(), again()))"), before("def again():", "    return evaluate() * 2", "", *EVALUATE)),
    other("a step that counts for the function around it", "TM205", (SAVER, SAVER + "    count = 0\n"), steps(*CALL, "print(count)"), behind(ONCE[0], "    nonlocal count", "    count += 1", *ONCE[1:])),
    other("a step that a function is handed", "TM205", steps(CALL[0], "(value,) = list(map(step_once, [bx], [by]))", SHOW), behind(*ONCE)),
    other("a step that is made again", "TM205", steps(*CALL), behind(*ONCE, "", "first = step_once", "", "def step_once(bx, by):", "    return first(bx, by) * 2.0")),
    other("a step with a decorator", "TM205", steps(*CALL), behind("def told(f):", "    return lambda *args: print('step') or f(*args)", "", "@told", *ONCE)),
    other("a step that draws from a generator", "TM205", steps("value = next(rows)", SHOW), behind("def losses():", "    while True:", "        bx, by = batch(4)", f"        {ONE}", "        yield cost", "", "rows = losses()")),
    other("a lambda that is called so anew", "TM205", steps(CALL[0], "_, value = run([train_op, loss])", "run = lambda ops: (0, 0.0)", SHOW), behind("run = lambda ops: sess.run(ops, feed_dict={X: bx, Y: by})")),
    other("a lambda that is handed on", "TM205", steps(CALL[0], "((_, value),) = map(run, [[train_op, loss]])", SHOW), behind("run = lambda ops: sess.run(ops, feed_dict={X: bx, Y: by})")),
    other("a lambda with a default of its time", "TM205", steps(CALL[0], "_, value = run()", SHOW), behind("run = lambda ops=[train_op, loss]: sess.run(ops, feed_dict={X: bx, Y: by})")),
    other("an evaluation that is called in front of the initialiser", "TM209", LOOK, before("sess.run(tf.global_variables_initializer())", *EVALUATE, "print('%.6f' % evaluate())")),
    other("an evaluation that initialises", "TM209", LOOK, behind(EVALUATE[0], "    sess.run(tf.global_variables_initializer())", *EVALUATE[1:])),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
