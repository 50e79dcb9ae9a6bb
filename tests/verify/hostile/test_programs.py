"""Hostile programs harm nothing of the user's, leave nothing behind, and each is told of in its own words."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.verify.hostile.programs import AROUND, BEHAVING, START, WRITING
from towermigrate.verify import children, fence, launch, scratch
from towermigrate.verify.children import ChildFailed
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.launch import Launcher
from towermigrate.verify.options import VerifyOptions
from towermigrate.verify.tree import copy_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part is Linux's")
kernel = pytest.mark.skipif(not fence.fence_version(), reason="this kernel has no Landlock")

# As the probes do it, without TensorFlow.
PROBE = """
import json, sys
from towermigrate_probe.program import leave, run_program
from towermigrate_probe.recording import TraceWriter

with open(sys.argv[1]) as file:
    config = json.load(file)
trace = TraceWriter(config["trace"])
error = run_program(config["entry"], config["arguments"], config.get("fence"))
trace.finish("program" if error is None else "error", error)
leave(0 if error is None else 1)
"""
LARGE = 5000


@dataclass
class User:
    """A stand-in for a user with a home, a temporary folder and a tree, and verify's scratch folder."""

    top: Path
    mark: str

    def __post_init__(self) -> None:
        self.places = [self.top / name for name in ("users/home", "users/tmp", "users/tree")]
        self.scratch = self.top / "scratch"
        self.home, self.tmp, self.tree = self.places
        for folder in (*self.places, self.top / "far", self.scratch / "original" / "trace"):
            folder.mkdir(parents=True)
            (folder / "kept.txt").write_text("kept")
        (self.home / "folder").mkdir(mode=0o750)
        (self.home / "folder" / "script.sh").write_text("true")
        (self.home / "folder" / "script.sh").chmod(0o755)
        (self.home / "to_tree").symlink_to(self.tree)
        (self.top / "far" / "data.txt").write_text("far")
        (self.tree / "big.bin").write_bytes(b"b" * (LARGE + 1))
        (self.tree / "linked").symlink_to(self.home)
        (self.tree / "link.txt").symlink_to("../home/kept.txt")
        (self.tree / "loop").symlink_to("loop")
        (self.tree / "nowhere").symlink_to("nothing")
        (self.tree / "empty").mkdir()
        os.link(self.home / "kept.txt", self.tree / "hard.txt")

    def looks(self) -> dict[str, tuple[object, ...]]:
        """All there is to see of what must not change."""
        places = [self.top / "users", self.top / "far", self.scratch / "original"]
        return {
            str(path): _looks(path)
            for place in places
            for path in [place, *sorted(place.rglob("*"))]
        }

    def run(self, program: str, timeout_s: float = 30.0) -> Launcher:
        """Run `program` as verify runs originals."""
        options = VerifyOptions(
            self.tree,
            arguments=tuple(map(str, self.places)),
            timeout_s=timeout_s,
            link_over=LARGE,
        )
        launcher = Launcher(options, self.scratch)
        folder = self.scratch / "run"
        tree = launcher.tree(folder)
        copy_tree(self.tree, tree, {"train.py": START + program + "\n"}, options.link_over)
        script = launcher.write_probe(folder, "program")
        script.write_text(PROBE, encoding="utf-8")
        spec = parse_devices("cpu:2")
        config = launcher.config(tree, folder, spec, "train.py")
        command = [sys.executable, str(script)]
        launcher.run(command, tree, folder, config, spec, "The original")
        return launcher

    def processes(self) -> list[str]:
        """What is left of it: by an environment variable, or by what was started without one."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes()
                where = os.readlink(process / "cwd")
            except OSError:
                continue
            ours = int(process.name) == os.getpid()
            if not ours and (self.mark.encode() in environment or str(self.top) in where):
                found.append((process / "cmdline").read_text())
        return found


def _looks(path: Path) -> tuple[object, ...]:
    seen = path.lstat()
    what: object = None
    if stat.S_ISLNK(seen.st_mode):
        what = os.readlink(path)
    elif stat.S_ISREG(seen.st_mode):
        what = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        what = sorted(os.listdir(path)) if path.is_dir() else "neither"
    links = seen.st_nlink if stat.S_ISREG(seen.st_mode) else 0
    return what, seen.st_mode, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_uid, links


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    mark = f"TOWERMIGRATE_TEST_{os.getpid()}_{tmp_path.name}"
    monkeypatch.setenv("TOWERMIGRATE_TEST", mark)
    return User(tmp_path, mark)


def left_in_shared_memory(before: set[str]) -> set[str]:
    """What a program that has ended left there: no living process has it, as those that run beside the tests may."""
    found: list[set[str]] = []
    for wait in (0.0, 0.3):  # it is there before it is mapped
        time.sleep(wait)
        files: dict[int, str] = {}  # by inode: a semaphore is mapped under the name it had first
        for name in set(os.listdir("/dev/shm")) - before:
            with contextlib.suppress(OSError):
                files[os.stat(f"/dev/shm/{name}").st_ino] = name
        mapped: set[int] = set()
        for maps in Path("/proc").glob("[0-9]*/maps"):
            with contextlib.suppress(OSError):
                mapped |= {int(line.split()[4]) for line in maps.read_text().splitlines()}
        left = {name for inode, name in files.items() if inode not in mapped}
        found.append({name for name in left if name.startswith(("psm_", "sem."))})
        if not found[-1]:
            break
    return set.intersection(*found)


def check(user: User, program: str, said: str | None, timeout_s: float = 30.0) -> str:
    """Run it, and see that it is told of and that everything is as it was. What was said."""
    before, shared = user.looks(), set(scratch.os.listdir("/dev/shm"))
    message, paths = "", list[str]()
    try:
        paths = list(user.run(program, timeout_s).kept_out)
    except ChildFailed as failure:
        message = str(failure)
    assert user.looks() == before, message
    assert not user.processes(), message
    assert not left_in_shared_memory(shared)
    if said is None:
        assert message == ""
    else:
        assert re.search(said, message), message or "it went on to its end"
    # No traceback of ours; a pool's worker may tell how it was refused.
    assert "towermigrate_probe" not in message.replace("towermigrate_probe/fencing.py", ""), message
    assert all(each.isprintable() or each in "\n\t" for each in message)
    scratch.remove_scratch(user.scratch)
    assert not user.scratch.exists()
    return message or "\n".join(paths)


OWN = r"The original was kept from changing what is verify's own: .*original/trace"
KEPT_OUT = r"The original was kept from changing .*users/.*--allow-write"


def in_tiers(names: Iterable[str]) -> list[Any]:
    """Every fourth in the fast tier, the others in the slow one: each takes a second or more."""
    return [
        name if number % 4 == 0 else pytest.param(name, marks=pytest.mark.full)
        for number, name in enumerate(names)
    ]


@kernel
@pytest.mark.parametrize("name", in_tiers(WRITING))
def test_what_writes_is_refused(name: str, user: User) -> None:
    check(user, WRITING[name], KEPT_OUT)


@kernel
@pytest.mark.parametrize("name", in_tiers(AROUND))
def test_what_goes_around_python_is_refused(name: str, user: User) -> None:
    check(user, AROUND[name], OWN if name == "clears_other_recordings" else KEPT_OUT)


@pytest.mark.full
@pytest.mark.parametrize("name", [*WRITING, *AROUND])
def test_without_landlock_the_guardian_refuses(
    name: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fence.asks_guardian():
        pytest.skip("this kernel does not ask")
    monkeypatch.setattr(fence, "fence_version", lambda: 0)
    where = OWN if name == "clears_other_recordings" else KEPT_OUT
    check(user, {**WRITING, **AROUND}[name], where)


def without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system whose kernel neither asks nor refuses."""
    for module in (fence, scratch):
        monkeypatch.setattr(module, "fence_version", lambda: 0)
    for module in (fence, scratch, launch):
        monkeypatch.setattr(module, "asks_guardian", lambda: False)


# Through links Python sees nothing, so nothing is linked: these write into their own copy.
OWN_COPY = {
    "truncates_through_a_link", "changes_the_mode_through_a_link", "changes_the_times_of_big_data",
    "writes_into_big_data", "maps_big_data", "writes_through_a_link", "writes_into_a_linked_folder",
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(set(WRITING) - {"writes_beside_its_tree"}))
def test_without_the_kernel_python_refuses(
    name: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_kernel(monkeypatch)
    check(user, WRITING[name], None if name in OWN_COPY else KEPT_OUT)


@pytest.mark.parametrize("name", in_tiers(BEHAVING))
def test_what_behaves_badly_is_told_of(name: str, user: User) -> None:
    program, said = BEHAVING[name]
    limit = re.search(r"limit of ([\d.]+) s", said or "")
    paths = check(user, program, said, timeout_s=float(limit[1]) if limit else 30)
    if name in ("swallows_the_refusal", "leaves_a_daemon_that_deletes"):
        assert str(user.home) in paths


def test_shared_memory_of_others_stays(user: User) -> None:
    path = Path("/dev/shm") / f"towermigrate-test-{os.getpid()}"
    path.write_text("kept")
    try:
        check(user, f"os.remove({str(path)!r})", "kept from changing /dev/shm/towermigrate-test")
        assert path.read_text() == "kept"
    finally:
        path.unlink()


def test_a_program_that_fills_the_disk_is_ended(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.disk_usage(user.top)
    left = iter([real.free])

    def usage(path: Path) -> object:
        return real._replace(free=next(left, 1000))

    monkeypatch.setattr(children.shutil, "disk_usage", usage)
    check(user, "time.sleep(20)", "was ended before it filled the disk")


def test_a_program_that_takes_all_memory_is_ended(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "available_memory", lambda: 1000)
    check(user, "time.sleep(20)", "was ended before it took all memory")


def test_output_without_end_is_kept_in_part(user: User) -> None:
    user.run("for n in range(40): print('%06d' % n * 50000)")
    log = user.scratch / "run" / "output.txt"
    text = log.read_text()
    assert "000000" in text[:10_000] and text.endswith("000039\n") and "bytes are left out" in text
    assert log.stat().st_size < 5 * 2**20


def test_nothing_is_linked_where_nothing_keeps_programs_from_writing(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_kernel(monkeypatch)
    assert fence.protection(False).startswith("for Python only")
    user.run("")
    links = [path for path in (user.scratch / "run" / "tree").rglob("*") if path.is_symlink()]
    assert sorted(path.name for path in links) == ["loop", "nowhere", "to_tree"]


def test_what_to_allow_is_what_would_help(tmp_path: Path) -> None:
    missing = launch._to_allow(tmp_path / "logs" / "new", ())
    assert missing == tmp_path
    assert launch._to_allow(tmp_path, (tmp_path,)) == tmp_path.parent
