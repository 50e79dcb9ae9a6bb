"""Everything that keeps a program from loop style is said in one pass, most important first, once."""

from __future__ import annotations

import pytest

from tests.recognize.programs import GRADS, LOSS, MODEL, program, recognize
from towermigrate.findings import Finding
from towermigrate.recognize import assemble, recognize_tree

PRINT = "            print(value)\n"
RESULT = "    return tf.matmul(x, w)\n"


def findings(text: str) -> tuple[Finding, ...]:
    (recognition,) = recognize(text)
    assert recognition.program is None
    return recognition.findings


def test_all_reasons_of_a_program_in_one_pass() -> None:
    text = program(
        ("tf.split(x, num_gpus)", "tf.split(x, 4)"),
        (LOSS, LOSS + "            print('tower', loss)\n            seen.append(loss)\n"),
        (RESULT, "    tf.metrics.mean(x)\n    y = other(x)\n" + RESULT),
        ("grad = tf.reduce_mean(tf.concat(grads, 0), 0)", "grad = tf.reduce_max(tf.concat(grads, 0), 0)"),
        (PRINT, PRINT + "            evaluate(sess)\n"),
    )  # fmt: skip
    rules = [one.rule for one in findings(text)]
    assert rules[0] == "TM205"
    for rule in ("TM208", "TM203", "TM206", "TM220", "TM223", "TM222"):
        assert rule in rules
    assert rules.index("TM203") < rules.index("TM206") < rules.index("TM223") < rules.index("TM222")


def test_each_reason_stands_at_its_line() -> None:
    text = program((LOSS, LOSS + "            print('tower', loss)\n            assert num_gpus\n"))
    lines = text.splitlines()
    for one in findings(text):
        assert any(word in lines[one.line - 1] for word in ("print", "assert"))


def test_nothing_is_said_twice() -> None:
    model = "            loss = tf.reduce_mean(tf.square(model(parts[i]) + model(parts[i])))\n"
    text = program((LOSS, model), (RESULT, "    print(x)\n" + RESULT))
    found = findings(text)
    assert len({(one.rule, one.line, one.column) for one in found}) == len(found) == 1


def test_reasons_of_another_file_come_after_those_of_the_towers() -> None:
    sources = {
        "program.py": program(
            (MODEL, "from other import model\n"), (LOSS, "            print(parts)\n" + LOSS)
        ),
        "other.py": "import tensorflow as tf\n\n\n"
        + MODEL.replace(RESULT, "    print(x)\n" + RESULT),
    }
    (recognition,) = recognize_tree(sources)
    places = [one.path for one in recognition.findings if one.rule == "TM223"]
    assert places == ["program.py", "other.py"]


STRUCTURES = {
    "in an if": (
        "    for i in range(num_gpus):\n",
        "    if num_gpus:\n     for i in range(num_gpus):\n",
    ),
    "over devices": (
        "    for i in range(num_gpus):\n",
        "    for i, d in zip(range(num_gpus), devices):\n",
    ),
    "no gradients": (GRADS, "            grads = loss\n"),
    "run elsewhere": (
        "    with tf.Session() as sess:\n",
        "    run(train_op)\n    with open('x') as sess:\n",
    ),
    "a framework": (
        "    with tf.Session() as sess:\n",
        "    with tf.train.MonitoredTrainingSession() as sess:\n",
    ),
    "a generator": (PRINT, PRINT + "            yield value\n"),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_is_structural_does_not_hide_the_rest(name: str) -> None:
    text = program(STRUCTURES[name], (RESULT, "    print(x)\n    tf.metrics.mean(x)\n" + RESULT))
    rules = {one.rule for one in findings(text)}
    assert {"TM223", "TM220"} <= rules
    assert rules & {"TM201", "TM202", "TM205", "TM212"}


def test_a_fault_at_one_program_is_a_reason_of_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    other = program().replace("'w'", "'other_w'")
    real = assemble.flatten

    def faulty(block, file, lead=()):  # type: ignore[no-untyped-def]
        if "other_w" in file.text:
            raise KeyError("other_w")
        return real(block, file, lead)

    monkeypatch.setattr(assemble, "flatten", faulty)
    found = {r.path: r for r in recognize_tree({"a.py": other, "b.py": program()})}
    (problem,) = found["a.py"].findings
    assert problem.rule == "TM290" and "other_w" in problem.message and "report" in problem.message
    assert found["b.py"].program is not None


def test_an_inner_loop_over_the_index_is_a_reason() -> None:
    text = program(
        (LOSS, LOSS + "            for i in range(3):\n                loss = loss * 1.0\n")
    )
    assert "TM227" in {one.rule for one in findings(text)}
