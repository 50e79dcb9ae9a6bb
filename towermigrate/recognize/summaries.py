"""`tf.summary.merge_all()` behind the towers, as the merge of the summaries that it merges, each by a name.

In a step a collection would hold the summaries of all replicas. Where every summary of the program is made by a
statement of its own around the towers, what is merged is known. Those in front of them are made behind them: nothing but
their merge asks for them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import Scope
from towermigrate.recognize.proof.library import MERGE_ALL
from towermigrate.recognize.scope import Item, bare_call
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import argument, assigned, binds, code, elements, text, walk

_MADE = ("tf.summary.scalar", "tf.summary.histogram")
_KEYWORDS = {"name", "tensor", "values", None}


def merged_by_name(
    scope: Scope,
    before: Sequence[Item],
    loop: cst.For,
    after: Sequence[Item],
    makers: Sequence[tuple[str, int, int]] | None,
) -> tuple[list[Item], list[Item]]:
    """The statements around the loop, with the summaries that are merged named and merged by these names.

    Args:
        scope: the program's scope; the calls of `merge_all` that were replaced are put into it.
        before: the statements in front of the loop.
        loop: the tower loop.
        after: the statements behind it.
        makers: every place of the program that makes a summary; None where that is not known.
    """
    file = scope.file
    first = [item for item in before if bare_call(item.node) and _makers(file, item)]
    anew = set(binds(loop))
    for item in reversed(before):
        if any(item is one for one in first):
            if item.reads & anew:
                return list(before), list(after)
        anew |= item.binds | item.changes
    as_they_are = list(before), list(after)
    before, after = (
        [each for each in before if not any(each is one for one in first)],
        [*first, *after],
    )
    made = {id(item): calls for item in after if (calls := _makers(file, item))}
    places = sorted(
        (file.path, file.line(call.func), file.span(call.func).column)
        for calls in made.values()
        for call in calls
    )
    if makers is None or places != sorted(makers):
        return as_they_are
    bound = Counter(name for item in after for name in item.binds)
    taken = {n.value for n in walk(file.module) if isinstance(n, cst.Name)}
    names: list[str] = []
    merges: list[cst.Call] = []
    changed: list[Item] = []
    for item in after:
        calls = made.get(id(item), [])
        merge = _merge(file, item)
        own = assigned(item.node)
        if calls and own is not None:
            if bound[own[0][0]] > 1:
                return as_they_are
            names.append("*" * isinstance(own[1], cst.ListComp) + own[0][0])
        elif calls:
            names.append(_name(calls[0], taken))
            item = _with(item, cst.Assign([cst.AssignTarget(cst.Name(names[-1]))], calls[0]))
        elif merge is not None and names:
            merges.append(merge)
            listed = cst.List([_element(name) for name in names])
            assert isinstance(merge.func, cst.Attribute)
            func = merge.func.with_changes(attr=cst.Name("merge"))
            inner = item.node.body[0]  # type: ignore[attr-defined]
            item = _with(item, inner.with_changes(value=cst.Call(func, [cst.Arg(listed)])))
        changed.append(item)
    if not merges:
        return as_they_are
    scope.merges += merges
    return before, changed


def _makers(file: SourceFile, item: Item) -> list[cst.Call]:
    """The calls of a statement that makes one summary, or some for each of a list, and does nothing else."""
    made: cst.BaseExpression | None = bare_call(item.node)
    found = assigned(item.node)
    if made is None and found is not None and len(found[0]) == 1:
        made = found[1]
    parts: list[cst.BaseExpression | None] = [made]
    if isinstance(made, cst.ListComp):
        parts = [made.elt]
        inner = made.for_in.inner_for_in
        if inner is not None:  # `[one for g, v in grads for one in (…, …)]`
            whole = inner.inner_for_in is None and not inner.ifs
            if not whole or code(inner.target) != code(made.elt):
                return []
            parts = [*(elements(inner.iter) or ())]
    calls = [each for each in parts if isinstance(each, cst.Call) and _is_maker(file, each)]
    return calls if len(calls) == len(parts) else []


def _is_maker(file: SourceFile, call: cst.Call) -> bool:
    if file.tf(call.func) not in _MADE:
        return False
    keywords = {arg.keyword.value if arg.keyword else None for arg in call.args}
    starred = any(arg.star for arg in call.args)
    return keywords <= _KEYWORDS and len(call.args) == 2 and not starred


def _element(name: str) -> cst.BaseElement:
    """What a list holds: a name, or with a star all that the name holds."""
    bare = cst.Name(name.lstrip("*"))
    return cst.StarredElement(bare) if name.startswith("*") else cst.Element(bare)


def _merge(file: SourceFile, item: Item) -> cst.Call | None:
    """`merged = tf.summary.merge_all()`."""
    found = assigned(item.node)
    if found is None or len(found[0]) != 1 or not isinstance(found[1], cst.Call):
        return None
    call = found[1]
    plain = not call.args and isinstance(call.func, cst.Attribute)
    return call if plain and file.tf(call.func) in MERGE_ALL else None


def _name(call: cst.Call, taken: set[str]) -> str:
    """A name for a summary: after its tag, and no other name of the file."""
    tag = text(argument(call, 0, "name")) or "tower"
    bare = re.sub(r"\W+", "_", tag).strip("_").lower()
    stem = f"{bare}_summary" if bare.isidentifier() else "tag_summary"
    name = next(n for n in [stem, *(f"{stem}_{k}" for k in range(2, 999))] if n not in taken)
    taken.add(name)
    return name


def _with(item: Item, small: cst.BaseSmallStatement) -> Item:
    assert isinstance(item.node, cst.SimpleStatementLine)
    made = Item.of(item.node.with_changes(body=[small]), item.lead)
    made.ordered_after |= item.ordered_after
    return made
