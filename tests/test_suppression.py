"""What a user asks to leave alone: findings and files by a comment, programs by naming another."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towermigrate.choice import ChoiceError, parse_target, put_back
from towermigrate.cli import main
from towermigrate.comments import skips_file, suppressed
from towermigrate.passes import Refused
from towermigrate.rewrite import rewrite_tree

PROGRAM = Path(__file__).parent.parent / "towermigrate/demo_program/complete.py"
# A program that no style can take, in a second function of the file: its towers share no variables.
OTHER = """\
@decorated
def other(devices):
    opt = tf.train.AdamOptimizer(0.1)  # as it was
    tower_grads = []
    for i, part in enumerate(parts):
        with tf.device(devices[i]), tf.variable_scope("tower_%d" % i):
            tower_grads.append(opt.compute_gradients(loss(part)))
    return average_gradients(tower_grads)


"""
TWO = PROGRAM.read_text(encoding="utf-8").replace("def main():", OTHER + "def main():")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


COMMENTS = [
    pytest.param("x = 1  # towermigrate: ignore", {1: ("",)}, id="all rules"),
    pytest.param("x = 1  # towermigrate: ignore[TM118]", {1: ("TM118",)}, id="one rule"),
    pytest.param("x = 1  # why not; towermigrate:ignore[tm1 , TM301,]", {1: ("TM1", "TM301")}, id="several, after words"),
    pytest.param("\n\nx = 1  # towermigrate: ignore[]", {3: ()}, id="no rule"),
    pytest.param("x = '# towermigrate: ignore'", {}, id="in a string"),
    pytest.param("x = '''\n# towermigrate: ignore\n'''", {}, id="in a string of several lines"),
    pytest.param("x = 1  # towermigrate: ignored", {}, id="another word"),
    pytest.param("x = 1  # towermigrate: skip-file", {}, id="another order"),
    pytest.param("x = 1\r\ny = 2  # towermigrate: ignore\r\n", {2: ("",)}, id="CRLF"),
    pytest.param("\x0cx = 1\ny = 2  # towermigrate: ignore\n", {2: ("",)}, id="a form feed ends no line"),
    pytest.param("x = 1  # towermigrate: ignore\nx = (", {1: ("",)}, id="a file that does not parse"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMMENTS)
def test_comments_are_read(text: str, expected: dict[int, tuple[str, ...]]) -> None:
    assert suppressed(text) == expected


FINDINGS = [
    pytest.param("tf.estimator.Estimator(f)", ["TM112"], id="no comment"),
    pytest.param("tf.estimator.Estimator(f)  # towermigrate: ignore", [], id="all rules"),
    pytest.param("tf.estimator.Estimator(f)  # towermigrate: ignore[TM112]", [], id="this rule"),
    pytest.param("tf.estimator.Estimator(f)  # towermigrate: ignore[TM1]", [], id="its group"),
    pytest.param("tf.estimator.Estimator(f)  # towermigrate: ignore[TM3]", ["TM112"], id="another rule"),
    pytest.param("# towermigrate: ignore\ntf.estimator.Estimator(f)", ["TM112"], id="on another line"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "rules"), FINDINGS)
def test_a_comment_hides_the_findings_of_its_line(line: str, rules: list[str]) -> None:
    text = f"import tensorflow as tf\n{line}\ntf.log(1)\n"
    report = rewrite_tree({"m.py": text})
    assert [finding.rule for finding in report.files[0].findings] == rules
    assert "tf.math.log" in report.texts["m.py"]


@pytest.mark.parametrize(("comment", "rules"), [("", ["TM112"]), ("  # towermigrate: ignore", [])], ids=["no comment", "a comment"])  # fmt: skip
def test_sarif_has_no_result_for_what_a_comment_hides(
    tmp_path: Path, comment: str, rules: list[str]
) -> None:
    text = f"import tensorflow as tf\ntf.estimator.Estimator(f){comment}\n"
    (tmp_path / "m.py").write_text(text)
    run("scan", tmp_path, "--sarif", tmp_path / "r.sarif")
    results = document(tmp_path / "r.sarif")["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == rules


def test_a_comment_hides_no_refusal() -> None:
    text = "import tensorflow as tf\n" + OTHER.replace("% i):", "% i):  # towermigrate: ignore")
    (program,) = rewrite_tree({"m.py": text}).files[0].programs
    assert program.status == "refused"
    assert [finding.rule for finding in program.findings] == ["TM252"]
    assert "# towermigrate" in text.splitlines()[program.findings[0].line - 1]


def test_a_comment_hides_what_is_said_of_a_converted_program() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    report = rewrite_tree({"m.py": text})
    told = [finding for finding in report.programs[0].findings if finding.rule == "TM301"]
    lines = text.split("\n")
    lines[told[0].line - 1] += "  # towermigrate: ignore[TM301]"
    left = rewrite_tree({"m.py": "\n".join(lines)}).programs[0].findings
    assert [f for f in left if f.rule == "TM301"] == told[1:]


@pytest.mark.parametrize("comment", ["# towermigrate: skip-file", "# Towermigrate: Skip-File: kept for TF1"])  # fmt: skip
def test_a_file_that_asks_to_be_skipped_is_left_alone(tmp_path: Path, comment: str) -> None:
    text = f"import tensorflow as tf\n{comment}\ntf.placeholder(tf.float32)\n"
    (tmp_path / "m.py").write_text(text)
    result = run("rewrite", tmp_path, "--json", tmp_path / "r.json")
    assert result.exit_code == 0
    assert (tmp_path / "m.py").read_text() == text
    (file,) = document(tmp_path / "r.json")["files"]
    assert file["status"] == "unchanged"
    assert [(f["rule"], f["line"]) for f in file["findings"]] == [("TM106", 2)]


def test_a_file_that_asks_to_be_skipped_need_not_parse(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("# towermigrate: skip-file\nimport tensorflow\nprint 'x'\n")
    assert run("scan", tmp_path).exit_code == 0


def test_a_notebook_that_asks_to_be_skipped_is_left_alone(tmp_path: Path) -> None:
    lines = ["import tensorflow as tf\n", "tf.placeholder(tf.float32)"]
    for comment in ("# towermigrate: skip-file\n", "# nothing\n"):
        cell = {"cell_type": "code", "source": [comment, *lines], "metadata": {}, "outputs": [],
                "execution_count": None}  # fmt: skip
        text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 2})
        (tmp_path / "n.ipynb").write_text(text)
        assert run("rewrite", tmp_path).exit_code == 0
        assert ((tmp_path / "n.ipynb").read_text() == text) == ("skip" in comment)


def test_standard_input_that_asks_to_be_skipped_comes_back() -> None:
    text = "import tensorflow as tf  # towermigrate: skip-file\ntf.placeholder(tf.float32)\n"
    result = CliRunner().invoke(main, ["rewrite", "-"], input=text)
    assert (result.exit_code, result.stdout) == (0, text)


def test_skip_file_in_a_string_is_no_order() -> None:
    assert skips_file("x = '# towermigrate: skip-file'\n") is None


def test_a_skipped_program_is_not_converted() -> None:
    text = PROGRAM.read_text(encoding="utf-8") + "# towermigrate: skip-file\n"
    from towermigrate.findings import Finding

    fixed = {"m.py": Finding("TM106", "m.py", 1, 0, "")}
    report = rewrite_tree({"m.py": text}, fixed=fixed)
    assert report.programs == [] and report.texts == {}


TARGETS = [
    ("src", ("src", None)),
    ("src/train.py", ("src/train.py", None)),
    ("src/train.py:main", ("src/train.py", "main")),
    ("src/train.py:Trainer.run", ("src/train.py", "Trainer.run")),
    ("train.py:make.<locals>.run", ("train.py", "make.<locals>.run")),
    ("C:/src/train.py", ("C:/src/train.py", None)),
    ("C:/src/train.py:main", ("C:/src/train.py", "main")),
]


@pytest.mark.parametrize(("text", "expected"), TARGETS)
def test_what_a_path_names(text: str, expected: tuple[str, str | None]) -> None:
    path, function = parse_target(text)
    assert (path.as_posix(), function) == expected


def test_a_path_with_a_colon_that_exists_is_a_path(tmp_path: Path) -> None:
    odd = tmp_path / "a.py:b"
    odd.write_text("")
    assert parse_target(str(odd)) == (odd, None)


def test_one_program_is_converted_and_the_other_stays_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    result = run("rewrite", f"{tmp_path}/two.py:train", "--json", tmp_path / "r.json")
    assert result.exit_code == 0, result.output
    after = (tmp_path / "two.py").read_text(encoding="utf-8")
    assert OTHER in after
    assert "@variables.tower" in after and "import towermigrate.helpers as tm" in after
    (file,) = document(tmp_path / "r.json")["files"]
    assert [program["function"] for program in file["programs"]] == ["train"]
    assert "TM106" in [finding["rule"] for finding in file["findings"]]
    # Once more is nothing to do.
    assert run("rewrite", f"{tmp_path}/two.py:train").exit_code == 0
    assert (tmp_path / "two.py").read_text(encoding="utf-8") == after


def test_without_a_name_each_program_is_judged_by_itself(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    assert run("rewrite", tmp_path, "--json", tmp_path / "r.json").exit_code == 1
    (file,) = document(tmp_path / "r.json")["files"]
    became = {program["function"]: program["style"] for program in file["programs"]}
    # A process of that file may run the other one's graph: no loop style beside it.
    assert became == {"train": "session", "other": None}
    assert file["status"] == "rewritten"
    after = (tmp_path / "two.py").read_text(encoding="utf-8")
    assert "for i in tm.towers(range(num_gpus)):" in after
    assert "    for i, part in enumerate(parts):\n" in after
    (said,) = [finding for finding in file["findings"] if finding["rule"] == "TM312"]
    assert TWO.splitlines()[said["line"] - 1] == "    for i, part in enumerate(parts):"
    assert "`other`" in said["message"] and "`train`" in said["message"]
    assert "opt = tf.compat.v1.train.AdamOptimizer(0.1)  # as it was" in after


NAMES_MOVE = [
    pytest.param(TWO, "keep", 1, id="a refused program beside a converted one"),
    pytest.param(TWO, "symbols", 0, id="asked for"),
    pytest.param(TWO.replace("enumerate(parts):", "enumerate(parts):  # towermigrate: ignore[TM312]"), "keep", 0, id="a comment hides it"),
    pytest.param(TWO.replace(OTHER, ""), "keep", 0, id="none was refused"),
    pytest.param("import tensorflow as tf\n" + OTHER, "keep", 0, id="the file stays"),
    pytest.param("import tensorflow as tf\n" + OTHER, "symbols", 0, id="none was converted"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "refused", "number"), NAMES_MOVE)
def test_a_refused_program_whose_names_change_is_told(
    text: str, refused: Refused, number: int
) -> None:
    (file,) = rewrite_tree({"m.py": text}, refused=refused).files
    assert [finding.rule for finding in file.findings].count("TM312") == number


def test_a_refused_program_that_was_chosen_keeps_the_file(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    assert run("rewrite", f"{tmp_path}/two.py:other").exit_code == 1
    assert (tmp_path / "two.py").read_text(encoding="utf-8") == TWO


MODULE_LEVEL = TWO.replace(OTHER, "") + "\nparts = []\n" + "".join(
    line[4:] if line.startswith("    ") else line
    for line in OTHER.replace("    return average_gradients(tower_grads)\n", "").splitlines(True)[2:]
)  # fmt: skip


def test_a_program_at_module_level_cannot_be_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(MODULE_LEVEL, encoding="utf-8")
    result = run("rewrite", f"{tmp_path}/two.py:train", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    assert (tmp_path / "two.py").read_text(encoding="utf-8") == MODULE_LEVEL
    (program,) = document(tmp_path / "r.json")["files"][0]["programs"]
    assert [f["rule"] for f in program["findings"] if f["severity"] == "error"] == ["TM107"]
    assert "at module level" in program["findings"][-1]["message"]


def test_a_program_of_a_python_2_file_cannot_be_kept_apart(tmp_path: Path) -> None:
    text = TWO.replace("    train()\n", "    print 'training'\n    train()\n")
    assert text != TWO
    (tmp_path / "two.py").write_text(text, encoding="utf-8")
    result = run("rewrite", f"{tmp_path}/two.py:train")
    assert result.exit_code == 1 and "TM107" in result.output and "Python 2" in result.output
    assert (tmp_path / "two.py").read_text(encoding="utf-8") == text


def test_a_comment_hides_findings_of_a_python_2_file() -> None:
    text = "import tensorflow as tf\nprint 'x'\ny = a / b\nz = c / d  # towermigrate: ignore\n"
    findings = rewrite_tree({"m.py": text}).files[0].findings
    assert [finding.line for finding in findings if finding.severity != "info"] == [3]


def test_a_program_inside_another_cannot_be_chosen(tmp_path: Path) -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    start, end = text.index("def train("), text.index("def main():")
    inner = textwrap.indent(text[start:end], "    ")
    outer = OTHER.replace("    opt = tf", f"{inner}\n    opt = tf").replace("@decorated\n", "")
    text = text[:start] + outer + text[end:]
    (tmp_path / "m.py").write_text(text, encoding="utf-8")
    result = run("rewrite", f"{tmp_path}/m.py:other.<locals>.train")
    assert result.exit_code == 1 and "is a part of another program" in result.output
    assert (tmp_path / "m.py").read_text(encoding="utf-8") == text


MISNAMED = [
    pytest.param("two.py:nothing", "no function `nothing`; its tower programs: `train`, `other`", id="no such function"),
    pytest.param("two.py:not-a-name", "the name of a function", id="no name"),
    pytest.param("no.py:train", "does not exist", id="no such file"),
    pytest.param("plain.ipynb:train", "does not mention TensorFlow", id="a notebook without TensorFlow"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "said"), MISNAMED)
def test_a_program_that_is_not_there_is_bad_usage(tmp_path: Path, target: str, said: str) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    (tmp_path / "plain.ipynb").write_text('{"cells": []}')
    result = run("rewrite", f"{tmp_path}/{target}")
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_two_programs_of_one_file_go_one_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    result = run("rewrite", f"{tmp_path}/two.py:train", f"{tmp_path}/two.py:other")
    assert result.exit_code == 2 and "at a time" in result.output
    assert (tmp_path / "two.py").read_text(encoding="utf-8") == TWO


def test_a_function_without_towers_is_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    result = run("rewrite", f"{tmp_path}/two.py:main")
    assert result.exit_code == 0 and "holds no tower program" in result.output
    assert (tmp_path / "two.py").read_text(encoding="utf-8") == TWO


PUT_BACK = [
    pytest.param("def f():\n    1\n\ndef g():\n    3\n", "def f():\n    2\n\ndef g():\n    4\n", ["f"], "def f():\n    1\n\ndef g():\n    4\n", id="a function"),
    pytest.param("class C:\n  @staticmethod\n  def f(): 1\n  x = 1\n", "class C:\n  @classmethod\n  def f(): 2\n  x = 2\n", ["C.f"], "class C:\n  @staticmethod\n  def f(): 1\n  x = 2\n", id="a method with its decorator"),
    pytest.param("a = 1\r\ndef f():\r\n    a\x0c\r\n", "b = a = 1\r\ndef f():\r\n    b\x0c\r\n", ["f"], "b = a = 1\r\ndef f():\r\n    a\x0c\r\n", id="CRLF and a form feed"),
    pytest.param("def f(): 1\ndef g(): 3", "def f(): 2\ndef g(): 4", ["g", "f"], "def f(): 1\ndef g(): 3", id="two, no last line end"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "names", "expected"), PUT_BACK)
def test_functions_are_put_back(before: str, after: str, names: list[str], expected: str) -> None:
    assert put_back(before, after, names) == expected


CANNOT = [
    pytest.param("def f(): a\ndef f(): b\n", "def f(): A\ndef f(): B\n", ["f"], "exactly once", id="there twice"),
    pytest.param("import os\ndef f(): os\n", "def f(): 1\n", ["f"], "`os`", id="what it reads is gone"),
    pytest.param("x = 1\n", "x = 2\n", [None], "module level", id="module level"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "names", "said"), CANNOT)
def test_what_cannot_be_put_back_says_why(
    before: str, after: str, names: list[str | None], said: str
) -> None:
    with pytest.raises(ChoiceError, match=said):
        put_back(before, after, names)
