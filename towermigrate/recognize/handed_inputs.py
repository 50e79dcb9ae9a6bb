"""Inputs that a tower's function makes at its beginning: made in the tower loop, and handed to the function."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.kinds import Kinds, Traits
from towermigrate.recognize.own_inputs import is_pipeline, what_acts
from towermigrate.recognize.plain.changes import Change, Part, PlainFile, bindings, blocks, stores
from towermigrate.recognize.python_scopes import Definition, Unjoined
from towermigrate.recognize.source import Tree


def handed_inputs(tree: Tree, file: PlainFile) -> list[Change]:
    """`loss = tower_loss(scope)`, where the function begins with `x, y = inputs()`, as these two statements in turn."""
    found: list[Change] = []
    source = tree.file(file.path)
    if source is None:
        return found
    kinds = Kinds(source, Traits(tree))
    for where, scope in file.scopes:
        if scope is not file.tree and not _is_outermost(file, scope):
            continue
        for body, _ in blocks(scope):
            for statement in body:
                call = _called(statement)
                if call is not None and _in_loop(scope, statement):
                    try:
                        found += _handed_over(file, kinds, where, scope, statement, call)
                    except Unjoined:
                        continue
    return found


def _is_outermost(file: PlainFile, scope: ast.AST) -> bool:
    """Whether a function sees no names but its own and the module's: one of the module, or of a class of it."""
    classes = (each.body for each in file.tree.body if isinstance(each, ast.ClassDef))
    return any(scope is each for body in (file.tree.body, *classes) for each in body)


def _called(statement: ast.stmt) -> ast.Call | None:
    """The call by name that a plain assignment's value is; what it is given does nothing."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    given = [*call.args, *(each.value for each in call.keywords)]
    acts = (ast.Call, ast.Await, ast.NamedExpr, ast.Starred, ast.Subscript)
    if any(isinstance(inner, acts) for each in given for inner in ast.walk(each)):
        return None
    if any(each.arg is None for each in call.keywords) or not isinstance(call.func, ast.Name):
        return None
    return call


def _in_loop(scope: ast.AST, statement: ast.stmt) -> bool:
    return any(
        isinstance(each, ast.For) and any(inner is statement for inner in ast.walk(each))
        for each in ast.walk(scope)
    )


def _handed_over(
    file: PlainFile,
    kinds: Kinds,
    where: str,
    scope: ast.Module | ast.FunctionDef,
    statement: ast.stmt,
    call: ast.Call,
) -> list[Change]:
    assert isinstance(call.func, ast.Name)
    function = file.definition(call.func.id)
    node = function.node
    margin = file.alone(statement)
    loads = [each for each in file.uses(node.name) if isinstance(each.ctx, ast.Load)]
    if len(loads) != 1 or node.name in file.words_of_users or margin is None or node is scope:
        return []
    arguments = node.args
    odd = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults)
    if node.decorator_list or any(each is not None for each in odd):
        return []  # the inputs are parameters behind all others
    made = _beginning(file, kinds, function)
    bound = [name for each in made for inner in _assigns(each) for name in _targets(inner)]
    rest = node.body[node.body.index(made[-1]) + 1 :] if made else []
    given = [name for name in bound if _reads(rest, name)]
    if not given or len(set(bound)) != len(bound):
        return []
    # The names must be the same in both functions, or new ones; what the call gives stands for a parameter.
    own = {a.arg for a in (*arguments.posonlyargs, *arguments.args)}
    passed = _passed(node, call)
    names_read = [n for each in made for n in ast.walk(each) if isinstance(n, ast.Name)]
    swaps = [(file.start(n), file.end(n), passed[n.id]) for n in names_read if n.id in passed]
    read = {n.id for n in names_read} - set(bound) - passed.keys()
    if read & (function.locals | own) or _has(scope, set(bound)) or own & set(bound):
        return []
    if set(bound) & file.shared_between_functions:
        return []
    if isinstance(scope, ast.FunctionDef):
        if any(bindings(scope, name) for name in read):
            return []
    elif any(_has(each, set(bound)) for each in file.tree.body if each is not node):
        return []
    first = file.starts[_first_line(file, made[0]) - 1]
    last = file.text.find("\n", file.end(made[-1])) + 1
    indent = file.text[file.starts[made[0].lineno - 1] : file.start(made[0])]
    if "\t" in file.text[first:last] + margin or re.search(
        r"\'{3}|\"{3}|\\\\\n", file.text[first:last]
    ):
        return []
    moved = _moved(file, first, last, len(indent), margin, swaps)
    behind = last + len(file.text[last:]) - len(file.text[last:].lstrip("\n"))
    at = file.starts[_first_line(file, statement) - 1]
    names = ", ".join(given)
    end = file.end(call) - 1
    handed = f", {names}" if call.args or call.keywords else names
    if call.keywords:
        handed = "".join(f", {each}={each}" for each in given)
    closing = file.text.rindex(")", 0, file.end(call))
    every = [*arguments.posonlyargs, *arguments.args]
    if every:
        column = function.offset(every[-1].end_lineno or 0, every[-1].end_col_offset or 0)
        parameter = Change(column, column, (f", {names}",), where)
    else:
        column = file.text.index("(", file.start(node)) + 1
        parameter = Change(column, column, (names,), where)
    if file.commented(file.start(call), end) or file.text[:closing].rstrip().endswith(","):
        return []
    # One change: they belong to the program that the caller is, all of them.
    return [
        parameter,
        Change(first, behind, (), where),
        Change(at, at, moved, where),
        Change(closing, closing, (handed,), where),
    ]


def _passed(function: ast.FunctionDef, call: ast.Call) -> dict[str, str]:
    """What a call gives for parameters that the function does not bind anew: names and constants, by parameter."""
    every = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    given = dict(zip(every, call.args, strict=False))
    given.update({each.arg: each.value for each in call.keywords if each.arg is not None})
    return {
        name: ast.unparse(value)
        for name, value in given.items()
        if isinstance(value, ast.Constant | ast.Name | ast.Attribute) and not stores(function, name)
    }


def _beginning(file: PlainFile, kinds: Kinds, function: Definition) -> list[ast.stmt]:
    """The statements with which a function begins, its docstring aside, that make or read an input pipeline."""
    body = function.node.body
    found: list[ast.stmt] = []
    names: list[str] = []
    for each in body[1:] if ast.get_docstring(function.node) is not None else body:
        inner = _assigns(each)
        known = all(_is_input(file, kinds, one, names) for one in inner)
        if not inner or not known or file.alone(each) is None:
            break
        found.append(each)
    for name in names:
        kinds.env.pop(name, None)
    return found


def _is_input(file: PlainFile, kinds: Kinds, statement: ast.Assign, names: list[str]) -> bool:
    """Whether a statement makes or reads an input pipeline; the names that it binds are put to `names`."""
    if not _targets(statement):
        return False
    value = cst.parse_expression(f"({file.of(statement.value)})")
    if not is_pipeline(kinds, value) or what_acts(kinds, value) is not None:
        return False
    kinds.env.update(dict.fromkeys(_targets(statement), kinds.of(value)))
    names += _targets(statement)
    return True


def _assigns(statement: ast.stmt) -> list[ast.Assign]:
    """The assignments of a statement: itself, or all that stand under devices; none where there is anything else."""
    if isinstance(statement, ast.Assign):
        return [statement]
    if not isinstance(statement, ast.With):
        return []
    places = (
        isinstance(item.context_expr, ast.Call)
        and item.optional_vars is None
        and ast.unparse(item.context_expr.func).endswith("tf.device")
        for item in statement.items
    )
    inner = [each for each in statement.body if isinstance(each, ast.Assign)]
    return inner if all(places) and len(inner) == len(statement.body) else []


def _targets(statement: ast.Assign) -> list[str]:
    """The names that a plain assignment binds; none where it is not plain."""
    if len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    items = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [each.id for each in items if isinstance(each, ast.Name)]
    return names if len(names) == len(items) else []


def _reads(statements: Sequence[ast.stmt], name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        for statement in statements
        for each in ast.walk(statement)
    )


def _has(scope: ast.AST, names: set[str]) -> bool:
    """Whether a scope has one of the names, as its own or another's; that of the module only in its own statements."""
    waiting: list[ast.AST] = [scope]
    while waiting:
        node = waiting.pop()
        if isinstance(scope, ast.Module) and isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if (
            isinstance(node, ast.Name)
            and node.id in names
            or isinstance(node, ast.arg)
            and node.arg in names
        ):
            return True
        waiting.extend(ast.iter_child_nodes(node))
    return False


def _first_line(file: PlainFile, statement: ast.stmt) -> int:
    """The line of a statement, or of the first of the comments right above it."""
    line = statement.lineno
    rows = file.text.split("\n")
    while line > 1 and rows[line - 2].strip().startswith("#"):
        line -= 1
    return line


def _moved(
    file: PlainFile,
    start: int,
    end: int,
    indent: int,
    margin: str,
    swaps: Sequence[tuple[int, int, str]],
) -> tuple[Part, ...]:
    """The lines of the author's from `start` to `end`, with another margin, and other texts for stretches of them."""
    parts: list[Part] = []
    position = start
    while position < end:
        stop = file.text.find("\n", position, end) + 1 or end
        row = file.text[position:stop]
        space = len(row) - len(row.lstrip(" ")) if row.strip() else 0
        if row.strip():
            parts.append(margin + " " * max(0, space - indent))
        position += space
        for first, last, other in sorted(swaps):
            if position <= first < stop:
                parts += [(position, first), other]
                position = last
        parts.append((position, stop))
        position = stop
    return tuple(parts)
