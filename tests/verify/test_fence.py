"""What a program under verification may change: its scratch copy, and nothing of the user's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import tf1_env
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.children import run_child
from towermigrate.verify.fence import fence_version, fenced, refused_paths

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "fixtures" / "before" / "shared_adam.py"

kernel = pytest.mark.skipif(not fence_version(), reason="this kernel has no Landlock")

# Each tries to change what is in {out}, a folder that has `kept.txt`, from a copy that has the link `big`.
ATTEMPTS = {
    "write": "open(out + '/new.txt', 'w').write('x')",
    "append": "open(out + '/kept.txt', 'a').write('x')",
    "truncate": "os.truncate(out + '/kept.txt', 0)",
    "open_for_writing": "os.open(out + '/kept.txt', os.O_RDWR)",
    "remove": "os.remove(out + '/kept.txt')",
    "rmtree": "import shutil; shutil.rmtree(out)",
    "rename_away": "os.rename(out + '/kept.txt', 'mine.txt')",
    "replace": "open('mine.txt', 'w').close(); os.replace('mine.txt', out + '/kept.txt')",
    "rename_the_folder": "os.rename(out, out + '-old')",
    "mkdir": "os.makedirs(out + '/a/b')",
    "symlink": "os.symlink('/', out + '/link')",
    "through_a_link": "open('big', 'r+').write('x')",
    "pathlib": "import pathlib; pathlib.Path(out, 'kept.txt').unlink()",
    "copy": "import shutil; shutil.copy(sys.executable, out + '/kept.txt')",
}
OF_OTHERS = {
    "shell": "sys.exit(os.system('rm -r %s' % out) != 0)",
    "another_python": "import subprocess; subprocess.check_call([sys.executable, '-c', 'import os,sys; "
    "os.remove(sys.argv[1])', out + '/kept.txt'])",
    "fork": "pid = os.fork()\nif not pid: os.remove(out + '/kept.txt')\nsys.exit(os.waitpid(pid, 0)[1] >> 8)",
    "c_library": "import ctypes; sys.exit(ctypes.CDLL(None).unlink((out + '/kept.txt').encode()) and 1)",
}


def _folders(tmp_path: Path) -> tuple[Path, Path]:
    """The user's folder, and a scratch folder with a link to a file of it."""
    users, scratch = tmp_path / "users", tmp_path / "scratch"
    users.mkdir()
    scratch.mkdir()
    (users / "kept.txt").write_text("kept")
    (scratch / "big").symlink_to(users / "kept.txt")
    return users, scratch


def _as_it_was(users: Path) -> bool:
    return [path.name for path in users.iterdir()] == ["kept.txt"] and (
        users / "kept.txt"
    ).read_text() == "kept"


@kernel
@pytest.mark.parametrize("name", [*ATTEMPTS, *OF_OTHERS])
def test_the_kernel_refuses(name: str, tmp_path: Path) -> None:
    users, scratch = _folders(tmp_path)
    code = f"import os, sys\nout = {str(users)!r}\n" + {**ATTEMPTS, **OF_OTHERS}[name]
    # Its own files it may change.
    code = "open('own.txt', 'w').close(); import os; os.rename('own.txt', 'moved.txt')\n" + code
    command = fenced([sys.executable, "-c", code], [scratch])
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
    assert done.returncode != 0
    assert _as_it_was(users), done.stderr
    assert (scratch / "moved.txt").exists(), done.stderr


def _refused_by_python(python: str, name: str, tmp_path: Path) -> None:
    users, scratch = _folders(tmp_path)
    module = ROOT / "towermigrate" / "verify" / "probe" / "fencing.py"
    code = (
        "import os, sys, runpy\n"
        f"runpy.run_path({str(module)!r})['fence']([{str(scratch)!r}])\n"
        "open('own.txt', 'w').close(); os.rename('own.txt', 'moved.txt')\n"
        f"out = {str(users)!r}\n" + ATTEMPTS[name]
    )
    done = subprocess.run([python, "-c", code], cwd=scratch, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    named = refused_paths(done.stderr, [scratch])
    assert len(named) == 1 and named[0].startswith(str(users)), done.stderr
    assert _as_it_was(users), done.stderr
    assert (scratch / "moved.txt").exists(), done.stderr


@pytest.mark.parametrize("name", ATTEMPTS)
def test_python_refuses(name: str, tmp_path: Path) -> None:
    _refused_by_python(sys.executable, name, tmp_path)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_python_of_tensorflow_1_refuses(name: str, tmp_path: Path) -> None:
    _refused_by_python(tf1_env.required_python(), name, tmp_path)


# What is there already is not changed by who asks for it to be made, as `mkdir -p` and drivers do.
MADE_BEFORE = [
    "os.mkdir(out)",
    "os.mkdir(out + '/kept.txt')",
    "os.mkdir('users', dir_fd=os.open(out + '/..', os.O_RDONLY))",
    "os.symlink('/', out)",
]
HAS_IT = "import os, sys\nout = {!r}\ntry: {}\nexcept FileExistsError: sys.exit(7)\n"


@kernel
@pytest.mark.parametrize("asked", MADE_BEFORE)
def test_who_makes_what_is_there_is_told_so_by_the_kernel(asked: str, tmp_path: Path) -> None:
    users, scratch = _folders(tmp_path)
    reading, writing = os.pipe()
    command = [sys.executable, "-c", HAS_IT.format(str(users), asked)]
    command = fenced(command, [scratch], report=writing)
    done = subprocess.run(command, cwd=scratch, pass_fds=(writing,), capture_output=True, text=True)
    os.close(writing)
    assert done.returncode == 7, done.stderr
    with os.fdopen(reading) as report:
        assert json.load(report)["refused"] == []
    assert _as_it_was(users)


@pytest.mark.parametrize("asked", MADE_BEFORE)
def test_who_makes_what_is_there_is_told_so_by_python(asked: str, tmp_path: Path) -> None:
    _told_by_python(sys.executable, asked, tmp_path)


@pytest.mark.parametrize("asked", MADE_BEFORE)
def test_who_makes_what_is_there_is_told_so_by_the_python_of_tensorflow_1(
    asked: str, tmp_path: Path
) -> None:
    _told_by_python(tf1_env.required_python(), asked, tmp_path)


def _told_by_python(python: str, asked: str, tmp_path: Path) -> None:
    users, scratch = _folders(tmp_path)
    module = ROOT / "towermigrate" / "verify" / "probe" / "fencing.py"
    code = f"import runpy\nrunpy.run_path({str(module)!r})['fence']([{str(scratch)!r}])\n"
    code += HAS_IT.format(str(users), asked)
    done = subprocess.run([python, "-c", code], cwd=scratch, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    assert _as_it_was(users)


def test_only_what_the_fence_refused_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder that this user may not write to; root may write to all, so it is said.
    locked = tmp_path / "locked"
    locked.mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != locked and may(path, mode))
    said = (
        f"PermissionError: [Errno 13] Permission denied: '{tmp_path}/a.txt'\n"
        f"PermissionError: [Errno 13] Permission denied: '{tmp_path}/locked/x'\n"
        f"tensorflow...PermissionDeniedError: {tmp_path}/log; Permission denied\n"
        f"rm: cannot remove '{tmp_path}/b': Permission denied\n"
        f"PermissionError: [Errno 13] Permission denied: '{tmp_path}/scratch/mine.txt'\n"
    )
    said += f"PermissionError: [Errno 13] Permission denied: 'd' -> '{tmp_path}/c'\n"
    (tmp_path / "scratch").mkdir()
    assert refused_paths(said, [tmp_path / "scratch"]) == [
        f"{tmp_path}/a.txt",
        f"{tmp_path}/log",
        f"{tmp_path}/b",
        f"{tmp_path}/c",
    ]


@pytest.mark.parametrize(
    "clearing",
    [
        # What Python itself removes is refused to the hostile programs as well.
        pytest.param(
            "import shutil; shutil.rmtree({folder!r}); os.makedirs({folder!r})",
            marks=pytest.mark.full,
        ),
        "tf.gfile.DeleteRecursively({folder!r}); tf.gfile.MakeDirs({folder!r})",
    ],
)
def test_a_program_that_clears_an_absolute_folder(clearing: str, tmp_path: Path) -> None:
    users, _ = _folders(tmp_path)
    tree = tmp_path / "tree"
    tree.mkdir()
    text = PROGRAM.read_text(encoding="utf-8")
    main = 'if __name__ == "__main__":\n'
    assert text.count(main) == 1
    text = text.replace(main, main + "    " + clearing.format(folder=str(users)) + "\n")
    (tree / "train.py").write_text("import os\n" + text, encoding="utf-8")
    if not fence_version() and "gfile" in clearing:
        pytest.skip("what TensorFlow's C++ writes is refused by kernels with Landlock only")

    report = run_verify(VerifyOptions(tree, steps=1))
    assert report.exit_code == 3
    assert report.error is not None and "--allow-write" in report.error, report.error
    assert str(users) in report.error
    assert _as_it_was(users)

    report = run_verify(VerifyOptions(tree, steps=1, allow_write=(users.parent,)))
    assert report.exit_code == 0, report.to_json()
    assert not list(users.iterdir())


def test_a_daemon_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open('daemon', 'w').write(str(os.getpid()))\n"
        "        time.sleep(120)\n"
        "    os._exit(0)\n"
        "while not os.path.exists('daemon') or not open('daemon').read(): time.sleep(0.01)\n"
    )
    if sys.platform != "linux":
        pytest.skip("daemons are found by /proc")
    run_child([sys.executable, "-c", code], tmp_path, tmp_path / "log", {}, 30, "The child")
    pid = int((tmp_path / "daemon").read_text())
    for _ in range(50):
        if not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.1)
    pytest.fail("the daemon is still there")


def _heed_signals() -> None:
    """What a shell runs in the background ignores SIGINT, and under nohup SIGHUP, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGHUP, marks=pytest.mark.full),
        pytest.param(signal.SIGTERM, marks=pytest.mark.full),
    ],
)
def test_a_signal_ends_verify_with_its_own_exit_code(
    number: signal.Signals, tmp_path: Path
) -> None:
    tree, temporary = tmp_path / "tree", tmp_path / "tmp"
    tree.mkdir()
    temporary.mkdir()
    text = PROGRAM.read_text(encoding="utf-8")
    report = tree.parent / "report.json"
    main = 'if __name__ == "__main__":\n'
    waits = "    import time; print('waits', flush=True); time.sleep(120)\n"
    (tree / "train.py").write_text(text.replace(main, main + waits), encoding="utf-8")
    command = [sys.executable, "-m", "towermigrate", "verify", str(tree), "--json", str(report)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    child = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_heed_signals,
    )
    for _ in range(1200):
        if any("waits" in log.read_text() for log in temporary.glob("*/*/output.txt")):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the program did not begin")
    child.send_signal(number)
    assert child.wait(timeout=30) == 128 + number
    assert not list(temporary.iterdir())
    document = json.loads(report.read_text())
    assert (document["equal"], document["error"]) == (False, f"verify was ended by {number.name}")
