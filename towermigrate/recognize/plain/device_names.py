"""Names of devices that may raise: evaluated in front of the towers, whose own devices go with what names them.

A replica has its device, and no step asks for another. But `'/gpu:%d' % numbers[i]` of a list that is too short ended the program
in TensorFlow 1, before anything was trained, and so did a text that names no device.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from towermigrate.recognize.plain.averaged import is_settled
from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.plain.told import goes_over_again, outermost
from towermigrate.recognize.python_scopes import own_nodes

_DEVICE = re.compile(
    r"(?i)/?(?:job:\w+/)?(?:replica:\d+/)?(?:task:\d+/)?(?:device:)?(?:/?(?:cpu|gpu|tpu|xla_\w+):\d+)"
)
_COMPUTES = (
    ast.BinOp, ast.Mod, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.UnaryOp, ast.USub, ast.Constant, ast.Name,
    ast.Load, ast.Tuple, ast.List, ast.Dict, ast.JoinedStr, ast.FormattedValue, ast.Subscript, ast.Slice, ast.Call,
    ast.Attribute, ast.IfExp, ast.Compare, ast.cmpop, ast.keyword,
)  # fmt: skip
_TEXTS = frozenset({"str", "int", "len"})
_METHODS = frozenset({"format", "split", "strip", "lower", "upper"})
_DEPTH = 4
"""From a name to what it is bound to, and on from there."""
_SOME = (0, 1, 2, 7)
"""Numbers of towers that a name of a device is tried with, where nothing is looked up by them."""


def named_devices(file: PlainFile) -> list[Change]:
    """`'/gpu:%d' % numbers[i]` of `with tf.device(…)` in a tower, in a loop of its own in front of the towers too.

    What is sure to name a device is left alone, and so is what may be another thing there.
    """
    if "tf.device(" not in file.text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        change = _Devices(file, scope, loop, where).change()
        if change is not None:
            found.append(change)
    return found


class _Devices:
    def __init__(self, file: PlainFile, scope: Scope, loop: ast.For, where: str) -> None:
        self.file, self.scope, self.loop, self.where = file, scope, loop, where
        self.targets = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        self.inner = {name: each.value for each in _plainly(loop.body) if isinstance(each, ast.Assign) and (name := only_name(each))}  # fmt: skip

    def change(self) -> Change | None:
        file, loop = self.file, self.loop
        rows: list[str] = []
        for named in self._named():
            made = self._whole(named)
            if self._stays(made) and not self._is_as_long(made):
                rows += self._row(made)
        first = outermost(self.scope, loop)
        margin = file.alone(first)
        head = file.text[file.start(loop) : file.end(loop.iter)]
        if not rows or margin is None or "\n" in head or not goes_over_again(file, loop.iter):
            return None
        if loop.orelse or any(self._is_bound(each) for each in ast.walk(loop.iter)):
            return None
        place = file.starts[first.lineno - 1]
        text = "".join(f"{margin}    {row}\n" for row in dict.fromkeys(rows))
        return Change(place, place, (f"{margin}{head}:\n{text}",), self.where)

    def _row(self, made: ast.expr) -> list[str]:
        """What is to be evaluated of an expression: nothing where it is sure to name a device, or to name none."""
        text = ast.unparse(made)
        checked = f"tf.DeviceSpec.from_string({text})"
        given = self._tried(made)
        if given is None:
            if isinstance(made, ast.Name | ast.Attribute | ast.Constant):
                return []  # it may be a function
            return [checked if _is_text(made) else text]
        if all(each is None or isinstance(each, str) and _DEVICE.fullmatch(each) for each in given):
            return []
        return [text if None in given else checked]

    def _named(self) -> Iterator[ast.expr]:
        """What names the devices that each tower is sure to enter."""
        for each in _plainly(self.loop.body):
            for item in each.items if isinstance(each, ast.With) else ():
                match item.context_expr:
                    case ast.Call(func=func, args=[named], keywords=[]) if ast.unparse(func) == "tf.device":  # fmt: skip
                        yield named

    def _whole(self, node: ast.expr) -> ast.expr:
        """An expression with what the names of its tower are bound to, and what functions return, in place of them."""
        own = {name: value for name, value in self.inner.items() if self._bound(name) == 1}
        return _Whole(self.file, self.scope, own).of(node, _DEPTH)

    def _bound(self, name: str) -> int:
        """How often the loop binds a name; its own targets count too."""
        return bindings(ast.Module([self.loop], []), name)

    def _is_bound(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self._bound(node.id) > 0

    def _is_as_long(self, node: ast.expr) -> bool:
        """Whether it is one of a list that has one for each tower: it is made by a comprehension over the same numbers."""
        match node, self.loop:
            case ast.Subscript(value=ast.Name(id=listed), slice=ast.Name(id=name)), ast.For(
                target=ast.Name(id=own), iter=ast.Call(func=ast.Name(id="range" | "xrange"), args=[_]) as over
            ) if own == name and self._name_stays(listed):  # fmt: skip
                return any(
                    isinstance(each, ast.Assign)
                    and only_name(each) == listed
                    and isinstance(each.value, ast.ListComp)
                    and len(each.value.generators) == 1
                    and not each.value.generators[0].ifs
                    and ast.unparse(each.value.generators[0].iter) == ast.unparse(over)
                    and all(self._stays(one) for one in over.args)
                    for each in self.file.nodes
                )
        return False

    # -- what is the same in front of the towers

    def _stays(self, node: ast.expr) -> bool:
        """Whether an expression gives the same in front of the towers, and does nothing else."""
        file = self.file
        if file.finds_names_by_text:
            return False
        called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
        for each in ast.walk(node):
            if not isinstance(each, _COMPUTES):
                return False
            if isinstance(each, ast.Call):
                func = each.func
                if isinstance(func, ast.Name):
                    if func.id not in _TEXTS or not is_pythons(file, func.id) or each.keywords:
                        return False
                elif not isinstance(func, ast.Attribute) or func.attr not in _METHODS:
                    return False
                elif any(isinstance(one, ast.Starred) for one in each.args):
                    return False
            elif isinstance(each, ast.Attribute) and id(each) not in called:
                if not is_settled(file, each):
                    return False
            elif isinstance(each, ast.Name) and id(each) not in called:
                if not self._name_stays(each.id):
                    return False
        return True

    def _name_stays(self, name: str, around: bool = True) -> bool:
        """Whether a name holds the same in front of the loop as in each of its turns.

        Args:
            around: whether statements of the scope outside of the loop may change what it holds.
        """
        file = self.file
        if name in file.shared_between_functions:
            return False
        if name in self.targets:
            own = sum(isinstance(e, ast.Name) and e.id == name for e in ast.walk(self.loop.target))
            return self._bound(name) == own
        if self._bound(name) or name in file.words_of_users:
            return False
        bound = [place for place in (self.scope, file.tree) if bindings(place, name)]
        return bool(bound) and bindings(bound[0], name) == 1 and self._is_only_read(name, around)

    def _is_only_read(self, name: str, around: bool) -> bool:
        """Whether nothing changes what a name holds, but what may stand around: it is picked from, counted and gone over."""
        reading: set[int] = set()
        inside = {id(each) for each in ast.walk(self.loop)}
        for each in own_nodes(self.scope) if around else ():
            match each:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as changed))):
                    reading |= {id(changed)} - inside
                case ast.Subscript(value=ast.Name() as changed):
                    reading |= {id(changed)} - inside
        for each in self.file.nodes:
            if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load):
                reading |= {id(each.value), id(each.slice)}
            elif isinstance(each, ast.For | ast.comprehension):
                reading.add(id(each.iter))
            elif isinstance(each, ast.Call) and ast.unparse(each.func) in ("len", "enumerate", "range", "str", "int", "print"):  # fmt: skip
                reading |= {id(one) for one in each.args}
            elif isinstance(each, ast.BinOp | ast.Compare | ast.FormattedValue | ast.Tuple):
                reading |= {id(one) for one in ast.iter_child_nodes(each)}
            elif isinstance(each, ast.Attribute) and each.attr in ("flags", "FLAGS", *_METHODS):
                reading.add(id(each.value))
            elif isinstance(each, ast.Attribute) and is_settled(self.file, each):
                reading.add(id(each.value))
        return all(id(each) in reading for each in self.file.uses(name) if isinstance(each.ctx, ast.Load))  # fmt: skip

    # -- what is sure to name a device

    def _tried(self, node: ast.expr) -> list[object] | None:
        """What an expression gives, whatever the numbers of the towers are; None where that is not known, or where it raises."""
        known = self._constants(node)
        turns = self._turns()
        looks_up = any(
            isinstance(each, ast.Subscript | ast.Div | ast.FloorDiv | ast.Mod | ast.Compare)
            and not _formats(each, node)
            for each in ast.walk(node)
        )
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - _TEXTS
        if known is None or turns is None or looks_up and not turns[1] or _repeats(node):
            return None
        found: list[object] = []
        for turn in turns[0]:
            values = {**known, **turn}
            if not names <= values.keys():
                return None
            try:
                made = eval(
                    compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval"),
                    {"__builtins__": {"str": str, "int": int, "len": len}},
                    values,
                )
            except Exception:  # as it would in the program
                return None
            found.append(made)
        return found

    def _turns(self) -> tuple[list[Mapping[str, object]], bool] | None:
        """What the loop's own names are in each turn, and whether these are all; None where that is not known."""
        match self.loop.target, self.loop.iter:
            case ast.Name(id=name), ast.Call(func=ast.Name(id="range" | "xrange"), args=[count], keywords=[]):  # fmt: skip
                number = self._value(count)
                if isinstance(number, int) and number < 100:
                    return [{name: each} for each in range(number)], True
                return [{name: each} for each in _SOME], False
            case ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=one)]), ast.Call(func=ast.Name(id="enumerate"), args=[over], keywords=[]):  # fmt: skip
                listed = self._value(over)
                if isinstance(listed, list | tuple):
                    return [{name: k, one: each} for k, each in enumerate(listed)], True
                return [{name: each} for each in _SOME], False
            case ast.Name(id=name), over:
                listed = self._value(over)
                if isinstance(listed, list | tuple):
                    return [{name: each} for each in listed], True
        return None

    def _constants(self, node: ast.expr) -> Mapping[str, object] | None:
        """The values of the names in an expression that are written out."""
        found: dict[str, object] = {}
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and each.attr not in _METHODS:
                return None
            if isinstance(each, ast.Name) and each.id not in self.targets | _TEXTS:
                value = self._value(each)
                if value is None:
                    return None
                found[each.id] = value
        return found

    def _value(self, node: ast.expr) -> object:
        """The value of an expression that is written out, or that has a name; None where it is not known."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
            listed = self._value(node.args[0])
            return len(listed) if isinstance(listed, list | tuple | dict | str) else None
        if isinstance(node, ast.Name):
            if not self._name_stays(node.id, around=False):
                return None
            place = self.scope if bindings(self.scope, node.id) else self.file.tree
            values = [
                each.value
                for each in ast.walk(place)
                if isinstance(each, ast.Assign) and only_name(each) == node.id
            ]
            return self._value(values[0]) if len(values) == 1 else None
        try:
            value: object = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            return None
        return value


@dataclass
class _Whole:
    """Puts what names are bound to in place of them; `names` are those, `again` says that such names are in what they are bound to."""

    file: PlainFile
    scope: Scope
    names: Mapping[str, ast.expr]
    again: bool = True

    def of(self, node: ast.expr, depth: int) -> ast.expr:
        made = _Put(self, depth).visit(ast.parse(ast.unparse(node), mode="eval").body)
        assert isinstance(made, ast.expr)
        return made

    def returned(self, call: ast.Call, depth: int) -> ast.expr | None:
        """What a function of the file gives, that does nothing but return it."""
        file = self.file
        if not isinstance(call.func, ast.Name) or call.keywords:
            return None
        name = call.func.id
        made = [each for each in file.tree.body if isinstance(each, ast.FunctionDef) and each.name == name]  # fmt: skip
        if len(made) != 1 or bindings(file.tree, name) != 1 or made[0].decorator_list:
            return None
        spec, body = made[0].args, made[0].body
        given = [each.arg for each in spec.args]
        bare = not (spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs)
        last = body[-1]
        says = [each for each in body[:-1] if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]  # fmt: skip
        if not bare or len(given) != len(call.args) or says or not isinstance(last, ast.Return):
            return None
        if last.value is None or not all(isinstance(each, _COMPUTES) for each in ast.walk(last.value)):  # fmt: skip
            return None
        read = {each.id for each in ast.walk(last.value) if isinstance(each, ast.Name)}
        if self.scope is not file.tree and any(
            bindings(self.scope, each) for each in read - {*given}
        ):
            return None
        inner = _Whole(file, self.scope, dict(zip(given, call.args, strict=True)), again=False)
        return inner.of(last.value, depth)


class _Put(ast.NodeTransformer):
    def __init__(self, whole: _Whole, depth: int) -> None:
        self.whole, self.depth = whole, depth

    def visit_Name(self, node: ast.Name) -> ast.expr:
        made = self.whole.names.get(node.id)
        if made is None or not self.depth:
            return node
        if not self.whole.again:
            return made
        return self.whole.of(made, self.depth - 1)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        made = self.generic_visit(node)
        assert isinstance(made, ast.Call)
        returned = self.whole.returned(made, self.depth - 1) if self.depth else None
        return made if returned is None else returned


def _formats(node: ast.AST, whole: ast.expr) -> bool:
    """Whether a `%` is that of a text that is formatted."""
    return isinstance(node, ast.Mod) and all(
        isinstance(each.left, ast.Constant) and isinstance(each.left.value, str)
        for each in ast.walk(whole)
        if isinstance(each, ast.BinOp) and each.op is node
    )


def _repeats(node: ast.expr) -> bool:
    """Whether a text or a list may be repeated, however often."""
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.Mult)
        and not all(
            isinstance(one, ast.Name | ast.BinOp) or isinstance(getattr(one, "value", None), int)
            for one in (each.left, each.right)
        )
        for each in ast.walk(node)
    )


def _is_text(node: ast.expr) -> bool:
    """Whether an expression gives a text, if it gives anything."""
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
        case ast.BinOp(left=left, op=ast.Mod() | ast.Add()):
            return _is_text(left)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
            return True
    return False


def _plainly(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that a tower is sure to run, those that hold others too."""
    for each in body:
        yield each
        if isinstance(each, ast.With):
            yield from _plainly(each.body)


__all__ = ["named_devices"]
