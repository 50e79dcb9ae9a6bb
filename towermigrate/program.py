"""TowerProgram: the one description of a tower training program that everything else reads.

`recognize` builds it from source, `scan` prints it, `emit` turns it into new source and `verify` uses its
positions to put probes into a copy of the original. Everything here is frozen data with no behaviour
beyond small conveniences.

Positions are those of the original text: lines count from 1, columns count characters from 0 (as libcst
does, and unlike `ast`, which counts UTF-8 bytes), end positions are exclusive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from towermigrate.findings import Finding

CountKind = Literal["constant", "flag", "argument", "attribute", "devices", "unknown"]
InputKind = Literal["slice", "split", "queue", "iterator", "same", "per_tower", "own"]
NonePolicy = Literal["crash", "skip", "pass", "zeros"]


@dataclass(frozen=True)
class Span:
    """A stretch of one file. `path` is relative to the tree's root, with forward slashes."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Count:
    """How many towers there are, and where that number is set.

    `expression` is the source text the loop uses (`FLAGS.num_gpus`). `name` is the flag, constant or
    argument behind it. `literal` is the integer literal that sets it where there is exactly one.
    """

    expression: str
    kind: CountKind
    name: str | None = None
    literal: Span | None = None
    value: int | None = None


@dataclass(frozen=True)
class TowerLoop:
    """The loop that copies the model per device.

    `statement` spans the whole `for`; `body` spans its body (first statement's start to last's end).
    `sharing` names how the towers share variables (`reuse_variables`, `flag`, `AUTO_REUSE`, …).
    """

    statement: Span
    body: Span
    index: str | None
    count: Count
    device: str | None = None
    name_scope: str | None = None
    sharing: tuple[str, ...] = ()


@dataclass(frozen=True)
class TowerInput:
    """How each tower gets one batch. `names` are bound by `statement` inside the loop body.

    `statement` is None for `kind == "same"`, where the body reads the outer names directly, and for an
    input written inline (`loss(x_splits[i])`), whose every place is then in `expressions`. `source` is the
    outer value (placeholder, queue, iterator) it comes from; `size` the rows per tower of a slice. `read` are the
    expressions by which the body reads the outer names of `kind == "same"`, where those are no names: `self.rate`.
    `asked` is what an input is given by when a tower calls it, where that has no statement of its own.
    Of `kind == "own"` every tower makes a pipeline of its own by `statement`, and `source` is the expression that makes it.
    """

    names: tuple[str, ...]
    kind: InputKind
    source: str
    statement: Span | None = None
    size: str | None = None
    expressions: tuple[Span, ...] = ()
    read: tuple[str, ...] = ()
    asked: Span | None = None


@dataclass(frozen=True)
class Stage:
    """One loss, its optimizer, its variable list and the one update it ends in.

    `compute` spans the callee of the `compute_gradients` call (`opt.compute_gradients`, without its
    arguments), `apply` the callee of `apply_gradients`; `average` the whole averaging call.
    `apply_name` is what the update op is bound to (`train_op`), and names the stage in reports.
    Where the mean of the towers' losses is trained, `tower_loss` spans what each tower adds to the list that the mean is
    of, `whole_mean` says that the mean is of all elements of what they add, and `compute` is the call on the mean: that of
    `minimize`, which `apply` is too, or of `compute_gradients`.
    """

    name: str
    loss: str
    optimizer: str
    optimizer_class: str | None
    var_list: str | None
    compute: Span
    average: Span | None
    apply: Span
    averaging: Literal["mean", "sum", "none"] = "mean"
    none_policy: NonePolicy = "crash"
    post: tuple[str, ...] = ()
    tower_loss: Span | None = None
    whole_mean: bool = False


@dataclass(frozen=True)
class Extra:
    """Something the train op does besides the update: a moving average, batch norm's updates of all towers.

    `call` spans the whole call expression that makes the op. `stage` is the index of the stage it is
    grouped with; `ordered` says whether a control dependency fixes its order against the update.
    """

    kind: Literal["moving_average", "update_ops"]
    call: Span
    stage: int
    ordered: bool = False


@dataclass(frozen=True)
class RunSite:
    """One `sess.run`: what it fetches and feeds, and the stages (by index) that it trains."""

    call: Span
    fetches: tuple[str, ...]
    feeds: tuple[tuple[str, str], ...] = ()
    trains: tuple[int, ...] = ()


@dataclass(frozen=True)
class Services:
    """Saver, summaries and coordination around the training: the names they are bound to."""

    savers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    coordinators: tuple[str, ...] = ()


@dataclass(frozen=True)
class TowerProgram:
    """A whole tower training program: one tower loop and everything that hangs on it.

    `function` is the dotted name of the function that holds it, None for module level. `tower_files` are
    the other files that hold functions a tower calls.
    """

    path: str
    function: str | None
    line: int
    loop: TowerLoop
    inputs: tuple[TowerInput, ...]
    stages: tuple[Stage, ...]
    extras: tuple[Extra, ...] = ()
    runs: tuple[RunSite, ...] = ()
    services: Services = field(default_factory=Services)
    tower_files: tuple[str, ...] = ()


def _as_it_is(finding: Finding) -> Finding:
    return finding


@dataclass(frozen=True)
class Recognition:
    """What `recognize_tree` says of one tower loop: a program, or the findings that keep it from being one.

    `analysis` is what loop style is written from, `place` (a `recognize.Place`) what session style is. Where it was the
    analysis of another text, `original` gives what is found in that one as findings of the author's. `part_of` is the line of
    another loop of the file whose program, in plain spelling, has the towers of both.
    """

    path: str
    function: str | None
    line: int
    program: TowerProgram | None
    findings: tuple[Finding, ...] = ()
    analysis: object = field(default=None, repr=False, compare=False)
    place: object = field(default=None, repr=False, compare=False)
    original: Callable[[Finding], Finding] = field(default=_as_it_is, repr=False, compare=False)
    part_of: int | None = None

    def without_nodes(self) -> Recognition:
        """What is said of the loop, without what it is written from."""
        return replace(self, analysis=None, place=None, original=_as_it_is)
