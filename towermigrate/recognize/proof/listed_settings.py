"""Whether what a program calls `layers` is a list wherever it comes from: one that every tower can go over, and no iterator."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from towermigrate.recognize.proof.code import Code, last_name

_LISTS = frozenset("list tuple sorted range dict set frozenset".split())
"""What makes anew what it is given."""
_BY_TEXT = frozenset(
    "setattr __dict__ vars _make __setattr__ __getattr__ __getattribute__ globals locals".split()
)
_FIELDS = frozenset("namedtuple NamedTuple".split())


def is_listed(files: Sequence[Code], name: str) -> bool:
    """Whether all that a program gives to attributes, parameters and fields of a name are lists that it writes out.

    Args:
        files: all files that may run with the program.
        name: what the attributes are called; parameters of the name are taken for what is kept as such.
    """
    found = False
    for code in files:
        if _by_text(code):
            return False
        for given in _given(code, files, name):
            if given is None or not _is_list(given, name):
                return False
            found = found or not _is_passed_on(given, name)
    return found


def _by_text(code: Code) -> bool:
    """Whether a file may set attributes by texts, or from what it reads."""
    return any(
        (isinstance(node, ast.Name) and node.id in _BY_TEXT)
        or (isinstance(node, ast.Attribute) and node.attr in _BY_TEXT)
        or (isinstance(node, ast.FunctionDef) and node.name in _BY_TEXT)
        for node in code.nodes
    )


def _given(code: Code, files: Sequence[Code], name: str) -> Iterator[ast.expr | None]:
    """What a file gives to attributes and parameters of a name; None where that cannot be told."""
    fields = {
        id(each)
        for call in _calls(code)
        if last_name(call.func) in _FIELDS
        for each in ast.walk(call)
    }
    for node in code.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _stored(target, node.value, name)
        elif isinstance(node, ast.AnnAssign) and _is_stored(node.target, name):
            if node.value is not None:
                yield _default(node.value)
            yield from _by_position(code, files, node, name)
        elif isinstance(node, ast.AugAssign) and _is_stored(node.target, name):
            yield node.value
        elif _binds_otherwise(node, name):
            yield None
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == name:
                    yield keyword.value
                elif keyword.arg is None:
                    yield None  # `**settings`
            if last_name(node.func) in _FIELDS and any(_names(each, name) for each in node.args):
                yield from _of_fields(code, files, node, name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_parameter(code, files, node, name)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in fields
        ):
            if node.value.strip("-").replace("-", "_") == name:
                yield None  # of a dict, or of a command line


def _binds_otherwise(node: ast.AST, name: str) -> bool:
    """Whether a node binds a name to what is not looked at."""
    targets: list[ast.AST] = []
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension | ast.NamedExpr):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    elif isinstance(node, ast.Lambda):
        return any(each.arg == name for each in ast.walk(node.args) if isinstance(each, ast.arg))
    elif isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    elif isinstance(node, ast.ExceptHandler | ast.ClassDef):
        return node.name == name
    return any(_is_stored(each, name) for target in targets for each in ast.walk(target))


def _calls(code: Code) -> Iterator[ast.Call]:
    return (node for node in code.nodes if isinstance(node, ast.Call))


def _is_attribute(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _is_stored(target: ast.AST, name: str) -> bool:
    """Whether a target is called so, as an attribute or as a name that may be handed on."""
    return isinstance(target, ast.Name) and target.id == name or _is_attribute(target, name)


def _stored(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr | None]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        if len(parts) == len(target.elts):
            for each, part in zip(target.elts, parts, strict=True):
                yield from _stored(each, part, name)
        elif any(_is_stored(each, name) for each in ast.walk(target)):
            yield None
    elif _is_stored(target, name):
        yield value


def _default(value: ast.expr) -> ast.expr | None:
    """What a field of a dataclass begins as: `field(default_factory=lambda: [4, 3])`."""
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        given = {each.arg: each.value for each in value.keywords}
        made = given.get("default_factory")
        if isinstance(made, ast.Lambda):
            return made.body
        if isinstance(made, ast.Name) and made.id in _LISTS:
            return ast.List([], ast.Load())
        return given.get("default")
    return value


def _by_position(
    code: Code, files: Sequence[Code], field: ast.AnnAssign, name: str
) -> Iterator[ast.expr | None]:
    """What the objects of a dataclass, or of a named tuple, are given for a field by its place."""
    made = code.parents.get(id(field))
    if not isinstance(made, ast.ClassDef):
        return
    fields = [
        each.target.id
        for each in made.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    yield from _at(files, {made.name}, fields.index(name) if name in fields else 0)


def _of_fields(
    code: Code, files: Sequence[Code], call: ast.Call, name: str
) -> Iterator[ast.expr | None]:
    """What the objects of `Config = namedtuple('Config', 'rate layers')` are given by its place."""
    holder = code.parents.get(id(call))
    texts = [
        each.value
        for arg in call.args[1:]
        for each in ast.walk(arg)
        if isinstance(each, ast.Constant)
    ]
    fields = [word for text in texts for word in str(text).replace(",", " ").split()]
    if isinstance(holder, ast.ClassDef):
        called = {holder.name}
    elif isinstance(holder, ast.Assign) and all(isinstance(t, ast.Name) for t in holder.targets):
        called = {each.id for each in holder.targets if isinstance(each, ast.Name)}
    else:
        yield None
        return
    if call.keywords or name not in fields:
        yield None
        return
    yield from _at(files, called, fields.index(name))


def _of_parameter(
    code: Code, files: Sequence[Code], function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[ast.expr | None]:
    """What a function is given for a parameter of the name by its place, or by default."""
    args = function.args
    if function.name == name:
        yield None
    plain = [each.arg for each in [*args.posonlyargs, *args.args]]
    if any(each is not None and each.arg == name for each in (args.vararg, args.kwarg)):
        yield None
    for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if each.arg == name and default is not None:
            yield default
    if name not in plain:
        return
    place = plain.index(name)
    defaults = dict(zip(reversed(plain), reversed(args.defaults), strict=False))
    if name in defaults:
        yield defaults[name]
    made = code.parents.get(id(function))
    called = {function.name}
    if isinstance(made, ast.ClassDef):
        place -= not any(last_name(each) == "staticmethod" for each in function.decorator_list)
        called |= {made.name, *_below(files, made.name)} if function.name == "__init__" else set()
    yield from _at(files, called, place)


def _below(files: Sequence[Code], name: str) -> set[str]:
    """The classes that are made of one."""
    return {
        node.name
        for code in files
        for node in code.nodes
        if isinstance(node, ast.ClassDef) and any(last_name(base) == name for base in node.bases)
    }


def _at(files: Sequence[Code], called: set[str], place: int) -> Iterator[ast.expr | None]:
    """What calls of some names are given at a place; None where one may be called by another name."""
    for code in files:
        for node in code.nodes:
            if isinstance(node, ast.alias) and node.asname not in (None, node.name):
                if node.name.rpartition(".")[2] in called:
                    yield None
            if not isinstance(node, ast.Name | ast.Attribute) or last_name(node) not in called:
                continue
            call = code.parents.get(id(node))
            if not isinstance(node.ctx, ast.Load) or isinstance(call, ast.ClassDef | ast.Attribute):
                continue
            if isinstance(call, ast.arg) or node in (
                getattr(call, "annotation", None),
                getattr(call, "returns", None),
            ):
                continue
            if not isinstance(call, ast.Call) or call.func is not node:
                yield None
            elif any(isinstance(each, ast.Starred) for each in call.args):
                yield None
            elif place < len(call.args):
                yield call.args[place]


def _names(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(each, ast.Constant) and name in str(each.value).replace(",", " ").split()
        for each in ast.walk(node)
    )


def _is_passed_on(node: ast.expr, name: str) -> bool:
    """`layers=layers`, `network(x, config.layers)`."""
    return isinstance(node, ast.Name) and node.id == name or _is_attribute(node, name)


def _is_list(node: ast.expr, name: str) -> bool:
    """Whether an expression gives a list, a text or a number, or what is called so already."""
    if _is_passed_on(node, name) or isinstance(
        node, ast.Constant | ast.ListComp | ast.SetComp | ast.DictComp
    ):
        return True
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr):
        return True
    if isinstance(node, ast.IfExp):
        return _is_list(node.body, name) and _is_list(node.orelse, name)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mult) and any(
            _is_list(each, name) and not isinstance(each, ast.Constant)
            for each in (node.left, node.right)
        )
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LISTS
