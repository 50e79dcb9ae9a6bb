"""Read means over the towers, and the updates that are made of one: `opt.minimize(tf.reduce_mean(losses))`.

The gradient of the mean of the towers' losses is the mean of their gradients, so such an update is a stage like any
other: every tower computes the gradients of its own loss, and they are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.analysis import Scope, backward_slice
from towermigrate.recognize.kinds import Kind, Kinds
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.scope import Item
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    binds,
    calls,
    code,
    elements,
    integer,
    reads,
    walk,
)
from towermigrate.recognize.tower import Body, Compute, Mean

_QUOTIENTS = ("tf.div", "tf.divide", "tf.truediv", "tf.realdiv")
_PRODUCTS = ("tf.multiply", "tf.mul", "tf.scalar_mul")
_MINIMIZES = ("loss", "global_step", "var_list")
_COMPUTES = ("loss", "var_list")
_QUIET = {"gate_gradients", "aggregation_method", "colocate_gradients_with_ops", "name"}
"""Arguments that say how gradients are computed, and leave what they are as it is."""


@dataclass(frozen=True)
class _Rows:
    """The towers' values along a first dimension, or as the list that they are."""

    listed: str


@dataclass(frozen=True)
class _Total:
    """The sum of the towers' values."""

    listed: str


Over = _Rows | _Total | Mean


class MeanReader:
    """Follows what statements behind the towers make of a list over them, up to its mean."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.kinds = scope.kinds
        self.file = scope.file
        self.names: dict[str, Over] = {}
        self.bound: set[str] = set(binds(scope.candidate.loop.body))

    def count(self) -> str:
        """The text of the tower count: `n` of `range(n)`, `len(d)` of `enumerate(d)`."""
        iterated = self.scope.candidate.loop.iter
        if not isinstance(iterated, cst.Call) or not iterated.args:
            return ""
        inside = code(iterated.args[-1].value)
        return f"len({inside})" if code(iterated.func) == "enumerate" else inside

    def read(self, item: Item, names: Sequence[str], value: cst.BaseExpression) -> bool:
        """Note the mean, or the part of one, that a statement binds to a name; whether it does."""
        made = self.of(value) if len(names) == 1 else None
        self.forget(item)
        if made is None or isinstance(value, cst.Name):
            return False
        self.names[names[0]] = made
        if isinstance(made, Mean):
            self.scope.means[names[0]] = made.listed
            if made.whole:
                self.scope.whole_means.add(names[0])
        return True

    def forget(self, item: Item) -> None:
        """What a statement binds is not what it was."""
        self.bound |= item.binds | item.changes
        for name in item.binds | item.changes:
            self.names.pop(name, None)
            self.scope.means.pop(name, None)
            self.scope.whole_means.discard(name)

    def trained(self, item: Item) -> None:
        """Note the updates, and the gradients, that a statement makes of a mean over the towers."""
        for call in calls(item.node):
            if not is_of_optimizer(call, ("minimize", "compute_gradients"), self.kinds):
                continue
            loss = argument(call, 0, "loss")
            made = self.of(loss) if loss is not None else None
            if isinstance(made, Mean) and loss is not None and self._only_there(item, loss):
                self.scope.trained[id(call)] = made

    def _only_there(self, item: Item, loss: cst.BaseExpression) -> bool:
        """Whether a statement reads the mean for its gradients and nothing else."""
        found = assigned(item.node)
        names = set(reads(loss))
        if found is None or not names:
            return False
        inside = {id(node) for node in walk(loss)}
        return not any(
            isinstance(node, cst.Name) and node.value in names and id(node) not in inside
            for node in walk(found[1])
        )

    # -- expressions

    def of(self, node: cst.BaseExpression) -> Over | None:
        """What an expression is of a list over the towers."""
        if isinstance(node, cst.Name):
            listed = self.scope.lists.get(node.value)
            return self.names.get(node.value) if listed is None else _Rows(listed)
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.Divide):
                return self._divided(node.left, node.right)
            if isinstance(node.operator, cst.Multiply):
                return self._times(node.left, node.right) or self._times(node.right, node.left)
            return None
        return self._call(node) if isinstance(node, cst.Call) else None

    def _call(self, call: cst.Call) -> Over | None:
        name = self.file.tf(call.func)
        if any(arg.star for arg in call.args):
            return None
        args = [a for a in call.args if a.keyword is None or a.keyword.value != "name"]
        call = call.with_changes(args=args)
        if name in ("tf.add_n", "tf.accumulate_n"):
            inside = self._argument(call, 0, "inputs") if len(args) == 1 else None
            return _Total(inside.listed) if isinstance(inside, _Rows) else None
        if name is None and code(call.func) == "sum" and len(args) == 1 and self._is_python("sum"):
            inside = self._argument(call, 0, "iterable")
            return _Total(inside.listed) if isinstance(inside, _Rows) else None
        if name in ("tf.stack", "tf.pack"):
            inside = self._argument(call, 0, "values")
            return inside if isinstance(inside, _Rows) and _is_first(call, "axis") else None
        if name == "tf.reduce_mean":
            return self._mean(call)
        if name in _QUOTIENTS and len(args) == 2 and all(a.keyword is None for a in args):
            return self._divided(args[0].value, args[1].value)
        if name in _PRODUCTS and len(args) == 2 and all(a.keyword is None for a in args):
            first, second = args[0].value, args[1].value
            return self._times(first, second) or self._times(second, first)
        return None

    def _argument(self, call: cst.Call, position: int, keyword: str) -> Over | None:
        given = argument(call, position, keyword)
        return None if given is None else self.of(given)

    def _mean(self, call: cst.Call) -> Mean | None:
        inside = self._argument(call, 0, "input_tensor")
        known = ("input_tensor", "axis", "reduction_indices", None)
        if len(call.args) > 2 or any(
            (a.keyword.value if a.keyword else None) not in known for a in call.args
        ):
            return None
        if isinstance(inside, _Rows) and len(call.args) == 2:
            axis = argument(call, 1, "axis") or argument(call, None, "reduction_indices")
            items = elements(axis) if axis is not None else None
            first = items[0] if items is not None and len(items) == 1 else axis
            return Mean(inside.listed, False) if integer(first) == 0 else None
        if isinstance(inside, _Rows | Mean) and len(call.args) == 1:
            return Mean(inside.listed, True)
        return None

    def _divided(self, total: cst.BaseExpression, count: cst.BaseExpression) -> Mean | None:
        made = self.of(total)
        if isinstance(made, _Total) and self._is_count(count, made.listed):
            return Mean(made.listed, False)
        return None

    def _is_python(self, name: str) -> bool:
        """Whether a builtin's name is nothing else in the file."""
        known = {id(c.func) for c in calls(self.file.module)}
        nodes = list(walk(self.file.module))
        known |= {id(node.attr) for node in nodes if isinstance(node, cst.Attribute)}
        return name not in self.file.starred_words and all(
            id(node) in known for node in nodes if isinstance(node, cst.Name) and node.value == name
        )

    def _times(self, total: cst.BaseExpression, part: cst.BaseExpression) -> Mean | None:
        """`tf.add_n(losses) * (1.0 / n)`."""
        made = self.of(total)
        if not isinstance(made, _Total) or not isinstance(part, cst.BinaryOperation):
            return None
        one = isinstance(part.left, cst.Float) and float(part.left.value) == 1
        if one and isinstance(part.operator, cst.Divide):
            return Mean(made.listed, False) if self._is_count(part.right, made.listed) else None
        return None

    def _is_count(self, node: cst.BaseExpression, listed: str) -> bool:
        """Whether a number is that of the towers: the loop's own, nothing of which was bound anew, or the list's."""
        text = _bare(node)
        texts: set[str] = set()
        if self._is_python("len"):
            texts = {f"len({name})" for name, of in self.scope.lists.items() if of == listed}
        if not self.bound & set(reads(self.scope.candidate.loop.iter)):
            texts.add(self.count().replace(" ", ""))
        if self._is_python("float"):
            texts |= {f"float({one})" for one in texts}
        whole = integer(node) if isinstance(node, cst.Integer) else None
        if isinstance(node, cst.Float) and float(node.value).is_integer():
            whole = int(float(node.value))
        return text in texts or str(whole) in texts


def _bare(node: cst.BaseExpression) -> str:
    """The text of an expression without spaces and the parentheses around it."""
    lpar = getattr(node, "lpar", ())
    return code(node.with_changes(lpar=[], rpar=[]) if lpar else node).replace(" ", "")


def _is_first(call: cst.Call, axis: str) -> bool:
    """Whether a call stacks along the first dimension."""
    given = argument(call, 1, axis)
    if len(call.args) == 1:
        return True
    return len(call.args) == 2 and given is not None and integer(given) == 0


def is_of_optimizer(call: cst.Call, methods: Sequence[str], kinds: Kinds) -> bool:
    """Whether a call is one of these methods of an optimizer."""
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value in methods
        and kinds.of(func.value) is Kind.OPTIMIZER
    )


def gradients_of_mean(
    scope: Scope, body: Body, call: cst.Call, item: Item, after: Sequence[Item]
) -> Compute:
    """What `opt.minimize(mean)` or `opt.compute_gradients(mean)` computes in each tower."""
    file = scope.file
    assert isinstance(call.func, cst.Attribute)
    minimizes = call.func.attr.value == "minimize"
    mean = scope.trained.get(id(call))
    if mean is None:
        raise refuse(
            "TM202", file, call,
            f"`{code(call.func)}` behind the towers is given what is not plainly the mean of all towers' losses",
        )  # fmt: skip
    known = {*(_MINIMIZES if minimizes else _COMPUTES), *_QUIET, None}
    positional = sum(arg.keyword is None for arg in call.args)
    if positional > (3 if minimizes else 2) or any(
        arg.star or (arg.keyword.value if arg.keyword else None) not in known for arg in call.args
    ):
        raise refuse(
            "TM202", file, call,
            f"`{code(call.func)}` is given arguments of which it is not known what they do to the gradients",
        )  # fmt: skip
    if not isinstance(call.func.value, cst.Name):
        raise refuse(
            "TM202", file, call,
            f"`{code(call.func.value)}` is not bound to an optimizer by one plain statement of this function",
        )  # fmt: skip
    var_list = argument(call, 2 if minimizes else 1, "var_list")
    if var_list is not None and code(var_list) == "None":
        var_list = None
    made = backward_slice(after, set(reads(var_list))) if var_list is not None else []
    for node in [*([var_list] if var_list is not None else []), *(one.node for one in made)]:
        if any(isinstance(n, cst.BinaryOperation | cst.AugAssign) for n in walk(node)):
            raise refuse(
                "TM211", file, call,
                f"`{code(call.func)}` may be given a variable twice, whose gradient TF1 applied twice",
            )  # fmt: skip
    return Compute(
        call, call.func.value, cst.Name(body.lists[mean.listed]), var_list, _free_name(file), item.node, mean.listed
    )  # fmt: skip


def _free_name(file: SourceFile) -> str:
    """A name for the gradients that the file has not."""
    used = {node.value for node in walk(file.module) if isinstance(node, cst.Name)}
    used |= set(file.starred_words)
    names = ["grads", "tower_grads", "grads_and_vars", *(f"grads_{k}" for k in range(2, 99))]
    return next(name for name in names if name not in used)


def update_by_minimize(call: cst.Call, gradients: str) -> cst.Call:
    """`opt.apply_gradients(gradients, global_step=…)` as `opt.minimize(mean, …)` does it."""
    assert isinstance(call.func, cst.Attribute)
    args = [cst.Arg(cst.Name(gradients))]
    step = argument(call, 1, "global_step")
    if step is not None:
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        args.append(cst.Arg(step, keyword=cst.Name("global_step"), equal=equal))
    func = call.func.with_changes(attr=cst.Name("apply_gradients"))
    return cst.Call(func, args)


def check_changed(
    scope: Scope, body: Body, average: Item, between: Sequence[Item], sparse: bool
) -> None:
    """Say where gradients of a mean are changed in a way that one tower's share of them would not show."""
    for item in between:
        if item is average or item.kind in (Kind.TOWER_MEAN, Kind.TOWER_LIST, Kind.SCHEDULE):
            continue
        node = item.node
        if sparse:
            raise refuse(
                "TM204", scope.file, node,
                "the gradients of a mean are changed, and some may be IndexedSlices, which the average holds otherwise",
            )  # fmt: skip
        listed = item.kind is Kind.VARLIST or any(
            scope.kinds.of_name(n) is Kind.VARLIST for n in item.reads
        )
        if listed or item.reads & body.bound - average.binds:
            raise refuse(
                "TM204", scope.file, node,
                "the gradients of a mean are changed by their place in the list or by a value of one tower",
            )  # fmt: skip
