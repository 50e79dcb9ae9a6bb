"""Values kept together that functions of the file are handed: each of them is handed by itself (`packs`).

`run_epoch(sess, ops)`, which runs `ops['train']`, is `run_epoch(sess, train_op)`; a function may hand them on to another. Every
call of such a function gives it the same values.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from towermigrate.recognize.plain.changes import Changed, PlainFile, Scope, bindings
from towermigrate.recognize.plain.held import Handed, Uses
from towermigrate.recognize.plain.packs import Leaf, Pack, leaves
from towermigrate.recognize.python_scopes import Unjoined


@dataclass
class _Given:
    """A function that is handed the values, its parameter for them, where they are used in it, and the calls."""

    node: ast.FunctionDef
    parameter: ast.arg
    pack: Pack
    uses: Uses
    calls: list[tuple[Uses, Handed]] = field(default_factory=list)
    used: list[Leaf] = field(default_factory=list)


class Handing:
    """The functions of a file that are handed values, and what they use of them.

    Args:
        file: where they stand.
        others: the scopes that keep the values, which are not handed them.
    """

    def __init__(self, file: PlainFile, others: Collection[Scope]) -> None:
        self.file, self.others = file, others
        self.given: dict[str, _Given] = {}

    def follow(self, uses: Uses) -> None:
        """Follow the values of a scope into the functions that they are handed to."""
        self._hand(uses)
        for name, each in self.given.items():
            if len(self.file.uses(name)) != len(each.calls):
                raise Unjoined  # it is called without them too, or handed on itself
        self._settle()

    @property
    def uses(self) -> list[Uses]:
        """Where the functions use the values."""
        return [each.uses for each in self.given.values()]

    def by(self, uses: Uses) -> list[Leaf]:
        """The values that a scope hands on to functions that use them."""
        return [
            leaf
            for each in self.given.values()
            if any(by is uses for by, _ in each.calls)
            for leaf in each.used
        ]

    def _hand(self, uses: Uses) -> None:
        for each in uses.handed:
            for leaf in leaves(each.pack):
                leaf.since = 0  # it is there when the function is called
            name = each.call.func.id if isinstance(each.call.func, ast.Name) else ""
            node, parameter = self._function(uses.scope, each)
            known = self.given.get(name)
            if known is None:
                inner = Uses(self.file, node)
                known = self.given[name] = _Given(node, parameter, each.pack, inner)
                inner.hold(parameter.arg, each.pack)
                self._hand(inner)
            if known.parameter is not parameter or list(leaves(known.pack)) != list(
                leaves(each.pack)
            ):
                raise Unjoined
            known.calls.append((uses, each))

    def _function(self, scope: Scope, handed: Handed) -> tuple[ast.FunctionDef, ast.arg]:
        """The function of the file that a call hands the values to, and its parameter for them."""
        call, func = handed.call, handed.call.func
        if not isinstance(func, ast.Name):
            raise Unjoined
        if not isinstance(scope, ast.Module) and bindings(scope, func.id):
            raise Unjoined
        node = self.file.definition(func.id).node
        spec = node.args
        if node.decorator_list or spec.vararg or spec.kwarg or spec.posonlyargs or spec.kwonlyargs:
            raise Unjoined
        if any(node is each for each in self.others) or func.id in self.file.words_of_users:
            raise Unjoined
        if any(isinstance(each, ast.Starred) for each in call.args):
            raise Unjoined
        if any(each.arg is None for each in call.keywords):
            raise Unjoined
        if handed.keyword is None:
            at = next(n for n, each in enumerate(call.args) if each is handed.argument)
        else:
            named = [n for n, each in enumerate(spec.args) if each.arg == handed.keyword.arg]
            at = named[0] if named else len(spec.args)
        if at >= len(spec.args) - len(spec.defaults) or spec.args[at].annotation is not None:
            raise Unjoined
        return node, spec.args[at]

    def _settle(self) -> None:
        """Find what each function uses, by itself and by those that it hands it on to."""
        for _ in range(len(self.given) + 1):
            for each in self.given.values():
                found = [*each.uses.used(), *self.by(each.uses)]
                each.used = [leaf for leaf in dict.fromkeys(leaves(each.pack)) if leaf in found]
        if any(not each.used for each in self.given.values()):
            raise Unjoined

    # ---- what stands there instead

    def parameters(self, builder: Uses) -> Iterator[Changed]:
        """The parameters of the functions; `builder` has the names of the scope that makes the values."""
        for given in self.given.values():
            name = given.parameter.arg
            for leaf in given.used:
                name_value(given.uses, leaf, builder, given.pack, name)
            at = self.file.block.offset(given.parameter.lineno, given.parameter.col_offset)
            names = ", ".join(given.uses.of_leaves[leaf] for leaf in given.used)
            yield at, at + len(name), (names,)

    def changes(self) -> Iterator[Changed]:
        """The names in place of the values in the functions, and what their calls are given."""
        for given in self.given.values():
            yield from given.uses.changes()
        for given in self.given.values():
            for uses, handed in given.calls:
                theirs = [uses.of_leaves[leaf] for leaf in given.used]
                start, end = uses.span(handed.argument)
                text = ", ".join(theirs)
                if handed.keyword is not None:
                    own = [given.uses.of_leaves[leaf] for leaf in given.used]
                    pairs = zip(own, theirs, strict=True)
                    text = ", ".join(f"{parameter}={name}" for parameter, name in pairs)
                    start = self.file.block.offset(handed.keyword.lineno, handed.keyword.col_offset)
                yield start, end, (text,)


def name_value(uses: Uses, leaf: Leaf, builder: Uses, pack: Pack, holder: str) -> None:
    """Give a value a name in a scope: that of the function that makes it, or its key."""
    key = next((key for key, value in pack.values.items() if value is leaf), None)
    words = [builder.of_leaves[leaf]] if leaf in builder.of_leaves else []
    words += [key] if isinstance(key, str) else []
    uses.names(leaf, *words, f"{holder}_{key if key is not None else len(uses.of_leaves)}")


__all__ = ["Handing", "name_value"]
