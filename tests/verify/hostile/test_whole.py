"""Hostile programs that train, through the command: in the original's place, and in the rewritten one's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.hostile.test_programs import User
from towermigrate.verify import fence

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not fence.fence_version(), reason="this kernel has no Landlock"),
]
ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "verify" / "fixtures"
MAIN = 'if __name__ == "__main__":\n'
START = (
    "import os, shutil, signal, subprocess, sys, time\nimport tensorflow.compat.v1 as t\n"
    "HOME, TMP, TREE = sys.argv[1:4]\n"
)
SAVING = (
    "with t.Graph().as_default() as graph:\n    v = t.get_variable('v', [1])\n"
    "    with t.Session(graph=graph) as s:\n        s.run(v.initializer)\n        t.train.Saver([v]).save(s, {0})\n"
)
KEPT_OUT = r"was kept from changing .*users/home.*--allow-write"

# Before training: the program, the exit code, and what is said.
PROGRAMS: dict[str, tuple[str, int, str]] = {
    "clears_by_gfile": ("t.gfile.DeleteRecursively(HOME)", 3, KEPT_OUT),
    "writes_by_gfile": ("with t.gfile.GFile(HOME + '/mine', 'w') as f: f.write('x')", 3, KEPT_OUT),
    "renames_by_gfile": ("t.gfile.Rename(HOME + '/kept.txt', 'mine')", 3, KEPT_OUT),
    "saves_there": (SAVING.format("HOME + '/model'"), 3, KEPT_OUT),
    "writes_events_there": (
        "with t.Graph().as_default() as g: t.summary.FileWriter(HOME + '/logs', g).close()", 3, KEPT_OUT,
    ),
    "never_trains": ("raise SystemExit(0)", 3, "ended without one training run that could be recorded"),
    "exits": ("sys.exit(5)", 3, "left with exit code 5"),
    "dies": ("os.kill(os.getpid(), signal.SIGSEGV)", 3, "died of signal 11, SIGSEGV"),
    "leaves_at_once": ("os._exit(0)", 3, "ended without a recording"),
    "is_hostile_and_trains": (
        "shutil.rmtree(HOME, ignore_errors=True)\nos.system('rm -rf \"%s\"' % TMP)\n"
        "os.system('setsid sleep 100 >/dev/null 2>&1 &')\nif not os.fork(): time.sleep(100)\n"
        "os.environ['HOME'] = TMP; os.chdir('/'); shutil.rmtree(os.path.dirname(os.path.abspath(__file__)))",
        1,  # only one of the two takes away its own text, in its scratch copy
        "in the folders, train.py .*: the rewritten program trains as the original does, but prints, writes or returns",
    ),
}  # fmt: skip


def with_line(text: str, program: str) -> str:
    assert text.count(MAIN) == 1
    lines = "".join(f"    {line}\n" for line in (START + program).splitlines())
    return text.replace(MAIN, MAIN + lines)


@pytest.mark.parametrize("role", ["original", "rewritten"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_that_trains(name: str, role: str, tmp_path: Path) -> None:
    program, code, said = PROGRAMS[name]
    if (name, role) == ("never_trains", "rewritten"):  # that it can be run is not in doubt
        code, said = (
            1,
            "0 of 1 updates of first_train.*different: the rewritten program does not train",
        )
    user = User(tmp_path, f"TOWERMIGRATE_TEST_{os.getpid()}_{name}_{role}")
    texts = {
        part: (FIXTURES / part / "shared_adam.py").read_text(encoding="utf-8")
        for part in ("before", "after")
    }
    changed = "before" if role == "original" else "after"
    texts[changed] = with_line(texts[changed], program)
    rewritten = tmp_path / "users" / "rewritten"
    rewritten.mkdir()
    (user.tree / "train.py").write_text(texts["before"], encoding="utf-8")
    (rewritten / "train.py").write_text(texts["after"], encoding="utf-8")
    before = user.looks()

    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "towermigrate", "verify", str(user.tree), "--steps", "1"]
    command += ["--rewritten", str(rewritten), "--json", str(report), "--devices", "cpu:2", "--"]
    command += map(str, user.places)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(user.home), "TMPDIR": str(user.scratch),
        "TOWERMIGRATE_TEST": user.mark, "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        stdin=subprocess.DEVNULL,
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert re.search(said, output.replace("\n", " ")), output
    assert "fault of towermigrate" not in output
    assert user.looks() == before
    assert not user.processes()
    assert [path.name for path in user.scratch.iterdir()] == ["original"]
    document = json.loads(report.read_text())
    assert (document["error"] is None) == (code != 3)
    assert "Landlock" in document["protection"]
    if name == "is_hostile_and_trains":
        assert str(user.home) in document["kept_out"]
