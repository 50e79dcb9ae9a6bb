"""What the command `towermigrate rewrite` makes of one repository, tried on a scratch copy of it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATE = ".towermigrate"
LIMIT = 600
"""Seconds that one command may take."""


@dataclass(frozen=True)
class Program:
    """One tower program as the tool reports it."""

    path: str
    line: int
    function: str | None
    style: str
    """`loop`, `session`, or `refused`."""
    rules: tuple[str, ...]
    """The rules that refuse it, or nothing."""
    not_loop: tuple[str, ...]
    """The rules that keep it from loop style."""
    reason: str


@dataclass(frozen=True)
class Rewritten:
    """A repository after `rewrite`, a second `rewrite`, and `undo`."""

    programs: tuple[Program, ...]
    changed: int
    problems: tuple[str, ...]
    """Files of the result that do not parse, and crashes of the tool."""
    idempotent: bool
    undone: bool

    @property
    def parses(self) -> bool:
        return not self.problems


def towermigrate(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run the command; its exit code, its JSON document (empty without `--json`) and what it said."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "towermigrate", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=LIMIT,
    )
    document: dict[str, Any] = {}
    if "--json" in arguments:
        written = Path(arguments[arguments.index("--json") + 1])
        if written.exists():
            document = json.loads(written.read_text("utf-8"))
    return done.returncode, document, done.stdout + done.stderr


def copy(repository: Path, to: Path) -> None:
    """A fresh scratch copy."""
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(repository, to, symlinks=True)


def rewrite(repository: Path, scratch: Path) -> Rewritten:
    """Rewrite a copy, look at every output, rewrite it again, and undo it."""
    tree = scratch / repository.name
    copy(repository, tree)
    before = _digests(tree)
    document_at = scratch / f"{repository.name}.json"
    code, document, said = towermigrate("rewrite", str(tree), "--json", str(document_at))
    problems = _unparsable(tree, document)
    if code not in (0, 1) and not document or "Traceback (most recent call last)" in said:
        problems.append(f"the tool stopped with exit code {code}")
    code, again, _ = towermigrate("rewrite", str(tree), "--check", "--json", str(document_at))
    idempotent = bool(again) and again["summary"]["changed"] == 0
    towermigrate("undo", str(tree))
    undone = _digests(tree) == before
    shutil.rmtree(tree)
    return Rewritten(
        tuple(_programs(document)),
        document["summary"]["changed"] if document else 0,
        tuple(problems),
        idempotent,
        undone,
    )


def _programs(document: dict[str, Any]) -> list[Program]:
    found = []
    for file in document.get("files", ()):
        for program in file["programs"]:
            converted = program["status"] == "converted"
            refusals = [] if converted else program["findings"]
            found.append(
                Program(
                    file["path"],
                    program["line"],
                    program["function"],
                    (program.get("style") or "loop") if converted else "refused",
                    tuple(sorted({finding["rule"] for finding in refusals})),
                    tuple(sorted({each["rule"] for each in program.get("not_loop", ())})),
                    refusals[0]["message"] if refusals else "",
                )
            )
    return found


def _unparsable(tree: Path, document: dict[str, Any]) -> list[str]:
    """The rewritten files that Python 3 does not parse; notebooks must be JSON."""
    problems = []
    for file in document.get("files", ()):
        if file["status"] != "rewritten":
            continue
        raw = (tree / file["path"]).read_bytes()
        try:
            json.loads(raw) if file["path"].endswith(".ipynb") else ast.parse(raw)
        except (SyntaxError, ValueError) as error:
            problems.append(f"{file['path']}: {error}")
    return problems


def _digests(tree: Path) -> dict[str, str]:
    """What every file holds, links and modes included; the tool's own folder left out."""
    found = {}
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != STATE)
        for name in files:
            path = Path(folder, name)
            if path.is_symlink():
                content = os.readlink(path).encode()
            else:
                content = path.read_bytes() + oct(path.stat().st_mode).encode()
            found[str(path.relative_to(tree))] = hashlib.sha256(content).hexdigest()
    return found
