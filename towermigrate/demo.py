"""`towermigrate demo`: scan, rewrite and verify a built-in program in a scratch folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console

PROGRAM = "demo_program"


def run_demo(console: Console, *, devices: str, steps: int) -> int:
    """Run each command as a user would, in a scratch folder that is removed afterwards.

    Returns:
        The exit code of the first command that failed; 0 when original and rewritten program are equal.
    """
    with tempfile.TemporaryDirectory(prefix="towermigrate-demo-") as scratch:
        tree = Path(scratch) / "gan"
        with as_file(files("towermigrate") / PROGRAM) as program:
            shutil.copytree(program, tree, ignore=shutil.ignore_patterns("__pycache__"))
        for arguments in (
            ["scan", "."],
            ["rewrite", "--diff", "."],
            ["rewrite", "."],
            ["verify", "--devices", devices, "--steps", str(steps), "."],
        ):
            console.print(f"\n$ towermigrate {' '.join(arguments)}", style="bold", highlight=False)
            code = subprocess.run(
                [sys.executable, "-m", "towermigrate", *arguments], cwd=tree
            ).returncode
            if code:
                console.print(
                    f"towermigrate {arguments[0]} ended with exit code {code}", style="red"
                )
                return code
    return 0
