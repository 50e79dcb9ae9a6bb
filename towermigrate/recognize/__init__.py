"""Source -> TowerProgram: find tower loops and describe the programs around them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from towermigrate.faults import what_failed
from towermigrate.findings import Finding
from towermigrate.hints import hints_of, may_hold_towers
from towermigrate.program import Recognition
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.assemble import analyse
from towermigrate.recognize.kinds import Traits
from towermigrate.recognize.loops import Candidate, LoopFinder
from towermigrate.recognize.proof import Codes
from towermigrate.recognize.refusal import by_importance, note
from towermigrate.recognize.source import Tree
from towermigrate.recognize.spelled_out import SpelledOut, spelled_out


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
    imports: Mapping[str, set[str]] | None = None,
) -> list[Recognition]:
    """Every tower loop of a tree.

    Args:
        sources: file texts by path relative to the tree's root, forward slashes.
        among: the files that may hold one, by `hints.may_hold_towers`; None finds that out.
        links: texts of the tree's other files, which hold none but may call or be called.
        imports: the files of the tree that each file imports; None finds that out.

    Returns:
        One `Recognition` per tower loop, by path and line: with a `program` where loop style is proved to mean
        the same, else with everything that keeps it from loop style, most important first. A fault of
        towermigrate's own is a finding of its program (TM290).
    """
    tree = Tree({**links, **sources}, imports)
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
            found.append(_not_a_for(tree, traits, candidate))
    return found


def _not_a_for(tree: Tree, traits: Traits, candidate: Candidate) -> Recognition:
    """What is to be said of towers that no `for` builds: that, and all that would keep a `for` from loop style."""
    file = candidate.file
    where = candidate.turns or candidate.loop.iter
    built_by = "a comprehension or `map`" if candidate.turns is None else "a `while` loop"
    reasons = [note("TM201", file, where, f"the towers are built by {built_by}")]
    analysis: Analysis | None = None
    original: Callable[[Finding], Finding] = _as_it_is
    try:
        as_for = spelled_out(candidate)
        if as_for is not None:
            analysis, found = _analysed(tree, as_for)
            found = [each for each in found if each.rule != "TM290"]
            original = as_for.original
            reasons += [original(each) for each in found if as_for.is_of_author(each)]
    except RecursionError:
        raise  # whoever asked looks for the file that nests too deeply
    except (
        Exception
    ):  # one reason is known, which is enough; the others would only have been more of them
        analysis, original = None, _as_it_is
    return Recognition(
        file.path, candidate.qualified, file.line(where), None, tuple(by_importance(reasons, file.path)),
        analysis, Place(tree, traits, candidate), original,
    )  # fmt: skip


def _as_it_is(finding: Finding) -> Finding:
    return finding


def _analysed(tree: Tree, as_for: SpelledOut) -> tuple[Analysis | None, list[Finding]]:
    """`analyse` of a file in which the towers are built by a `for`."""
    other = Tree({**tree.sources, as_for.path: as_for.text})
    file = other.file(as_for.path)
    for candidate in LoopFinder(other).loops(file) if file is not None else ():
        if candidate.turns is None and candidate.file.line(candidate.loop) == as_for.line:
            return analyse(other, Traits(other), Codes(other), candidate)
    return None, []
