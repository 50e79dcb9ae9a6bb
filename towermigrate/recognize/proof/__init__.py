"""The proof that loop style asks for: nothing moves into a step that could mean something else there.

The program is run once on symbolic values, scope by scope (`towers`), by rules that allow what is known to be
pure and nothing else (`library`). What moved statements read from around them must stay as it was (`settled`),
what runs fetch must draw what the step draws (`session`), and names must be what they are spelled (`spelling`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from towermigrate.findings import Finding
from towermigrate.recognize.analysis import Run, Scope, StageParts
from towermigrate.recognize.proof.assumed import settings_around
from towermigrate.recognize.proof.classes import check_classes
from towermigrate.recognize.proof.code import Codes
from towermigrate.recognize.proof.elsewhere import check_elsewhere
from towermigrate.recognize.proof.kept import check_kept
from towermigrate.recognize.proof.machine import OutOfSteps
from towermigrate.recognize.proof.norms import check_norms
from towermigrate.recognize.proof.own_scopes import check_scoped
from towermigrate.recognize.proof.places import check_places
from towermigrate.recognize.proof.randomness import check_random
from towermigrate.recognize.proof.regularizers import check_regularizers
from towermigrate.recognize.proof.saved import check_saved
from towermigrate.recognize.proof.session import SessionCheck
from towermigrate.recognize.proof.settled import check_reads
from towermigrate.recognize.proof.slim import check_arg_scopes
from towermigrate.recognize.proof.so_far import check_sums
from towermigrate.recognize.proof.spelling import check_spelling
from towermigrate.recognize.proof.switched import check_switches
from towermigrate.recognize.proof.tags import check_tags
from towermigrate.recognize.proof.towers import TowerProof, check_lists, place_of
from towermigrate.recognize.proof.values import text_of
from towermigrate.recognize.proof.variable_names import check_variable_names
from towermigrate.recognize.refusal import note
from towermigrate.recognize.scope import Item
from towermigrate.recognize.tower import Body


@dataclass(frozen=True)
class Proved:
    """What a proof found.

    Attributes:
        findings: everything that keeps the program from loop style.
        scaled: whether a tower may divide its loss by a count of all towers' examples.
        normalizes: whether the towers have moving averages of batch normalisation.
        tags: those of the summaries that stand in the scope of all, without case.
        numbered: what would keep it from loop style if a scope that the towers enter were one around them: where that
            is entered, and what TF1 would number then.
        sums: the functions of the towers' file, and their calls, that sum a collection of all towers.
        scoped: those that read one by the text of the tower's name scope.
    """

    findings: list[Finding]
    scaled: bool = True
    normalizes: bool = True
    tags: frozenset[str] = frozenset()
    numbered: tuple[tuple[Finding, Finding], ...] = ()
    sums: tuple[tuple[str, str], ...] = ()
    scoped: tuple[tuple[str, str], ...] = ()


def prove(
    codes: Codes,
    scope: Scope,
    before: Sequence[Item],
    after: Sequence[Item],
    body: Body | None,
    stages: Sequence[StageParts],
    runs: Sequence[Run],
) -> Proved:
    """Everything that keeps a program from loop style, as far as its parts are known; nothing is a proof.

    Args:
        codes: the files of the tree.
        scope: what the readers know of the scope around the tower loop.
        before, after: the statements around the loop with their kinds.
        body: the loop's body taken apart, None where that failed.
        stages, runs: what was read of them; empty where that failed.
    """
    file = scope.file
    code = codes.code(file.path)
    if code is None:
        message = "the file is not understood by this Python, so nothing could be proved of it"
        return Proved([note("TM222", file, scope.candidate.loop, message)])
    averages = {
        place_of(file, stage.average): scope.tree.resolve(file, stage.average.func)
        for stage in stages
        if stage.mean is None
    }
    of_means = frozenset(
        (code.path, *place_of(file, stage.average)) for stage in stages if stage.mean is not None
    )

    def unfollowed(assumed: str | None = None) -> TowerProof:
        made = TowerProof(codes, scope, code, body, averages)
        made.of_means, made.assumed = of_means, assumed
        return made

    def follow(one: TowerProof) -> SessionCheck:
        one.before(before)
        one.run_tower()
        session = SessionCheck(one, runs)
        one.after(after, session.graph, session.stays)
        return session

    proof = unfollowed()
    try:
        session = follow(proof)
        session.services.scope(proof.function[0] if proof.function else code.tree)
        session.say_short(_settled(proof, session, lambda test: follow(unfollowed(test))))
        check_lists(proof)
        check_random(proof)
        check_norms(proof)
        check_regularizers(proof, code)
        check_arg_scopes(proof, code, proof.function)
        check_reads(proof)
        check_classes(proof)
        check_spelling(proof)
        check_places(proof)
        check_switches(proof)
        check_elsewhere(proof)
        check_saved(proof)
        check_tags(proof)
        check_kept(proof)
        check_sums(proof, code)
        check_scoped(proof, code, proof.loop)
        check_variable_names(proof)
        _check_means(proof, stages)
    except OutOfSteps:
        if scope.reasons.findings or proof.findings:
            return Proved(list(proof.findings.values()))
        message = "the program is too large to be followed"
        too_large = note("TM222", file, scope.candidate.loop, message)
        return Proved([*proof.findings.values(), too_large])
    scoped = body is not None and body.name_scope is not None
    made = [one for one in proof.tags if one.in_step or not scoped]
    tags = frozenset((text_of(one.tag) or "").lower() for one in made)
    inside = {id(each) for each in ast.walk(proof.loop)}
    numbered = tuple(
        (code.finding("TM218", entered, ""), finding)
        for entered, finding in proof.numbered
        if id(entered) in inside
    )
    sums = tuple((each.function, ast.unparse(each.call)) for each in proof.used_sums)
    scopes = tuple((each.function, ast.unparse(each.call)) for each in proof.scoped.values())
    found = list(proof.findings.values())
    return Proved(found, proof.scaled, bool(proof.norms), tags, numbered, sums, scopes)


def _settled(
    proof: TowerProof, session: SessionCheck, under: Callable[[str], SessionCheck]
) -> set[int]:
    """The runs that need all that a step draws where a setting holds that they stand under; they are told which."""
    settled: set[int] = set()
    found: dict[str, SessionCheck] = {}
    for key, (call, run, _) in session.short.items():
        for test in settings_around(proof, call):
            if test not in found:
                found[test] = under(test)
            if key not in found[test].short and run is not None:
                run.under = test
                settled.add(key)
                break
    return settled


def _check_means(proof: TowerProof, stages: Sequence[StageParts]) -> None:
    """Report lists whose mean is trained and that do not hold one value of each tower and nothing else."""
    for stage in stages:
        held = proof.lists.get(stage.mean.listed) if stage.mean is not None else None
        one = held is not None and [sure for _, sure in held.values] == [True]
        if stage.mean is not None and not one:
            proof.always(
                "TM203", proof.code, proof.loop,
                f"`{stage.mean.listed}`, whose mean is trained, may hold more than one value of each tower",
            )  # fmt: skip


__all__ = ["Codes", "prove"]
