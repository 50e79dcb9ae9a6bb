"""Whatever happens while files are written: each holds its old bytes or its new ones, and nothing is lost.

Runs are broken off in child processes, at every operation on a file and at random moments. An audit hook of the
child kills it, fails the operation, or edits a file behind its back; the files, kills and locks are real.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towermigrate import keeping
from towermigrate.cli import main
from towermigrate.keeping import save, undo, write_copy
from towermigrate.migrate import plan
from towermigrate.project import ProjectError
from towermigrate.vendor import vendor_helpers

REPOSITORY = Path(__file__).parent.parent
MODEL = "import tensorflow as tf\n\n\ndef f{0}(x):\n    return tf.layers.dense(x, {0})  # one\n"
UNPRIVILEGED = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    if os.geteuid() == 0
    else []
)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(part) for part in arguments], catch_exceptions=False)


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory where there is one: a kill does not ask what the disk has, only what the system has."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def contents(root: Path, *, state: bool = False) -> dict[str, bytes]:
    """The files of a tree; with `state` also those that towermigrate keeps."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and (state or ".towermigrate" not in path.parts)
    }


# --- scenarios -------------------------------------------------------------------------------------------------

FIRST = {"a.py": b"a: the user's", "p/b.py": b"b: the user's", "p/q/c.py": b"c: the user's"}
REWRITTEN = {path: b"rewritten " + raw for path, raw in FIRST.items()}
EDITS = {"a.py": b"a: edited by the user", "p/b.py": b"b: edited by the user"}
EDITED = {**REWRITTEN, **EDITS}
AGAIN = {path: b"again " + raw for path, raw in EDITED.items()}


def put(root: Path, files: dict[str, bytes]) -> None:
    for path, raw in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)


def fresh(root: Path) -> None:
    put(root, FIRST)


def rewritten(root: Path) -> None:
    put(root, FIRST)
    save(root, REWRITTEN, FIRST)


def edited(root: Path) -> None:
    rewritten(root)
    put(root, EDITED)


@dataclass(frozen=True)
class Scenario:
    """How a tree was made, what is done to it, and what of the user's must survive it."""

    prepare: Callable[[Path], None]
    act: Callable[[Path], object]
    kept: tuple[dict[str, bytes], ...]
    after_undo: dict[str, bytes] | None = None
    """What `undo` gives, whenever the run was broken off; None where that depends on how far it came."""


def copy_out(root: Path) -> None:
    put(root / "src", {path: b"import tensorflow\n" + raw for path, raw in FIRST.items()})


def vendored(root: Path) -> None:
    put(root, FIRST)
    (root / "a.py").write_text("import towermigrate.helpers as tm\n")


SCENARIOS = [
    pytest.param(Scenario(fresh, lambda root: save(root, REWRITTEN, FIRST), (FIRST,), FIRST), id="a first rewrite"),
    pytest.param(Scenario(rewritten, lambda root: save(root, AGAIN, REWRITTEN), (FIRST,), FIRST), id="a second rewrite"),
    pytest.param(Scenario(edited, lambda root: save(root, AGAIN, EDITED), (FIRST, EDITS)), id="a rewrite after edits"),
    pytest.param(Scenario(rewritten, undo, (FIRST,), FIRST), id="an undo"),
    pytest.param(Scenario(edited, lambda root: undo(root, force=True), (FIRST, EDITS)), id="an undo that overwrites edits"),
]  # fmt: skip
COPIES = [
    pytest.param(Scenario(copy_out, lambda root: write_copy(root / "src", root / "new", {"a.py": b"new a", "p/b.py": b"new b"}), ()), id="a copy elsewhere"),
    pytest.param(Scenario(vendored, lambda root: vendor_helpers(root).write(), ()), id="a copy of the helpers", marks=pytest.mark.full),
]  # fmt: skip


# --- breaking off ----------------------------------------------------------------------------------------------

_OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link")


def broken(
    act: Callable[[Path], object], root: Path, at: int, what: Callable[[int, str], None]
) -> tuple[int, int]:
    """Do something to a tree in a child in which `what` happens before file operation number `at` and all later ones.

    Returns the child's exit status (255: an error that was not foreseen) and the number of its operations.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 255
        try:
            count = 0

            def hook(event: str, arguments: tuple[object, ...]) -> None:
                nonlocal count
                if event in _OPERATIONS and count >= 0:
                    count += 1
                    if count > at:
                        here, count = count, -1  # what happens now is not counted
                        try:
                            what(here, event)
                        finally:
                            count = here

            sys.addaudithook(hook)
            try:
                act(root)
                status = 0
            except (ProjectError, OSError):
                status = 3
            here, count = count, -1
            os.write(write, str(here).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(said or b"0")


def kill(number: int, operation: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def disk_full(number: int, operation: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def operations(scenario: Scenario, root: Path) -> int:
    """How many file operations a run makes that nothing happens to; what it gives is left in `root`."""
    scenario.prepare(root)
    status, count = broken(scenario.act, root, sys.maxsize, kill)
    assert status == 0
    return count


def each_break(
    scenario: Scenario, top: Path, what: Callable[[int, str], None], expected: int
) -> Iterator[tuple[Path, dict[str, bytes], dict[str, bytes]]]:
    """A tree for each operation that was broken off, with its files before and as a whole run would leave them."""
    whole = top / "whole"
    count = operations(scenario, whole)
    assert count > 10
    for at in range(count):
        root = top / "broken"
        scenario.prepare(root)
        before = contents(root)
        status, _ = broken(scenario.act, root, at, what)
        assert status in (expected, 0) and (status or at > 0), f"operation {at}"
        yield root, before, contents(whole)
        shutil.rmtree(root)


def check(root: Path, scenario: Scenario, old: dict[str, bytes], new: dict[str, bytes]) -> None:
    now = contents(root)
    assert now.keys() == new.keys(), "a file too many or too few"
    for path, raw in now.items():
        assert raw in (old[path], new[path]), path
    there = set(contents(root, state=True).values())
    for files in scenario.kept:
        assert there >= set(files.values())


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    ("what", "status"),
    [pytest.param(kill, -signal.SIGKILL, id="killed"), pytest.param(disk_full, 3, id="disk full")],
)
def test_broken_off_at_every_operation(
    quick: Path, scenario: Scenario, what: Callable[[int, str], None], status: int
) -> None:
    for root, old, new in each_break(scenario, quick, what, status):
        check(root, scenario, old, new)
        again = quick / "again"
        shutil.copytree(root, again)
        if scenario.after_undo is not None:
            undo(root)
            assert contents(root, state=True) == scenario.after_undo
        else:
            undo(root)
            undo(root, force=True)
            there = set(contents(root, state=True).values())
            assert all(there >= set(files.values()) for files in scenario.kept)
        # A second run does the rest of what was broken off.
        now = contents(again)
        if scenario.act is undo:
            undo(again)
        else:
            save(again, new, now)
        assert contents(again) == new
        shutil.rmtree(again)


@pytest.mark.parametrize("scenario", COPIES)
def test_a_copy_broken_off_at_every_operation_can_be_made_again(
    quick: Path, scenario: Scenario
) -> None:
    for root, old, new in each_break(scenario, quick, kill, -signal.SIGKILL):
        now = contents(root)
        assert now.keys() <= new.keys()
        for path, raw in now.items():
            # A copy is first as it was, then rewritten.
            source = old.get(f"src/{path.removeprefix('new/')}")
            assert raw in (old.get(path), new[path], source), path
        scenario.act(root)
        assert contents(root) == new
        assert not list(root.rglob("*.tmp"))


def test_an_edit_at_any_moment_of_a_rewrite_is_not_lost(quick: Path) -> None:
    scenario = Scenario(fresh, lambda root: save(root, REWRITTEN, FIRST), (FIRST,))
    mine = b"b: what an editor saved meanwhile"
    moments = 0
    for at in range(operations(scenario, quick / "whole")):
        root, made = quick / f"edited-{at}", quick / f"made-{at}"
        fresh(root)

        def edit(
            number: int, operation: str, root: Path = root, made: Path = made, at: int = at
        ) -> None:
            # From the last look at a file to its rename is nothing but the rename: that moment is left.
            if number == at + 1 and operation != "os.rename":
                (root / "p/b.py").write_bytes(mine)
                made.touch()

        broken(scenario.act, root, at, edit)
        if made.exists():
            moments += 1
            assert (root / "p/b.py").read_bytes() == mine
            undo(root)
            assert (root / "p/b.py").read_bytes() == mine
    assert moments > 30


# --- random moments --------------------------------------------------------------------------------------------


def models(root: Path, count: int) -> dict[str, bytes]:
    put(root, {f"p{n % 5}/m{n}.py": MODEL.format(n + 1).encode() for n in range(count)})
    return contents(root)


def killed_after(seconds: float, act: Callable[[], object]) -> float:
    """Do something in a child and kill it after a while; the time that it ran."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return time.perf_counter() - begin
        time.sleep(0.0002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return seconds


def kill_at_random(root: Path, moments: int, seed: int) -> tuple[int, int]:
    """Kill rewrites and undos of a tree of 30 files, in turn.

    Returns how many were broken off before they had ended, and how many of these between two files.
    """
    draw = random.Random(seed)
    old = models(root, 30)
    migration = plan(root)
    new = {**old, **migration.changes}
    assert len(migration.changes) == 30
    took = killed_after(60, migration.apply)
    undo(root)
    killed = between = 0
    for moment in range(moments):
        if moment % 2:
            migration.apply()
        act: Callable[[], object] = (lambda: undo(root)) if moment % 2 else migration.apply
        seconds = draw.uniform(0, took)
        killed += killed_after(seconds, act) == seconds
        now = contents(root)
        assert now.keys() == old.keys()
        assert all(raw in (old[path], new[path]) for path, raw in now.items())
        between += now not in (old, new)
        if moment % 4 < 2:  # a second run from here on
            plan(root).apply()
            assert contents(root) == new
        undo(root)
        assert contents(root, state=True) == old
    return killed, between


def test_a_kill_at_random_moments_loses_nothing(quick: Path) -> None:
    killed, _ = kill_at_random(quick, 30, seed=1)
    assert killed > 10


@pytest.mark.full
def test_a_kill_at_200_random_moments_loses_nothing(tmp_path: Path) -> None:
    killed, between = kill_at_random(tmp_path, 200, seed=2)
    print(f"{killed} of 200 runs were broken off, {between} of them between two files")
    assert killed > 100 and between > 0


@pytest.mark.full
def test_a_kill_of_the_command_loses_nothing(tmp_path: Path) -> None:
    """The same from outside: the process that a user starts, over its whole run."""
    old = models(tmp_path, 30)
    command = [sys.executable, "-m", "towermigrate", "rewrite", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    begin = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    took = time.perf_counter() - begin
    new = contents(tmp_path)
    undo(tmp_path)
    draw = random.Random(3)
    for _ in range(20):
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            time.sleep(draw.uniform(took / 3, took))
            process.kill()
        assert all(raw in (old[path], new[path]) for path, raw in contents(tmp_path).items())
        assert run("undo", tmp_path).exit_code == 0
        assert contents(tmp_path, state=True) == old


# --- what stands in the way --------------------------------------------------------------------------------------


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without the superuser's rights."""
    return subprocess.run(
        [*UNPRIVILEGED, sys.executable, "-m", "towermigrate", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


unprivileged = pytest.mark.skipif(
    bool(UNPRIVILEGED) and shutil.which("setpriv") is None,
    reason="run by the superuser, who may write anywhere, and without setpriv",
)


def read_only_file(root: Path) -> Path:
    (root / "p1/m1.py").chmod(0o444)
    return root / "p1/m1.py"


def read_only_folder(root: Path) -> Path:
    (root / "p1").chmod(0o555)
    return root / "p1/m1.py"


def read_only_tree(root: Path) -> Path:
    root.chmod(0o555)
    return root


@unprivileged
@pytest.mark.parametrize("lock", [read_only_file, read_only_folder, read_only_tree])
def test_what_is_read_only_stops_a_rewrite_before_anything_is_written(
    tmp_path: Path, lock: Callable[[Path], Path]
) -> None:
    root = tmp_path / "tree"
    old = models(root, 6)
    named = lock(root)
    modes = {path: path.stat().st_mode for path in root.rglob("*")}
    result = command("rewrite", root, "--json", tmp_path / "r.json")
    root.chmod(0o755)
    assert result.returncode == 3
    error = json.loads((tmp_path / "r.json").read_text())["error"]
    assert str(named) in error and "Traceback" not in result.stderr
    assert contents(root, state=True) == old
    assert {path: path.stat().st_mode for path in root.rglob("*")} == modes


@unprivileged
@pytest.mark.parametrize("lock", [read_only_file, read_only_folder])
def test_what_is_read_only_stops_an_undo_before_anything_is_written(
    tmp_path: Path, lock: Callable[[Path], Path]
) -> None:
    old = models(tmp_path, 6)
    assert run("rewrite", tmp_path).exit_code == 0
    new = contents(tmp_path)
    named = lock(tmp_path)
    result = command("undo", tmp_path)
    assert result.returncode == 3 and str(named) in result.stderr
    assert contents(tmp_path) == new
    (tmp_path / "p1").chmod(0o755)
    named.chmod(0o644)
    assert run("undo", tmp_path).exit_code == 0
    assert contents(tmp_path, state=True) == old


FULL_DISK = """\
mount -t tmpfs -o size=256k tmpfs "$1" || exit 77
cp "$0"/*.py "$1"
"$2" -m towermigrate rewrite "$1" --json "$0/r.json"; echo $? > "$0/code"
cp "$1"/*.py "$0/after"
"$2" -m towermigrate undo "$1"
cp "$1"/*.py "$0/undone"
ls -A "$1" > "$0/left"
"""


def test_a_disk_that_fills_up_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    """On a real file system of 256 kB, which holds the tree and not its rewritten form beside it."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to mount a small file system")
    for folder in ("tree", "tree/after", "tree/undone", "disk"):
        (tmp_path / folder).mkdir()
    long = "".join(f"    x = tf.layers.dense(x, {n})\n" for n in range(1500))
    put(tmp_path / "tree", {f"m{n}.py": (MODEL.format(n) + long).encode() for n in range(3)})
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", FULL_DISK, tmp_path / "tree", tmp_path / "disk", sys.executable],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    tree = tmp_path / "tree"
    assert (tree / "code").read_text().strip() == "3", done.stdout
    assert "No space left" in json.loads((tree / "r.json").read_text())["error"]
    old = {path.name: path.read_bytes() for path in tree.glob("*.py")}
    assert {path.name: path.read_bytes() for path in (tree / "after").iterdir()} == old
    assert {path.name: path.read_bytes() for path in (tree / "undone").iterdir()} == old
    assert (tree / "left").read_text().split() == sorted(old)


# --- two at once -------------------------------------------------------------------------------------------------


def test_a_second_run_says_that_the_first_is_writing(tmp_path: Path) -> None:
    models(tmp_path, 2)
    migration = plan(tmp_path)
    with keeping._alone(tmp_path):
        with pytest.raises(ProjectError, match="another towermigrate is writing"):
            migration.apply()
        assert not (tmp_path / ".towermigrate").exists()
        result = run("rewrite", tmp_path)
        assert result.exit_code == 3
    assert run("rewrite", tmp_path).exit_code == 0


def test_many_at_once_do_it_once(quick: Path) -> None:
    for _ in range(10):
        old = models(quick, 12)
        migration = plan(quick)
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                try:
                    (lambda: undo(quick))() if number == 3 else migration.apply()
                except ProjectError:
                    os._exit(3)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            children.append(child)
        codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
        assert codes <= {0, 3} and 0 in codes
        plan(quick).apply()
        assert contents(quick) == {**old, **migration.changes}
        undo(quick)
        assert contents(quick, state=True) == old


# --- undo --------------------------------------------------------------------------------------------------------


def test_undo_says_what_it_would_do(tmp_path: Path) -> None:
    models(tmp_path, 3)
    assert run("rewrite", tmp_path).exit_code == 0
    (tmp_path / "p1/m1.py").write_bytes(b"edited")
    before = contents(tmp_path, state=True)
    result = run("undo", "--dry-run", tmp_path, "--json", tmp_path.parent / "u.json")
    assert f"would put back {tmp_path}/p0/m0.py" in result.output
    assert "left alone" in result.output and result.exit_code == 3
    report = json.loads((tmp_path.parent / "u.json").read_text())
    assert report["edited"] == [f"{tmp_path}/p1/m1.py"] and len(report["restored"]) == 2
    result = run("undo", "--dry-run", "--force", tmp_path)
    assert f"would put back {tmp_path}/p1/m1.py" in result.output and result.exit_code == 0
    assert contents(tmp_path, state=True) == before


def test_undo_of_one_file_leaves_the_others(tmp_path: Path) -> None:
    old = models(tmp_path, 3)
    assert run("rewrite", tmp_path).exit_code == 0
    new = contents(tmp_path)
    assert run("undo", tmp_path / "p1/m1.py").exit_code == 0
    assert contents(tmp_path) == {**new, "p1/m1.py": old["p1/m1.py"]}
    assert run("undo", tmp_path).exit_code == 0
    assert contents(tmp_path, state=True) == old


def test_undo_puts_a_deleted_file_back_with_its_mode(tmp_path: Path) -> None:
    models(tmp_path, 2)
    (tmp_path / "p0/m0.py").chmod(0o750)
    assert run("rewrite", tmp_path).exit_code == 0
    shutil.rmtree(tmp_path / "p0")
    assert run("undo", tmp_path).exit_code == 3
    assert not (tmp_path / "p0").exists()
    assert run("undo", "--force", tmp_path).exit_code == 0
    assert (tmp_path / "p0/m0.py").stat().st_mode & 0o777 == 0o750


def test_a_manifest_that_went_missing_does_not_take_the_originals_along(tmp_path: Path) -> None:
    old = models(tmp_path, 2)
    assert run("rewrite", tmp_path).exit_code == 0
    (tmp_path / ".towermigrate/manifest.json").unlink()
    assert run("undo", tmp_path).exit_code == 0
    (tmp_path / "more.py").write_text("import tensorflow as tf\ntf.Session()\n")
    assert run("rewrite", tmp_path).exit_code == 0
    assert run("undo", tmp_path).exit_code == 0
    kept = contents(tmp_path / ".towermigrate/originals", state=True)
    assert kept == old
