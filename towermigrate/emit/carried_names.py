"""The names of a function that was written for the methods of an object, as those have them (`emit.carrying`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from towermigrate.emit.parting import NotParted, bound_in
from towermigrate.recognize.carried import Alias, Body, Carried, Parameter, mark_in
from towermigrate.recognize.python_scopes import lines_in_texts

_Placed = ast.Name | ast.arg | ast.FunctionDef | ast.alias | ast.ClassDef | ast.ExceptHandler


@dataclass
class Stretch:
    """The lines of a body, between the lines of its first and its last mark, and what binds its parameters there.

    `result` is what binds the caller's names to what it returns.
    """

    body: Body
    start: int
    inner: int
    end: int
    column: int
    bound: dict[str, ast.Assign] = field(default_factory=dict)
    result: ast.Assign | None = None
    docstring: ast.stmt | None = None

    def holds(self, line: int) -> bool:
        return self.start <= line <= self.end


@dataclass
class Use:
    """Where a name of the joined function stands, or a function of that name."""

    name: str
    node: ast.Name | ast.FunctionDef
    line: int
    stored: bool
    body: int | None


class Names:
    """Where the joined function's names stand, whose each of them is, and what its author calls it."""

    def __init__(self, all_texts: Mapping[str, str], made: Carried) -> None:
        self.made = made
        self.all = all_texts
        text = all_texts[made.path]
        self.rows = text.split("\n")
        self.tree = ast.parse(text)
        self.function = next(
            each
            for each in self.tree.body
            if isinstance(each, ast.FunctionDef) and each.name == made.caller
        )
        self.inside = lines_in_texts(text)
        self.marks: dict[str, int] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                value = node.value.value
                said = mark_in(value) if isinstance(value, str) else None
                if said is not None:
                    self.marks[said] = node.lineno
        self.stretches = [self._stretch(each) for each in made.bodies]
        parameters = arguments_of(self.function.args)
        self.own = bound_in(self.function.body) | parameters
        self.joined = {*made.attributes, *(n for b in made.bodies for n in b.names), *made.names}
        self.given = parameters
        self.uses = list(self._uses(self.function.body, frozenset()))
        self.by_name: dict[str, list[Use]] = {}
        for use in self.uses:
            self.by_name.setdefault(use.name, []).append(use)
        self.shared: dict[str, Alias] = {each.joined: each for each in made.aliases}
        self.kept: dict[int, list[Parameter]] = {}
        self.attributes: dict[
            str, str
        ] = {}  # names that are attributes wherever they are not a function's own
        self.set_behind: dict[int, list[str]] = {}  # what is set behind a function's last line

    def _line(self, said: str) -> int:
        if said not in self.marks:
            raise NotParted("what a method does is not in one place any more")
        return self.marks[said]

    def _stretch(self, body: Body) -> Stretch:
        start, inner, end = (
            self._line(f"{body.number} {each}") for each in ("begin", "body", "end")
        )
        for block in _blocks(self.function):
            lines = [each.lineno for each in block]
            if start in lines:
                if inner not in lines or end not in lines or not start < inner < end:
                    break
                column = block[lines.index(start)].col_offset
                found = Stretch(body, start, inner, end, column)
                names = {each.joined for each in body.parameters if not (each.same or each.holds)}
                for statement in block[lines.index(start) + 1 : lines.index(inner)]:
                    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                    if isinstance(target, ast.Name) and target.id in names:
                        assert isinstance(statement, ast.Assign)
                        if statement.end_lineno != statement.lineno:
                            raise NotParted(f"what `{body.name}` is given has several lines")
                        found.bound[target.id] = statement
                found.result = self._result(found, block)
                first = block[lines.index(inner) + 1]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    if first.lineno not in self.marks.values():
                        found.docstring = first
                return found
        raise NotParted(f"what `{body.name}` does is not in one place any more")

    def _result(self, stretch: Stretch, block: Sequence[ast.stmt]) -> ast.Assign | None:
        """The statement that binds what a body returns, which is to be its last one."""
        mark = self.marks.get(f"{stretch.body.number} return")
        if mark is None:
            return None
        within = [each for each in block if stretch.inner < each.lineno < stretch.end]
        behind = [each for each in within if each.lineno > mark]
        if not any(each.lineno == mark for each in within) or not behind:
            raise NotParted(f"what `{stretch.body.name}` returns is not in one place any more")
        last = behind[-1]
        if not isinstance(last, ast.Assign) or len(last.targets) != 1:
            raise NotParted(f"what `{stretch.body.name}` returns is bound to no name any more")
        return last

    def _of(self, node: _Placed) -> int | None:
        """The innermost body that a node is of."""
        found = [each for each in self.stretches if each.holds(node.lineno)]
        if not found:
            return None
        inner = max(found, key=lambda each: each.start)
        result = inner.result
        if result is not None and any(each is node for each in ast.walk(result.targets[0])):
            return self._parent(inner.body)
        for bound in inner.bound.values():
            if node.lineno == bound.lineno and node is not bound.targets[0]:
                return self._parent(inner.body)  # what it is given is said by whoever calls it
        return inner.body.number

    def _parent(self, body: Body) -> int | None:
        return self.made.sites[body.site].parent

    def _uses(self, nodes: Sequence[ast.AST], hidden: frozenset[str]) -> Iterator[Use]:
        """Where the joined function's names stand, in functions of its own too."""
        for node in nodes:
            if isinstance(node, ast.Name):
                if node.id not in self.own and node.id not in hidden and node.id in self.joined:
                    raise NotParted(f"`{self.made.own_name(node.id)}` is read and bound nowhere")
                if node.id in self.own and node.id not in hidden:
                    stored = not isinstance(node.ctx, ast.Load)
                    yield Use(node.id, node, node.lineno, stored, self._of(node))
            elif isinstance(node, ast.FunctionDef):
                if node.name in self.own and node.name not in hidden:
                    body = self._of(node)
                    yield Use(node.name, node, node.lineno, True, body)
                around = [*node.decorator_list, *_defaults(node.args)]
                yield from self._uses(around, hidden)
                yield from self._uses(
                    node.body, hidden | arguments_of(node.args) | bound_in(node.body)
                )
            elif isinstance(node, ast.Lambda):
                yield from self._uses(_defaults(node.args), hidden)
                yield from self._uses([node.body], hidden | arguments_of(node.args))
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                bound = {
                    each.id
                    for generator in node.generators
                    for each in ast.walk(generator.target)
                    if isinstance(each, ast.Name)
                }
                yield from self._uses(list(ast.iter_child_nodes(node)), hidden | bound)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                raise NotParted("a function binds the names of another one")
            else:
                yield from self._uses(list(ast.iter_child_nodes(node)), hidden)

    def _holder(self, body: int | None) -> str | None:
        return self.made.holder if body is None else self.made.bodies[body].holder

    def _locals(self, body: int | None) -> Mapping[str, str]:
        return self.made.names if body is None else self.made.bodies[body].names

    def _settle(self) -> None:
        """Which names are attributes, and which parameters stay."""
        otherwise = self._bound_otherwise()
        for name, uses in self.by_name.items():
            if name in otherwise:
                shared = name in self.shared or name in self.made.attributes
                if shared or {each.body for each in uses} - otherwise[name]:
                    raise NotParted(f"`{name}` is bound by no assignment and read elsewhere")
                continue
            if name not in self.given and not any(each.stored for each in uses):
                raise NotParted(f"`{name}` is read and bound nowhere")
            owners = {n for n in (None, *range(len(self.made.bodies))) if name in self._locals(n)}
            if name in self.shared:
                self.attributes[name] = self.shared[name].attribute
                if any(each.stored and each.body not in owners for each in uses):
                    raise NotParted(f"`{name}` is bound in two methods")
                continue
            if name in self.made.attributes:
                self.attributes[name] = self.made.attributes[name]
                continue
            bodies = {each.body for each in uses}
            if owners and bodies <= owners:
                if any(each.stored and not self._owns(each.body, name) for each in uses):
                    raise NotParted(f"`{name}` is bound in two functions")
                continue
            if len(bodies) > 1 or owners and not bodies <= owners:
                self._new_attribute(name, uses)

    def _bound_otherwise(self) -> dict[str, set[int | None]]:
        """The bodies that bind a name by an import, a class or an `except`."""
        found: dict[str, set[int | None]] = {}
        for node in ast.walk(self.function):
            if isinstance(node, ast.alias):
                found.setdefault((node.asname or node.name).partition(".")[0], set()).add(
                    self._of(node)
                )
            elif isinstance(node, ast.ClassDef | ast.ExceptHandler) and node.name:
                found.setdefault(node.name, set()).add(self._of(node))
        return found

    def _owns(self, body: int | None, name: str) -> bool:
        """Whether a name is not a parameter that has it from elsewhere."""
        if body is None:
            return True
        return not any(p.same and p.joined == name for p in self.made.bodies[body].parameters)

    def _new_attribute(self, name: str, uses: Sequence[Use]) -> None:
        """A name that more than one function needs is one of the object's."""
        own = self.made.own_name(name)
        others = {*self.made.attributes.values(), *self.made.methods, *self.attributes.values()}
        if own in others or own.startswith("__"):
            raise NotParted(f"the object has a `{own}` of its own")
        if self._in_dict(name):
            if any(each.stored and each.line > self._line("dict begin") for each in uses):
                raise NotParted(f"`{own}` is made behind the dict that it belongs to")
        elif name in self.made.names:
            raise NotParted(f"a method reads `{own}`, which the object does not know")
        self.attributes[name] = own

    def _in_dict(self, name: str) -> bool:
        """Whether a name is bound where the dict is made, which then holds it."""
        display = self.made.display
        stored = {each.body for each in self.by_name[name] if each.stored}
        return display is not None and stored == {display.body}

    def _told(self, use: Use) -> str:
        """A name as it stands in the function that it is of."""
        name, body = use.name, use.body
        own = self._locals(body).get(name)
        if name not in self.attributes:
            return own or name
        if name in self.shared:
            alias = self.shared[name]
            if own is not None:
                said = "dict begin" if alias.of_dict else f"alias {alias.number}"
                late = body == alias.body and use.line > self._line(said)
                if not (late and alias.by_attribute and not use.stored):
                    return own
        elif self.made.display is not None and body == self.made.display.body:
            if name not in self.made.attributes and self._in_dict(name):
                return self.made.own_name(name)
            if name in self.made.attributes and use.line < self._line("dict end"):
                return self.made.own_name(name)  # an entry, which is written where the dict is
        elif any(isinstance(each.node, ast.FunctionDef) for each in self.by_name[name]):
            if any(each.body == body and each.stored for each in self.by_name[name]):
                return self.made.own_name(name)  # set behind the function
        holder = self._holder(body)
        if holder is None or body is None and use.line < self._made_at():
            raise NotParted(f"`{self.made.own_name(name)}` is needed where the object is not known")
        return self.made.access(holder, self.attributes[name])

    def _made_at(self) -> int:
        if self.made.display is not None and self.made.display.body is None:
            return self._line("dict end")
        return max(
            [each.end for each in self.stretches if each.body.site == self.made.bodies[0].site]
        )

    def _rename(self) -> None:
        """Every name as its author has it, and attributes as such."""
        edits: list[tuple[int, int, str, str]] = []
        stands_for: dict[tuple[int | None, str], str] = {}
        known = {id(use.node): use for use in self.uses}
        for node in ast.walk(self.function):
            if isinstance(node, ast.Name):
                body = self._of(node)
                use = known.get(id(node))
                new = node.id if use is None else self._told(use)
                if node.id in self.made.lifted:
                    if self._holder(body) is None:
                        raise NotParted(f"`{node.id}` is needed where the object is not known")
                    new = f"{self._holder(body)}.{self.made.lifted[node.id]}"
                if new.isidentifier():
                    if stands_for.setdefault((body, new), node.id) != node.id:
                        raise NotParted(f"`{new}` means two things in one function")
                elif isinstance(node.ctx, ast.Del):
                    raise NotParted(f"`{new}` is deleted")
                if new != node.id:
                    edits.append((node.lineno, node.col_offset, node.id, new))
            elif isinstance(node, ast.arg):
                key = (self._of(node), node.arg)
                if stands_for.setdefault(key, node.arg) != node.arg:
                    raise NotParted(f"`{node.arg}` means two things in one function")
            elif isinstance(node, ast.FunctionDef) and id(node) in known:
                self._function(node, known[id(node)])
        for name, uses in self.by_name.items():
            if name in self.attributes and name not in self.shared:
                for use in uses:
                    if use.stored and not isinstance(use.node, ast.Name | ast.FunctionDef):
                        raise NotParted(f"`{name}` is bound by an import")
        imported = {
            (each.asname or each.name).partition(".")[0]
            for node in ast.walk(self.function)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for each in node.names
        } | {
            each.name
            for each in ast.walk(self.function)
            if isinstance(each, ast.ExceptHandler | ast.ClassDef) and each.name
        }
        changed = {name for _, _, name, _ in edits}
        if imported & changed:
            raise NotParted(f"`{min(imported & changed)}` is bound by no assignment")
        for line, byte, old, new in sorted(edits, reverse=True):
            row = self.rows[line - 1]
            at = len(row.encode()[:byte].decode())
            if not row.startswith(old, at):
                raise NotParted(f"`{old}` stands in a text")
            self.rows[line - 1] = row[:at] + new + row[at + len(old) :]

    def _function(self, node: ast.FunctionDef, use: Use) -> None:
        """A function that is bound to a name which is an attribute now, or that its author calls otherwise."""
        told = self._told(use)
        if told != node.name:
            raise NotParted(f"the function `{node.name}` stands under another name")
        if node.name in self.attributes and node.name not in self.shared:
            if self._in_dict(node.name):
                return  # an entry of it
            holder = self._holder(use.body)
            if holder is None:
                raise NotParted(f"`{node.name}` is needed where the object is not known")
            assert node.end_lineno is not None
            value = self.made.access(holder, self.attributes[node.name])
            text = f"{' ' * node.col_offset}{value} = {told}"
            self.set_behind.setdefault(node.end_lineno, []).extend(["", text])


def arguments_of(args: ast.arguments) -> set[str]:
    return {each.arg for each in ast.walk(args) if isinstance(each, ast.arg)}


def _defaults(args: ast.arguments) -> list[ast.expr]:
    return [*args.defaults, *(each for each in args.kw_defaults if each is not None)]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a function, in functions of its own too."""
    for each in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(each, name, None)
            if isinstance(block, list) and block:
                yield block
