"""The commands as a user runs them: what they print, write and return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towermigrate.cli import main
from towermigrate.cli.verifying import _DEVICES, best_devices
from towermigrate.findings import RULES

REPOSITORY = Path(__file__).parent.parent
PROGRAM = REPOSITORY / "towermigrate/demo_program/complete.py"
MODEL = "import tensorflow as tf\n\n\ndef f(x):\n    return tf.layers.dense(x, 1)  # one\n"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
REFUSED = """\
import tensorflow as tf
import model

def main():
    opt = tf.train.AdamOptimizer(0.1)
    tower_grads = []
    for i in range(2):
        with tf.device('/gpu:%d' % i), tf.variable_scope('tower_%d' % i):
            loss = model.f(read(i))
            tower_grads.append(opt.compute_gradients(loss))
    train_op = opt.apply_gradients(strange(tower_grads))
    with tf.Session() as sess:
        sess.run(train_op)

if __name__ == "__main__":
    main()
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8", newline="")
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(root.glob("*.py"))}


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_rewrite_then_check_then_undo(tmp_path: Path) -> None:
    root = tree(tmp_path, complete=PROGRAM.read_text(), model=MODEL)
    before = contents(root)
    result = run("rewrite", root, "--json", tmp_path / "r.json")
    assert result.exit_code == 0
    assert f"Run it: python {root}/complete.py" in result.output
    found = document(tmp_path / "r.json")
    assert found["summary"] == {
        "files": 2, "changed": 2, "unparsable": 0, "programs": 1, "converted": 1, "refused": 0,
    }  # fmt: skip
    assert [file["path"] for file in found["files"]] == ["complete.py", "model.py"]
    program = found["files"][0]["programs"][0]
    assert (program["style"], program["status"]) == ("loop", "converted")
    assert len(program["stages"]) == 3
    assert set(program["stages"][0]) == {"loss", "optimizer", "var_list"}
    after = contents(root)
    assert b"@variables.tower" in after["complete.py"]
    assert run("rewrite", root, "--check").exit_code == 0
    assert run("rewrite", root).exit_code == 0
    assert contents(root) == after
    assert run("undo", root).exit_code == 0
    assert contents(root) == before


@pytest.mark.parametrize(
    ("options", "code"), [(["scan"], 0), (["rewrite", "--diff"], 0), (["rewrite", "--check"], 1)]
)
def test_looking_writes_nothing(tmp_path: Path, options: list[str], code: int) -> None:
    root = tree(tmp_path, model=MODEL)
    result = run(*options, root)
    assert result.exit_code == code
    assert contents(root) == {"model.py": MODEL.encode()}
    assert not (root / ".towermigrate").exists()


def test_a_diff_can_be_applied(tmp_path: Path) -> None:
    root = tree(
        tmp_path, complete=PROGRAM.read_text(), crlf=MODEL.replace("\n", "\r\n"), short=MODEL[:-1]
    )
    done = subprocess.run(
        [sys.executable, "-m", "towermigrate", "rewrite", "--diff"],
        cwd=root,
        capture_output=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    subprocess.run(["git", "apply", "-"], cwd=root, input=done.stdout, check=True)
    patched = contents(root)
    (root / "again").mkdir()
    other = tree(
        root / "again",
        complete=PROGRAM.read_text(),
        crlf=MODEL.replace("\n", "\r\n"),
        short=MODEL[:-1],
    )
    assert run("rewrite", other).exit_code == 0
    assert contents(other) == patched


def test_a_refused_program_stays_with_what_it_imports(tmp_path: Path) -> None:
    root = tree(tmp_path, train=REFUSED, model=MODEL, other=MODEL)
    result = run("rewrite", root, "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    after = contents(root)
    assert after["train.py"] == REFUSED.encode()
    assert after["model.py"] == MODEL.encode()
    assert b"tf.compat.v1.layers" in after["other.py"]
    files = {file["path"]: file for file in document(tmp_path / "r.json")["files"]}
    assert {path: file["status"] for path, file in files.items()} == {
        "model.py": "unchanged", "other.py": "rewritten", "train.py": "refused",
    }  # fmt: skip
    assert files["train.py"]["programs"][0]["style"] is None
    assert [finding["rule"] for finding in files["train.py"]["findings"]] == ["TM103"]
    assert set(files["train.py"]["findings"][0]) == {
        "rule",
        "severity",
        "line",
        "column",
        "message",
    }


def test_refused_symbols_changes_its_names_all_the_same(tmp_path: Path) -> None:
    root = tree(tmp_path, train=REFUSED, model=MODEL)
    assert run("rewrite", root, "--refused", "symbols").exit_code == 1
    assert b"tf.compat.v1.train.AdamOptimizer" in contents(root)["train.py"]
    assert b"tf.compat.v1.layers" in contents(root)["model.py"]


@pytest.mark.parametrize(
    "raw",
    [
        b"import tensorflow as tf\nprint 'x' = 1\n",
        b"import tensorflow\n# \xff\n",
        b"import tensorflow\0",
    ],
    ids=["no Python", "not UTF-8", "a null byte"],
)
def test_what_cannot_be_read_is_never_written(tmp_path: Path, raw: bytes) -> None:
    root = tree(tmp_path, model=MODEL)
    (root / "bad.py").write_bytes(raw)
    result = run("rewrite", root, "--json", tmp_path / "r.json")
    assert result.exit_code == 3
    assert contents(root)["bad.py"] == raw
    assert b"compat.v1" in contents(root)["model.py"]
    found = document(tmp_path / "r.json")
    assert found["summary"]["unparsable"] == 1
    assert "bad.py" in found["error"]
    assert found["files"][0]["status"] == "unparsable"


def test_out_writes_a_copy(tmp_path: Path) -> None:
    root = tree(tmp_path, model=MODEL, plain="x = 1\n")
    out = tmp_path / "new"
    assert run("rewrite", root, "--out", out).exit_code == 0
    assert contents(root)["model.py"] == MODEL.encode()
    assert b"compat.v1" in contents(out)["model.py"]
    assert contents(out)["plain.py"] == b"x = 1\n"
    (out / "plain.py").write_text("mine")
    assert run("rewrite", root, "--out", out).exit_code == 3
    assert contents(out)["plain.py"] == b"mine"


def test_one_file_of_a_tree(tmp_path: Path) -> None:
    root = tree(tmp_path, model=MODEL, other=MODEL)
    assert run("rewrite", root / "model.py").exit_code == 0
    assert b"compat.v1" in contents(root)["model.py"]
    assert contents(root)["other.py"] == MODEL.encode()


def test_several_trees_in_one_report(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tree(tmp_path / name, model=MODEL)
    run("scan", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "r.json")
    paths = [file["path"] for file in document(tmp_path / "r.json")["files"]]
    assert paths == [(tmp_path / name / "model.py").as_posix() for name in ("a", "b")]


def test_undo_after_an_edit_says_so(tmp_path: Path) -> None:
    root = tree(tmp_path, model=MODEL)
    run("rewrite", root)
    (root / "model.py").write_text("mine")
    result = run("undo", root)
    assert result.exit_code == 3
    assert "model.py" in result.output and "--force" in result.output
    assert contents(root)["model.py"] == b"mine"
    assert run("undo", root, "--force").exit_code == 0
    assert contents(root)["model.py"] == MODEL.encode()


@pytest.mark.parametrize(
    "arguments",
    [
        ["rewrite", "no/such/path"], ["rewrite", "--style", "odd"],
        ["explain", "TM999"], ["verify", "--devices", "cpu:2", "--steps", "0"],
        ["verify", "--devices=abc:1"], ["verify", "--devices", "cpu:0"], ["verify", "--tolerance", "-1"],
        ["verify", "--tolerance", "nan"], ["verify", "--timeout", "0"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_bad_usage_is_exit_code_2_and_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # what is no bad usage any more must not rewrite this repository
    report = [] if arguments[0] == "explain" else ["--json", str(tmp_path / "r.json")]
    assert run(*arguments, *report).exit_code == 2
    assert not (tmp_path / "r.json").exists()


# Loop style has to know how the towers' gradients become one; session style leaves that alone.
STRANGE = PROGRAM.read_text().replace("= average_gradients(", "= strange(")

STYLES = [
    pytest.param(PROGRAM.read_text(), "auto", "loop", id="loop where it fits"),
    pytest.param(PROGRAM.read_text(), "session", "session", id="session where it is wanted"),
    pytest.param(STRANGE, "auto", "session", id="session where loop does not fit"),
    pytest.param(STRANGE, "session", "session", id="session wanted where loop does not fit"),
    pytest.param(STRANGE, "loop", None, id="none where loop is wanted and does not fit"),
]


@pytest.mark.parametrize("told", ["option", "table"])
@pytest.mark.parametrize(("text", "style", "becomes"), STYLES)
def test_the_style_of_a_program(
    tmp_path: Path, text: str, style: str, becomes: str | None, told: str
) -> None:
    root = tree(tmp_path, complete=text)
    if told == "table":
        (root / "pyproject.toml").write_text(f"[tool.towermigrate]\nstyle = '{style}'\n")
    options = ["--style", style] if told == "option" else []
    result = run("rewrite", root, *options, "--json", tmp_path / "r.json")
    assert result.exit_code == (becomes is None)
    (program,) = document(tmp_path / "r.json")["files"][0]["programs"]
    assert program["style"] == becomes
    assert bool(program["not_loop"]) == (becomes != "loop")
    after = (root / "complete.py").read_text()
    assert (after == text) == (becomes is None)
    assert ("tm.tower_strategy(" in after) == (becomes == "loop")
    assert ("in tm.towers(range(num_gpus)):" in after) == (becomes == "session")
    if becomes is not None:
        assert run("undo", root).exit_code == 0
    assert (root / "complete.py").read_text() == text


def test_what_keeps_a_program_from_loop_style_is_no_error(tmp_path: Path) -> None:
    root = tree(tmp_path, complete=STRANGE)
    result = run("rewrite", root, "--json", tmp_path / "r.json")
    (program,) = document(tmp_path / "r.json")["files"][0]["programs"]
    lines = [STRANGE.splitlines()[reason["line"] - 1] for reason in program["not_loop"]]
    assert any("strange(" in line or "apply_gradients(" in line for line in lines)
    assert all(RULES[reason["rule"]].severity == "error" for reason in program["not_loop"])
    assert {finding["severity"] for finding in program["findings"]} == {"info"}
    assert "error" not in result.output


@pytest.mark.parametrize(
    "command", ["", "scan", "rewrite", "verify", "undo", "vendor", "explain", "demo"]
)
def test_help_fits_and_names_every_exit_code_it_has(command: str) -> None:
    output = run(*command.split(), "--help").output
    assert max(map(len, output.splitlines())) <= 80
    assert "..." not in output.replace("[PATH]...", "").replace("[ARGS]...", "")
    if command in ("scan", "rewrite", "verify", "undo", "vendor"):
        assert "Exit code" in output and "3:" in output


REWRITE_KEYS = {"tool", "error", "summary", "files", "left_out"}
SUMMARY_KEYS = {"files", "changed", "unparsable", "programs", "converted", "refused"}
FILE_KEYS = {"path", "status", "programs", "findings"}
PROGRAM_KEYS = {"line", "function", "style", "status", "stages", "findings", "not_loop"}
REASON_KEYS = {"rule", "line", "column", "message"}
FINDING_KEYS = {"rule", "severity", "line", "column", "message"}
VERIFY_KEYS = {
    "equal", "error", "not_compared", "nondeterministic", "levels", "excuses", "reference", "runs", "protection", "kept_out",
}  # fmt: skip

CONTRACT = [
    pytest.param({"complete": PROGRAM.read_text()}, 0, id="a converted program"),
    pytest.param({"train": REFUSED, "model": MODEL}, 1, id="a refused program"),
    pytest.param({"bad": "import tensorflow as tf\nprint 'x' = 1\n"}, 3, id="an unparsable file"),
    pytest.param({"plain": "x = 1\n"}, 0, id="nothing to do"),
    pytest.param({}, 0, id="an empty tree"),
]


@pytest.mark.parametrize("command", ["rewrite", "scan"])
@pytest.mark.parametrize(("files", "code"), CONTRACT)
def test_the_report_of_rewrite_has_all_its_keys(
    tmp_path: Path, command: str, files: dict[str, str], code: int
) -> None:
    (tmp_path / "src").mkdir()
    root = tree(tmp_path / "src", **files)
    assert run(command, root, "--json", tmp_path / "r.json").exit_code == code
    found = document(tmp_path / "r.json")
    assert set(found) == REWRITE_KEYS
    assert set(found["summary"]) == SUMMARY_KEYS
    assert (found["error"] is None) == (code < 3)
    for file in found["files"]:
        assert set(file) == FILE_KEYS
        programs = file["programs"]
        assert all(set(program) == PROGRAM_KEYS for program in programs)
        findings = file["findings"] + [f for program in programs for f in program["findings"]]
        assert all(set(finding) == FINDING_KEYS for finding in findings)
        reasons = [reason for program in programs for reason in program["not_loop"]]
        assert all(set(reason) == REASON_KEYS for reason in reasons)


NOT_VERIFIED = [
    pytest.param({"train": REFUSED, "model": MODEL}, [], "TM252", id="a refused program"),
    pytest.param({"model": MODEL}, [], "no tower program", id="no program"),
    pytest.param({"bad": "import tensorflow\nprint 'x' = 1\n"}, [], "bad.py", id="an unparsable file"),
    pytest.param({}, [], "nothing was compared", id="an empty tree"),
    pytest.param({"complete": PROGRAM.read_text()}, ["--entry", "odd.py"], "odd.py", id="no such entry"),
    pytest.param({"complete": PROGRAM.read_text()}, ["--entry", "/etc/passwd"], "passwd", id="an entry elsewhere"),
    pytest.param({"complete": PROGRAM.read_text()}, ["--devices", "tpu"], "tpu", id="devices that cannot be had"),
    pytest.param({"complete": PROGRAM.read_text()}, ["--tf1-python", "/no/python"], "/no/python", id="no such interpreter"),
    pytest.param({"complete": PROGRAM.read_text()}, ["--timeout", "0.01"], "--timeout", id="no time"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "options", "said"), NOT_VERIFIED)
def test_a_verify_that_compared_nothing_is_an_error_with_all_keys(
    tmp_path: Path, files: dict[str, str], options: list[str], said: str
) -> None:
    pytest.importorskip("tensorflow", reason="needs the extra tf")
    (tmp_path / "src").mkdir()
    root = tree(tmp_path / "src", **files)
    result = run("verify", root, *options, "--json", tmp_path / "v.json")
    assert result.exit_code == 3, result.output
    found = document(tmp_path / "v.json")
    assert set(found) == VERIFY_KEYS
    assert set(found["reference"]) == {"tensorflow", "python", "mode"}
    assert found["equal"] is False and found["runs"] == []
    assert said in found["error"] and said in result.output
    assert result.output.count(found["error"]) == 1


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_is_explained(rule: str) -> None:
    result = run("explain", rule.lower())
    assert result.exit_code == 0
    for part in (RULES[rule].title, RULES[rule].why, RULES[rule].advice):
        assert part and part in result.output
    assert rule in run("explain").output


VERIFY = [
    pytest.param([], (best_devices(),), ["."], (), id="nothing"),
    pytest.param(["--devices"], (best_devices(),), ["."], (), id="bare --devices"),
    pytest.param(["--devices", "{tree}"], (best_devices(),), ["{tree}"], (), id="--devices and a path"),
    pytest.param(["--devices", "cpu:4", "{tree}"], ("cpu:4",), ["{tree}"], (), id="a spec and a path"),
    pytest.param(["{tree}", "--devices", "--steps", "3"], (best_devices(),), ["{tree}"], (), id="an option after it"),
    pytest.param(["--devices", "gpu:0,1", "--devices", "cpu:2", "--", "--num_gpus=2", "x"], ("gpu:0,1", "cpu:2"), ["."], ("--num_gpus=2", "x"), id="arguments for the program"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "devices", "paths", "program"), VERIFY)
def test_verify_understands_its_arguments(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    devices: tuple[str, ...],
    paths: list[str],
    program: tuple[str, ...],
) -> None:
    verify = pytest.importorskip("towermigrate.verify", reason="needs the extra tf")
    asked: list[Any] = []

    def run_verify(options: Any) -> Any:
        asked.append(options)
        return verify.VerifyReport(equal=True)

    monkeypatch.setattr(verify, "run_verify", run_verify)
    result = run("verify", *(argument.format(tree=tmp_path) for argument in arguments))
    assert result.exit_code == 0, result.output
    assert asked[0].devices == devices
    assert asked[0].path == Path(paths[0].format(tree=tmp_path))
    assert asked[0].arguments == program


def test_verify_passes_its_limits_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = pytest.importorskip("towermigrate.verify", reason="needs the extra tf")
    asked: list[Any] = []

    def run_verify(options: Any) -> Any:
        asked.append((options.tolerance, options.timeout_s, options.steps))
        return verify.VerifyReport(equal=True)

    monkeypatch.setattr(verify, "run_verify", run_verify)
    assert run("verify", tmp_path).exit_code == 0
    assert (
        run("verify", tmp_path, "--tolerance", "0", "--timeout", "5", "--steps", "9").exit_code == 0
    )
    assert asked == [(None, 600.0, 5), (0.0, 5.0, 9)]


@pytest.mark.parametrize("spec", ["cpu:4", "gpu:0,1", "gpu:4", "tpu", "tpu:NAME", "xla:8", "tpu-compile:v5e", "workers:2"])  # fmt: skip
def test_device_specs(spec: str) -> None:
    assert _DEVICES.fullmatch(spec)


def test_verify_on_a_tree_without_programs_is_an_error_with_a_report(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="needs the extra tf")
    (tmp_path / "src").mkdir()
    tree(tmp_path / "src", model=MODEL)
    result = run("verify", tmp_path / "src", "--json", tmp_path / "v.json")
    assert result.exit_code == 3
    found = document(tmp_path / "v.json")
    assert set(found) == VERIFY_KEYS
    assert found["equal"] is False and found["error"]


def test_scan_and_rewrite_import_no_tensorflow(tmp_path: Path) -> None:
    root = tree(tmp_path, complete=PROGRAM.read_text())
    code = (
        "import sys, towermigrate.migrate as m, pathlib; m.plan(pathlib.Path(sys.argv[1])); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(root)], check=True, env=ENVIRONMENT)


def test_the_demo_program_is_the_fixture() -> None:
    fixture = REPOSITORY / "fixtures/staged_gan/before/complete.py"
    assert PROGRAM.read_bytes() == fixture.read_bytes()


@pytest.mark.full
def test_demo() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "towermigrate", "demo"],
        cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal" in done.stdout


@pytest.mark.parametrize("command", ["scan", "verify", "undo"])
def test_a_signal_at_the_very_start_has_its_own_exit_code(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click.Group.invoke", lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(command, tmp_path).exit_code == 130
    finally:
        signal.signal(signal.SIGINT, before)
