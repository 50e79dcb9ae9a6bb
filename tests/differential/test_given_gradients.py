"""Functions that give a tower's gradients: what loop style takes, what it must not, and what is meant to fool its reader."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change, program
from tests.differential.spellings import asked_of, none_does_anything_else
from towermigrate.recognize.plain.changes import PlainFile
from towermigrate.recognize.plain.given_gradients import given_gradients
from towermigrate.recognize.source import Tree

NET = "def net(x):\n"
LOSS = "                    loss = tf.reduce_mean(tf.square(out - y))\n"
REUSED = "                    tf.get_variable_scope().reuse_variables()\n"
TAKEN_HERE = "                    grads = opt.compute_gradients(loss)\n"
OUT = "                    out = net(x)\n"
RUN = "_, value = sess.run([train_op, loss]"
OPTIMIZER = "    opt = tf.train.MomentumOptimizer(0.1, 0.9)\n"
BODY = """\
def tower_loss(opt, x, y):
    out = net(x)
    loss = tf.reduce_mean(tf.square(out - y))
    grads = opt.compute_gradients(loss)
    return loss, grads
"""


def function(text: str) -> Change:
    return (NET, text + "\n\n" + NET)


def called(line: str) -> Change:
    """The tower's lines from its model to its gradients."""
    return (OUT + LOSS + REUSED + TAKEN_HERE, f"                    {line}\n{REUSED}")


def form(line: str, *changes: tuple[str, str]) -> tuple[Change, ...]:
    text = BODY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return function(text), called(line)


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


BOTH = "loss, grads = tower_loss(opt, x, y)"
GLOBAL = (
    (OPTIMIZER, ""),
    ("drawn = [0]\n", "drawn = [0]\nopt = tf.train.MomentumOptimizer(0.1, 0.9)\n"),
)

TAKEN = [
    case("a loss and its gradients", *form(BOTH)),
    case("gradients first", *form("grads, loss = tower_loss(opt, x, y)", ("return loss, grads", "return grads, loss"))),
    case("taken where they are given", *form(BOTH, ("    grads = opt.compute_gradients(loss)\n    return loss, grads", "    return loss, opt.compute_gradients(loss)"))),
    case("gradients alone", *form("grads = tower_loss(opt, x, y)", ("return loss, grads", "return grads")), (RUN, "_, value = sess.run([train_op, step_count]")),
    case("three results", *form("loss, grads, out = tower_loss(opt, x, y)", ("return loss, grads", "return loss, grads, out")), (RUN, "_, value, shown = sess.run([train_op, loss, out]")),
    case("of a loss that it is given", function("def gradients_of(opt, loss):\n    grads = opt.compute_gradients(loss)\n    return grads\n"), (TAKEN_HERE, "                    grads = gradients_of(opt, loss)\n")),
    case("of a loss that it is given, with a word", function('def gradients_of(opt, loss):\n    """The gradients."""\n    return opt.compute_gradients(loss)\n'), (TAKEN_HERE, "                    grads = gradients_of(opt, loss)\n")),
    case("named", *form("loss, grads = tower_loss(y=y, x=x, opt=opt)")),
    case("by another name", *form("cost, pairs = tower_loss(opt, x, y)"), ("tower_grads.append(grads)", "tower_grads.append(pairs)"), (RUN, "_, value = sess.run([train_op, cost]")),
    case("of the variables", *form(BOTH, ("(loss)\n", "(loss, var_list=tf.trainable_variables())\n"))),
    case("of variables that it is given", *form("loss, grads = tower_loss(opt, x, y, None)", ("(opt, x, y)", "(opt, x, y, chosen)"), ("(loss)\n", "(loss, chosen)\n"))),
]  # fmt: skip

LEFT = [
    other("used behind it", "TM202", *form(BOTH, ("    return loss", "    print(len(grads))\n    return loss"))),
    other("clipped in it", "TM202", *form(BOTH, ("return loss, grads", "return loss, [(tf.clip_by_norm(g, 1.0), v) for g, v in grads]"))),
    other("two ways out", "TM202", *form(BOTH, ("    out = net(x)\n", "    out = net(x)\n    if x is None:\n        return out, []\n"))),
    other("an optimizer of another name", "TM202", *form("loss, grads = tower_loss(opt, x, y)", ("(opt, x, y)", "(optimizer, x, y)"), ("opt.compute", "optimizer.compute"))),
    other("of another loss", "TM202", *form(BOTH, ("compute_gradients(loss)", "compute_gradients(loss * 2.0)"))),
]  # fmt: skip

FOOLING = [
    case("an optimizer bound anew", *form(BOTH, ("    out = net(x)\n", "    out = net(x)\n    opt = tf.train.GradientDescentOptimizer(0.5)\n"))),
    case("a loss bound anew", *form(BOTH, ("    grads =", "    loss = loss + 0.1 * tf.nn.l2_loss(out)\n    grads ="))),
    case("an optimizer of the module", *form("loss, grads = tower_loss(x, y)", ("(opt, x, y)", "(x, y)")), *GLOBAL),
    case("two optimizers of one name", *form("loss, grads = tower_loss(x, y)", ("(opt, x, y)", "(x, y)")), ("drawn = [0]\n", "drawn = [0]\nopt = tf.train.GradientDescentOptimizer(0.5)\n")),
    case("a comment among the results", *form(BOTH, ("return loss, grads", "return (loss,  # of this tower\n            grads)"))),
    case("a comment among the parameters", *form(BOTH, ("(opt, x, y)", "(opt,  # of all towers\n               x, y)"))),
    case("called for something else, too", *form(BOTH), ("    saver = tf.train.Saver()\n", "    saver = tf.train.Saver()\n    print(callable(tower_loss))\n")),
    case("one name for both", *form("opt, grads = tower_loss(opt, x, y)"), (RUN, "_, value = sess.run([train_op, step_count]")),
    case("on a device", *form(BOTH, ("    grads = opt.compute_gradients(loss)\n", "    with tf.device('/cpu:0'):\n        grads = opt.compute_gradients(loss)\n"))),
    case("scaled", *form(BOTH, ("compute_gradients(loss)", "compute_gradients(loss, grad_loss=tf.constant(3.0))"))),
    case("a comment behind it", *form(BOTH, ("(loss)\n", "(loss)  # of this tower\n"))),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT)


@pytest.mark.full
def test_none_of_these_is_rewritten_to_something_else() -> None:
    none_does_anything_else(FOOLING)


def test_a_function_of_the_module_does_not_see_an_optimizer_of_one_around_the_towers() -> None:
    changes = form("loss, grads = tower_loss(x, y)", ("(opt, x, y)", "(x, y)"))
    text = program(*changes, *GLOBAL)["train.py"]
    head, rest = text.split("def train():\n")
    body, end = rest.split("\n\n\nif __name__")
    inner = "\n".join(f"    {line}" if line else line for line in body.split("\n"))
    around = "def train():\n    other = 1\n\n    def inside():\n"
    nested = f"{head}{around}{inner}\n\n    inside()\n\n\nif __name__{end}"
    assert _changes(text) and _changes(nested)
    assert not _changes(nested.replace("other = 1", "opt = tf.train.GradientDescentOptimizer(0.5)"))


def _changes(text: str) -> list[object]:
    return [*given_gradients(Tree({"train.py": text}), None, PlainFile("train.py", text))]
