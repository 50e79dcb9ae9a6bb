"""Programs in other spellings of the same: read as if their author had written the plain one.

`train_op.run(feed_dict=…)` is `sess.run(train_op, feed_dict=…)`, a fetched dict is a list that is fetched and a dict made of
it. Each spelling becomes the plain one by a change of the text that means the same in TensorFlow 1 wherever it is
made (each module beside this one has some), so
that all that is asked of a program is asked of the plain text, and what is written is written of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from towermigrate.findings import Finding
from towermigrate.program import Span, TowerProgram
from towermigrate.recognize.joined import Joined, Pieces
from towermigrate.recognize.plain.appended_pairs import appended_pairs
from towermigrate.recognize.plain.around import called_in_graphs
from towermigrate.recognize.plain.asked import asked_inputs
from towermigrate.recognize.plain.assigned import assigned_variables
from towermigrate.recognize.plain.attributes import (
    attributes_apart,
    attributes_once,
    attributes_returned,
)
from towermigrate.recognize.plain.averaged import (
    counted_averages,
    displayed_averages,
    static_averages,
    written_averages,
)
from towermigrate.recognize.plain.batch_parts import batch_parts
from towermigrate.recognize.plain.bounds import bounds
from towermigrate.recognize.plain.certain import certain_blocks
from towermigrate.recognize.plain.changes import ALWAYS, NOTHING, OF_TOWERS, Change, PlainFile
from towermigrate.recognize.plain.clipped_averages import clipped_averages
from towermigrate.recognize.plain.clipped_weights import clipped_weights
from towermigrate.recognize.plain.collected import added_up, bound_anew, collected_values
from towermigrate.recognize.plain.constants import constants_of_towers
from towermigrate.recognize.plain.counted import counts_handed, counts_in_front
from towermigrate.recognize.plain.counted_steps import counted_steps
from towermigrate.recognize.plain.dealt import dealt_parts
from towermigrate.recognize.plain.default_rates import default_rates
from towermigrate.recognize.plain.default_sessions import default_sessions
from towermigrate.recognize.plain.defined_behind import defined_behind
from towermigrate.recognize.plain.deleted import deleted_names
from towermigrate.recognize.plain.device_names import named_devices
from towermigrate.recognize.plain.entries import entries
from towermigrate.recognize.plain.evaluated_anew import evaluated_anew
from towermigrate.recognize.plain.fed_pairs import listed_keys, paired_feeds
from towermigrate.recognize.plain.fed_streams import listed_feeds, yielded_feeds
from towermigrate.recognize.plain.fed_values import (
    chosen_by_expressions,
    chosen_feeds,
    copied_feeds,
)
from towermigrate.recognize.plain.feed_functions import feed_functions, filling_functions
from towermigrate.recognize.plain.feeds import built_feeds, feeds_apart
from towermigrate.recognize.plain.fetches import (
    added_fetches,
    joined_lists,
    named_fetches,
    picked_parts,
    structures,
)
from towermigrate.recognize.plain.gathered import gathered_values
from towermigrate.recognize.plain.generators import generators
from towermigrate.recognize.plain.given_functions import given_functions
from towermigrate.recognize.plain.given_gradients import given_gradients
from towermigrate.recognize.plain.global_steps import (
    global_steps,
    steps_asked_again,
    steps_without_a_name,
)
from towermigrate.recognize.plain.groups import (
    grouped_updates,
    groups,
    listed_updates,
    nested_groups,
)
from towermigrate.recognize.plain.handed_on import handed_on
from towermigrate.recognize.plain.identities import identities
from towermigrate.recognize.plain.inner_names import inner_numbers, names_beside_variables
from towermigrate.recognize.plain.inner_steps import inner_steps, later_functions
from towermigrate.recognize.plain.joined_losses import joined_losses
from towermigrate.recognize.plain.kept import kept_values
from towermigrate.recognize.plain.kept_behind import kept_summaries
from towermigrate.recognize.plain.kept_updates import (
    fetched_updates,
    updates_of_each,
    waited_updates,
)
from towermigrate.recognize.plain.keyed_lists import keyed_lists
from towermigrate.recognize.plain.keyed_parts import keyed_parts
from towermigrate.recognize.plain.lambdas import named_lambdas
from towermigrate.recognize.plain.lengths import lengths_of_lists
from towermigrate.recognize.plain.lines import lists_apart, one_a_line
from towermigrate.recognize.plain.local_aliases import local_aliases
from towermigrate.recognize.plain.lone_gradients import lone_gradients
from towermigrate.recognize.plain.made_behind import variables_behind
from towermigrate.recognize.plain.made_placeholders import sliced_parts
from towermigrate.recognize.plain.merged import merged_summaries
from towermigrate.recognize.plain.methods import default_methods, methods
from towermigrate.recognize.plain.name_parts import name_parts
from towermigrate.recognize.plain.named import (
    items_of_lists,
    last_of_lists,
    named_optimizers,
    named_savers,
    own_items,
)
from towermigrate.recognize.plain.named_graphs import named_graphs
from towermigrate.recognize.plain.named_losses import named_losses
from towermigrate.recognize.plain.named_results import named_results
from towermigrate.recognize.plain.named_reuse import named_reuse
from towermigrate.recognize.plain.numbered import numbered_summaries
from towermigrate.recognize.plain.one_or_many import one_or_many
from towermigrate.recognize.plain.other_names import numbers_in_front, updates_once
from towermigrate.recognize.plain.own_copies import own_copies
from towermigrate.recognize.plain.own_graphs import own_graphs
from towermigrate.recognize.plain.own_packs import own_packs
from towermigrate.recognize.plain.part_functions import part_functions, rows_in_functions
from towermigrate.recognize.plain.placed import placed
from towermigrate.recognize.plain.placeholders import (
    chosen_placeholders,
    feeds_of_lists,
    feeds_one_by_one,
    placeholder_lists,
    placeholders_of_towers,
)
from towermigrate.recognize.plain.placeholders_behind import placeholders_behind
from towermigrate.recognize.plain.prebuilt import prebuilt_models
from towermigrate.recognize.plain.prepared import prepared_inputs
from towermigrate.recognize.plain.properties import kept_properties
from towermigrate.recognize.plain.rates import (
    computed_rates,
    fetched_rates,
    loaded_variables,
    rates_bound_anew,
)
from towermigrate.recognize.plain.returns import returned_rates, returned_values
from towermigrate.recognize.plain.row_counts import row_counts
from towermigrate.recognize.plain.run_functions import run_functions
from towermigrate.recognize.plain.run_methods import run_methods
from towermigrate.recognize.plain.run_options import run_options
from towermigrate.recognize.plain.saved import saved_lists, saved_tables
from towermigrate.recognize.plain.sayings import (
    finalized_graphs,
    graphs_not_written,
    sizes_of_variables,
)
from towermigrate.recognize.plain.scopes import reused_scopes, scopes_around_towers
from towermigrate.recognize.plain.sessions import closed_sessions
from towermigrate.recognize.plain.split_counts import split_counts
from towermigrate.recognize.plain.splits import own_splits
from towermigrate.recognize.plain.spread import spread_values
from towermigrate.recognize.plain.stacked import stacked_batches
from towermigrate.recognize.plain.starred import starred_names
from towermigrate.recognize.plain.started import apart_starts, named_starts
from towermigrate.recognize.plain.summary_loops import collected_merges, summary_loops
from towermigrate.recognize.plain.switches import switches
from towermigrate.recognize.plain.taken_tags import scoped_tags, taken_tags
from towermigrate.recognize.plain.told import told_in_front
from towermigrate.recognize.plain.tower_loops import loops_from_zero, tower_loops
from towermigrate.recognize.plain.tower_objects import tower_objects
from towermigrate.recognize.plain.tuple_lists import tuple_lists
from towermigrate.recognize.plain.two_loops import joined_loops, lists_in_front
from towermigrate.recognize.plain.variable_functions import operation_names, variable_functions
from towermigrate.recognize.plain.variables import named_lists, runs_of_variables
from towermigrate.recognize.plain.whole_inputs import whole_inputs
from towermigrate.recognize.plain.zipped import tuples_of_towers
from towermigrate.recognize.plain.zipped_variables import values_in_place, zipped_variables
from towermigrate.recognize.python_scopes import Unjoined
from towermigrate.recognize.source import Tree

_HINTS = re.compile(
    r"\.run\(|get_next\(\)|\bdel |\.eval\(|global_step\(|no_op\(|placeholder\(|apply_gradients\(zip\(|tf\.split\(|zip\(\*|\.append\(|return .*\(|Optimizer\(|\bin (?:enumerate|zip|range)\(|compat|disable_|finally|finalize|write_meta|_variables\(\):|collection\(|as_default\(|with tf\.device\(|tf\.\w+\(.*[!=]= \w|[!=]= None|\(\*\w|print\(.*\w\.\w+\(|\+= \w+\.\w+\(|\.summary\.|\.name\.split\("
)
_Reader = Callable[[PlainFile], list[Change]]
_OfTree = Callable[[Tree, PlainFile], list[Change]]
_READERS: tuple[Callable[[PlainFile], list[Change]], ...] = (
    loops_from_zero,
    one_a_line,
    lists_apart,
    defined_behind,
    variable_functions,
    operation_names,
    clipped_averages,
    deleted_names,
    keyed_lists,
    tuple_lists,
    kept_properties,
    attributes_returned,
    attributes_apart,
    attributes_once,
    named_lambdas,
    inner_steps,
    later_functions,
    asked_inputs,
    steps_without_a_name,
    steps_asked_again,
    global_steps,
    variables_behind,
    counted_steps,
    finalized_graphs,
    graphs_not_written,
    sizes_of_variables,
    keyed_parts,
    split_counts,
    numbers_in_front,
    dealt_parts,
    dealt_parts,
    dealt_parts,
    tower_loops,
    split_counts,
    counts_in_front,
    lists_in_front,
    joined_loops,
    named_reuse,
    row_counts,
    part_functions,
    sliced_parts,
    one_or_many,
    inner_numbers,
    names_beside_variables,
    told_in_front,
    named_devices,
    summary_loops,
    collected_merges,
    merged_summaries,
    numbered_summaries,
    constants_of_towers,
    reused_scopes,
    scopes_around_towers,
    batch_parts,
    stacked_batches,
    own_splits,
    prepared_inputs,
    identities,
    named_optimizers,
    named_losses,
    named_savers,
    saved_tables,
    saved_lists,
    last_of_lists,
    items_of_lists,
    lengths_of_lists,
    placeholders_behind,
    placeholders_of_towers,
    bounds,
    whole_inputs,
    written_averages,
    displayed_averages,
    counted_averages,
    static_averages,
    appended_pairs,
    collected_values,
    own_items,
    last_of_lists,
    joined_losses,
    added_up,
    bound_anew,
    evaluated_anew,
    whole_inputs,
    rates_bound_anew,
    computed_rates,
    returned_rates,
    loaded_variables,
    fetched_rates,
    returned_values,
    nested_groups,
    nested_groups,
    waited_updates,
    updates_of_each,
    fetched_updates,
    grouped_updates,
    listed_updates,
    groups,
    updates_once,
    entries,
    methods,
    closed_sessions,
    generators,
    run_functions,
    run_options,
    clipped_weights,
    assigned_variables,
    values_in_place,
    named_lists,
    zipped_variables,
    runs_of_variables,
    named_starts,
    apart_starts,
    named_fetches,
    added_fetches,
    joined_lists,
    picked_parts,
    structures,
    feed_functions,
    listed_keys,
    paired_feeds,
    yielded_feeds,
    listed_feeds,
    chosen_by_expressions,
    feeds_of_lists,
    built_feeds,
    copied_feeds,
    built_feeds,
    copied_feeds,
    built_feeds,
    feeds_one_by_one,
    feeds_apart,
    chosen_feeds,
    default_rates,
    chosen_placeholders,
    placeholder_lists,
)


@dataclass(frozen=True)
class Plain:
    """A tree with plain spellings in some of its files.

    `texts` are the files that are other ones now, `befores` what they were; `where` are the outermost functions (`""` for
    the module itself) that changed, of each. `twice` are names whose value is bound to several names: of a list that would
    be one list, where a run gave several.
    """

    tree: Tree
    texts: Mapping[str, str]
    befores: Mapping[str, str]
    where: Mapping[str, frozenset[str]]
    twice: frozenset[str]
    _steps: Sequence[Joined]

    def original(self, finding: Finding) -> Finding:
        """A finding of a plain text as one of the author's."""
        for step in reversed(self._steps):
            finding = step.original(finding)
        return finding

    def program(self, program: TowerProgram, function: str | None, line: int) -> TowerProgram:
        """What is known of the plain program, with the places of the author's text."""
        told = program
        for step in reversed(self._steps):
            told = step.program(told, function, line)
        own = {**self.tree.sources, **self.befores}
        return placed(program, told, self.tree.sources, own, self._span)

    def _span(self, span: Span) -> Span:
        for step in reversed(self._steps):
            span = step.span(span)
        return span

    def line(self, path: str, line: int) -> tuple[str, int]:
        """The author's file and line for a line of a file."""
        for step in reversed(self._steps):
            path, line = step.line(path, line)
        return path, line


def plain(
    tree: Tree,
    path: str,
    where: Mapping[str, frozenset[str]] | None = None,
    first: Callable[[Tree, PlainFile], list[Change]] = lambda _tree, _file: [],
    spread: bool = False,
    devices: bool = False,
) -> Plain | None:
    """The tree with a file, and those beside it that may run what it builds, in plain spellings.

    Args:
        tree: the author's files.
        path: the file of a tower loop.
        where: the outermost functions, of each file, that may change; None for all of them.
        first: the changes of the tower loop's file that come before all others.
        spread: also take apart what is kept together, which changes more of the author's text than the rest.
        devices: only evaluate in front of the towers what names their devices.

    Returns:
        None where nothing is spelled otherwise.
    """
    near = _near(tree, path, spread)
    texts: dict[str, str] = {}
    changed: dict[str, set[str]] = {}
    steps: list[Joined] = []
    twice: set[str] = set()
    for each in sorted(near):
        hints = _HINTS.search(tree.sources[each]) or spread and "import *" in tree.sources[each]
        if not hints or where is not None and each not in where:
            continue
        users = tree.users.get(each, set()) - {each}
        words = {word for user in users for word in _words(tree.sources.get(user, ""))}
        file: PlainFile | None = None
        with_tree: tuple[_OfTree, ...] = (default_methods, prebuilt_models, default_sessions, certain_blocks, certain_blocks, first, own_graphs, switches, kept_values, kept_summaries, gathered_values, tuples_of_towers, scoped_tags, taken_tags, name_parts, tower_objects, tower_objects)  # fmt: skip
        own = [partial(one, tree) for one in with_tree] if each == path else []
        alone = [partial(lone_gradients, tree)] if each == path else []
        of_calls = (given_gradients, own_copies, given_functions, counts_handed, rows_in_functions)
        given = [partial(one, tree, where) for one in of_calls] if each == path else []
        around = partial(called_in_graphs, tree, path)
        readers: list[_Reader] = [
            *given,
            named_graphs,
            around,
            local_aliases,
            partial(handed_on, tree),
            *[partial(run_methods, True)] * 4,
            partial(named_results, tree),
            *[partial(run_methods, False)] * 2,
            filling_functions,
            *alone,
            *own,
            *_READERS,
        ]
        if spread:
            readers[:0] = _spreading(tree, path, where)
        for reader in readers if not devices else [named_devices]:
            text = texts.get(each, tree.sources[each])
            try:
                if file is None or file.text != text:
                    file = PlainFile(each, text, frozenset(words))
                    file.imported = lambda path=each: _imported(tree, path)  # type: ignore[misc]
                    file.module_path = partial(tree.module_path, each)
            except Unjoined:
                break
            file.begin()
            found = [
                one
                for one in reader(file)
                if where is None or one.scope == ALWAYS or one.scope in where[each]
            ]
            if not found:
                continue
            twice |= file.twice
            new, step = _written(file, found)
            steps.append(step)
            texts[each] = new
            changed.setdefault(each, set()).update(
                one.scope for one in found if one.scope != ALWAYS
            )
    if not texts:
        return None
    return Plain(
        Tree({**tree.sources, **texts}, tree.imports, tree),
        texts,
        {each: tree.sources[each] for each in texts},
        {each: frozenset(names) for each, names in changed.items()},
        frozenset(twice),
        steps,
    )


def may_be_spread(tree: Tree, path: str) -> bool:
    """Whether anything that is kept together around a file's towers, or comes by a star, can be taken apart."""
    for each in sorted(_near(tree, path, True)):
        try:
            file = PlainFile(each, tree.sources[each])
        except Unjoined:
            continue
        if any(reader(file) for reader in _spreading(tree, path, None)):
            return True
    return False


def _spreading(tree: Tree, path: str, where: Mapping[str, frozenset[str]] | None) -> list[_Reader]:
    """What takes apart what is kept together: the readers that come first, where they are asked for."""
    own: _Reader = partial(own_packs, tree, path)
    return [
        partial(spread_values, tree, path, where), own, own, own, partial(starred_names, tree)
    ]  # fmt: skip


def _near(tree: Tree, path: str, stars: bool) -> set[str]:
    """A file and those that may run what it builds; also those that have that by the `stars` of others."""
    found = {path, *tree.users.get(path, ()), *tree.imports.get(path, ())} & tree.sources.keys()
    for each in sorted(found) if stars else ():
        if "import *" in tree.sources[each]:
            found |= tree.users.get(each, set()) & tree.sources.keys()
    return found


def _imported(tree: Tree, path: str) -> list[str]:
    """The texts of all files that a file imports, at whatever remove."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        more = tree.imports.get(waiting.pop(), set()) & tree.sources.keys()
        waiting += more - found
        found |= more
    return [tree.sources[each] for each in sorted(found - {path})]


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def _written(file: PlainFile, changes: Collection[Change]) -> tuple[str, Joined]:
    """The text of a file with changes in it; of two that overlap the first is made."""
    pieces = Pieces()
    done = 0
    for each in sorted(changes, key=lambda one: (one.start, one.end)):
        if each.start < done:
            continue
        pieces.own(file.path, file.text, done, each.start)
        # What stands for an expression ends where that does.
        whole = len(each.parts) == 1 and "\n" not in file.text[each.start : each.end]
        end = each.end if whole and each.end > each.start else None
        for part in each.parts:
            if isinstance(part, str):
                pieces.new(part, file.path, each.start, end)
            else:
                pieces.own(file.path, file.text, *part)
        done = each.end
    pieces.own(file.path, file.text, done, len(file.text))
    new = "".join(pieces.texts)
    made = Joined(
        Tree({}), file.path, 0, None, (), {file.path: new}, {file.path: file.text}, pieces.origins
    )
    return new, made


__all__ = ["NOTHING", "OF_TOWERS", "Plain", "may_be_spread", "plain"]
