"""Source -> TowerProgram: find tower loops and describe the programs around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from weakref import WeakKeyDictionary

from towermigrate.faults import what_failed
from towermigrate.findings import Finding
from towermigrate.hints import hints_of, may_hold_towers
from towermigrate.program import Recognition
from towermigrate.recognize.analysis import Analysis
from towermigrate.recognize.assemble import analyse
from towermigrate.recognize.carried import Carried
from towermigrate.recognize.carrying import carried
from towermigrate.recognize.count import tower_count
from towermigrate.recognize.handed_inputs import handed_inputs
from towermigrate.recognize.inlining import inlined
from towermigrate.recognize.joined import Again, Joined
from towermigrate.recognize.kinds import Traits
from towermigrate.recognize.loops import Candidate, LoopFinder
from towermigrate.recognize.plain import OF_TOWERS, Plain, may_be_spread, plain
from towermigrate.recognize.plain.changes import PlainFile
from towermigrate.recognize.plain.switches import switched_lines
from towermigrate.recognize.proof import Codes
from towermigrate.recognize.python_scopes import Unjoined
from towermigrate.recognize.refusal import STRUCTURE, by_importance, note
from towermigrate.recognize.source import Tree
from towermigrate.recognize.spelled_out import spelled_out

_OF_TOWERS = frozenset({"TM207", "TM214", "TM218", "TM228", "TM232"})
"""Rules of what towers compute: how runs, feeds and placeholders are spelled is no matter to them."""

_HANDED_ON = {"TM202", "TM203", "TM204", "TM205", "TM208", "TM217"}
"""What is said of a program that hands on what it builds: an update that is given to a function is used for more than runs, placeholders come from elsewhere."""
_FIRST = re.compile(
    r"^\s+\w+ *= *\(?(?:not |bool\(|True if )?\(?\w+ *(?:[>!=]=? *[01]\b|\))", re.MULTILINE
)
"""How a name begins to say whether a tower is the first one."""
_DEPTH = 3
"""How many functions may hand on, one to the other, what the first one builds."""


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
        own: list[Recognition] = []
        for candidate in candidates:
            if candidate.turns is not None:
                spreads.append(candidate)
                continue
            place = Place(tree, traits, candidate)
            told = _recognised(place, codes)
            rules = {each.rule for each in told.findings}
            # A scope around the towers may say that they share, or a name for `i > 0`.
            if "AUTO_REUSE" in file.text or _FIRST.search(file.text):
                rules -= {"TM218"}
            if "UPDATE_OPS" in file.text:  # how they are kept until they are run is a spelling
                rules -= {"TM207"}
            if "merge_all()" in file.text:  # summaries of the first tower only
                rules -= {"TM214"}
            # Of functions that were not read as one, not all is said that there is to say.
            if not rules & _OF_TOWERS or "TM205" in rules:
                try:
                    spelled = _in_plain_spelling(place, told.program is not None)
                    if spelled is not None and (spelled.program or told.program is None):
                        told = spelled
                except RecursionError:
                    raise  # whoever asked looks for the file that nests too deeply
                except Exception as error:  # one program's fault is no other's
                    fault = note("TM290", file, candidate.loop, what_failed(error))
                    told = replace(told, program=None, findings=(*told.findings, fault))
            own.append(_without_switches(tree, told))
        found += _joined_loops(own)
        for candidate in spreads:
            found.append(_not_a_for(tree, traits, candidate))
    return found


def _without_switches(tree: Tree, told: Recognition) -> Recognition:
    """What is said of a program without the lines that would go with TensorFlow 1's behaviour, where there are other reasons."""
    own = [each for each in told.findings if each.rule == "TM236" and each.path == told.path]
    if not own or told.program is not None or len(own) == len(told.findings):
        return told
    try:
        lines = switched_lines(tree, PlainFile(told.path, tree.sources[told.path]))
    except Unjoined:
        return told
    kept = tuple(each for each in told.findings if each not in own or each.line not in lines)
    return replace(told, findings=kept) if kept else told


def _joined_loops(found: list[Recognition]) -> list[Recognition]:
    """What is said of a file's loops, with those marked that a program in plain spelling has together with its own."""
    mains: dict[int, int] = {}
    for told in found:
        made = told.analysis.plain if isinstance(told.analysis, Analysis) else None
        if told.program is None or made is None or told.path not in made.texts:
            continue
        file = made.tree.file(told.path)
        loops = LoopFinder(made.tree).loops(file) if file is not None else []
        left = {made.line(told.path, each.file.line(each.loop))[1] for each in loops}
        gone = {each.line for each in found if each.function == told.function} - left
        mains.update(dict.fromkeys(gone, told.line))
    return [
        replace(each, part_of=mains[each.line])
        if each.line in mains and each.program is None
        else each
        for each in found
    ]


def _recognised(place: Place, codes: Codes) -> Recognition:
    """What is said of a tower loop that is a `for`."""
    candidate = place.candidate
    analysis, reasons = analyse(place.tree, place.traits, codes, candidate)
    as_one = _as_one_function(place, reasons)
    if as_one is not None:
        return as_one
    program = analysis.program if analysis is not None and not reasons else None
    line = candidate.file.line(candidate.loop)
    return Recognition(
        candidate.file.path, candidate.qualified, line, program, tuple(reasons), analysis, place
    )


def _in_plain_spelling(place: Place, known: bool) -> Recognition | None:
    """What is said of the same program in plain spellings; None where it has no others, or they are not its own.

    Args:
        known: whether it is in loop style as it is.
    """
    found = _in_spelling(place, spread=False)
    if known and (found is None or found.program is None):
        # What may end the program is evaluated in any spelling.
        return _in_spelling(place, spread=False, devices=True)
    known = known or found is not None and found.program is not None
    if not known and _may_be_spread(place):
        other = _in_spelling(place, spread=True)
        found = other if other is not None and other.program is not None else found
    return found


def _may_be_spread(place: Place) -> bool:
    path, known = place.candidate.file.path, _SPELLINGS.setdefault(place.traits, _Spellings())
    if path not in known.may_be_spread:
        known.may_be_spread[path] = may_be_spread(place.tree, path)
    return known.may_be_spread[path]


def _in_spelling(place: Place, spread: bool, devices: bool = False) -> Recognition | None:
    made = _plain(place, None, spread, devices)
    if made is None:
        return None
    found = _spelled(place, made)
    own = _functions_of(found) if found is not None else {}
    for p, names in made.where.items():
        # What towers call may be a class that a star imports, whose methods are not told by their calls.
        words = set(re.findall(r"\w+", place.candidate.file.text))
        called = {
            n for n in names if n.startswith(OF_TOWERS) and n.removeprefix(OF_TOWERS) in words
        }
        own.setdefault(p, set()).update(called)
    if found is not None and any(names - own.get(p, set()) for p, names in made.where.items()):
        # What is spelled otherwise in functions of others stays as it is.
        theirs = {p: names & own.get(p, set()) for p, names in made.where.items()}
        made = _plain(place, theirs, spread, devices)
        found = None if made is None else _spelled(place, made)
    return found


@dataclass
class _Spellings:
    """The plain spellings of a tree's files that were asked for, and what the functions of each do."""

    made: dict[object, Plain | None] = field(default_factory=dict)
    traits: dict[int, Traits] = field(default_factory=dict)
    loops: dict[int, tuple[list[Candidate], Codes]] = field(default_factory=dict)
    """The loops of the file in each, and its files as proofs read them."""
    may_be_spread: dict[str, bool] = field(default_factory=dict)


_SPELLINGS: WeakKeyDictionary[Traits, _Spellings] = WeakKeyDictionary()


def _plain(
    place: Place, where: Mapping[str, frozenset[str]] | None, spread: bool, devices: bool
) -> Plain | None:
    """A file in plain spellings: read once for all its tower loops."""
    path, known = place.candidate.file.path, _SPELLINGS.setdefault(place.traits, _Spellings())
    key = (path, None if where is None else frozenset(where.items()), spread, devices)
    if key not in known.made:
        made = plain(place.tree, path, where, handed_inputs, spread, devices)
        known.made[key] = made
        if made is not None:
            known.traits[id(made)] = Traits(made.tree)
    return known.made[key]


def _spelled(place: Place, made: Plain) -> Recognition | None:
    candidate = place.candidate
    file, line = candidate.file, candidate.file.line(candidate.loop)
    known = _SPELLINGS[place.traits]
    if id(made) not in known.loops:
        there = made.tree.file(file.path)
        found = LoopFinder(made.tree).loops(there) if there is not None else []
        known.loops[id(made)] = found, Codes(made.tree)
    loops, codes = known.loops[id(made)]
    same = [
        each
        for each in loops
        if each.turns is None
        and each.qualified == candidate.qualified
        and made.line(file.path, each.file.line(each.loop)) == (file.path, line)
    ]
    if len(same) != 1:
        return None
    told = _recognised(Place(made.tree, known.traits[id(made)], same[0]), codes)
    analysis = told.analysis
    if not isinstance(analysis, Analysis) or any(each.rule == "TM290" for each in told.findings):
        return None
    joined = analysis.joined
    lists = set(analysis.scope.lists)
    lists |= {joined.own_name(name) for name in lists} if joined is not None else set()
    if lists & made.twice:
        return None
    analysis.plain = made
    inner = told.original

    def original(finding: Finding) -> Finding:
        return made.original(inner(finding))

    # What stands in front of the loop in the author's text is around the towers, where TF1 counts over all of them.
    numbered = [
        inner(each)
        for scope, each in analysis.numbered
        if (at := original(scope)).path == file.path and at.line < line
    ]
    program = None if numbered else told.program
    said = [made.original(each) for each in (*told.findings, *numbered)]
    return replace(
        told,
        line=line,
        program=None if program is None else made.program(program, candidate.qualified, line),
        findings=tuple(by_importance(said, file.path)),
        place=place,
        original=original,
    )


def _functions_of(found: Recognition) -> dict[str, set[str]]:
    """The outermost functions that a program is made of, by file; `""` for the module itself."""
    analysis = found.analysis
    own = {found.path: {(found.function or "").partition(".")[0]}}
    if isinstance(analysis, Analysis) and analysis.joined is not None:
        joined = analysis.joined
        own.setdefault(joined.path, set()).add(joined.caller or "")
        for part in joined.parts:
            own.setdefault(part.path, set()).add(part.name)
        if isinstance(joined, Carried):
            for body in joined.bodies:
                own.setdefault(body.path, set()).add(body.name)
            if joined.opened is not None:  # what the file does as a program
                own[joined.path].add("")
    for names in own.values():
        names |= {OF_TOWERS + name for name in names}
    for file, node in analysis.tower_functions if isinstance(analysis, Analysis) else ():
        for qualified, function in file.functions.items():
            if function.node is node:
                own.setdefault(file.path, set()).add(OF_TOWERS + qualified.partition(".")[0])
    return own


def _as_one_function(place: Place, reasons: list[Finding]) -> Recognition | None:
    """A program whose graph is built in one function and run in others, or of which others make inputs and rates.

    None where they cannot be read as one.
    """
    apart = {each.rule for each in reasons} & STRUCTURE
    if "TM205" not in apart:
        found = _joined(place, [*reasons], inlined)
        return found if found is not None and found.program is not None else None
    for join in (inlined, carried):
        if join is inlined and not apart <= _HANDED_ON:
            continue
        found = _joined(place, reasons, join)
        if found is not None:
            return found
    return None


def _joined(
    place: Place, reasons: list[Finding], join: Callable[[Tree, Candidate], Joined | None]
) -> Recognition | None:
    """What a program is whose functions one way of joining reads as one."""
    candidate = place.candidate
    try:
        made = join(place.tree, candidate)
        if made is None:
            return None
        # What a file does as a program is its statements, whatever else stands in the way.
        of_file = isinstance(made, Carried) and made.opened is not None and not made.bodies
        analysis, found = _analysed(made.tree, made.path, made.loop_line)
        for _ in range(_DEPTH):
            # A function that runs what it is handed may hand it on.
            may_be_more = join is inlined or of_file
            if not may_be_more or not any(each.rule == "TM205" for each in found):
                break
            outer = None if analysis is None else inlined(made.tree, analysis.candidate, made.texts)
            if outer is None:
                break
            made = Again.of(outer, made)
            analysis, found = _analysed(made.tree, made.path, made.loop_line)
    except RecursionError:
        raise  # whoever asked looks for the file that nests too deeply
    except Exception as error:  # one program's fault is no other's: what is known of it stands
        reasons.append(note("TM290", candidate.file, candidate.loop, what_failed(error)))
        return None
    if analysis is None or any(each.rule == "TM290" for each in found):
        return None
    if any(each.rule == "TM205" for each in found) and not of_file:
        return None
    analysis.joined = made
    program = None
    line = candidate.file.line(candidate.loop)
    if not found and analysis.program is not None:
        program = made.program(analysis.program, candidate.qualified, line)
        count = tower_count(place.tree, candidate.file, candidate.loop, candidate.function)
        program = replace(program, loop=replace(program.loop, count=count))
    told = by_importance([made.original(each) for each in found], candidate.file.path)
    return Recognition(
        candidate.file.path, candidate.qualified, line, program, tuple(told), analysis, place, made.original
    )  # fmt: skip


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
            other = Tree({**tree.sources, as_for.path: as_for.text}, like=tree)
            analysis, found = _analysed(other, as_for.path, as_for.line)
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


def _analysed(tree: Tree, path: str, line: int) -> tuple[Analysis | None, list[Finding]]:
    """`analyse` of the tower loop at a line, of a tree that was made from the author's."""
    file = tree.file(path)
    for candidate in LoopFinder(tree).loops(file) if file is not None else ():
        if candidate.turns is None and candidate.file.line(candidate.loop) == line:
            return analyse(tree, Traits(tree), Codes(tree), candidate)
    return None, []
