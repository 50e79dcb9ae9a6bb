"""`tf.summary.merge_all('model_0')` behind towers that keep their summaries by their number: a merge of what the first one kept.

Each tower gives what it kept in its collection, and the summaries that stand behind the towers are merged with that by
their names. Whether the collections are the towers' own is for the proof to say.
"""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, stores
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.kept_behind import (
    key_of,
    named_behind,
    sees_all_summaries,
)
from towermigrate.recognize.plain.told import outermost


def numbered_summaries(file: PlainFile) -> list[Change]:
    """The one merge of a collection that is called after the first tower."""
    if file.text.count("merge_all(") != 1 or sees_all_summaries(file.text):
        return []
    for where, scope, loop in loops_of_towers(file):
        for each in once_in(scope):
            key = _key_of(each)
            if key is not None and each.lineno > (loop.end_lineno or loop.lineno):
                return _Numbered(file, scope, loop, each, key, where).changes()
    return []


def _key_of(statement: ast.stmt) -> str | None:
    """`model_0` of `merged = tf.summary.merge_all('model_0')`."""
    key = key_of(statement)
    return key if key is not None and re.fullmatch(r"[A-Za-z_/]*[A-Za-z_/]0", key) else None


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
        behind = named_behind(file, self.scope, self.loop, self.merge, self.key, self.where)
        if behind is None:
            return []
        found += behind.changes
        merged = [f"{names}[0]", *behind.names]
        mentions = 1 + len(behind.names)
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

    def _mentioned(self) -> int:
        """How often the name of the collection stands in the file, in whatever text."""
        return sum(
            isinstance(each, ast.Constant)
            and isinstance(each.value, str)
            and self.key in each.value
            for each in self.file.nodes
        )
