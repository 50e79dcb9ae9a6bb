"""Values that a program keeps together: in a dict, a list or a tuple, a namedtuple, an object of nothing but attributes.

`{'x': X, 'loss': loss}`, `dict(x=X)`, `Ops(X, loss)` of a `namedtuple` or of a class whose `__init__` only keeps what it is
given, `SimpleNamespace(x=X)`: what each of their values is had by is written out wherever one is used, so that it may be a name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import PlainFile, Scope, bindings
from towermigrate.recognize.python_scopes import Unjoined, bound_by

_NAMESPACES = {"types.SimpleNamespace", "argparse.Namespace"}
_ORDERED = "collections.OrderedDict"
_NAMEDTUPLE = "collections.namedtuple"
Key = str | int


@dataclass(eq=False)
class Leaf:
    """One value: an expression of the text that makes it, and from which place of a scope on it is there."""

    node: ast.expr
    since: int = 0


@dataclass(frozen=True)
class Pack:
    """Values that are kept together: `ops['x']` where `by_item`, `ops.x` where `by_attribute`, `ops[0]` where `by_place`.

    `open` says that more may be kept in it later.
    """

    values: Mapping[Key, Packed]
    by_item: bool = False
    by_attribute: bool = False
    by_place: bool = False
    open: bool = False

    def of(self, node: ast.expr) -> Packed:
        """What `ops['x']`, `ops.x`, `ops[0]` or `ops[:2]` is."""
        return self._at(self.key(node)) if not _is_slice(node) else self._part(node)

    def key(self, node: ast.expr) -> Key:
        match node:
            case ast.Attribute(attr=str() as key) if self.by_attribute:
                return key
            case ast.Subscript(slice=ast.Constant(value=str() as key)) if self.by_item:
                return key
            case ast.Subscript(slice=index) if self.by_place:
                at = _number(index)
                if at is not None and -len(self.values) <= at < len(self.values):
                    return at % len(self.values)
        raise Unjoined

    def _at(self, key: Key) -> Packed:
        if isinstance(key, int):
            return self.places[key]
        if key not in self.values:
            raise Unjoined
        return self.values[key]

    @property
    def places(self) -> Sequence[Packed]:
        """The values in order, of what may be taken apart."""
        if not self.by_place:
            raise Unjoined
        return list(self.values.values())

    def _part(self, node: ast.expr) -> Pack:
        assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        ends = [node.slice.lower, node.slice.upper]
        numbers = [None if each is None else _number(each) for each in ends]
        if node.slice.step is not None or any(
            one is not None and at is None for one, at in zip(ends, numbers, strict=True)
        ):
            raise Unjoined
        return in_order(self.places[slice(*numbers)])


Packed = Leaf | Pack


def in_order(values: Sequence[Packed]) -> Pack:
    return Pack(dict(enumerate(values)), by_place=True)


def leaves(packed: Packed) -> Iterator[Leaf]:
    """All values that are kept, also in what is kept, in order."""
    if isinstance(packed, Leaf):
        yield packed
        return
    for each in packed.values.values():
        yield from leaves(each)


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


class Packer:
    """How a scope of a file writes what it keeps together."""

    def __init__(self, files: Files, file: PlainFile, scope: Scope) -> None:
        self.files, self.file, self.scope = files, file, scope

    def packed(self, node: ast.expr, known: Mapping[str, Pack], deep: bool = True) -> Packed:
        """What an expression is; a single value where it keeps nothing together that can be told.

        Args:
            known: what the scope keeps together under names.
            deep: also tell what is kept together in what is.
        """
        if isinstance(node, ast.Name) and node.id in known:
            return known[node.id]
        found = self.entries(node)
        if found is None:
            return Leaf(node)
        pack, entries = found
        values: dict[Key, Packed] = {
            key: self.packed(value, known, deep)
            if deep or isinstance(value, ast.Name)
            else Leaf(value)
            for key, value in entries
        }
        return Pack(values, pack.by_item, pack.by_attribute, pack.by_place, pack.open)

    def entries(self, node: ast.expr) -> tuple[Pack, list[tuple[Key, ast.expr]]] | None:
        """An empty pack of the kind that an expression makes, and what that keeps, in the order in which it is computed."""
        match node:
            case ast.Tuple(elts=values) | ast.List(elts=values):
                if not any(isinstance(each, ast.Starred) for each in values):
                    return Pack({}, by_place=True), list(enumerate(values))
            case ast.Dict(keys=keys, values=values):
                if all(_is_key(each) for each in keys):
                    names = [str(each.value) for each in keys if isinstance(each, ast.Constant)]
                    return _distinct(Pack({}, by_item=True, open=True), names, values)
            case ast.Call(func=func, args=args, keywords=keywords):
                if any(isinstance(each, ast.Starred) for each in args):
                    return None
                if any(each.arg is None for each in keywords):
                    return None
                given = [(each.arg or "", each.value) for each in keywords]
                return self._called(func, args, given)
        return None

    def _called(
        self, func: ast.expr, args: Sequence[ast.expr], given: Sequence[tuple[str, ast.expr]]
    ) -> tuple[Pack, list[tuple[Key, ast.expr]]] | None:
        names, values = [name for name, _ in given], [value for _, value in given]
        if isinstance(func, ast.Name) and func.id == "dict" and not self._bound("dict"):
            return None if args else _distinct(Pack({}, by_item=True, open=True), names, values)
        if self.is_library(func, _ORDERED):
            pairs = _pairs(args[0]) if len(args) == 1 and not given else []
            if pairs is None or args and not pairs:
                return None
            names += [name for name, _ in pairs]
            values += [value for _, value in pairs]
            return _distinct(Pack({}, by_item=True, open=True), names, values)
        if any(self.is_library(func, each) for each in _NAMESPACES):
            return (
                None if args else _distinct(Pack({}, by_attribute=True, open=True), names, values)
            )
        if not isinstance(func, ast.Name) or bindings_of(self.scope, func.id):
            return None
        made = self._class(func.id)
        if made is None:
            return None
        pack, fields = made
        whole = dict(zip(fields, args, strict=False))
        if len(args) > len(fields) or set(whole) & set(names) or {*whole, *names} != {*fields}:
            return None
        written: list[tuple[str, ast.expr]] = [*whole.items(), *given]
        found = _distinct(pack, [name for name, _ in written], [value for _, value in written])
        if found is None or not pack.by_place:
            return found
        if not all(isinstance(each, ast.Name) for _, each in written):
            return found if [name for name, _ in written] == fields else None
        return pack, sorted(found[1], key=lambda one: fields.index(str(one[0])))

    # ---- the classes of the file

    def _class(self, name: str) -> tuple[Pack, list[str]] | None:
        """What an object of a name's class is, and the names that it must be given."""
        tree = self.file.tree
        tops = [each for each in tree.body if name in bound_by(each)]
        if len(tops) != 1 or self.file.declares_global(name) or self.files.is_set_elsewhere(name):
            return None
        match tops[0]:
            case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func, args=[ast.Constant(), fields], keywords=[])):  # fmt: skip
                if self.is_library(func, _NAMEDTUPLE):
                    words = _words(fields)
                    return (Pack({}, by_attribute=True, by_place=True), words) if words else None
            case ast.ClassDef() as node:
                kept = _kept_by(node)
                return None if kept is None else (Pack({}, by_attribute=True, open=True), kept)
        return None

    def is_library(self, func: ast.expr, name: str) -> bool:
        """Whether an expression is a library's class, by an import of the module that nothing binds anew."""
        source = self.files.tree.file(self.file.path)
        dotted = ast.unparse(func)
        root, _, rest = dotted.partition(".")
        origin = None if source is None else source.imports.get(root)
        if origin is None or (f"{origin}.{rest}" if rest else origin) != name:
            return False
        module = name.partition(".")[0]
        if self.files.tree.module_path(self.file.path, module) is not None:
            return False
        once = sum(root in bound_by(each) for each in self.file.tree.body) == 1
        return once and not self.file.declares_global(root) and not bindings_of(self.scope, root)

    def _bound(self, name: str) -> bool:
        source = self.files.tree.file(self.file.path)
        starred = source is None or any(star != "tensorflow" for star in source.star_imports)
        return starred or bool(bindings(self.file.tree, name))


def bindings_of(scope: Scope, name: str) -> int:
    """How often a function binds a name; the module's own are asked for otherwise."""
    return 0 if isinstance(scope, ast.Module) else bindings(scope, name)


def _is_key(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
    )


def _distinct(
    pack: Pack, names: Sequence[str], values: Sequence[ast.expr]
) -> tuple[Pack, list[tuple[Key, ast.expr]]] | None:
    if len(set(names)) != len(names) or any(each.startswith("__") for each in names):
        return None
    return pack, list(zip(names, values, strict=True))


def _pairs(node: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """`[('x', X), ('y', Y)]`."""
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    found: list[tuple[str, ast.expr]] = []
    for each in node.elts:
        match each:
            case ast.Tuple(elts=[ast.Constant(value=str() as key), value]) if key.isidentifier():
                found.append((key, value))
            case _:
                return None
    return found


def _words(node: ast.expr) -> list[str]:
    """The fields of a `namedtuple`."""
    match node:
        case ast.Constant(value=str() as text):
            found = text.replace(",", " ").split()
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            found = [str(each.value) for each in elts if isinstance(each, ast.Constant)]
            if len(found) != len(elts):
                return []
        case _:
            return []
    plain = all(each.isidentifier() and not each.startswith("_") for each in found)
    return found if plain and len(set(found)) == len(found) else []


def _kept_by(node: ast.ClassDef) -> list[str] | None:
    """What a class is given to keep, in order, if keeping it is all that it does; None for any other class."""
    bases = [ast.unparse(each) for each in node.bases]
    if node.keywords or node.decorator_list or bases not in ([], ["object"]):
        return None
    body = [each for n, each in enumerate(node.body) if n or not _is_text(each)]
    body = [each for each in body if not isinstance(each, ast.Pass)]
    if not body:
        return []
    match body:
        case [ast.FunctionDef(name="__init__", decorator_list=[]) as init]:
            return _kept_by_init(init)
    return None


def _kept_by_init(init: ast.FunctionDef) -> list[str] | None:
    """The parameters of an `__init__` that keeps each under its own name, in their order, and does nothing else."""
    spec = init.args
    if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs or spec.defaults:
        return None
    if not spec.args:
        return None
    holder, *fields = [each.arg for each in spec.args]
    kept: list[str] = []
    for n, each in enumerate(init.body):
        if not n and _is_text(each) or isinstance(each, ast.Pass):
            continue
        match each:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=whose), attr=key)], value=ast.Name(id=own)) if whose == holder and own == key:  # fmt: skip
                kept.append(key)
            case _:
                return None
    return fields if sorted(kept) == sorted(fields) else None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


__all__ = ["Key", "Leaf", "Pack", "Packed", "Packer", "in_order", "leaves"]
