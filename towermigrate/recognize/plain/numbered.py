"""`tf.summary.merge_all('model_0')` behind towers that keep their summaries by their number: a merge of what the first one kept.

Each tower gives what it kept in its collection, and the summaries that stand behind the towers are merged with that by
their names. Whether the collections are the towers' own is for the proof to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks, stores
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.plain.told import outermost

_KINDS = frozenset({"scalar", "histogram", "image"})
_PLACES = {"scalar": 2, "histogram": 2, "image": 3}
"""Where the collections stand among the arguments."""


def numbered_summaries(file: PlainFile) -> list[Change]:
    """The one merge of a collection that is called after the first tower."""
    if file.text.count("merge_all(") != 1:
        return []
    for where, scope, loop in loops_of_towers(file):
        for each in once_in(scope):
            key = _key_of(each)
            if key is not None and each.lineno > (loop.end_lineno or loop.lineno):
                return _Numbered(file, scope, loop, each, key, where).changes()
    return []


def _key_of(statement: ast.stmt) -> str | None:
    """`model_0` of `merged = tf.summary.merge_all('model_0')`."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func, args=[ast.Constant(value=str() as key)], keywords=[])):  # fmt: skip
            pass
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func, args=[], keywords=[ast.keyword(arg="key", value=ast.Constant(value=str() as key))])):  # fmt: skip
            pass
        case _:
            return None
    named = re.fullmatch(r"[A-Za-z_/]*[A-Za-z_/]0", key) is not None
    return key if named and ast.unparse(func) == "tf.summary.merge_all" else None


class _Numbered:
    def __init__(
        self, file: PlainFile, scope: Scope, loop: ast.For, merge: ast.stmt, key: str, where: str
    ) -> None:
        self.file, self.scope, self.loop, self.where = file, scope, loop, where
        self.merge, self.key = merge, key

    def changes(self) -> list[Change]:
        file = self.file
        index = self._index()
        block = self.loop.body
        while len(block) == 1 and isinstance(block[0], ast.With):
            block = block[0].body
        first, last = outermost(self.scope, self.loop), block[-1]
        margins = file.alone(first), file.alone(block[0])
        ends = any(isinstance(each, ast.Break | ast.Continue) for each in ast.walk(self.loop))
        if index is None or None in margins or file.alone(last) is None or ends:
            return []
        if block[0].lineno == self.loop.lineno or file.alone(self.merge) is None:
            return []
        assert isinstance(self.merge, ast.Assign)
        if file.commented(*file.span(self.merge)):
            return []
        names = file.fresh("tower_summaries")
        begin = file.starts[first.lineno - 1]
        found = [Change(begin, begin, (f"{margins[0]}{names} = []\n",), self.where)]
        kept = f"tf.get_collection({self.key[:-1] + '%d'!r} % {index})"
        end = file.block.end_of_line(last)
        text = f"\n{margins[1]}{names}.append(tf.summary.merge({kept}))"
        found.append(Change(end, end, (text,), self.where))
        merged = [f"{names}[0]"]
        mentions = 1
        for statement, call, place in self._others():
            change = self._without(call, place)
            if change is None:
                return []
            found.append(change)
            mentions += 1
            name = only_name(statement)
            if not name:
                name = file.fresh(_name(call))
                start = file.start(statement)
                found.append(Change(start, start, (f"{name} = ",), self.where))
            elif bindings(self.scope, name) != 1:
                return []
            merged.append(name)
        if self._mentioned() != mentions:
            return []  # somebody else may keep something there, or ask for it
        found.append(
            Change(*file.span(self.merge.value), (f"tf.summary.merge([{', '.join(merged)}])",), self.where)
        )  # fmt: skip
        return found

    def _index(self) -> str | None:
        """The name of the tower's number, which goes from 0."""
        match self.loop:
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range" | "xrange"), args=[_]),
            ):
                pass
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), _]), iter=ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[])):  # fmt: skip
                pass
            case _:
                return None
        inside = sum(len(stores(each, name)) for each in self.loop.body)
        return None if inside else name

    def _others(self) -> Iterator[tuple[ast.stmt, ast.Call, int]]:
        """The summaries behind the towers that are kept there, each with the place of its collections."""
        behind = self.loop.end_lineno or self.loop.lineno
        for body, always in blocks(self.scope):
            for each in body if always else ():
                call = each.value if isinstance(each, ast.Expr | ast.Assign) else None
                if not isinstance(call, ast.Call) or not behind < each.lineno < self.merge.lineno:
                    continue
                module, _, kind = ast.unparse(call.func).rpartition(".")
                if module != "tf.summary" or kind not in _KINDS:
                    continue
                given = [*call.args, *(k.value for k in call.keywords)]
                place = next((k for k, one in enumerate(given) if self._is_list(one)), None)
                if place is None or isinstance(each, ast.Assign) and not only_name(each):
                    continue
                by_name = place >= len(call.args)
                if by_name and call.keywords[place - len(call.args)].arg != "collections":
                    continue
                if not by_name and place != _PLACES[kind]:
                    continue
                yield each, call, place

    def _is_list(self, node: ast.expr) -> bool:
        match node:
            case ast.List(elts=[ast.Constant(value=value)]):
                return value == self.key
        return False

    def _without(self, call: ast.Call, place: int) -> Change | None:
        """A call without its last argument, the collections."""
        given = [*call.args, *(k.value for k in call.keywords)]
        if place != len(given) - 1 or place == 0:
            return None
        start, end = self.file.end(given[place - 1]), self.file.end(given[place])
        if (
            self.file.commented(start, end)
            or ")" in self.file.text[start : self.file.start(given[place])]
        ):
            return None
        return Change(start, end, (), self.where)

    def _mentioned(self) -> int:
        """How often the name of the collection stands in the file, in whatever text."""
        return sum(
            isinstance(each, ast.Constant)
            and isinstance(each.value, str)
            and self.key in each.value
            for each in ast.walk(self.file.tree)
        )


def _name(call: ast.Call) -> str:
    """`loss_summary` of `tf.summary.scalar("loss", loss)`."""
    tag = call.args[0] if call.args else None
    text = tag.value if isinstance(tag, ast.Constant) and isinstance(tag.value, str) else ""
    name = re.sub(r"\W+", "_", text).strip("_").lower()
    return f"{name}_summary" if name.isidentifier() else "summary"
