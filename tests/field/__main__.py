"""`python -m tests.field FOLDER`: what the tool makes of every repository in a folder (`owner__name` each)."""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.field.building import Tried, attempt, recipes
from tests.field.ledger import Row, markdown
from tests.field.places import PLACES
from tests.field.rewriting import Rewritten, rewrite

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.field", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[], help="repositories or recipes")
    parser.add_argument(
        "--build", action="store_true", help="run the recipes of rewritten programs"
    )
    parser.add_argument("--verify", action="store_true", help="and compare with the originals")
    parser.add_argument("--no-rewrite", action="store_true", help="only what --build asks for")
    parser.add_argument("--scratch", type=Path, help="keep what was made here")
    parser.add_argument("--keep", action="store_true", help="what --scratch has stays as it is")
    parser.add_argument("--table", type=Path, help="write the table there, as Markdown")
    parser.add_argument("--json", type=Path, help="write all that was found there")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch: Path = chosen.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        rows = _rows(chosen, scratch.resolve())
    text = markdown(rows, sorted(set(PLACES) - {row.repository for row in rows}))
    print(text)
    if chosen.table:
        chosen.table.write_text(text, "utf-8")
    if chosen.json:
        document = [asdict(row) for row in rows]
        chosen.json.write_text(json.dumps(document, indent=1, default=_plain), "utf-8")


def _rows(chosen: argparse.Namespace, scratch: Path) -> list[Row]:
    rows = []
    known = recipes()
    for repository in sorted(chosen.folder.iterdir(), key=lambda path: path.name.lower()):
        name = repository.name.replace("__", "/", 1)
        own = [each for each in known if each.repository == name]
        if chosen.only and name not in chosen.only:
            own = [each for each in own if each.name in chosen.only]
            if not own:
                continue
        outcome: Rewritten | None = None
        if not chosen.no_rewrite:
            kept = scratch / f"{repository.name}.rewritten"
            outcome = _kept(kept, chosen.keep, partial(rewrite, repository, scratch))
        tried: list[Tried] = []
        if chosen.build or chosen.verify:
            for recipe in own:
                kept = scratch / f"{recipe.name}.tried"
                run = partial(attempt, recipe, repository, scratch, chosen.verify)
                found = _kept(kept, chosen.keep, run)
                known_now = replace(found.recipe, differs=recipe.differs)
                tried.append(replace(found, recipe=known_now))
        rows.append(Row(name, outcome, tuple(tried)))
        print(rows[-1].line(), flush=True)
    return rows


def _kept(path: Path, keep: bool, make: Callable[[], T]) -> T:
    """What an earlier run of the command left behind, or made now."""
    if keep and path.exists():
        left: T = pickle.loads(path.read_bytes())
        return left
    made = make()
    path.write_bytes(pickle.dumps(made))
    return made


def _plain(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else str(value)


if __name__ == "__main__":
    main()
