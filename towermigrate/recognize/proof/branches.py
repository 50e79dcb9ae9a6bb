"""Run functions that TensorFlow calls while it builds the graph: the branches of `tf.cond`, what `tf.map_fn` does to a row.

Each is called once where it stands, in TF1 and in a trace. What it makes belongs to a graph of its own: a list that it
fills, a variable, a summary or a random number would be another thing there, so it may have none of them.
"""

from __future__ import annotations

import ast

from towermigrate.flow.values import Const, Unknown, Value
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.tensorflow import TensorFlow
from towermigrate.recognize.proof.values import (
    Function,
    Items,
    Tensor,
    needs_of,
    shared,
)

_NAMED = {
    "tf.cond": frozenset({"pred", "true_fn", "false_fn", "fn1", "fn2", "name"}),
    "tf.map_fn": frozenset({"fn", "elems", "dtype", "parallel_iterations", "back_prop", "name"}),
    "tf.while_loop": frozenset(
        {"cond", "body", "loop_vars", "parallel_iterations", "back_prop", "swap_memory", "name"}
    ),
}


class Branches(TensorFlow):
    """Evaluates the calls that take such functions."""

    def _special(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        if name in _NAMED:
            known = {
                "tf.cond": self._conditional,
                "tf.map_fn": self._mapped,
                "tf.while_loop": self._looped,
            }
            return known[name](args, node, frame)
        return super()._special(name, args, node, frame)

    def _conditional(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        asked = args.get(0, "pred")
        functions = [args.get(1, "true_fn", "fn1"), args.get(2, "false_fn", "fn2")]
        if not _is_tensor(asked) or len(args.given) > 3 or args.named.keys() - _NAMED["tf.cond"]:
            return self._not_followed(node, frame)
        made = [self._part_of_graph(f, [], node, frame) for f in functions]
        if any(one is None for one in made):
            return Unknown()
        both = frozenset.intersection(*(needs_of(one) for one in made if one is not None))
        either = frozenset.union(*(needs_of(one) for one in made if one is not None))
        return Tensor(needs_of(asked or Unknown()) | both | shared(either))

    def _mapped(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        rows = args.get(1, "elems")
        if not _is_tensor(rows) or len(args.given) > 2 or args.named.keys() - _NAMED["tf.map_fn"]:
            return self._not_followed(node, frame)
        assert isinstance(rows, Tensor)
        made = self._part_of_graph(args.get(0, "fn"), [Tensor(rows.needs)], node, frame)
        return Unknown() if made is None else Tensor(rows.needs | shared(needs_of(made)))

    def _looped(self, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        """`tf.while_loop` with a list of tensors and numbers: what it gives of each may be what it was."""
        first = args.get(2, "loop_vars")
        named = args.named.keys() - _NAMED["tf.while_loop"]
        if not isinstance(first, Items) or not first.exact or len(args.given) > 3 or named:
            return self._not_followed(node, frame)
        starts = [value for value, _ in first.values]
        if len(starts) < 2 or not all(_is_tensor(one) or _is_number(one) for one in starts):
            return self._not_followed(node, frame)  # of one it gives no list
        inside: list[Value] = [Tensor(needs_of(one)) for one in starts]
        asked = self._part_of_graph(args.get(0, "cond"), inside, node, frame)
        made = self._part_of_graph(args.get(1, "body"), inside, node, frame, len(inside))
        if asked is None or made is None:
            return Unknown()
        either = shared(needs_of(asked) | needs_of(made))
        return Items([(Tensor(needs_of(one) | either), True) for one in starts], True)

    def _part_of_graph(
        self,
        function: Value | None,
        given: list[Value],
        node: ast.Call,
        frame: Frame,
        count: int | None = None,
    ) -> Value | None:
        """What a function gives that is called within the graph: a tensor, or so many; None where it may do more."""
        if not isinstance(function, Function):
            self._not_followed(node, frame)
            return None
        before, inside = self._belongs(), self.branched
        self.branched = True
        self.maybe += 1
        with self.perhaps():
            made = self.enter(function, given, {}, node, frame.code)
        self.maybe -= 1
        self.branched = inside
        if self._belongs() != before:
            self.report(
                "TM222", frame.code, node,
                f"`{frame.code.said(node)}` makes more than tensors in a function that TensorFlow calls",
            )  # fmt: skip
            return None
        parts: list[Value] = [made] if made is not None else []
        if count is not None:
            listed = isinstance(made, Items) and made.exact
            parts = (
                [value for value, _ in made.values] if isinstance(made, Items) and listed else []
            )
        if len(parts) != (count or 1) or not all(map(_is_one, parts)):
            if not isinstance(made, Unknown):
                self._not_followed(node, frame)
            return None
        return made

    def _belongs(self) -> tuple[object, ...]:
        """How much there is of what belongs to the graph around a function."""
        collected = sum(len(values) for values in self.collections.values())
        return (
            self.made_variables, collected, len(self.random), len(self.tags), len(self.lists_read),
            len(self.unscoped), len(self.effects),
        )  # fmt: skip

    def _not_followed(self, node: ast.Call, frame: Frame) -> Value:
        return self.report(
            "TM222", frame.code, node,
            f"`{frame.code.said(node)}` could not be followed: functions of the program that give one tensor are",
        )  # fmt: skip


def _is_one(value: Value) -> bool:
    several = isinstance(value, Tensor) and (value.many or value.given)
    return not several and (_is_number(value) or _is_tensor(value))


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) in (int, float)


def _is_tensor(value: Value | None) -> bool:
    return isinstance(value, Tensor) and not (value.variable or value.gradient or value.summary)
