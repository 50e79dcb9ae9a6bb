"""Runs that clip variables, as a critic's are: `sess.run(clip)` as a loop over the variables that sets each, where it is run.

`clip = [v.assign(tf.clip_by_value(v, -c, c)) for v in d_vars]`, or a `tf.group` of that, is run by itself: nothing that it
does depends on its order. What `d_vars` lists of the trained variables, it lists behind the towers too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    settled,
    stores,
)
from towermigrate.recognize.plain.collected import is_tower_loop, once_in
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.saved_lists import is_name_test

_NO_VARIABLES = frozenset(
    "compute_gradients append trainable_variables get_collection reuse_variables get_variable_scope startswith endswith "
    "print format split len".split()
)
"""What makes no variable."""
_READERS = frozenset("compute_gradients minimize len print zip enumerate".split())
"""What is given a list of variables and leaves it as it is, beside TensorFlow's functions."""
_KEYS = ("tf.GraphKeys.TRAINABLE_VARIABLES", "'trainable_variables'")
_PLAIN_BOUND = (
    ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.Name, ast.Attribute, ast.expr_context,
)  # fmt: skip


@dataclass(frozen=True)
class _Clip:
    """What clips: the statements that make it, the tests of the names of its variables, and the bounds."""

    made: tuple[ast.stmt, ...]
    tests: tuple[tuple[ast.expr, str], ...]
    bounds: tuple[str, str]


def clipped_weights(file: PlainFile) -> list[Change]:
    """The loops that stand for runs of what clips variables."""
    if "clip_by_value" not in file.text or "assign(" not in file.text or file.finds_names_by_text:
        return []
    if re.search(r"\b[gs]etattr\b|\bvars\(|__dict__", file.text):
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        loops = [
            each for each in once_in(scope) if isinstance(each, ast.For) and is_tower_loop(each)
        ]
        if not loops:
            continue
        reader = _Reader(file, scope, loops[-1], where)
        for statement in once_in(scope):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                found += reader.changes(statement)
    return found


class _Reader:
    def __init__(self, file: PlainFile, scope: Scope, loop: ast.For, where: str) -> None:
        self.file, self.scope, self.loop, self.where = file, scope, loop, where
        self.end = loop.end_lineno or loop.lineno
        self.root = ""

    def changes(self, statement: ast.Assign) -> list[Change]:
        (target,) = statement.targets
        self.root = ast.unparse(target.value) if isinstance(target, ast.Attribute) else ""
        if statement.lineno <= self.end or not self._is_bound_once(target):
            return []
        clip = self._clip(statement)
        waits = self._waits(statement)
        if waits is not None and clip is not None:
            return self._behind(clip, target, *waits)
        runs = list(self._runs(target))
        if clip is None or not runs or any(self.file.alone(each) is None for each in clip.made):
            return []
        found: list[Change] = []
        for run, session, holder in runs:
            row = self._loop(clip, run, session, holder)
            if row is None:
                return []
            found.append(Change(*self.file.span(run), (row,), self.where))
        if any(self.file.commented(*self.file.span(each)) for each in clip.made):
            return []
        return [*found, *(Change(*self.file.without(each), (), self.where) for each in clip.made)]

    # ---- what waits for an update

    def _waits(self, statement: ast.stmt) -> tuple[ast.With, str] | None:
        """The block around a statement that waits for an update, and the name of that."""
        for each in once_in(self.scope):
            match each:
                case ast.With(
                    items=[
                        ast.withitem(
                            context_expr=ast.Call(
                                func=func, args=[ast.List(elts=[ast.Name(id=update)])], keywords=[]
                            )
                        )
                    ]
                ) if ast.unparse(func) == "tf.control_dependencies" and each.body == [statement]:
                    return each, update
        return None

    def _behind(self, clip: _Clip, target: ast.expr, block: ast.With, update: str) -> list[Change]:
        """Runs of what clips behind an update: runs of the update, and loops behind them."""
        asked = list(self._reads(target))
        found: list[Change] = []
        for each in ast.walk(self.scope):
            if not isinstance(each, ast.Assign | ast.Expr) or not isinstance(each.value, ast.Call):
                continue
            func, args = each.value.func, each.value.args
            if not isinstance(func, ast.Attribute) or func.attr != "run" or not args:
                continue
            several = args[0].elts if isinstance(args[0], ast.List | ast.Tuple) else [args[0]]
            own = [one for one in several if any(one is read for read in asked)]
            if len(own) != 1:
                continue
            others = [ast.unparse(one) for one in several if one is not own[0]]
            row = self._loop(clip, each, ast.unparse(func.value), "")
            if row is None or update in others or not isinstance(own[0], ast.Name):
                return []
            asked.remove(own[0])
            margin, end = self.file.alone(each), self.file.end(each)
            behind = self.file.text[end:].split("\n", 1)[0]
            place = end + len(behind)
            found.append(Change(*self.file.span(own[0]), (update,), self.where))
            found.append(Change(place, place, (f"\n{margin}{row}",), self.where))
        if asked or not found or len(clip.made) > 1 or self.file.alone(block) is None:
            return []
        if bindings(self.scope, update) != 1 or self.file.commented(*self.file.span(block)):
            return []
        return [*found, Change(*self.file.without(block), (), self.where)]

    # ---- where it is run

    def _is_bound_once(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Name):
            shared = target.id in self.file.shared_between_functions
            others = self.scope is self.file.tree and target.id in self.file.words_of_users
            return bindings(self.scope, target.id) == 1 and not shared and not others
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            kept = [
                each
                for each in self.file.nodes
                if isinstance(each, ast.Attribute)
                and each.attr == target.attr
                and not isinstance(each.ctx, ast.Load)
            ]
            return len(kept) == 1 and target.attr not in self.file.words_of_users
        return False

    def _runs(self, target: ast.expr) -> Iterator[tuple[ast.stmt, str, str]]:
        """The statements that only run it, each with what they call the session, and the object that has it.

        There are none where anything else reads it.
        """
        asked = list(self._reads(target))
        found: list[tuple[ast.stmt, str, str]] = []
        for each in ast.walk(self.file.tree if isinstance(target, ast.Attribute) else self.scope):
            match each:
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=session, attr="run"), args=[fetched], keywords=[]
                    )
                ):
                    if isinstance(fetched, ast.List) and len(fetched.elts) == 1:
                        (fetched,) = fetched.elts
                    if any(fetched is one for one in asked):
                        holder = (
                            ast.unparse(fetched.value) if isinstance(fetched, ast.Attribute) else ""
                        )
                        found.append((each, ast.unparse(session), holder))
        if len(found) == len(asked):
            yield from found

    def _reads(self, target: ast.expr) -> Iterator[ast.expr]:
        for each in ast.walk(self.file.tree if isinstance(target, ast.Attribute) else self.scope):
            if isinstance(target, ast.Name) and isinstance(each, ast.Name) and each.id == target.id:
                if isinstance(each.ctx, ast.Load):
                    yield each
            if isinstance(target, ast.Attribute) and isinstance(each, ast.Attribute):
                if each.attr == target.attr and isinstance(each.ctx, ast.Load):
                    yield each

    def _loop(self, clip: _Clip, run: ast.stmt, session: str, holder: str) -> str | None:
        """What stands where it is run: a loop over the trained variables, whose names are asked for."""
        scope = next(
            each
            for _, each in reversed(self.file.scopes)
            if any(one is run for one in own_nodes(each))
        )
        margin = self.file.alone(run)
        if margin is None or not self._sees_bounds(clip, scope, holder):
            return None
        low, high = (_of_holder(each, self.root if holder else "", holder) for each in clip.bounds)
        name = self.file.free(scope, "v", "var", "variable")
        rows = [f"for {name} in tf.trainable_variables():"]
        step = "    "
        if clip.tests:
            tests = [_renamed(test, own, name) for test, own in clip.tests]
            joined = [f"({each})" if " or " in each else each for each in tests]
            rows.append(f"{step}if {' and '.join(joined if len(tests) > 1 else tests)}:")
            step *= 2
        rows.append(f"{step}{session}.run({name}.assign(tf.clip_by_value({name}, {low}, {high})))")
        return f"\n{margin}".join(rows)

    def _sees_bounds(self, clip: _Clip, scope: Scope, holder: str) -> bool:
        """Whether the bounds mean where it is run what they meant where it was made."""
        for text in clip.bounds:
            node = ast.parse(text, mode="eval").body
            held = [
                each.value
                for each in ast.walk(node)
                if isinstance(each, ast.Attribute) and ast.unparse(each.value) == self.root
            ]
            for each in ast.walk(node):
                if holder and any(each is one for one in held):
                    continue  # the object that has what clips has the bound too
                if isinstance(each, ast.Attribute) and not settled(self.file, each):
                    return False
                if not isinstance(each, ast.Name):
                    continue
                if each.id in self.file.shared_between_functions:
                    return False
                own = bindings(self.scope, each.id) if self.scope is not self.file.tree else 0
                if own:
                    inside = any(one is scope for one in ast.walk(self.scope))
                    again = scope is not self.scope and bindings(scope, each.id)
                    if own > 1 or not inside or again:
                        return False
                elif len(stores(self.file.tree, each.id)) > 1 or bindings(scope, each.id) > (
                    scope is self.file.tree
                ):
                    return False
        return True

    # ---- what it does

    def _clip(self, statement: ast.Assign) -> _Clip | None:
        value = statement.value
        match value:
            case ast.Call(func=func, args=[ast.Starred(value=inner)], keywords=[]) if (
                ast.unparse(func) == "tf.group"
            ):
                value = inner
        made: tuple[ast.stmt, ...] = (statement,)
        if isinstance(value, ast.Name):
            (begun, filled) = self._filled(value.id)
            if begun is None:
                return None
            made = (begun, *([filled] if filled is not None else []), statement)
            if filled is not None:
                return self._of_loop(filled, made, value.id)
            value = begun.value
        if not isinstance(value, ast.ListComp | ast.GeneratorExp) or len(value.generators) != 1:
            return None
        (only,) = value.generators
        if only.is_async or not isinstance(only.target, ast.Name):
            return None
        name = only.target.id
        bounds = _clips(value.elt, name, {})
        tests = self._listed(only.iter, statement)
        own = [(each, name) for each in only.ifs]
        if bounds is None or tests is None or not all(is_name_test(t, n) for t, n in own):
            return None
        return _Clip(made, (*tests, *own), bounds)

    def _filled(self, name: str) -> tuple[ast.Assign | None, ast.For | None]:
        """The statement that binds a list that is read once, and the loop that fills it, if one does."""
        begun = [each for each in once_in(self.scope) if _binds(each, name)]
        own = [e for e in ast.walk(self.scope) if isinstance(e, ast.Name) and e.id == name]
        reads = [each for each in own if isinstance(each.ctx, ast.Load)]
        if len(begun) != 1 or bindings(self.scope, name) != 1 or begun[0].lineno <= self.end:
            return None, None
        (first,) = begun
        assert isinstance(first, ast.Assign)
        if isinstance(first.value, ast.List) and not first.value.elts and len(reads) == 2:
            for each in once_in(self.scope):
                if isinstance(each, ast.For) and any(
                    one is reads[0] or one is reads[1] for one in ast.walk(each)
                ):
                    return (first, each) if each.lineno > first.lineno else (None, None)
            return None, None
        return (first, None) if len(reads) == 1 else (None, None)

    def _of_loop(self, loop: ast.For, made: tuple[ast.stmt, ...], name: str) -> _Clip | None:
        """What a loop appends, a clip of each variable."""
        if loop.orelse or not isinstance(loop.target, ast.Name):
            return None
        *before, last = loop.body
        held: dict[str, Sequence[ast.expr]] = {}
        for each in before:
            match each:
                case ast.Assign(
                    targets=[ast.Name(id=own)], value=ast.List(elts=parts) | ast.Tuple(elts=parts)
                ):
                    if bindings(self.scope, own) != 1:
                        return None
                    inside = {id(one) for one in ast.walk(loop)}
                    if any(
                        id(one) not in inside
                        for one in ast.walk(self.scope)
                        if isinstance(one, ast.Name) and one.id == own
                    ):
                        return None
                    held[own] = parts
                case _:
                    return None
        match last:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=own), attr="append"),
                    args=[given],
                    keywords=[],
                )
            ) if own == name:
                bounds = _clips(given, loop.target.id, held)
                tests = self._listed(loop.iter, loop)
                others = bindings(self.scope, loop.target.id) == 1 and not _read_behind(
                    self.scope, loop, loop.target.id
                )
                if bounds is not None and tests is not None and others:
                    return _Clip(made, tests, bounds)
        return None

    # ---- of which variables

    def _listed(self, node: ast.expr, at: ast.stmt) -> tuple[tuple[ast.expr, str], ...] | None:
        """The tests that variables pass that an expression lists, of all that are trained; None where that is not known."""
        match node:
            case ast.Call():
                return self._of_scope(node) if at.lineno > self.end or self._is_last(at) else None
            case ast.ListComp(
                elt=ast.Name(id=own),
                generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=ifs)],
            ):
                tests = self._listed(over, at)
                if own != name or tests is None or not all(is_name_test(e, name) for e in ifs):
                    return None
                return (*tests, *((each, name) for each in ifs))
            case ast.Name(id=name):
                if bindings(self.scope, name) != 1 or name in self.file.shared_between_functions:
                    return None
                bound = [
                    each
                    for each in [*once_in(self.scope), *_in_blocks(self.loop.body)]
                    if _binds(each, name)
                ]
            case ast.Attribute(attr=attr) if self._is_bound_once_by(attr):
                bound = [
                    each
                    for each in [*once_in(self.scope), *_in_blocks(self.loop.body)]
                    if isinstance(each, ast.Assign)
                    and len(each.targets) == 1
                    and ast.unparse(each.targets[0]) == ast.unparse(node)
                ]
            case _:
                return None
        if len(bound) != 1 or not isinstance(bound[0], ast.Assign) or not self._only_read(node):
            return None
        return self._listed(bound[0].value, bound[0])

    def _only_read(self, listed: ast.expr) -> bool:
        """Whether a list is gone over, and given to what only reads it: nothing can change it in place."""
        whole = self.file.tree if isinstance(listed, ast.Attribute) else self.scope
        read: set[int] = set()
        for each in ast.walk(whole):
            if isinstance(each, ast.For | ast.comprehension):
                read.add(id(each.iter))
            elif isinstance(each, ast.Call):
                func = ast.unparse(each.func)
                if func.startswith("tf.") or func.rpartition(".")[2] in _READERS:
                    read |= {id(one) for one in each.args}
                    read |= {id(one.value) for one in each.keywords}
        return all(id(each) in read for each in self._reads(listed))

    def _is_bound_once_by(self, attr: str) -> bool:
        kept = [
            each
            for each in self.file.nodes
            if isinstance(each, ast.Attribute) and each.attr == attr
            if not isinstance(each.ctx, ast.Load)
        ]
        return len(kept) == 1

    def _is_last(self, statement: ast.stmt) -> bool:
        """Whether nothing that a tower does behind a statement may make a variable."""
        if not any(each is statement for each in _in_blocks(self.loop.body)):
            return False
        return all(
            (each.func.attr if isinstance(each.func, ast.Attribute) else ast.unparse(each.func))
            in _NO_VARIABLES
            for each in ast.walk(self.loop)
            if isinstance(each, ast.Call) and each.lineno > (statement.end_lineno or 0)
        )

    @staticmethod
    def _of_scope(call: ast.Call) -> tuple[tuple[ast.expr, str], ...] | None:
        """What `tf.trainable_variables(scope)` asks of a variable."""
        args = [*call.args, *(each.value for each in call.keywords)]
        if any(each.arg != "scope" for each in call.keywords):
            return None
        called = ast.unparse(call.func)
        if called == "tf.get_collection":
            if not call.args or ast.unparse(args.pop(0)) not in _KEYS:
                return None
        elif called != "tf.trainable_variables":
            return None
        match args:
            case []:
                return ()
            case [ast.Constant(value=str(text))] if re.fullmatch(r"[\w/]+", text):
                return ((ast.parse(f"v.name.startswith({text!r})", mode="eval").body, "v"),)
        return None


def _clips(
    node: ast.expr, name: str, held: dict[str, Sequence[ast.expr]]
) -> tuple[str, str] | None:
    """The bounds of `v.assign(tf.clip_by_value(v, low, high))`, as texts."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=own), attr="assign"), args=[value], keywords=[]
        ) if own == name:
            pass
        case ast.Call(func=func, args=[ast.Name(id=own), value], keywords=[]) if (
            own == name and ast.unparse(func) == "tf.assign"
        ):
            pass
        case _:
            return None
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "tf.clip_by_value":
        return None
    given = dict(zip(("t", "low", "high"), value.args, strict=False))
    names = {"clip_value_min": "low", "clip_value_max": "high", "t": "t"}
    for each in value.keywords:
        if each.arg not in names or names[each.arg] in given:
            return None
        given[names[each.arg]] = each.value
    if given.keys() != {"t", "low", "high"} or ast.unparse(given["t"]) != name:
        return None
    bounds = [_bound(given[each], name, held) for each in ("low", "high")]
    low, high = bounds
    return None if low is None or high is None else (low, high)


def _bound(node: ast.expr, name: str, held: dict[str, Sequence[ast.expr]]) -> str | None:
    match node:
        case ast.Subscript(value=ast.Name(id=own), slice=ast.Constant(value=int(place))) if (
            own in held
        ):
            if not 0 <= place < len(held[own]):
                return None
            node = held[own][place]
    if not all(isinstance(each, _PLAIN_BOUND) for each in ast.walk(node)):
        return None
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return None if name in names or names & held.keys() else ast.unparse(node)


def _of_holder(bound: str, own: str, holder: str) -> str:
    """`model.c` for the `self.c` of a method, by what the object is called where it is run."""
    return re.sub(rf"\b{re.escape(own)}\.", f"{holder}.", bound) if own and holder else bound


def _renamed(test: ast.expr, own: str, name: str) -> str:
    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(name, node.ctx) if node.id == own else node

    return ast.unparse(Renamed().visit(ast.parse(ast.unparse(test), mode="eval")))


def _binds(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=own)]):
            return own == name
    return False


def _in_blocks(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and those in the `with`s of it."""
    for each in body:
        yield each
        if isinstance(each, ast.With):
            yield from _in_blocks(each.body)


def _read_behind(scope: Scope, loop: ast.For, name: str) -> bool:
    inside = {id(each) for each in ast.walk(loop)}
    return any(
        isinstance(each, ast.Name) and each.id == name and id(each) not in inside
        for each in ast.walk(scope)
    )


__all__ = ["clipped_weights"]
