"""Run recipes: a program of a repository with tiny random data, as it was and rewritten, and compare the two."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy

from tests.field.rewriting import copy, towermigrate
from tests.tf1_env import tf1_python

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LIMIT = 400
"""Seconds for one side of one recipe."""
TOLERANCE = 1e-5
"""How far numbers of the two sides may differ: relative to what they are above one, absolute below; variables
also no more than a twentieth of the way that training took them."""
_NEVER_LOOP = '\n\nif False:\n    exec("")\n'
"""What never runs, and keeps a program from loop style all the same: only its names are changed then."""
PACKAGES = "TOWERMIGRATE_FIELD_PACKAGES"
"""A folder with packages that the repositories import beside TensorFlow (scipy, …), for the rewritten side."""


@dataclass(frozen=True)
class Recipe:
    """How one program of a repository is made to run on this machine."""

    name: str
    path: Path
    repository: str
    program: str
    """The file of its tower loop."""
    reference: str
    """What the rewritten program is compared with: `original` under TensorFlow 1.15, or `tower`, the tower graph
    with TF2 names, where Python 3.7 cannot run the original."""
    resources: bool
    """Whether the reference has resource variables: the original reads reference variables while it writes them."""
    style: str
    """The style that is asked for: `auto`, or `session` for a program that gets loop style by itself, whose runs are
    no longer `Session.run`."""
    races: str
    """Part of the names of variables that the original itself leaves to chance."""
    what: str
    differs: str = ""
    """What is known of why the two sides differ."""


@dataclass(frozen=True)
class Side:
    """What one process saw."""

    built: bool
    runs: list[list[float]]
    variables: dict[str, Any]
    error: str | None
    seconds: float
    moved: float = 0.0
    """How far training took the trainable variables."""
    trainable: int = 0
    mirrored: int = 0
    """How many of these have a copy per tower."""


@dataclass(frozen=True)
class Tried:
    """A recipe after both sides ran."""

    recipe: Recipe
    style: str
    rewritten: Side
    reference: Side | None
    losses: float | None = None
    variables: float | None = None
    problem: str | None = None

    @property
    def equal(self) -> bool:
        return (
            self.reference is not None
            and self.problem is None
            and self.losses is not None
            and self.variables is not None
            and max(self.losses, self.variables) <= TOLERANCE
            and self.variables <= self.reference.moved / 20
        )


def recipes() -> list[Recipe]:
    """All recipes, by name."""
    found = []
    for path in sorted((HERE / "recipes").glob("[a-z]*.py")):
        text = path.read_text("utf-8")
        values = dict(re.findall(r'^([A-Z]+) = "([^"]*)"$', text, re.MULTILINE))
        what = text.partition('"""')[2].partition("\n")[0].strip('"')
        reference = values.get("REFERENCE", "original")
        found.append(
            Recipe(
                path.stem,
                path,
                values["REPOSITORY"],
                values["PROGRAM"],
                reference,
                values.get("VARIABLES") == "resource",
                values.get("STYLE", "auto"),
                values.get("RACES", ""),
                what,
                values.get("DIFFERS", ""),
            )
        )
    return found


def attempt(recipe: Recipe, repository: Path, scratch: Path, compare: bool) -> Tried:
    """Run the rewritten program of a recipe and, to compare, what it is held against."""
    tree = scratch / f"{recipe.name}-rewritten"
    copy(repository, tree)
    report = scratch / f"{recipe.name}-rewrite.json"
    asked = ("--style", recipe.style, "--refused", "symbols", "--json", str(report))
    _, document, _ = towermigrate("rewrite", str(tree), *asked)
    style = _style(document, recipe.program)
    rewritten = run(recipe, tree, scratch, "rewritten", sys.executable)
    shutil.rmtree(tree)
    if not compare or rewritten.error is not None or not rewritten.runs:
        return Tried(recipe, style, rewritten, None)
    python, tree = sys.executable, scratch / f"{recipe.name}-reference"
    copy(repository, tree)
    if recipe.reference == "original":
        old = tf1_python()
        if old is None:
            return Tried(recipe, style, rewritten, None, problem="no TensorFlow 1.15 here")
        python = old
    else:
        program = tree / recipe.program
        if program.suffix == ".py":
            program.write_text(program.read_text("utf-8") + _NEVER_LOOP, "utf-8")
        towermigrate("rewrite", str(tree), "--style", "loop", "--refused", "symbols")
    reference = run(recipe, tree, scratch, recipe.reference, python)
    shutil.rmtree(tree)
    if reference.error is not None:
        return Tried(recipe, style, rewritten, reference, problem=reference.error)
    return _compared(recipe, style, rewritten, reference)


def run(recipe: Recipe, tree: Path, scratch: Path, side: str, python: str) -> Side:
    """One process: a recipe on a tree."""
    out = scratch / f"{recipe.name}-{side}.out.json"
    for each in (out, Path(f"{out}.npz")):
        each.unlink(missing_ok=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "TF_CONFIG", "PYTHONHOME")
    }
    environment |= {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_USE_LEGACY_KERAS": "1",
        "TOWERMIGRATE_DEVICES": "cpu:2",
        "PYTHONHASHSEED": "0",
    }
    if side != "original":
        paths = [str(ROOT), os.environ.get(PACKAGES, "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    began = time.monotonic()
    command = [python, str(HERE / "child.py"), str(recipe.path), str(tree), str(out), side]
    log = scratch / f"{recipe.name}-{side}.log"
    try:
        with log.open("wb") as file:
            subprocess.run(
                command, stdout=file, stderr=file, env=environment, timeout=LIMIT, check=False
            )
    except subprocess.TimeoutExpired:
        return Side(False, [], {}, f"not done after {LIMIT} s", LIMIT)
    seconds = time.monotonic() - began
    if not out.exists():
        return Side(False, [], {}, "the process died", seconds)
    report = json.loads(out.read_text("utf-8"))
    with numpy.load(f"{out}.npz", allow_pickle=False) as arrays:
        variables = {name: arrays[name] for name in arrays.files}
    kept = {name: report[name] for name in ("moved", "trainable", "mirrored")}
    return Side(report["built"], report["runs"], variables, report["error"], seconds, **kept)


def _style(document: dict[str, Any], path: str) -> str:
    """The style that the programs of a file got."""
    for file in document.get("files", ()):
        if file["path"] == path:
            for program in file["programs"]:
                if program["status"] == "converted":
                    return program.get("style") or "loop"
    return "symbols"


def _compared(recipe: Recipe, style: str, rewritten: Side, reference: Side) -> Tried:
    problem = None
    count = min(len(rewritten.runs), len(reference.runs))
    if [len(run) for run in rewritten.runs] != [len(run) for run in reference.runs]:
        problem = "the runs returned other numbers of values"
    losses = max(
        (
            _far(one, other)
            for ours, theirs in zip(rewritten.runs[:count], reference.runs[:count], strict=True)
            for one, other in zip(ours, theirs, strict=False)
        ),
        default=0.0,
    )
    ours, theirs = rewritten.variables, reference.variables
    if set(ours) != set(theirs):
        odd = sorted(set(ours) ^ set(theirs))
        problem = f"{len(odd)} variables on one side only: {odd[0]}"
    if not ours:
        problem = "no variable was compared"
    if style == "session" and rewritten.mirrored < rewritten.trainable:
        alone = rewritten.trainable - rewritten.mirrored
        problem = f"{alone} of {rewritten.trainable} variables are not mirrored"
    variables = 0.0
    for name in set(ours) & set(theirs):
        if ours[name].shape != theirs[name].shape:
            problem = f"{name} has another shape"
        elif ours[name].dtype.kind in "fiub" and not (recipe.races and recipe.races in name):
            variables = max(variables, _far(ours[name], theirs[name]))
    rewritten, reference = replace(rewritten, variables={}), replace(reference, variables={})
    return Tried(recipe, style, rewritten, reference, losses, variables, problem)


def _far(one: Any, other: Any) -> float:
    """The largest difference, relative to the other's size above one; infinite where only one is a number."""
    one, other = numpy.asarray(one, "float64"), numpy.asarray(other, "float64")
    if one.size == 0:
        return 0.0
    if not numpy.array_equal(numpy.isfinite(one), numpy.isfinite(other)):
        return float("inf")
    with numpy.errstate(invalid="ignore"):
        distance = numpy.abs(one - other) / numpy.maximum(1.0, numpy.abs(other))
    return float(numpy.max(numpy.nan_to_num(distance)))
