"""How fast a whole tree is rewritten, against TensorFlow's own `tf_upgrade_v2` in the same run.

    python tests/benchmark/whole_tree.py TREE          a checkout of tensorflow/models of May 2018, say
    python tests/benchmark/whole_tree.py --files 400   a tree of that many files, made of the fixtures

The two tools run in turns, start-up included, output to a file, ours three times on fresh copies; then `towermigrate --help` and
`python -c 'import click'`. CPU time stands beside wall time, for machines that do something else as well.
Of several rounds the medians count. Memory is that of all processes of a tool together, pages that they share
counted twice. Linux only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TURNS = 3
"""Runs of ours for one of the peer's: that of ours is short, and many machines are slow for seconds."""
_REST = 6.0
"""Seconds. ext4 makes files slowly for a minute or more after others were deleted, and a rewrite deletes what it replaces:
where the figures swing, set TMPDIR to a folder in memory."""


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds of wall clock and of CPU, MB of memory and processes at the peak."""

    wall: float
    cpu: float
    memory: float
    processes: int


def measure(command: Sequence[str], log: Path, codes: Sequence[int] = (0,)) -> Cost:
    """Run a command to its end; raises SystemExit where its exit code is not one of `codes`."""
    peaks: list[tuple[float, int]] = [(0.0, 1)]
    ended = threading.Event()

    def look(pid: int) -> None:
        # Seldom: looking takes time from a tool that keeps both cores busy.
        while not ended.wait(0.05):
            sizes = _resident(pid)
            peaks.append((sum(sizes), len(sizes)))

    with log.open("wb") as out:
        start = time.monotonic()
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        looker = threading.Thread(target=look, args=(child.pid,))
        looker.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        ended.set()
        looker.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in codes:
        raise SystemExit(f"{' '.join(command)}: exit {child.returncode}\n{log.read_text()[-2000:]}")
    memory = max(usage.ru_maxrss / 1024, *(size for size, _ in peaks))
    return Cost(wall, usage.ru_utime + usage.ru_stime, memory, max(count for _, count in peaks))


def _resident(first: int) -> list[float]:
    """MB of each process that `first` and its children started, itself included."""
    sizes: list[float] = []
    todo = [first]
    while todo:
        process = Path("/proc", str(todo.pop()))
        try:
            sizes.append(int((process / "statm").read_text().split()[1]) * _PAGE / 2**20)
            for task in (process / "task").iterdir():
                todo += map(int, (task / "children").read_text().split())
        except OSError:  # it has just ended
            continue
    return sizes


def generated(folder: Path, count: int) -> None:
    """A tree of `count` files: the fixtures' originals, over and over."""
    originals = sorted(ROOT.glob("fixtures/*/before/**/*.py"))
    number = 0
    while number < count:
        for file in originals[: count - number]:
            fixture, _, *rest = file.relative_to(ROOT / "fixtures").parts
            target = folder / f"part{number // len(originals)}" / fixture / Path(*rest)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
            number += 1


def compare_trees(tree: Path, rounds: int, scratch: Path) -> None:
    """Both tools on copies of `tree`, in turns."""
    peer: list[Cost] = []
    ours: list[Cost] = []
    for number in range(rounds):
        theirs = scratch / f"upgraded{number}"
        upgrade = ["tf_upgrade_v2", "--intree", str(tree), "--outtree", str(theirs)]
        upgrade += ["--copyotherfiles", "False", "--reportfile", str(scratch / "report.txt")]
        peer.append(measure(upgrade, scratch / "upgrade.log", (0, 1)))
        _show("tf_upgrade_v2", peer[-1])
        for turn in range(_TURNS):
            copy = scratch / f"copy{number}_{turn}"
            shutil.copytree(tree, copy, symlinks=True)
            # As a user's tree is: a tool that flushes what it writes would flush the copy as well.
            os.sync()
            time.sleep(_REST)
            # Exit code 1: a program was refused; 3: a file is neither Python 3 nor Python 2.
            rewrite = [sys.executable, "-m", "towermigrate", "rewrite", str(copy)]
            ours.append(measure(rewrite, scratch / "rewrite.log", (0, 1, 3)))
            _show("towermigrate rewrite", ours[-1])
    wall = statistics.median(c.wall for c in ours) / statistics.median(c.wall for c in peer)
    cpu = statistics.median(c.cpu for c in ours) / statistics.median(c.cpu for c in peer)
    print(f"towermigrate takes 1/{1 / wall:.1f} of the time (wall), 1/{1 / cpu:.1f} (CPU)")
    print(f"  its runs: {', '.join(f'{cost.wall:.2f}' for cost in sorted(ours, key=_wall))} s wall")


def compare_help(rounds: int, scratch: Path) -> None:
    """`towermigrate --help` against the import of click, on which it stands."""
    click: list[Cost] = []
    ours: list[Cost] = []
    for _ in range(rounds):
        click.append(measure([sys.executable, "-c", "import click"], scratch / "click.log"))
        ours.append(measure([sys.executable, "-m", "towermigrate", "--help"], scratch / "help.log"))
    for what in ("wall", "cpu"):
        best = [min(getattr(cost, what) for cost in costs) for costs in (ours, click)]
        print(
            f"towermigrate --help: {best[0]:.3f} s {what}, {best[0] / best[1]:.2f} times "
            f"`import click` ({best[1]:.3f} s)"
        )


def _wall(cost: Cost) -> float:
    return cost.wall


def _show(name: str, cost: Cost) -> None:
    print(
        f"{name:22}{cost.wall:8.2f} s wall {cost.cpu:8.2f} s CPU {cost.memory:7.0f} MB "
        f"{cost.processes:2} process(es)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tree", nargs="?", type=Path, help="a source tree; it is only read")
    parser.add_argument("--files", type=int, default=400, help="size of the tree without TREE")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchmark") as name:
        scratch = Path(name)
        tree = given.tree
        if tree is None:
            tree = scratch / "generated"
            generated(tree, given.files)
        compare_trees(tree, given.rounds, scratch)
        compare_help(10, scratch)


if __name__ == "__main__":
    main()
