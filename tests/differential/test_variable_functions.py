"""Functions that give the variables of a part, `params_with_name('Generator')`: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

START = "    tower_grads = []\n"
STEPS = "    step_count = tf.train.get_or_create_global_step()\n"
GRADS = "                    grads = opt.compute_gradients(loss)\n"
APPENDED = "                    tower_grads.append(grads)\n"
AVERAGED = "    grads = average_gradients(tower_grads)\n"
APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
TRAIN = "def train():\n"
NAMED = "[v for v in tf.trainable_variables() if name in v.name]"

Changes = tuple[tuple[str, str], ...]


def function(body: str = f"return {NAMED}", arguments: str = "name") -> tuple[str, str]:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return TRAIN, f"def params_with_name({arguments}):\n{lines}\n\n{TRAIN}"


def of(call: str, *more: tuple[str, str]) -> Changes:
    """The variables that each tower computes gradients of."""
    return (GRADS, GRADS.replace("loss)", f"loss, var_list={call})")), *more


def of_mean(update: str, *more: tuple[str, str]) -> Changes:
    """An update of the mean of the towers' losses."""
    listed = "                    losses.append(loss)\n"
    return ((START, "    losses = []\n"), (GRADS, listed), (APPENDED, ""), (AVERAGED, ""), (APPLIED, "    mean = tf.reduce_mean(losses)\n" + update), *more)  # fmt: skip


DEFAULT = function()
CALL = "params_with_name('w')"

TAKEN = [
    taken("in the towers", *of(CALL, DEFAULT)),
    taken("by a keyword", *of("params_with_name(name='w')", DEFAULT)),
    taken("behind the towers", *of_mean(f"    train_op = opt.minimize(mean, var_list={CALL})\n", DEFAULT)),
    taken("under a name", *of_mean(f"    weights = {CALL}\n    train_op = opt.minimize(mean, var_list=weights)\n", DEFAULT)),
    taken("in two statements", *of(CALL, function("every = tf.trainable_variables()\nreturn [v for v in every if name in v.name]"))),
    taken("by the beginning of an operation's name", *of(CALL, function('"""Those of a part."""\nreturn [v for v in tf.trainable_variables() if v.op.name.startswith(name)]'))),
    taken("by an operation's name", *of(CALL, function(f"return {NAMED.replace('v.name', 'v.op.name')}"))),
    taken("by two texts", *of("params_with_name('w', 'b')", function(f"return {NAMED[:-1]} and other not in v.name]", "name, other"))),
    taken("an operation's name in the towers", *of("[v for v in tf.trainable_variables() if 'w' in v.op.name]")),
    taken("the beginning of an operation's name in the towers", *of("[v for v in tf.trainable_variables() if v.op.name.startswith('w')]")),
]  # fmt: skip

LEFT = [
    left("a text that copies have", "TM227", *of("params_with_name('r')", DEFAULT)),
    left("a text of a name", "TM227", *of("params_with_name(part)", DEFAULT, (STEPS, "    part = 'w'\n" + STEPS))),
    left("of all variables", "TM219", *of(CALL, function("return [v for v in tf.global_variables() if name in v.name]"))),
    left("of a function that is replaced", "TM206", *of(CALL, DEFAULT, (STEPS, "    global params_with_name\n    params_with_name = lambda name: tf.trainable_variables()\n" + STEPS))),
    left("of a function that prints", "TM223", *of(CALL, function(f"print(name)\nreturn {NAMED}"))),
    left("of a text that is changed", "TM227", *of("params_with_name('W')", function("return [v for v in tf.trainable_variables() if name.lower() in v.name]"))),
    left("of a parameter of that name", "TM222", *of(CALL, DEFAULT, ("def train():\n    step", "def train(params_with_name=lambda n: tf.trainable_variables()):\n    step"))),
    left("the end of an operation's name", "TM227", *of("[v for v in tf.trainable_variables() if v.op.name.endswith('w')]")),
    left("a number of an operation's name", "TM227", *of("[v for v in tf.trainable_variables() if '0' not in v.op.name]")),
    left("another name of a variable", "TM227", *of("[v for v in tf.trainable_variables() if 'w' == v.op.name]")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
