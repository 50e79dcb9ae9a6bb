"""Lists of tuples over the towers, such as of what each tower is fed: as a list of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    names_in,
    settled,
    stores,
)
from towermigrate.recognize.plain.collected import is_pythons


class _Unread(Exception):
    """The list is used in another way than those that are known."""


def tuple_lists(file: PlainFile) -> list[Change]:
    """`fed.append((x, y))` as `fed_x.append(x)` and `fed_y.append(y)`, and what is read of the list by the number of its item.

    Only where the list is filled once and read by `x, y = fed[k]`, `fed[k][0]`, `for x, y in fed` or `for k, (x, y) in enumerate(fed)`,
    whose names stand for the items where they are read.
    """
    if ".append((" not in file.text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                        try:
                            changes = _Tuples(file, scope, name, each).changes()
                        except _Unread:
                            continue
                        found += [Change(*change, where) for change in changes]
    return found


class _Tuples:
    """A list that tuples of names are appended to in one place."""

    def __init__(self, file: PlainFile, scope: Scope, name: str, empty: ast.Assign) -> None:
        self.file, self.scope, self.name, self.empty = file, scope, name, empty
        self.parents = {
            id(inner): each for each in ast.walk(scope) for inner in ast.iter_child_nodes(each)
        }
        self.found: list[Changed] = []

    def changes(self) -> list[Changed]:
        file, name = self.file, self.name
        if bindings(self.scope, name) != 1 or name in file.shared_between_functions:
            raise _Unread
        if self.scope is file.tree and name in file.words_of_users or file.finds_names_by_text:
            raise _Unread
        uses = [each for each in names_in(self.scope, name) if isinstance(each.ctx, ast.Load)]
        appended = [one for each in uses if (one := self._appended(each)) is not None]
        if len(appended) != 1 or len(uses) < 2 or len(uses) != len(file.uses(name)) - 1:
            raise _Unread
        ((filled, parts),) = appended
        self.filled = filled
        named = [f"{name}_{part}" for part in parts]
        self.lists = [file.fresh(each) for each in named]
        margin, inner = self._alone(self.empty), self._alone(filled)
        self._replace(self.empty, f"\n{margin}".join(f"{each} = []" for each in self.lists))
        self._replace(
            filled,
            f"\n{inner}".join(f"{own}.append({part})" for own, part in zip(self.lists, parts, strict=True)),
        )  # fmt: skip
        for each in uses:
            if self._appended(each) is None:
                self._read(each)
        return self.found

    def _alone(self, statement: ast.stmt) -> str:
        margin = self.file.alone(statement)
        if margin is None or self.file.commented(*self.file.span(statement)):
            raise _Unread
        return margin

    def _replace(self, node: ast.stmt | ast.expr, *parts: Part) -> None:
        self.found.append((*self.file.span(node), parts))

    def _appended(self, use: ast.Name) -> tuple[ast.Expr, list[str]] | None:
        """The statement that appends a tuple of names to the list, and the names."""
        func = self.parents.get(id(use))
        call = self.parents.get(id(func))
        statement = self.parents.get(id(call))
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(), attr="append") as method,
                    args=[ast.Tuple(elts=values)],
                    keywords=[],
                )
            ) if method is func:
                names = [each.id for each in values if isinstance(each, ast.Name)]
                if len(names) == len(values) > 1 and len({*names}) == len(names):
                    return statement, names
        return None

    def _read(self, use: ast.Name) -> None:
        holder = self.parents.get(id(use))
        statement = self.parents.get(id(holder))
        match holder, statement:
            case ast.Subscript(slice=number, ctx=ast.Load()), ast.Assign(targets=[target]) if (
                statement.value is holder and _is_plain(number)
            ):
                own = {each.id for each in ast.walk(number) if isinstance(each, ast.Name)}
                body = self._block(statement)
                behind = body[body.index(statement) + 1 :]
                if any(stores(each, one) for each in behind for one in own):
                    raise _Unread
                self._stand_for(target, behind, statement, ast.unparse(number))
                self._alone(statement)
                self.found.append((*self.file.without(statement), ()))
                if len(body) == 1:
                    raise _Unread
            case ast.Subscript(slice=number, ctx=ast.Load()), ast.Subscript(
                slice=ast.Constant(value=int(place))
            ) if statement.value is holder and 0 <= place < len(self.lists) and _is_plain(number):
                self._replace(statement, f"{self.lists[place]}[{ast.unparse(number)}]")
            case ast.For(target=target, iter=over), _ if over is use:
                self._loop(holder, target, self.file.fresh("k"))
            case ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[]), ast.For(
                target=ast.Tuple(elts=[ast.Name(id=number), target])
            ) if statement.iter is holder and is_pythons(self.file, "enumerate"):
                if any(stores(each, number) for each in statement.body):
                    raise _Unread
                self._loop(statement, target, number)
            case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]), _:
                self._replace(use, self.lists[0])
            case ast.comprehension(target=target, ifs=[], is_async=0), ast.ListComp(
                elt=ast.Name(id=name), generators=[_]
            ) if holder.iter is use and self._is_given(statement):
                names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
                if len(names) != len(self.lists) or names.count(name) != 1:
                    raise _Unread
                self._replace(statement, self.lists[names.index(name)])
            case _:
                raise _Unread

    def _loop(self, loop: ast.For, target: ast.expr, number: str) -> None:
        """A loop over the tuples, as one over their numbers."""
        if loop.orelse or not all(is_pythons(self.file, each) for each in ("range", "len")):
            raise _Unread
        self._stand_for(target, loop.body, loop, number)
        start, end = self.file.start(loop.target), self.file.end(loop.iter)
        if self.file.commented(start, end):
            raise _Unread
        self.found.append((start, end, (f"{number} in range({self._count()})",)))

    def _count(self) -> str:
        """How many tuples there are: as many as turns of the loop that makes them, or as the list has."""
        each: ast.AST | None = self.filled
        while each is not None and not isinstance(each, ast.For | ast.While | ast.If | ast.Try):
            each = self.parents.get(id(each))
        match each:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[count], keywords=[])):
                known = isinstance(count, ast.Constant) or settled(self.file, count)
                if isinstance(count, ast.Name) and bindings(self.file.tree, count.id) == 1:
                    known = True
                leaves = ast.Break | ast.Continue | ast.Return
                if known and not any(isinstance(one, leaves) for one in ast.walk(each)):
                    return ast.unparse(count)
        return f"len({self.lists[0]})"

    def _is_given(self, listed: ast.ListComp) -> bool:
        """Whether a new list is only given to TensorFlow, which leaves it as it is."""
        call = self.parents.get(id(listed))
        return (
            isinstance(call, ast.Call)
            and any(each is listed for each in call.args)
            and re.match(
                r"tf\.(reduce_mean|add_n|reduce_sum|stack|concat)$", ast.unparse(call.func)
            )
            is not None
        )

    def _stand_for(
        self, target: ast.expr, body: Sequence[ast.stmt], binds: ast.stmt, number: str
    ) -> None:
        """The names that a tuple is taken apart to, read in some statements only, as its items."""
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        names = [each.id for each in elements if isinstance(each, ast.Name)]
        if len(names) != len(self.lists) or len(names) != len(elements):
            raise _Unread
        if len({*names}) < len(names) or {*names} & self.file.shared_between_functions:
            raise _Unread
        inside = {id(each) for one in body for each in ast.walk(one)}
        for name, own in zip(names, self.lists, strict=True):
            if any(stores(each, name) for each in body):
                raise _Unread
            for each in names_in(self.scope, name):
                if not isinstance(each.ctx, ast.Load):
                    continue
                if id(each) in inside:
                    self._replace(each, f"{own}[{number}]")
                elif not self._is_apart(each, binds, name):
                    raise _Unread

    def _is_apart(self, read: ast.Name, binds: ast.stmt, name: str) -> bool:
        """Whether a name that is read elsewhere is surely bound in between: in the block that it is read in, or one around it."""
        inside = list(self._functions(read))
        if inside:
            return any(_is_own(each, name) for each in inside)
        around = list(self._around(read))
        shared = {id(each) for _, each in self._around(binds)}
        for block, statement in around:
            if id(statement) in shared:
                break  # from here on out, what binds it may come in between
            for each in reversed(block[: block.index(statement)]):
                if id(each) in shared:
                    return False
                if _binds_surely(each, name):
                    return True
            if isinstance(statement, ast.For) and any(
                isinstance(one, ast.Name) and one.id == name for one in ast.walk(statement.target)
            ):
                return True
        return read.lineno < binds.lineno and not any(
            isinstance(each, ast.For | ast.While) and id(each) in shared for _, each in around
        )

    def _functions(self, node: ast.AST) -> Iterator[ast.FunctionDef | ast.Lambda]:
        """The functions of the scope that a node stands in, from the innermost."""
        each = self.parents.get(id(node))
        while each is not None and each is not self.scope:
            if isinstance(each, ast.FunctionDef | ast.Lambda):
                yield each
            each = self.parents.get(id(each))

    def _around(self, node: ast.AST) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
        """The blocks that a node stands in, from the innermost, and the statement of each that it is a part of."""
        each: ast.AST | None = node
        while each is not None:
            if isinstance(each, ast.stmt) and each is not self.scope:
                yield self._block(each), each
            each = self.parents.get(id(each))

    def _block(self, statement: ast.stmt) -> list[ast.stmt]:
        around = self.parents.get(id(statement))
        for field in ("body", "orelse", "finalbody"):
            body = getattr(around, field, None)
            if isinstance(body, list) and any(each is statement for each in body):
                return body
        raise _Unread


def _is_plain(number: ast.expr) -> bool:
    """Whether an expression may be written in several places."""
    fine = ast.Name | ast.Constant | ast.BinOp | ast.operator | ast.expr_context
    return all(isinstance(each, fine) for each in ast.walk(number))


def _binds_surely(statement: ast.stmt, name: str) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    return any(
        isinstance(each, ast.Name) and each.id == name
        for target in statement.targets
        for each in ast.walk(target)
        if not isinstance(each, ast.Name) or not isinstance(each.ctx, ast.Load)
    )


def _is_own(function: ast.FunctionDef | ast.Lambda, name: str) -> bool:
    """Whether a name is a function's own."""
    given = any(isinstance(each, ast.arg) and each.arg == name for each in ast.walk(function.args))
    return given or isinstance(function, ast.FunctionDef) and bool(stores(function, name))
