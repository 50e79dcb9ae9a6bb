"""Gradients that are averaged without their variables, which are put beside them where they are applied."""

from __future__ import annotations

import pytest

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of, none_does_anything_else

AVERAGE = """\
def average(tower_grads):
    averaged = []
    for grads in zip(*tower_grads):
        averaged.append(tf.reduce_mean(tf.stack(grads), 0))
    return averaged
"""
BY_HAND = """\
def average(tower_grads):
    averaged = []
    for grads in zip(*tower_grads):
        rows = []
        for grad in grads:
            rows.append(tf.expand_dims(grad, 0))
        averaged.append(tf.reduce_mean(tf.concat(axis=0, values=rows), 0))
    return averaged
"""
TAKE = "                    params = tf.trainable_variables()\n                    grads = tf.gradients(loss, params)\n                    tower_grads.append(grads)\n"
APPLY = "    grads = average(tower_grads)\n    train_op = opt.apply_gradients(zip(grads, params), global_step=step_count)\n"


def _lone() -> str:
    model = MODEL[: MODEL.index("def average_gradients")] + MODEL[MODEL.index("def batch") :]
    train = TRAIN.replace(
        "                    grads = opt.compute_gradients(loss)\n                    tower_grads.append(grads)\n",
        TAKE,
    )
    train = train.replace(
        "    grads = average_gradients(tower_grads)\n    train_op = opt.apply_gradients(grads, global_step=step_count)\n",
        APPLY,
    )
    return "\n\n".join([HEAD, AVERAGE, model, train, "if __name__ == '__main__':\n    train()\n"])


ELSEWHERE = "elsewhere"


def program(*changes: Change) -> dict[str, str]:
    """The files with each `(old, new)` applied; every `old` must be there."""
    files = {"train.py": _lone()}
    for old, new in changes:
        if old == ELSEWHERE:
            files["means.py"] = new
            continue
        assert files["train.py"].count(old) == 1, old
        files["train.py"] = files["train.py"].replace(old, new)
    return files


def taken(name: str, *changes: Change) -> object:
    return pytest.param(changes, id=name)


def left(name: str, rule: str, *changes: Change) -> object:
    return pytest.param(changes, rule, id=name)


INLINE = (
    APPLY,
    "    train_op = opt.apply_gradients(zip(average(tower_grads), params), global_step=step_count)\n",
)
CLIPPED = (
    APPLY,
    APPLY.replace(
        "tower_grads)\n", "tower_grads)\n    grads, norm = tf.clip_by_global_norm(grads, 0.1)\n"
    ),
)
OF_ALL = "tf.trainable_variables()"
UNNAMED = (
    (TAKE, f"                    tower_grads.append(tf.gradients(loss, {OF_ALL}))\n"),
    (APPLY, APPLY.replace("params", OF_ALL)),
)  # fmt: skip
IMPORTED = (AVERAGE, ""), (ELSEWHERE, "import tensorflow as tf\n\n\n" + AVERAGE), ("import tensorflow as tf\n", "import tensorflow as tf\nfrom means import average\n")  # fmt: skip

TAKEN = [
    taken("by stack"),
    taken("by hand", (AVERAGE, BY_HAND)),
    taken("a display", (AVERAGE, "def average(tower_grads):\n    return [tf.add_n(grads) / len(grads) for grads in zip(*tower_grads)]\n")),
    taken("the sum", (AVERAGE, AVERAGE.replace("reduce_mean", "reduce_sum"))),
    taken("where they are applied", INLINE),
    taken("variables without a name", *UNNAMED),
    taken("clipped in the towers", (TAKE, TAKE.replace("params)\n", "params)\n                    grads, _ = tf.clip_by_global_norm(grads, 0.1)\n"))),
    taken("clipped behind them", CLIPPED),
    taken("scaled as a list behind them", (APPLY, APPLY.replace("tower_grads)\n", "tower_grads)\n    grads = grads[:1] + [g * 0.5 for g in grads[1:]]\n"))),
    taken("a list of pairs", (APPLY, APPLY.replace("zip(grads, params)", "list(zip(grads, params))"))),
    taken("some variables", (TAKE, TAKE.replace(OF_ALL, "[v for v in tf.trainable_variables() if 'w' in v.name]"))),
    taken("a function of another file", *IMPORTED),
    taken("one of another file, by its module", IMPORTED[0], IMPORTED[1], ("import tensorflow as tf\n", "import tensorflow as tf\nimport means\n"),
          (APPLY, APPLY.replace("average(", "means.average("))),
]  # fmt: skip

LEFT = [
    left("variables that a tower turns round behind its gradients", "TM203", (TAKE, TAKE + "                    params.reverse()\n")),
    left("variables that a function may turn round", "TM203", (APPLY, "    list(map(list.reverse, [params]))\n" + APPLY)),
    left("another order of variables", "TM203", (APPLY, APPLY.replace("zip(grads, params)", "zip(grads, params[::-1])"))),
    left("an order that changes", "TM203", (APPLY, "    params = params[::-1]\n" + APPLY)),
    left("the last tower's only", "TM203", (AVERAGE, AVERAGE.replace("tf.reduce_mean(tf.stack(grads), 0)", "grads[-1]"))),
    left("gradients that are left out", "TM203", (AVERAGE, AVERAGE.replace("        averaged", "        if grads[0] is None:\n            continue\n        averaged"))),
    left("a list that is turned round", "TM203", (APPLY, "    tower_grads = [list(reversed(g)) for g in tower_grads]\n" + APPLY)),
    left("one variable less", "TM203", (AVERAGE, AVERAGE.replace("return averaged", "return averaged[1:]"))),
    left("the towers weighted", "TM203", (AVERAGE, AVERAGE.replace("tf.reduce_mean(tf.stack(grads), 0)", "0.25 * grads[0] + 0.75 * grads[1]"))),
    left("a zip of the program's own", "TM203", (AVERAGE, AVERAGE + "\n\ndef zip(*lists):\n    return [tuple(each[::-1]) for each in map(list, __import__('itertools').zip_longest(*lists))]\n")),
    left("another function of that name", "TM203", ("    tower_grads = []\n", "    average = list\n    tower_grads = []\n")),
]  # fmt: skip

test_it_is_in_loop_style, test_its_neighbour_is_not, test_all_of_them_do_the_same_rewritten = (
    asked_of(TAKEN, LEFT, program)
)


@pytest.mark.full
def test_their_neighbours_do_nothing_else() -> None:
    none_does_anything_else(LEFT, program)
