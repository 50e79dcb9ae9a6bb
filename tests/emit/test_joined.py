"""Programs whose graph is built in one function and run in others: loop style, with each function where it was."""

from __future__ import annotations

import ast
import textwrap

import pytest

from towermigrate.rewrite import rewrite_tree

HEAD = """
import numpy as np
import tensorflow as tf

TOWERS = 2
BATCH = 4


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in pairs]
        averaged.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))
    return averaged


def net(x):
    return tf.matmul(x, tf.get_variable('w', [3, 1]))


"""
BODY = """
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.placeholder(tf.float32, [None, 1])
    opt = tf.train.GradientDescentOptimizer(0.1)
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(TOWERS):
            with tf.device('/gpu:%d' % i):
                # The rows of this tower
                xs = x[i * BATCH:(i + 1) * BATCH]
                ys = y[i * BATCH:(i + 1) * BATCH]
                loss = tf.reduce_mean(tf.square(net(xs) - ys))
                tf.get_variable_scope().reuse_variables()
                tower_grads.append(opt.compute_gradients(loss))
    train_op = opt.apply_gradients(average_gradients(tower_grads))
"""
BUILD = f"def build():\n    '''Builds.'''{BODY}    return x, y, loss, train_op\n\n\n"
STEP = "sess.run([train_op, loss], feed_dict={x: np.ones((8, 3)), y: np.ones((8, 1))})"
SESSION = "with tf.Session() as sess:\n        sess.run(tf.global_variables_initializer())"
CALLER = f"""
def main():
    x, y, loss, train_op = build()
    {SESSION}
        for step in range(3):
            _, value = {STEP}
            print('%d %.3f' % (step, value))


main()
"""
FIT = f"""
def fit(sess, x, y, loss, train_op):
    # Trains
    for step in range(3):
        _, value = {STEP}
        print('%d %.3f' % (step, value))


def main():
    x, y, loss, train_op = build()
    {SESSION}
        fit(sess, x, y, loss, train_op)


main()
"""


def program(caller: str, build: str = BUILD) -> dict[str, str]:
    return {"train.py": HEAD.lstrip() + build + textwrap.dedent(caller).lstrip()}


def styles(files: dict[str, str]) -> list[str | None]:
    return [each.style for each in rewrite_tree(files).programs]


def functions(text: str) -> dict[str, str]:
    """The signature of each function, and what it returns at its end."""
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            last = node.body[-1]
            returned = ast.unparse(last) if isinstance(last, ast.Return) else ""
            found[node.name] = f"({ast.unparse(node.args)}) {returned}".strip()
    return found


def test_the_caller_runs_what_the_builder_returns() -> None:
    report = rewrite_tree(program(CALLER))
    (made,) = report.programs
    assert (made.style, made.function) == ("loop", "build")
    text = report.texts["train.py"]
    assert functions(text)["build"] == "() return (x, y, train_step)"
    assert "x, y, train_step = build()" in text and "towermigrate part" not in text
    assert text.count("'''Builds.'''\n    strategy = tm.tower_strategy(TOWERS)\n") == 1


def test_a_function_that_gets_the_session_gets_the_step() -> None:
    text = rewrite_tree(program(FIT)).texts["train.py"]
    assert functions(text)["fit"] == "(train_step, x, y)"
    assert "    fit(train_step, x, y)\n" in text
    assert "    # Trains\n    for step in range(3):\n        value = train_step(" in text


def test_the_comment_of_a_header_stays() -> None:
    files = program(FIT.replace("train_op):\n", "train_op):  # runs\n", 1))
    text = rewrite_tree(files).texts["train.py"]
    assert "def fit(train_step, x, y):  # runs\n" in text


def test_the_places_told_are_those_of_the_author() -> None:
    files = program(FIT)
    (made,) = rewrite_tree(files).programs
    rows = files["train.py"].split("\n")
    (told,) = [each for each in made.findings if each.rule == "TM301"]
    assert "sess.run" in rows[told.line - 1]
    (lost,) = [each for each in made.findings if each.rule == "TM305"]
    assert rows[lost.line - 1].strip() == "# The rows of this tower"
    assert f"{lost.line}: # The rows of this tower" in lost.message
    known = made.recognised
    assert known is not None
    for span in (known.stages[0].compute, known.stages[0].apply, known.runs[-1].call):
        row = rows[span.line - 1][
            span.column : span.end_column if span.line == span.end_line else None
        ]
        assert row.startswith(("opt.compute_gradients", "opt.apply_gradients", "sess.run"))


NAMES_OF_THEIR_OWN = FIT.replace("fit(sess, x, y, loss, train_op):", "fit(s, a, b, l, op):").replace(
    STEP, "s.run([op, l], feed_dict={a: np.ones((8, 3)), b: np.ones((8, 1))})"
)  # fmt: skip
CALLED_OTHERWISE = CALLER.replace("x, y, loss, train_op = build()", "x, y, cost, op = build()").replace(
    "[train_op, loss]", "[op, cost]"
)  # fmt: skip
BY_KEYWORD = FIT.replace(
    "    fit(sess, x, y, loss, train_op)",
    "    fit(sess, train_op=train_op, loss=loss, y=y, x=x)",
)
SAME_NAMES = FIT.replace("# Trains\n", "i, xs, opt = 1, [2], {3}\n    print(i, xs, opt)\n")
RETURNS = FIT.replace("(step, value))\n\n", "(step, value))\n    return float(value)\n\n").replace(
    "        fit(sess", "        last = fit(sess"
).replace("\n\nmain()", "    print(last)\n\n\nmain()")  # fmt: skip
IN_A_LOOP = FIT.replace("        fit(sess", "        for epoch in range(2):\n            fit(sess")
AT_MODULE_LEVEL = "x, y, loss, train_op = build()\n" + FIT.replace(
    "build()", "(x, y, loss, train_op)"
)


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param(NAMES_OF_THEIR_OWN, id="parameters of other names"),
        pytest.param(CALLED_OTHERWISE, id="results of other names"),
        pytest.param(BY_KEYWORD, id="by keyword"),
        pytest.param(SAME_NAMES, id="the same names for other things"),
        pytest.param(RETURNS, id="an expression returned"),
        pytest.param(IN_A_LOOP, id="in a loop"),
    ],
)
def test_how_they_are_called_does_not_matter(caller: str) -> None:
    files = program(caller)
    report = rewrite_tree(files)
    assert [each.style for each in report.programs] == ["loop"], [
        (each.rule, each.message) for each in report.programs[0].not_loop
    ]
    text = report.texts["train.py"]
    assert rewrite_tree({"train.py": text}).texts == {}
    assert list(functions(text)) == [
        name for name in functions(files["train.py"]) if name != "average_gradients"
    ]


def test_the_builder_may_stand_in_another_file() -> None:
    model = HEAD.lstrip() + BUILD
    for imported, called in (
        ("from model import build", "build()"),
        ("import model", "model.build()"),
        ("import model as m", "m.build()"),
    ):
        top = f"import numpy as np\nimport tensorflow as tf\n\n{imported}\n\n\n"
        files = {"model.py": model, "train.py": top + CALLER.replace("build()", called)}
        report = rewrite_tree(files)
        assert [each.style for each in report.programs] == ["loop"], imported
        assert "average_gradients" not in report.texts["model.py"]
        assert f"x, y, train_step = {called}" in report.texts["train.py"]
        assert f"{imported}\nfrom model import BATCH\n" in report.texts["train.py"]
        assert "towermigrate part" not in "".join(report.texts.values())


AFTER_A_CALL = "    return x, y, loss, train_op\n"


@pytest.mark.parametrize(
    ("caller", "build"),
    [
        pytest.param(CALLER.replace("main()\n", "main()\nbuild()\n"), BUILD, id="called twice"),
        pytest.param(CALLER + "\nkept = build\n", BUILD, id="kept under another name"),
        pytest.param(
            CALLER.replace("    x, y, loss, train_op = build()", "    for turn in range(1):\n        x, y, loss, train_op = build()"),
            BUILD,
            id="called in a loop",
        ),
        pytest.param(CALLER, "@np.vectorize\n" + BUILD, id="decorated"),
        pytest.param(CALLER, BUILD.replace(AFTER_A_CALL, "    yield x, y, loss, train_op\n"), id="a generator"),
        pytest.param(CALLER.replace("print('%d %.3f' % (step", "print('%d %.3f' % (step * TOWERS"), BUILD.replace("'''Builds.'''", "'''Builds.'''\n    global TOWERS\n    TOWERS = 2"), id="a global that its caller reads"),
        pytest.param(CALLER.replace("= build()", "= build(*[])"), BUILD, id="starred"),
        pytest.param(CALLER.replace("main()\n", "main()\nprint(globals()['build'])\n"), BUILD, id="by its name"),
        pytest.param(
            CALLER, BUILD.replace(AFTER_A_CALL, "    if TOWERS > 8:\n        return None\n" + AFTER_A_CALL), id="two returns"
        ),
        pytest.param(CALLER.replace("print('%d", "x = 1\n            print('%d"), BUILD, id="a result bound anew"),
        pytest.param(FIT.replace("fit(sess, x", "(lambda: fit(sess, x").replace("train_op)\n\n\nmain", "train_op))()\n\n\nmain"), BUILD, id="in a lambda"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_as_one_keeps_its_session(caller: str, build: str) -> None:
    assert "loop" not in styles(program(caller, build))
