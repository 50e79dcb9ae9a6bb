"""Lists of the towers' objects: a list of each of their values that is asked for.

`models.append(model)` in a tower and `[m.loss for m in models]` behind it are `tower_losses.append(model.loss)` and
`tower_losses`, where an object keeps what it was made with.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, bindings, stores
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.told import outermost
from towermigrate.recognize.source import Tree
from towermigrate.tree import all_nodes, import_closure

_LOOKS = re.compile(
    r"__getattr|__setattr|__slots__|__dict__|\bsetattr\b|\bdelattr\b|\bvars\(|\.setter\b|__set__|__new__|metaclass"
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def tower_objects(tree: Tree, file: PlainFile) -> list[Change]:
    """The lists of objects that towers fill and of which only the values are asked for, one of them at a time."""
    if ".append(" not in file.text or file.finds_names_by_text:
        return []
    for where, scope, loop in loops_of_towers(file):
        for each in once_in(scope):
            if not isinstance(each, ast.Assign) or each.lineno > loop.lineno:
                continue
            for target in _begun(each):
                if bindings(scope, target.id) == 1:
                    made = _Objects(tree, file, scope, loop, each, target, where).changes()
                    if made:
                        return made
    return []


def _begun(statement: ast.Assign) -> list[ast.Name]:
    """The names that a statement binds to empty lists, where it does nothing else."""
    if len(statement.targets) != 1:
        return []
    (target,), value = statement.targets, statement.value
    targets, values = [target], [value]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        targets, values = target.elts, value.elts
    names = [each for each in targets if isinstance(each, ast.Name)]
    empty = all(isinstance(each, ast.List) and not each.elts for each in values)
    return names if empty and len(names) == len(targets) == len(values) else []


class _Objects:
    def __init__(
        self,
        tree: Tree,
        file: PlainFile,
        scope: Scope,
        loop: ast.For,
        begun: ast.Assign,
        target: ast.Name,
        where: str,
    ) -> None:
        self.tree, self.file, self.scope, self.loop = tree, file, scope, loop
        self.begun, self.target, self.where = begun, target, where
        self.name = target.id
        self.end = loop.end_lineno or loop.lineno
        self.edits: list[tuple[ast.expr, tuple[Part, ...]]] = []
        self.asked: dict[str, str] = {}
        self.named: dict[str, str] = {}  # what runs ask for of one tower, by names

    def changes(self) -> list[Change]:
        file, found = self.file, self._append()
        if found is None or self.name in file.shared_between_functions:
            return []
        statement, block, given = found
        made = self._maker(statement, given)
        if made is None:
            return []
        own = (
            given.id
            if isinstance(given, ast.Name)
            else file.free(self.scope, "model", "tower_model")
        )
        grown = statement.value.func.value  # type: ignore[attr-defined]
        for each in all_nodes(file.tree if isinstance(self.scope, ast.Module) else self.scope):
            if isinstance(each, ast.Name) and each.id == self.name and each is not grown:
                if each is self.target:
                    continue
                if not isinstance(each.ctx, ast.Load) or not self._use(each, statement, own):
                    return []
        class_ = self._class(made)
        if class_ is None or not self.asked or not all(self._keeps(class_, a) for a in self.asked):
            return []
        margin, inner = file.alone(self.begun), file.alone(statement)
        if margin is None or inner is None or file.commented(*file.span(statement)):
            return []
        others = [each.id for each in _begun(self.begun) if each is not self.target]
        begun = f"\n{margin}".join(f"{new} = []" for new in (*others, *self.asked.values()))
        ones = {each: file.free(self.scope, each, f"tower_{each}") for each in self.asked}
        rows = "".join(
            f"\n{inner}{ones[each]} = {own}.{each}\n{inner}{new}.append({ones[each]})"
            for each, new in self.asked.items()
        )
        at = file.text.find("\n", file.end(block[-1]))
        at = len(file.text) if at < 0 else at
        if file.alone(block[-1]) is None:
            return []
        if isinstance(given, ast.Name):
            gone = file.without(statement)
            first = [Change(*gone, (), self.where)] if block[-1] is not statement else []
            if not first:  # the rows stand in its place
                rows, at = rows.lstrip("\n"), 0
                first = [
                    Change(
                        file.starts[statement.lineno - 1], file.end(statement), (rows,), self.where
                    )
                ]
                rows = ""
        else:
            first = [Change(*file.span(statement), (f"{own} = ", file.span(given)), self.where)]
        behind = [Change(at, at, (rows,), self.where)] if rows else []
        outer = outermost(self.scope, self.loop)
        margin, stop = file.alone(outer), file.text.find("\n", file.end(outer))
        if self.named and (margin is None or stop < 0):
            return []
        named = "".join(f"{margin}{new} = {item}\n" for item, new in self.named.items())
        if named:
            behind.append(Change(stop + 1, stop + 1, (named,), self.where))
        return [
            Change(*file.span(self.begun), (begun,), self.where),
            *first,
            *behind,
            *(Change(*file.span(node), parts, self.where) for node, parts in self.edits),
        ]

    # ---- how it is filled

    def _append(self) -> tuple[ast.Expr, list[ast.stmt], ast.expr] | None:
        """The statement of a tower that appends its object, the block of it, and the object."""
        found: list[tuple[ast.Expr, list[ast.stmt], ast.expr]] = []
        blocks = [self.loop.body]
        while blocks:
            body = blocks.pop()
            for each in body:
                if isinstance(each, ast.With):
                    blocks.append(each.body)
                match each:
                    case ast.Expr(
                        value=ast.Call(
                            func=ast.Attribute(value=ast.Name(id=name), attr="append"),
                            args=[given],
                            keywords=[],
                        )
                    ) if name == self.name:
                        found.append((each, body, given))
        if any(isinstance(each, ast.Break | ast.Continue) for each in all_nodes(self.loop)):
            return None
        return found[0] if len(found) == 1 else None

    def _maker(self, statement: ast.Expr, given: ast.expr) -> ast.Call | None:
        """The call that makes the object."""
        if isinstance(given, ast.Call):
            return given
        if not isinstance(given, ast.Name) or not self._is_bound_once(given.id):
            return None
        for each in all_nodes(self.loop):
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as made) if (
                    name == given.id and each.lineno < statement.lineno
                ):
                    return made if self._only_asked(given) else None
        return None

    def _is_bound_once(self, name: str) -> bool:
        """Whether a scope binds a name once; comprehensions have names of their own."""
        inner = {
            id(one)
            for each in all_nodes(self.scope)
            if isinstance(each, _COMPREHENSIONS)
            for part in each.generators
            for one in all_nodes(part.target)
            if isinstance(one, ast.Name)
        }
        own = [one for one in stores(self.scope, name) if id(one) not in inner]
        return len(own) == 1 and bindings(self.scope, name) == len(stores(self.scope, name))

    def _only_asked(self, given: ast.Name) -> bool:
        """Whether the object itself is used for its values alone, and its methods by its tower: nobody else has it."""
        asked = {
            id(each.value)
            for each in all_nodes(self.scope)
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)
        }
        called = {
            id(each.func.value)
            for each in all_nodes(self.scope)
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
        }
        inside = {id(each) for each in all_nodes(self.loop)}
        theirs = {
            id(one)
            for each in all_nodes(self.scope)
            if isinstance(each, _COMPREHENSIONS) and len(each.generators) == 1
            if _is_named(each.generators[0].target, given.id)
            for part in ast.iter_child_nodes(each)
            for one in all_nodes(part)
            if not any(one is inner for inner in all_nodes(each.generators[0].iter))
        }
        for each in all_nodes(self.file.tree if isinstance(self.scope, ast.Module) else self.scope):
            if not isinstance(each, ast.Name) or each.id != given.id or each is given:
                continue
            if not isinstance(each.ctx, ast.Load) or id(each) in theirs:
                continue
            if id(each) not in asked or id(each) in called and id(each) not in inside:
                return False
        return True

    # ---- what is asked for

    def _use(self, use: ast.Name, statement: ast.Expr, own: str) -> bool:
        """Whether a read of the list can be one of lists of values: notes what it becomes."""
        parents = self._parents
        parent = parents.get(id(use))
        match parent:
            case ast.Subscript(slice=place) if parent.value is use:
                asks = parents.get(id(parent))
                if not isinstance(asks, ast.Attribute) or not isinstance(asks.ctx, ast.Load):
                    return False
                if isinstance(parents.get(id(asks)), ast.Call) and parents[id(asks)].func is asks:  # type: ignore[attr-defined]
                    return False
                inside = any(each is use for each in all_nodes(self.loop))
                if inside:
                    index = self.loop.target
                    same = isinstance(index, ast.Name) and ast.unparse(place) in (index.id, "-1")
                    if not same or use.lineno <= statement.lineno or self._is_later(use):
                        return False
                    self.edits.append((asks, (f"{own}.{asks.attr}",)))
                    return True
                if use.lineno <= self.end:
                    return False
                new = self._list_of(asks.attr)
                item = f"{new}{self.file.text[self.file.end(use) : self.file.end(parent)]}"
                if self._is_run(asks):
                    if item not in self.named:
                        which = {"0": "first", "-1": "last"}.get(ast.unparse(place), "one")
                        self.named[item] = self.file.free(self.scope, f"{which}_{asks.attr}")
                    item = self.named[item]
                self.edits.append((asks, (item,)))
                return True
            case ast.comprehension(target=ast.Name(id=one), ifs=ifs) if parent.iter is use:
                made = parents.get(id(parent))
                if (
                    use.lineno <= self.end
                    or ifs
                    or not isinstance(made, ast.ListComp | ast.GeneratorExp)
                ):
                    return False
                return len(made.generators) == 1 and self._gone_over(use, made, made.elt, one)
            case ast.For() | ast.Call() if use.lineno > self.end:
                return self._looped(use, parent)
        return False

    def _is_run(self, node: ast.AST) -> bool:
        """Whether a run is asked for a value."""
        parents, each = self._parents, node
        while (each := parents.get(id(each), self.file.tree)) is not self.file.tree:
            if isinstance(each, ast.Call):
                return isinstance(each.func, ast.Attribute) and each.func.attr == "run"
            if isinstance(each, ast.stmt):
                return False
        return False

    def _gone_over(
        self, use: ast.Name, made: ast.ListComp | ast.GeneratorExp, elt: ast.expr, one: str
    ) -> bool:
        """`[m.loss for m in models]`: the list of the losses; `[f(m.loss) for m in models]` goes over that."""
        asked = list(self._asked_of([elt], one))
        names = {each.attr for each in asked}
        if len(names) != 1 or not self._all_asked([elt], one):
            return False
        (attribute,) = names
        new = self._list_of(attribute)
        if asked == [elt]:
            text = f"({new})" if isinstance(made, ast.GeneratorExp) else new
            self.edits.append((made, (text,)))
        else:
            self.edits.append((use, (new,)))
            self.edits += [(each, (one,)) for each in asked]
        return True

    def _looped(self, use: ast.Name, parent: ast.For | ast.Call) -> bool:
        """`for m in models` and `for i, m in enumerate(models)`, whose body only asks for values."""
        loop: ast.AST | None = parent
        target: ast.expr | None = None
        if isinstance(parent, ast.Call):
            if ast.unparse(parent.func) == "len" and len(parent.args) == 1 and self.asked:
                self.edits.append((use, (next(iter(self.asked.values())),)))
                return True
            loop = self._parents.get(id(parent))
            match parent, loop:
                case ast.Call(func=ast.Name(id="enumerate"), args=[_], keywords=[]), ast.For(
                    target=ast.Tuple(elts=[ast.Name(), second])
                ):
                    target = second
        elif parent.iter is use:
            target = parent.target
        if not isinstance(loop, ast.For) or not isinstance(target, ast.Name) or loop.orelse:
            return False
        body: list[ast.AST] = list(loop.body)
        if bindings(self.scope, target.id) != 1 or not self._all_asked(body, target.id):
            return False
        inside = {id(each) for each in all_nodes(loop)}
        if any(
            isinstance(each, ast.Name) and each.id == target.id and id(each) not in inside
            for each in all_nodes(self.scope)
        ):
            return False
        asked = list(self._asked_of(body, target.id))
        names = list(dict.fromkeys(each.attr for each in asked))
        if not names:
            return False
        lists = [self._list_of(each) for each in names]
        ones = {each: self.file.free(self.scope, each, f"{target.id}_{each}") for each in names}
        many = len(names) > 1
        over = f"zip({', '.join(lists)})" if many else lists[0]
        inner = ", ".join(ones.values())
        self.edits.append((use, (over,)))
        in_tuple = many and isinstance(parent, ast.Call)
        self.edits.append((target, (f"({inner})" if in_tuple else inner,)))
        self.edits += [(each, (ones[each.attr],)) for each in asked]
        return True

    def _asked_of(self, nodes: list[ast.AST], one: str) -> Iterator[ast.Attribute]:
        for node in nodes:
            for each in all_nodes(node):
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
                    if isinstance(each.value, ast.Name) and each.value.id == one:
                        yield each

    def _all_asked(self, nodes: list[ast.AST], one: str) -> bool:
        """Whether an object is only asked for values, now, and no method of it is called."""
        asked = {id(each.value) for each in self._asked_of(nodes, one)}
        called = {
            id(each.func)
            for node in nodes
            for each in all_nodes(node)
            if isinstance(each, ast.Call)
        }
        if any(id(each) in called for each in self._asked_of(nodes, one)):
            return False
        for node in nodes:
            for each in all_nodes(node):
                if isinstance(each, _LATER):
                    if any(isinstance(n, ast.Name) and n.id == one for n in all_nodes(each)):
                        return False
                if isinstance(each, ast.Name) and each.id == one and id(each) not in asked:
                    return False
        return True

    def _is_later(self, use: ast.Name) -> bool:
        return any(
            isinstance(each, (*_LATER, ast.GeneratorExp))
            and any(one is use for one in all_nodes(each))
            for each in all_nodes(self.loop)
        )

    def _list_of(self, attribute: str) -> str:
        if attribute not in self.asked:
            self.asked[attribute] = self.file.free(
                self.scope, f"tower_{_many(attribute)}", f"{self.name}_{attribute}"
            )
        return self.asked[attribute]

    @property
    def _parents(self) -> dict[int, ast.AST]:
        return {id(inner): each for each in self.file.nodes for inner in ast.iter_child_nodes(each)}

    # ---- of what class

    def _class(self, made: ast.Call) -> ast.ClassDef | None:
        """The one class that a call may mean, by its name; None where it may do more than keep values."""
        name = ast.unparse(made.func).rpartition(".")[2]
        near = import_closure(self.tree.sources, [self.file.path], self.tree.imports)
        found: list[ast.ClassDef] = []
        for path in sorted(near):
            text = self.file.text if path == self.file.path else self.tree.sources.get(path, "")
            if name not in text:
                continue
            try:
                parsed = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError):
                return None
            for each in all_nodes(parsed):
                if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == name:
                    if not isinstance(each, ast.ClassDef) or each not in parsed.body:
                        return None
                    if _LOOKS.search(text):
                        return None
                    found.append(each)
        if len(found) != 1:
            return None
        (only,) = found
        bases = [ast.unparse(each) for each in only.bases]
        return (
            only
            if bases in ([], ["object"]) and not only.decorator_list and not only.keywords
            else None
        )

    def _keeps(self, class_: ast.ClassDef, attribute: str) -> bool:
        """Whether an object keeps a value under a name that nothing else sets, once it is made."""
        methods = {each.name: each for each in class_.body if isinstance(each, ast.FunctionDef)}
        others = [each for each in class_.body if not isinstance(each, ast.FunctionDef)]
        if attribute in methods or any(
            isinstance(each, ast.Name) and each.id == attribute
            for one in others
            for each in all_nodes(one)
        ):
            return False
        near = import_closure(self.tree.sources, [self.file.path], self.tree.imports)
        near |= self.tree.users.get(self.file.path, set())
        for path in sorted(near):
            text = self.file.text if path == self.file.path else self.tree.sources.get(path, "")
            if f".{attribute}" in text and not _is_of_self(text, attribute):
                return False
        return self._set_by_init(methods, attribute)

    def _set_by_init(self, methods: dict[str, ast.FunctionDef], attribute: str) -> bool:
        """Whether only what `__init__` calls sets an attribute."""
        reached: set[str] = set()
        waiting = ["__init__"]
        while waiting:
            name = waiting.pop()
            if name in reached or name not in methods:
                continue
            reached.add(name)
            waiting += [
                each.attr for each in all_nodes(methods[name]) if isinstance(each, ast.Attribute)
            ]
        setting = {
            name
            for name, method in methods.items()
            for each in all_nodes(method)
            if isinstance(each, ast.Attribute)
            and each.attr == attribute
            and not isinstance(each.ctx, ast.Load)
        }
        return bool(setting) and setting <= reached


def _is_named(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _is_of_self(text: str, attribute: str) -> bool:
    """Whether all that sets an attribute sets that of a method's own object."""
    try:
        parsed = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return all(
        isinstance(each.value, ast.Name) and each.value.id == "self"
        for each in all_nodes(parsed)
        if isinstance(each, ast.Attribute)
        and each.attr == attribute
        and not isinstance(each.ctx, ast.Load)
    )


def _many(attribute: str) -> str:
    """`losses` of `loss`, `accuracies` of `accuracy`; `logits` stays."""
    if attribute.endswith("ss"):
        return f"{attribute}es"
    if attribute.endswith("y") and attribute[-2:-1] not in "aeiou":
        return f"{attribute[:-1]}ies"
    return attribute if attribute.endswith("s") else f"{attribute}s"


__all__ = ["tower_objects"]
