"""Loops behind the towers that make a summary at each turn: lists of these, whose names say what is merged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.python_scopes import own_nodes

_KINDS = frozenset({"scalar", "histogram"})
_COLLECTED = (
    "tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES))",
    "tf.summary.merge(tf.get_collection('summaries'))",
    "tf.summary.merge(inputs=tf.get_collection(tf.GraphKeys.SUMMARIES))",
    "tf.summary.merge_all(tf.GraphKeys.SUMMARIES)",
    "tf.summary.merge_all(key=tf.GraphKeys.SUMMARIES)",
    "tf.summary.merge_all('summaries')",
)
"""What merges all summaries that are made by then, as `merge_all()` does where there is one."""


def collected_merges(file: PlainFile) -> list[Change]:
    """`tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES))` behind a summary that is sure to be there, as `merge_all()`."""
    if "SUMMARIES" not in file.text and "'summaries'" not in file.text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for body, always in blocks(scope):
            for each in body if always else ():
                value = each.value if isinstance(each, ast.Assign) else None
                if value is None or ast.unparse(value) not in _COLLECTED:
                    continue
                if file.commented(*file.span(value)) or each.lineno < (loop.end_lineno or 0):
                    continue
                if any(_is_there(one, each) for one in scope_statements(scope)):
                    found.append(Change(*file.span(value), ("tf.summary.merge_all()",), where))
    return found


def _is_there(statement: ast.stmt, merge: ast.stmt) -> bool:
    """Whether a statement makes a summary before a merge, which is sure to run."""
    if not isinstance(statement, ast.Expr | ast.Assign) or statement.lineno >= merge.lineno:
        return False
    made = statement.value
    if isinstance(made, ast.ListComp):  # of variables that are trained there is one
        return bool(listed_summaries(made)) and not made.generators[0].ifs
    return _summary(made) is not None


def scope_statements(scope: Scope) -> Iterator[ast.stmt]:
    """The statements that run once whenever a scope does."""
    for body, always in blocks(scope):
        yield from body if always else ()


def summary_loops(file: PlainFile) -> list[Change]:
    """`for g, v in grads: tf.summary.histogram(v.op.name, g)` as `histograms = [tf.summary.histogram(v.op.name, g) for …]`.

    Where the loop appends them to a list that is empty yet, the list itself is made so.
    """
    if "tf.summary." not in file.text:
        return []
    found: list[Change] = []
    for where, scope, towers in loops_of_towers(file):
        for body, always in blocks(scope):
            for number, each in enumerate(body) if always else ():
                if not isinstance(each, ast.For) or each.lineno <= (towers.end_lineno or 0):
                    continue
                made = _Made.of(each)
                if made is None or not _is_own(file, scope, each):
                    continue
                if made.kept is None:
                    name = file.free(scope, f"{made.kind}s", f"{made.kind}_summaries")
                    found.append(Change(*file.span(each), made.listed(file, scope, name), where))
                    continue
                begun = _begun(file, scope, body[:number], made.kept)
                if begun is not None:
                    found.append(Change(*file.without(begun), (), where))
                    found.append(
                        Change(*file.span(each), made.listed(file, scope, made.kept), where)
                    )
    return found


@dataclass
class _Made:
    """A loop and the summaries that each turn of it makes; `kept` is the list that it appends them to."""

    loop: ast.For
    test: ast.expr | None
    summaries: list[ast.Call]
    kept: str | None

    @property
    def kind(self) -> str:
        kinds = {ast.unparse(each.func).rpartition(".")[2] for each in self.summaries}
        return kinds.pop() if len(kinds) == 1 else "summary"

    @classmethod
    def of(cls, loop: ast.For) -> _Made | None:
        test: ast.expr | None = None
        inner = loop.body
        if len(inner) == 1 and isinstance(inner[0], ast.If) and not inner[0].orelse:
            test, inner = inner[0].test, inner[0].body
            if not _is_there_test(test):
                return None
        lists: set[str | None] = set()
        calls: list[ast.Call] = []
        for each in inner if not loop.orelse else ():
            value = each.value if isinstance(each, ast.Expr) else None
            kept: str | None = None
            match value:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=str() as own), attr="append"), args=[value], keywords=[]):  # fmt: skip
                    kept = own
            call = None if value is None else _summary(value)
            if call is None:
                return None
            lists.add(kept)
            calls.append(call)
        return cls(loop, test, calls, lists.pop()) if len(lists) == 1 else None

    def listed(self, file: PlainFile, scope: Scope, name: str) -> tuple[Part, ...]:
        target, over = file.span(self.loop.target), file.span(self.loop.iter)
        tested: list[Part] = [] if self.test is None else [" if ", file.span(self.test)]
        turns: list[Part] = [" for ", target, " in ", over, *tested]
        if len(self.summaries) == 1:
            return (f"{name} = [", file.span(self.summaries[0]), *turns, "]")
        one = file.free(scope, "each", "summary")
        parts: list[Part] = [f"{name} = [{one}", *turns, f" for {one} in ("]
        for number, each in enumerate(self.summaries):
            parts += [", "] * (number > 0) + [file.span(each)]
        return (*parts, ")]")


def listed_summaries(made: ast.ListComp) -> list[ast.Call]:
    """The summaries that a list is made of, at each turn."""
    match made:
        case ast.ListComp(elt=ast.Name(id=name), generators=[_, ast.comprehension(target=ast.Name(id=own), iter=ast.Tuple(elts=parts), ifs=[])]) if own == name:  # fmt: skip
            found = [_summary(each) for each in parts]
        case ast.ListComp(elt=each, generators=[_]):
            found = [_summary(each)]
        case _:
            return []
    calls = [each for each in found if each is not None]
    return calls if len(calls) == len(found) else []


def _summary(node: ast.expr) -> ast.Call | None:
    if not isinstance(node, ast.Call):
        return None
    module, _, kind = ast.unparse(node.func).rpartition(".")
    return node if module == "tf.summary" and kind in _KINDS else None


def _is_there_test(test: ast.expr) -> bool:
    """`g is not None`."""
    match test:
        case ast.Compare(left=ast.Name(), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):  # fmt: skip
            return True
    return False


def _is_own(file: PlainFile, scope: Scope, loop: ast.For) -> bool:
    """Whether nothing of a loop is seen outside of it, and it can be written as a list."""
    if file.alone(loop) is None or file.commented(*file.span(loop)):
        return False
    targets = [each for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
    plain = ast.Name | ast.Tuple | ast.List | ast.expr_context
    if not all(isinstance(each, plain) for each in ast.walk(loop.target)):
        return False
    if any(isinstance(each, ast.NamedExpr | ast.Lambda | ast.Yield | ast.Await | ast.IfExp) for each in ast.walk(loop)):  # fmt: skip
        return False
    names = {each.id for each in targets}
    if names & file.shared_between_functions or file.finds_names_by_text:
        return False
    if scope is file.tree and names & file.words_of_users:
        return False
    bound: dict[str, set[int]] = {name: set() for name in names}
    for each in own_nodes(scope):
        if isinstance(each, _BINDS):
            for name in names & _bound_by(each):
                bound[name] |= {id(one) for one in ast.walk(each)}
    return all(
        id(each) in bound[each.id]
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)
    )


_BINDS = (ast.For, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)


def _bound_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.For):
        targets = [node.target]
    else:
        assert isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp)
        targets = [each.target for each in node.generators]
    return {each.id for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)}


def _begun(file: PlainFile, scope: Scope, before: list[ast.stmt], name: str) -> ast.stmt | None:
    """The statement that makes a list, empty, which nothing has to do with until a loop."""
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return None
    for each in reversed(before):
        if only_name(each) == name and isinstance(each, ast.Assign):
            empty = isinstance(each.value, ast.List) and not each.value.elts
            return each if empty and file.alone(each) is not None else None
        if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(each)):
            return None
    return None


__all__ = ["collected_merges", "listed_summaries", "summary_loops"]
