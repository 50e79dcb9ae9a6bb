"""Source -> TowerProgram: find tower loops and describe the programs around them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from towermigrate.faults import what_failed
from towermigrate.findings import Finding
from towermigrate.hints import hints_of, may_hold_towers
from towermigrate.program import Recognition
from towermigrate.recognize.assemble import analyse
from towermigrate.recognize.kinds import Traits
from towermigrate.recognize.loops import Candidate, LoopFinder
from towermigrate.recognize.proof import Codes
from towermigrate.recognize.refusal import note
from towermigrate.recognize.source import Tree


@dataclass(frozen=True)
class Place:
    """A tower loop where it stands in its tree, and what is known of the tree's functions."""

    tree: Tree
    traits: Traits
    candidate: Candidate


def recognize_tree(
    sources: Mapping[str, str],
    among: Collection[str] | None = None,
    links: Mapping[str, str] = MappingProxyType({}),
) -> list[Recognition]:
    """Every tower loop of a tree.

    Args:
        sources: file texts by path relative to the tree's root, forward slashes.
        among: the files that may hold one, by `hints.may_hold_towers`; None finds that out.
        links: texts of the tree's other files, which hold none but may call or be called.

    Returns:
        One `Recognition` per tower loop, by path and line: with a `program` where loop style is proved to mean
        the same, else with everything that keeps it from loop style, most important first. A fault of
        towermigrate's own is a finding of its program (TM290).
    """
    tree = Tree({**links, **sources})
    traits = Traits(tree)
    codes = Codes(tree)
    finder = LoopFinder(tree)
    found: list[Recognition] = []
    for path in sorted(may_hold_towers(hints_of(sources)) if among is None else among):
        file = tree.file(path)
        if file is None:
            continue
        try:
            candidates, spreads = finder.loops(file), finder.spreads(file)
        except RecursionError:
            raise  # whoever asked looks for the file that nests too deeply
        except Exception as error:  # one file's fault is no other's
            problem = Finding("TM290", path, 1, 0, what_failed(error))
            found.append(Recognition(path, None, 1, None, (problem,)))
            continue
        for candidate in candidates:
            if candidate.turns is not None:
                spreads.append(candidate)
                continue
            analysis, reasons = analyse(tree, traits, codes, candidate)
            program = analysis.program if analysis is not None and not reasons else None
            found.append(
                Recognition(
                    path,
                    candidate.qualified,
                    file.line(candidate.loop),
                    program,
                    tuple(reasons),
                    analysis,
                    Place(tree, traits, candidate),
                )
            )
        for candidate in spreads:
            where = candidate.turns or candidate.loop.iter
            built_by = "a comprehension or `map`" if candidate.turns is None else "a `while` loop"
            reason = note("TM201", file, where, f"the towers are built by {built_by}")
            place = Place(tree, traits, candidate)
            line = file.line(where)
            found.append(Recognition(path, candidate.qualified, line, None, (reason,), None, place))
    return found
