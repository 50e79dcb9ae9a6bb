"""What a run is told: `[tool.towermigrate]`, the options that win over it, and what they leave out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towermigrate.cli import main
from towermigrate.config import Config, ConfigError, excluded, is_shown, read_config, rule_prefixes
from towermigrate.findings import Finding
from towermigrate.git import uncommitted

FIXTURES = Path(__file__).parent.parent / "fixtures"
OLD = "import tensorflow as tf\ntf.placeholder(tf.float32)\n"
STAR = "from tensorflow.nn import *\n"  # TM113
REFUSED = """\
import tensorflow as tf

def main():
    opt = tf.train.AdamOptimizer(0.1)
    tower_grads = []
    for i in range(2):
        with tf.device('/gpu:%d' % i), tf.variable_scope('tower_%d' % i):
            tower_grads.append(opt.compute_gradients(loss(i)))
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return root


def config(root: Path, text: str) -> Path:
    return write(root, {"pyproject.toml": f"[tool.towermigrate]\n{text}\n"})


def document(*arguments: str | Path, folder: Path) -> Any:
    run(*arguments, "--json", folder / "r.json")
    return json.loads((folder / "r.json").read_text(encoding="utf-8"))


SETTINGS = [
    pytest.param("", Config(), id="an empty table"),
    pytest.param("exclude = ['gen']\nrefused = 'symbols'", Config(exclude=("gen",), refused="symbols"), id="globs and a choice"),
    pytest.param("ignore = ['tm114']\nselect = ['TM1', 'TM301']", Config(ignore=("TM114",), select=("TM1", "TM301")), id="rules in any case"),
    pytest.param("style = 'loop'\npy2 = 'never'\ngitignore = false", Config(style="loop", py2="never", gitignore=False), id="the other keys"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SETTINGS)
def test_a_table_is_read(tmp_path: Path, text: str, expected: Config) -> None:
    assert read_config(config(tmp_path, text)) == (expected, tmp_path.resolve())


FAULTS = [
    pytest.param("exclud = ['a']", "exclud; there is no such key; known are exclude, select", id="an unknown key"),
    pytest.param("exclude = 'a'", "exclude = 'a': must be a list of texts", id="a text for a list"),
    pytest.param("ignore = [114]", "ignore = [114]: must be a list of texts", id="a number for a rule"),
    pytest.param("refused = 'drop'", "refused = 'drop': must be one of keep, symbols", id="an unknown choice"),
    pytest.param("select = ['TM9']", "select: no rule begins with TM9", id="a rule that is not there"),
    pytest.param("ignore = ['TM203']", "TM203 is a refusal: refusals cannot be ignored", id="an ignored refusal"),
    pytest.param("style = 'eager'", "style = 'eager': must be one of auto, loop, session", id="a style that is not there"),
    pytest.param("style = ", "pyproject.toml: cannot be read", id="no TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_a_fault_is_bad_usage_that_says_where_and_what(
    tmp_path: Path, text: str, said: str
) -> None:
    root = config(write(tmp_path, {"m.py": OLD}), text)
    with pytest.raises(ConfigError) as error:
        read_config(root)
    assert said.split("; ")[0] in str(error.value) and said.split("; ")[-1] in str(error.value)
    assert str(root / "pyproject.toml") in str(error.value)
    assert run("rewrite", root).exit_code == 2
    assert (root / "m.py").read_text() == OLD


def test_the_settings_of_the_readme_are_read(tmp_path: Path) -> None:
    readme = (FIXTURES.parent / "README.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    found, _ = read_config(write(tmp_path, {"pyproject.toml": text}))
    assert found == Config(exclude=("third_party", "src/old/*_test.py"), ignore=("TM114",))


def test_the_nearest_table_counts_and_the_search_ends_with_the_repository(tmp_path: Path) -> None:
    config(tmp_path, "py2 = 'never'")
    inner = write(tmp_path / "a", {"pyproject.toml": "[tool.other]\nx = 1\n", "b/m.py": OLD})
    assert read_config(inner / "b")[0].py2 == "never"
    assert read_config(inner / "b/m.py")[1] == tmp_path.resolve()
    config(inner / "b", "")
    assert read_config(inner / "b/m.py")[0].py2 == "auto"
    (tmp_path / "c/.git").mkdir(parents=True)
    assert read_config(tmp_path / "c")[0].py2 == "auto"


def test_a_broken_file_of_others_is_not_ours_to_report(tmp_path: Path) -> None:
    root = write(tmp_path, {"pyproject.toml": "[tool.other\n"})
    assert read_config(root)[0] == Config()


WINS = [
    pytest.param("refused = 'symbols'", [], True, id="the file says symbols"),
    pytest.param("refused = 'symbols'", ["--refused", "keep"], False, id="the command line says keep"),
    pytest.param("", ["--refused", "symbols"], True, id="the command line says symbols"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "changed"), WINS)
def test_the_command_line_wins(
    tmp_path: Path, text: str, options: list[str], changed: bool
) -> None:
    root = config(write(tmp_path, {"train.py": REFUSED}), text)
    run("rewrite", root, *options)
    assert ("compat.v1" in (root / "train.py").read_text()) == changed


SHOWN = [
    pytest.param("TM114", [], [], True, id="nothing said: shown"),
    pytest.param("TM114", ["TM3"], [], False, id="another group selected"),
    pytest.param("TM114", ["TM1"], [], True, id="its group selected"),
    pytest.param("TM114", [], ["TM114"], False, id="ignored"),
    pytest.param("TM114", [], ["TM"], False, id="everything ignored"),
    pytest.param("TM114", ["TM114"], ["TM1"], True, id="selected more closely than ignored"),
    pytest.param("TM114", ["TM1"], ["TM114"], False, id="ignored more closely than selected"),
    pytest.param("TM114", ["TM1"], ["TM1"], False, id="equally closely: ignored"),
    pytest.param("TM203", ["TM1"], ["TM2"], True, id="a refusal: always shown"),
]


@pytest.mark.parametrize(("rule", "select", "ignore", "shown"), SHOWN)
def test_which_findings_are_shown(
    rule: str, select: list[str], ignore: list[str], shown: bool
) -> None:
    assert is_shown(Finding(rule, "m.py", 1, 0, ""), select, ignore) == shown


def test_rules_may_be_given_in_one_text() -> None:
    assert rule_prefixes(["TM1, tm301", "TM4"], "--select", ignored=False) == (
        "TM1",
        "TM301",
        "TM4",
    )


@pytest.mark.parametrize(
    "options", [["--ignore", "TM113"], ["--ignore", "TM"], ["--select", "TM3"]], ids=" ".join
)
def test_what_is_ignored_is_in_no_report_and_a_refusal_stays_one(
    tmp_path: Path, options: list[str]
) -> None:
    root = write(tmp_path / "src", {"star.py": STAR, "train.py": REFUSED})
    reports = ("--sarif", tmp_path / "r.sarif", "--html", tmp_path / "r.html")
    result = run("scan", root, *options, *reports, "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    assert "TM113" not in result.output and "error TM" in result.output
    found = json.loads((tmp_path / "r.json").read_text())
    files = {file["path"]: file for file in found["files"]}
    assert files["train.py"]["status"] == "refused"
    assert files["train.py"]["programs"][0]["findings"][0]["severity"] == "error"
    for report in ("r.json", "r.sarif", "r.html"):
        assert "TM113" not in (tmp_path / report).read_text()
    run("scan", root, "--json", tmp_path / "r.json")
    assert "TM113" in (tmp_path / "r.json").read_text()


@pytest.mark.parametrize("options", [["--ignore", "TM203"], ["--select", "nonsense"]], ids=" ".join)
def test_rules_that_cannot_be_meant_are_bad_usage(tmp_path: Path, options: list[str]) -> None:
    result = run("scan", write(tmp_path, {"m.py": OLD}), *options)
    assert result.exit_code == 2 and options[0] in result.output


GLOBS = [
    pytest.param(["gen"], ["gen/a.py", "x/gen/a.py"], ["a.py", "generated/a.py"], id="a name at any depth"),
    pytest.param(["/gen", "x/y"], ["gen/a.py", "x/y/a.py"], ["x/gen/a.py", "z/x/y/a.py"], id="a path from the tree"),
    pytest.param(["*_pb2.py"], ["a_pb2.py", "x/a_pb2.py"], ["a_pb2.py.py"], id="a star"),
    pytest.param(["x/**/t.py"], ["x/t.py", "x/y/z/t.py"], ["t.py"], id="two stars cross folders"),
]  # fmt: skip


@pytest.mark.parametrize(("globs", "fit", "rest"), GLOBS)
def test_globs(tmp_path: Path, globs: list[str], fit: list[str], rest: list[str]) -> None:
    match = excluded(tmp_path, Config(), tmp_path, globs)
    assert [path for path in (*fit, *rest) if match(path)] == fit


def test_globs_of_the_file_start_at_its_folder_and_those_given_at_the_tree(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    config_globs = Config(exclude=("src/gen",))
    assert excluded(tmp_path / "src", config_globs, tmp_path, ())("gen/a.py")
    assert not excluded(tmp_path / "src", config_globs, tmp_path, ("old",))("gen/a.py")
    assert excluded(tmp_path / "src", Config(), tmp_path, ("gen/a.py",))("gen/a.py")


@pytest.mark.parametrize("told", ["option", "table"])
def test_an_excluded_file_is_neither_changed_nor_reported_nor_a_fault(
    tmp_path: Path, told: str
) -> None:
    files = {"m.py": OLD, "gen/m.py": OLD, "gen/two.py": "import tensorflow\nprint 'x'\n"}
    root = write(tmp_path / "src", files)
    options = ["--exclude", "gen"] if told == "option" else []
    if told == "table":
        config(root, "exclude = ['gen']")
    found = document("rewrite", root, *options, folder=tmp_path)
    assert found["error"] is None
    assert [file["path"] for file in found["files"]] == ["m.py"]
    assert "compat.v1" in (root / "m.py").read_text()
    assert (root / "gen/m.py").read_text() == OLD


def test_an_excluded_file_stays_even_when_it_is_named(tmp_path: Path) -> None:
    root = config(write(tmp_path / "src", {"gen/m.py": OLD}), "exclude = ['gen']")
    found = document("rewrite", root / "gen/m.py", folder=tmp_path)
    assert [finding["rule"] for finding in found["files"][0]["findings"]] == ["TM106"]
    assert (root / "gen/m.py").read_text() == OLD


def test_a_program_that_needs_a_change_in_an_excluded_file_is_not_in_loop_style(
    tmp_path: Path,
) -> None:
    root = tmp_path / "src"
    shutil.copytree(FIXTURES / "cifar_queue/before", root)
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    excluded = ("--exclude", "textures.py")
    found = document("rewrite", root, *excluded, "--style", "loop", folder=tmp_path)
    (program,) = next(f for f in found["files"] if f["path"] == "textures_train.py")["programs"]
    assert program["status"] == "refused"
    assert [f["rule"] for f in program["findings"] if f["severity"] == "error"] == ["TM107"]
    assert "textures.py" in program["findings"][-1]["message"]
    assert before == {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}

    found = document("scan", root, *excluded, folder=tmp_path)
    file = next(f for f in found["files"] if f["path"] == "textures_train.py")
    (program,) = file["programs"]
    assert program["style"] == "session"
    assert "TM107" in [reason["rule"] for reason in program["not_loop"]]
    assert "TM109" in [finding["rule"] for finding in file["findings"]]  # its names stay, too
    found = document("scan", root, folder=tmp_path)
    assert found["summary"]["converted"] == 1


def git(root: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=root, check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = write(tmp_path / "src", {"m.py": OLD})
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "all")
    return root


WARNING = "git does not hold"


def test_rewriting_uncommitted_work_in_place_says_so_once(repository: Path) -> None:
    write(repository, {"n.py": OLD, "m.py": OLD + "# mine\n"})
    for looking in (["scan"], ["rewrite", "--diff"], ["rewrite", "--check"],
                    ["rewrite", "--out", repository.parent / "out"]):  # fmt: skip
        assert WARNING not in run(*looking, repository).stderr
    result = run("rewrite", repository)
    assert [line for line in result.stderr.splitlines() if WARNING in line] == [
        f"towermigrate: {repository}: git does not hold 2 changed or new file(s); the originals are kept "
        "in .towermigrate"
    ]


def test_rewriting_committed_work_or_nothing_says_nothing(repository: Path, tmp_path: Path) -> None:
    assert WARNING not in run("rewrite", repository).stderr
    write(repository, {"other.txt": ""})
    assert WARNING not in run("rewrite", repository).stderr  # there is nothing left to change


def test_no_repository_no_git_and_no_answer_are_no_changes(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository, {"n.py": OLD})
    assert uncommitted(repository) == 1
    assert uncommitted(repository, timeout_s=1e-6) == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    assert uncommitted(repository) == 0
    monkeypatch.undo()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "plain").mkdir()
    assert uncommitted(tmp_path / "plain") == 0


def test_a_monitor_that_the_repository_names_is_not_run(repository: Path, tmp_path: Path) -> None:
    monitor = tmp_path / "monitor.sh"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monitor.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(monitor))
    uncommitted(repository)
    assert not (tmp_path / "ran").exists()
