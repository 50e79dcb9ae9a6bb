"""Whether the towers of a loop share their variables, and whether what says so says anything else."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.kinds import Traits
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.refusal import Reasons, note
from towermigrate.recognize.syntax import binds, reads
from towermigrate.towers.names import differing_name
from towermigrate.towers.twice import TowerLoop, Turns

_MOST = 5
"""How many places are said that go by one flag: what goes by it makes others go by it."""


def turns_of(traits: Traits, candidate: Candidate) -> Turns:
    """What the towers of a loop do."""
    span = candidate.file.span(candidate.turns or candidate.written or candidate.loop)
    counters = reads(candidate.loop.target) if candidate.turns is not None else ()
    return traits.turns(TowerLoop(span.path, span.line, span.column, frozenset(counters)))


def own_variable(traits: Traits, candidate: Candidate, rule: str) -> Finding | None:
    """Where a variable of the towers has a name that differs between them; None where that is nowhere."""
    event = differing_name(turns_of(traits, candidate))
    if event is None:
        return None
    text, place = traits.tree.sources[event.place.path], event.place
    name = ast.get_source_segment(text, event.node) if event.node is not None else "a name"
    assert isinstance(event.written, ast.Call)
    function = ast.get_source_segment(text, event.written.func)
    differs = "differs between the towers: each has variables of its own name"
    if event.each_time:
        differs = (
            "may differ between the towers, as it goes by what need not be the same each time: then each has "
            "variables of its own name"
        )
    message = f"`{name}` in `{function}` {differs}"
    return Finding(rule, place.path, place.line, place.column, " ".join(message.split()))


def check_variable_names(reasons: Reasons, traits: Traits, candidate: Candidate) -> None:
    """Say where the towers have variables of their own, or that it cannot be told."""
    found = own_variable(traits, candidate, "TM218")
    if found is None and not turns_of(traits, candidate).whole:
        found = note(
            "TM218", candidate.file, candidate.loop, "the towers cannot be followed in all their parts"
        )  # fmt: skip
    if found is not None:
        reasons.findings.append(found)


def check_flags(
    reasons: Reasons, traits: Traits, candidate: Candidate, kept: Sequence[cst.BaseStatement]
) -> None:
    """Say what goes by a flag for the reuse of variables and is something else.

    It becomes the first tower's value, also in the statements `kept` in the tower, which therefore must not bind it.
    """
    turns = turns_of(traits, candidate)
    for event in turns.decides[:_MOST]:
        text, place = traits.tree.sources[event.place.path], event.place
        node = (
            event.written.test if isinstance(event.written, ast.If | ast.While) else event.written
        )
        written = (ast.get_source_segment(text, node) or "").partition("\n")[0]
        message = f"what says whether variables are reused, which differs between the towers, decides more in `{written}`"
        reasons.findings.append(
            Finding("TM214", place.path, place.line, place.column, " ".join(message.split()))
        )
    for statement in kept:
        for name in sorted(set(binds(statement)) & turns.flags.keys()):
            reasons.say(
                "TM214",
                candidate.file,
                statement,
                f"the reuse flag `{name}` is set in a way that is not understood",
            )
