"""What is known of a program once it is recognised: its nodes, for the emitter.

`TowerProgram` is the description that others read; this is the same with the libcst nodes behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.program import (
    TowerProgram,
)
from towermigrate.recognize.joined import Joined
from towermigrate.recognize.kinds import IN_GRAPH, Kind, Kinds
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.plain import Plain
from towermigrate.recognize.refusal import Reasons
from towermigrate.recognize.scope import (
    Item,
)
from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import (
    assigned,
    elements,
    small,
)
from towermigrate.recognize.tables import Table
from towermigrate.recognize.tower import Body, Compute, Mean
from towermigrate.towers.averages import Averaging


@dataclass
class Placeholder:
    """A `tf.placeholder` of the scope, or a list of one for each tower; `default` is what one with a default has."""

    name: str
    item: Item
    dtype: cst.BaseExpression
    shape: cst.BaseExpression | None
    default: cst.BaseExpression | None = None


@dataclass
class StageParts:
    """One stage: the tower's gradients, how they are averaged and where they are applied.

    One whose gradients are taken of the `mean` of the towers' losses is averaged where they are; what `minimize` applies
    is `written` as a call of its own.
    """

    compute: Compute
    average: cst.Call
    average_item: Item
    averaged: str | None
    apply: cst.Call
    apply_item: Item
    name: str
    how: Averaging
    mean: Mean | None = None
    written: cst.Call | None = None

    @property
    def optimizer(self) -> cst.BaseExpression:
        """What computes the gradients and applies them."""
        assert isinstance(self.apply.func, cst.Attribute)
        return self.apply.func.value


@dataclass
class Run:
    """One `sess.run`: its fetched names and its feeds.

    One that picks what it fetches of tables is a run for each of their keys, all of the same call: `table` is the one
    that holds the updates, `picked` the text of what picks, `key` the run's own. One that `evaluates` fetches values
    of evaluations only. `under` is a setting that it stands under and that what it fetches is proved for only.
    """

    call: cst.Call
    item: Item
    fetches: list[str]
    single: bool
    feeds: dict[str, cst.BaseExpression]
    feed_name: str | None = None
    trains: list[int] = field(default_factory=list)
    table: Table | None = None
    picked: str = ""
    key: str = ""
    evaluates: bool = False
    under: str | None = None


@dataclass
class Scope:
    """The scope around one tower loop: what its readers share and fill in.

    `placeholders` and `splits` are found before the loop (a split maps to the name it splits), `means` map
    the mean of a list over the towers to that list, `feed_dicts` are the assignments of dicts that runs feed
    by name, `merges` the calls of `merge_all` all of whose summaries are known, `tables` the tables of what runs fetch.
    `lists` maps the names of a list over the towers' values, as it is when they are run, to the list.
    `iterators` are those of the input pipeline that a run starts, `started` the calls of the runs that do, `restarts` those that do
    so in a loop, or feed what the pipeline reads; `fed_inputs` are the placeholders that these feed, in their order.
    `whole_means` are the means that are of all elements of their list, whatever the shape of what it holds.
    `trained` maps the calls behind the towers, by their identity, that compute the gradients of a mean to that mean.
    `described` are the statements that only say what the variables are called, and the nodes that ask it, `shown` those of
    them that list variables in whose place the helpers show what TF1 said of them.
    `front` are the statements in front of the towers.
    `reads_mutable` says that moved statements read what something may change after the graph was built.
    """

    tree: Tree
    candidate: Candidate
    kinds: Kinds
    front: Sequence[Item] = ()
    placeholders: dict[str, Placeholder] = field(default_factory=dict)
    splits: dict[str, str] = field(default_factory=dict)
    means: dict[str, str] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    iterators: set[str] = field(default_factory=set)
    started: dict[str, cst.Call] = field(default_factory=dict)
    restarts: list[cst.Call] = field(default_factory=list)
    fed_inputs: tuple[str, ...] = ()
    feed_dicts: dict[str, cst.Assign] = field(default_factory=dict)
    merges: list[cst.Call] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    reads_mutable: bool = False
    whole_means: set[str] = field(default_factory=set)
    trained: dict[int, Mean] = field(default_factory=dict)
    described: set[int] = field(default_factory=set)
    shown: set[int] = field(default_factory=set)
    reasons: Reasons = field(default_factory=Reasons)

    @property
    def file(self) -> SourceFile:
        return self.candidate.file


class ScopeReader:
    """What every reader of a scope has at hand."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.file = scope.file
        self.tree = scope.tree
        self.kinds = scope.kinds
        self.candidate = scope.candidate
        self.reasons = scope.reasons


@dataclass
class Analysis:
    """A recognised program with its nodes: what the emitter works on.

    `program` is there where all parts of it were read, whether it was proved to fit loop style or not. `scaled` says
    that a tower may divide its loss by a count of all towers' examples, `sparse` that gradients may be IndexedSlices.
    `normalizes` says that the towers have moving averages of batch normalisation. `joined` is there where the functions
    of the program were read as one, `plain` where it was read in plain spellings. `with_inputs` are the merged summaries
    that hold those of the towers' own input pipelines. `settings` are the placeholders that only optimizers and what
    stands behind the towers read, `rates` the schedules that the author computes in the graph. `anew` says that it may run
    more than once in a process, each time in a graph of its own. `tags` are those of the summaries, without case.
    `numbered` is what TF1 would number over the towers if the scope around it were one around them (see `proof.Proved`).
    `sums` are the functions, and their calls, that sum a collection of all towers, `scoped` those that read one by the text
    of the tower's name scope.
    """

    scope: Scope
    before: list[Item]
    loop_item: Item
    after: list[Item]
    body: Body
    stages: list[StageParts]
    runs: list[Run]
    sparse: bool
    tower_functions: list[tuple[SourceFile, cst.FunctionDef]]
    program: TowerProgram | None = None
    findings: list[Finding] = field(default_factory=list)
    scaled: bool = True
    normalizes: bool = False
    joined: Joined | None = None
    plain: Plain | None = None
    with_inputs: frozenset[str] = frozenset()
    settings: dict[str, Placeholder] = field(default_factory=dict)
    rates: set[str] = field(default_factory=set)
    anew: bool = False
    tags: frozenset[str] = frozenset()
    numbered: tuple[tuple[Finding, Finding], ...] = ()
    sums: tuple[tuple[str, str], ...] = ()
    scoped: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> SourceFile:
        return self.scope.file

    @property
    def tree(self) -> Tree:
        return self.scope.tree

    @property
    def candidate(self) -> Candidate:
        return self.scope.candidate

    @property
    def kinds(self) -> Kinds:
        return self.scope.kinds

    @property
    def program_line(self) -> int:
        """The line of the tower loop."""
        return self.file.line(self.candidate.loop)

    @property
    def placeholders(self) -> dict[str, Placeholder]:
        return self.scope.placeholders

    @property
    def feed_dicts(self) -> dict[str, cst.Assign]:
        return self.scope.feed_dicts


def backward_slice(
    items: Sequence[Item], wanted: set[str], kinds: Collection[Kind] = IN_GRAPH
) -> list[Item]:
    """The graph statements that the wanted names need, in source order."""
    needed = set(wanted)
    picked: list[Item] = []
    for item in reversed(items):
        if item.kind not in kinds:
            continue
        if not (item.binds | item.changes) & needed:
            continue
        picked.append(item)
        if assigned(item.node) is not None and not item.changes:
            needed -= item.binds
        needed |= item.reads | item.ordered_after
    picked.reverse()
    return picked


def evaluated(items: Sequence[Item], wanted: set[str]) -> list[Item]:
    """The statements of evaluations that the wanted names need, in source order."""
    return backward_slice(items, wanted, {Kind.EVALUATION})


def assignments(
    node: cst.BaseStatement,
) -> list[tuple[list[str], cst.BaseExpression]] | None:
    """Every `(names, value)` of an assignment; `a, b = x, y` and `a = b = x` taken apart."""
    inner = small(node)
    if not isinstance(inner, cst.Assign):
        return None
    found: list[tuple[list[str], cst.BaseExpression]] = []
    for target in inner.targets:
        if isinstance(target.target, cst.Name):
            found.append(([target.target.value], inner.value))
            continue
        items = elements(target.target)
        if items is None or not all(isinstance(i, cst.Name) for i in items):
            return None
        names = [i.value for i in items if isinstance(i, cst.Name)]
        values = elements(inner.value)
        if values is not None and len(values) == len(names):
            found.extend(([n], v) for n, v in zip(names, values, strict=True))
        else:
            found.append((names, inner.value))
    return found
