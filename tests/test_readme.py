"""Every command of the README runs: in `.ci/run`, or here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
SHELL = [line for block in BLOCKS for line in block.splitlines() if line]
TABLE = re.findall(r"^\| `(towermigrate .*?)` \|", README, re.MULTILINE)
# Command of the README -> what `.ci/run` has in its place: its environment lies elsewhere.
BY_CI = {
    "python -m venv .venv && . .venv/bin/activate": '"$python" -m venv "$environment"',
    "pip install -e '.[tf,test]'": "pip\" install --quiet --disable-pip-version-check -e '.[tf,test]'",
    "towermigrate demo": "\ntowermigrate demo\n",
    "pytest": "\npytest ",
}


@pytest.mark.parametrize("command", SHELL)
def test_ci_runs_the_commands_of_the_set_up(command: str) -> None:
    assert BY_CI[command] in (REPOSITORY / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [c for c in TABLE if " verify " not in c])
def test_the_commands_of_the_table_run(command: str, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "towermigrate/demo_program", tmp_path / "src")
    if " undo " in command:
        _run("towermigrate rewrite src/", tmp_path)
    _run(command, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("command", [c for c in TABLE if " verify " in c])
def test_verify_of_the_table_runs(command: str, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "towermigrate/demo_program", tmp_path / "src")
    _run(command, tmp_path)


def _run(command: str, folder: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "towermigrate"
    done = subprocess.run(
        [sys.executable, "-m", "towermigrate", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_has_every_command() -> None:
    from towermigrate.cli import main

    assert {shlex.split(c)[1] for c in [*TABLE, *SHELL] if c.startswith("towermigrate")} == set(
        main.commands
    )
