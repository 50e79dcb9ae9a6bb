"""Check that after a rewrite every TensorFlow name of a tree exists, or has a finding.

    python tests/symbols/check_tree.py TREE [TREE ...]

Each tree is rewritten in memory with `--refused symbols`; nothing is written. Then every name chain that starts
at TensorFlow or tf_slim, and every import of them, is looked up in the installed TensorFlow with legacy Keras.
Prints the names that do not exist and that no finding of their file mentions; exit code 1 where there are any.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import towermigrate.helpers  # noqa: F401  (first: it chooses legacy Keras)
from towermigrate.migrate import plan
from towermigrate.symbols.bindings import is_tensorflow
from towermigrate.symbols.scopes import file_names
from towermigrate.tree import parse_python


@dataclass
class Checked:
    """What one tree holds: names looked up, those that are missing and covered by a finding, and the gaps."""

    files: Counter[str] = field(default_factory=Counter)
    names: int = 0
    reported: int = 0
    gaps: list[tuple[str, int, str]] = field(default_factory=list)


def check(tree: Path) -> Checked:
    """Rewrite `tree` in memory and look up every TensorFlow name of the result."""
    migration = plan(tree, refused="symbols")
    result = Checked()
    for file in migration.report.files:
        result.files[file.status] += 1
        source = migration.files[file.path]
        text = migration.report.texts.get(file.path, source.text)
        if file.status == "unparsable" or text is None:
            continue
        messages = [finding.message for finding in file.findings]
        if file.path.endswith(".ipynb"):
            text = code_cells(text)
        try:
            names = sorted(tensorflow_names(text))
        except SyntaxError:
            result.files["not looked at"] += 1
            continue
        for line, dotted in names:
            result.names += 1
            if exists(dotted):
                continue
            if any(mentions(message, dotted) for message in messages):
                result.reported += 1
            else:
                result.gaps.append((file.path, line, dotted))
    return result


def tensorflow_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of every TensorFlow name a file uses or imports."""
    tree = parse_python(text)
    for use in file_names(tree).uses:
        yield use.chain.lineno, use.dotted
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name) for alias in node.names if is_tensorflow(alias.name)
            )
        elif isinstance(node, ast.ImportFrom) and is_tensorflow(node.module or ""):
            for alias in node.names:
                yield node.lineno, f"{node.module}" + (f".{alias.name}" * (alias.name != "*"))


def code_cells(notebook: str) -> str:
    """The code of a notebook as one program; lines for IPython become `pass`."""
    cells = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", code)


@cache
def exists(dotted: str) -> bool:
    """Whether a dotted name is there: modules and classes are looked into, other values are not."""
    first, *rest = dotted.split(".")
    value: Any = importlib.import_module(first)
    path = first
    for part in rest:
        path += "." + part
        if not (inspect.ismodule(value) or inspect.isclass(value)):
            return True
        try:
            value = getattr(value, part)
        except Exception:  # a lazily loaded member raises whatever its import raises
            try:
                value = importlib.import_module(path)
            except ImportError:
                return False
    return True


def mentions(message: str, dotted: str) -> bool:
    """Whether a finding's message names `dotted` or something that it is a part of, as `tf.…` or in full."""
    names = [dotted, dotted.replace("tensorflow.compat.v1", "tf", 1).replace("tensorflow", "tf", 1)]
    if dotted.startswith("tf_slim."):
        names += [dotted.replace("tf_slim", old, 1) for old in ("tf.contrib.slim", "tf.contrib")]
    quoted = message.split("`")[1::2]
    return any(name == end or name.startswith(end + ".") for name in names for end in quoted)


def main(trees: list[str]) -> int:
    """Check each tree and print what is missing; the exit code is 1 where a name has no finding."""
    gaps = 0
    for tree in trees:
        result = check(Path(tree))
        gaps += len(result.gaps)
        files = ", ".join(f"{count} {status}" for status, count in sorted(result.files.items()))
        print(
            f"{tree}: {files}; {result.names} names, {result.reported} missing with a finding, "
            f"{len(result.gaps)} without"
        )
        for path, line, dotted in result.gaps:
            print(f"  {path}:{line}: {dotted}")
    return int(gaps > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
