"""Names of the towers that are bound in front of an input, or read behind before they are set: what loop style leaves."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
BATCH = "            bx, by = batch(4)\n"
DEVICE = "            with tf.device('/gpu:%d' % i):\n"
INPUTS = "                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]\n"
SCOPE = "                with tf.name_scope('tower_%d' % i) as scope:\n"
START = "    tower_grads = []\n"
DEVICES = (
    ("for i in range(2):\n", "for i, name in enumerate(DEVICES):\n"),
    (DEVICE, "            with tf.device(name):\n"),
)


def in_front(text: str) -> Change:
    """Statements of the tower in front of its inputs."""
    return (INPUTS, "".join(f"                    {line}\n" for line in text.split("\n")) + INPUTS)


def behind(text: str) -> Change:
    return (APPLIED, APPLIED + "".join(f"    {line}\n" for line in text.split("\n")))


def in_steps(text: str) -> Change:
    return (BATCH, BATCH + "".join(f"            {line}\n" for line in text.split("\n")))


def before(text: str) -> Change:
    return (START, START + text)


TAKEN = [
    taken("a scope by another name", (SCOPE, SCOPE.replace("scope:", "named:"))),
    taken("a value in front of the inputs", in_front("z = 0.5"), (INPUTS, INPUTS + "                    x = x * z\n")),
    taken("an input that is bound again behind", (INPUTS, INPUTS + "                    x = x * 2.0\n")),
    taken("set in each step", in_steps("x = step * 2\nprint(x)")),
    taken("set in each step by its index", in_steps("for i in range(2):\n    print(i)")),
    taken("set on both sides", in_steps("if step:\n    i = 3\nelse:\n    i = 2\nprint(i)")),
    taken("set where it goes on", in_steps("if step == 1:\n    continue\nelse:\n    i = 2\nprint(i)")),
    taken("set in a try", in_steps("try:\n    i = bx.shape[0]\nexcept AttributeError:\n    raise\nprint(i)")),
    taken("set by a with", in_steps("with open('notes', 'w') as scope:\n    scope.write('x')\nprint(scope.name)")),
    taken("set behind, and counted", behind("i = 5"), in_steps("i += 1\nprint(i)")),
    taken("a device, set and then read", *DEVICES, in_steps("name = 'none'\nprint(name)")),
    taken("a keyword of its name", in_steps("print(dict(i=3, scope=4))")),
]  # fmt: skip

LEFT = [
    left("a name scope by the name of an input", "TM208", (SCOPE, SCOPE.replace("scope:", "x:"))),
    left("a device by the name of an input", "TM208", (DEVICE, DEVICE.replace(":\n", " as y:\n"))),
    left("another tensor in front", "TM208", in_front("x = tf.zeros([2, 3])")),
    left("nothing in front", "TM208", in_front("x = y = None")),
    left("a loop in front", "TM208", in_front("for y in range(2):\n    pass")),
    left("a function in front", "TM208", in_front("def x():\n    return 1")),
    left("the index, counted on", "TM210", in_steps("i += 1\nprint(i)")),
    left("the index, counted on from an earlier one", "TM210", before("    i = 7\n"), in_steps("i += 1\nprint(i)")),
    left("the index, read and then set", "TM210", in_steps("print(i)\ni = step")),
    left("the index, set under a condition", "TM210", in_steps("if step == 2:\n    i = 5\nprint(i)")),
    left("the index, read by a function and then set", "TM210", in_steps("def shown():\n    return i\nprint(shown())\ni = step")),
    left("the index, set where an error is caught", "TM210", in_steps("try:\n    print(i)\nexcept ValueError:\n    pass\ni = step")),
    left("a device, read and then set", "TM210", *DEVICES, in_steps("print(name)\nname = 'none'")),
    left("a device, read where an earlier one would be", "TM210", *DEVICES, before("    name = 'none'\n"), in_steps("print(name)\nname = 'other'")),
    left("a device, set under a condition", "TM210", *DEVICES, in_steps("if step:\n    name = 'none'\nprint(name)")),
    left("an input, added to", "TM210", in_steps("y += 1")),
    left("an input, taken away", "TM210", behind("del y")),
    left("an output, set to itself", "TM210", in_steps("out = str(out)[:6]\nprint(out)\nout = [1]")),
    left("a scope's name, taken away", "TM210", behind("del scope")),
    left("a scope's name, put on another", "TM210", in_steps("scope += 'x'\nprint(scope)")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
