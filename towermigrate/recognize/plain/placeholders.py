"""Placeholders in lists, one for each tower: made by a comprehension, and fed what a list holds."""

from __future__ import annotations

import ast

from towermigrate.recognize.plain.changes import (
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    stores,
)
from towermigrate.recognize.python_scopes import own_nodes

# ---- how they are made -------------------------------------------------------------------------------


def chosen_placeholders(file: PlainFile) -> list[Change]:
    """`if C: X = tf.placeholder(t, A)`, `else: X = tf.placeholder(t, B)` as one placeholder of the shape `A if C else B`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                change = _chosen(file, each) if isinstance(each, ast.If) else None
                if change is not None:
                    found.append(Change(*change, where))
    return found


def _chosen(file: PlainFile, statement: ast.If) -> Changed | None:
    match statement.body, statement.orelse:
        case (
            [ast.Assign(targets=[ast.Name(id=one)], value=ast.Call() as first)],
            [ast.Assign(targets=[ast.Name(id=other)], value=ast.Call() as second)],
        ) if one == other:
            pass
        case _:
            return None
    if not all(ast.unparse(each.func) == "tf.placeholder" for each in (first, second)):
        return None
    shapes = [_shape_of(each) for each in (first, second)]
    start, end = file.span(statement)
    if None in shapes or file.alone(statement) is None or file.commented(start, end):
        return None
    if "\n" in file.of(statement.test):
        return None
    this, that = (shape for shape in shapes if shape is not None)
    texts = [file.of(first), file.of(second)]
    rest = [
        text[: file.start(shape) - file.start(call)] + text[file.end(shape) - file.start(call) :]
        for text, call, shape in zip(texts, (first, second), (this, that), strict=True)
    ]
    if "".join(rest[0].split()) != "".join(rest[1].split()):
        return None
    begin = file.start(statement.body[0])
    parts: tuple[Part, ...] = (
        (begin, file.end(this)), " if ", file.span(statement.test), " else ", file.span(that),
        (file.end(this), file.end(first)),
    )  # fmt: skip
    return start, end, parts


def _shape_of(call: ast.Call) -> ast.expr | None:
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "shape")]
    return given[0] if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple) else None


def placeholder_lists(file: PlainFile) -> list[Change]:
    """`X = []` and a loop that does nothing but to append placeholders to it as `X = [… for _ in range(n)]`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for number, each in enumerate(body) if always else ():
                change = _listed(file, scope, body, number, each)
                if change is not None:
                    found.append(Change(*change, where))
    return found


def placeholders_of_towers(file: PlainFile) -> list[Change]:
    """`X = []`, and placeholders that a loop's turns make and append to it, as a list of them made in front of the loop."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                if isinstance(each, ast.For):
                    changes = _made_in_turns(file, scope, each)
                    found += [Change(*change, where) for change in changes]
    return found


def _made_in_turns(file: PlainFile, scope: Scope, loop: ast.For) -> list[Changed]:
    margin = file.alone(loop)
    if margin is None or loop.orelse or not isinstance(loop.target, ast.Name):
        return []
    index, block = loop.target.id, _block_of_each_turn(loop)
    leaves = ast.Break | ast.Continue | ast.Return
    if stores_in(loop.body, index) or not _counts(loop.iter):
        return []
    if any(isinstance(each, leaves) for each in ast.walk(loop)):
        return []
    made: dict[str, tuple[ast.Assign | None, ast.stmt, ast.Call]] = {}
    calls: dict[str, tuple[ast.Assign, ast.Call]] = {}
    for each in block:
        calls = {name: one for name, one in calls.items() if not stores(each, name)}
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            (target,) = each.targets
            call = _placeholder(file, each.value)
            if isinstance(target, ast.Name) and call:
                calls[target.id] = each, call
        filled = _appended(each)
        if filled is None or bindings(scope, filled[0]) != 1 or filled[0] in made:
            continue
        own, value = filled
        if isinstance(value, ast.Name) and value.id in calls:
            made[own] = calls[value.id][0], each, calls.pop(value.id)[1]
        elif (call := _placeholder(file, value)) is not None:
            made[own] = None, each, call
    bound_within = {
        each.id
        for each in ast.walk(loop)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load) and each.id != index
    }
    empty: list[ast.Assign] = []
    wanted = set(made)
    before_it = [
        each
        for around, always in blocks(scope)
        for each in around
        if always and file.start(each) < file.start(loop)
    ]
    for before in before_it:
        if isinstance(before, ast.Assign) and _is_empty(before):
            names = {each for target in before.targets for each in _names_of(target)}
            if names & made.keys():
                empty.append(before)
                wanted -= names
    touched = [*empty, *(each for one in made.values() for each in one[:2] if each is not None)]
    if (
        not made
        or wanted
        or all(each in touched for each in block)  # a loop that does nothing else
        or any(file.alone(each) is None or file.commented(*file.span(each)) for each in touched)
        or any(
            isinstance(each, ast.Name) and each.id in bound_within
            for _, _, call in made.values()
            for each in ast.walk(call)
        )
    ):
        return []
    changes: list[Changed] = []
    for each in empty:
        (target,) = each.targets
        rest = [name for name in _names_of(target) if name not in made]
        if rest:
            lists = ", ".join(["[]"] * len(rest))
            changes.append((*file.span(each), (f"{', '.join(rest)} = {lists}",)))
        else:
            changes.append((*file.without(each), ()))
    own_index = file.fresh("each_tower")
    parts: list[Part] = []
    for own, (assigned, appended, call) in made.items():
        parts += [f"{own} = [", *_renamed(file, call, index, own_index)]
        parts += [f" for {own_index} in ", file.span(loop.iter), f"]\n{margin}"]
        if assigned is not None:
            changes.append((*file.span(assigned.value), (f"{own}[{index}]",)))
        changes.append((*file.without(appended), ()))
    changes.append((file.start(loop), file.start(loop), tuple(parts)))
    return changes


def _block_of_each_turn(loop: ast.For) -> list[ast.stmt]:
    """The statements that each turn runs once, those in `with` blocks too."""
    found: list[ast.stmt] = []
    waiting = [*reversed(loop.body)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.With):
            waiting += reversed(each.body)
        else:
            found.append(each)
    return found


def _placeholder(file: PlainFile, value: ast.expr) -> ast.Call | None:
    """`tf.placeholder(…)` whose arguments are written out, or are names."""
    if not isinstance(value, ast.Call) or not file.of(value.func).endswith("placeholder"):
        return None
    plain = (
        ast.Constant, ast.Name, ast.Attribute, ast.List, ast.Tuple, ast.expr_context, ast.keyword,
        ast.BinOp, ast.operator, ast.JoinedStr, ast.FormattedValue, ast.UnaryOp, ast.unaryop,
    )  # fmt: skip
    for given in [*value.args, *(each.value for each in value.keywords)]:
        for each in ast.walk(given):
            named = isinstance(each, ast.Call) and ast.unparse(each.func).endswith("'.format")
            if not isinstance(each, plain) and not named:
                return None
    return value


def _listed(
    file: PlainFile, scope: Scope, body: list[ast.stmt], number: int, loop: ast.stmt
) -> Changed | None:
    if not isinstance(loop, ast.For) or loop.orelse or not isinstance(loop.target, ast.Name):
        return None
    made: dict[str, ast.expr] = {}
    for each in loop.body:
        filled = _appended(each)
        if filled is None or "placeholder(" not in file.of(filled[1]) or filled[0] in made:
            return None
        made[filled[0]] = filled[1]
    # In front of it stand the empty lists, and nothing else between them.
    first = number
    empty: set[str] = set()
    while first and isinstance(before := body[first - 1], ast.Assign) and _is_empty(before):
        names = [each for target in before.targets for each in _names_of(target)]
        if not set(names) <= made.keys():
            break
        empty.update(names)
        first -= 1
    if empty != made.keys() or any(bindings(scope, name) != 1 for name in made):
        return None
    index = loop.target.id
    inside = {id(each) for each in ast.walk(loop)}
    if any(
        isinstance(each, ast.Name)
        and each.id == index
        and id(each) not in inside
        and isinstance(each.ctx, ast.Load)
        and not _in_other_loop(scope, each)
        for each in ast.walk(scope)
    ):
        return None
    start, end = file.start(body[first]), file.end(loop)
    margin = file.alone(body[first])
    if margin is None or file.alone(loop) is None or file.commented(start, end):
        return None
    parts: list[Part] = []
    own = file.fresh("each_tower")  # a name that no function has for anything else
    for name, value in made.items():
        parts += [f"\n{margin}"] if parts else []
        parts += [f"{name} = [", *_renamed(file, value, index, own)]
        parts += [f" for {own} in ", file.span(loop.iter), "]"]
    return start, end, tuple(parts)


def _renamed(file: PlainFile, value: ast.expr, name: str, new: str) -> list[Part]:
    """The text of an expression with another name in place of one."""
    parts: list[Part] = []
    at, end = file.span(value)
    names = [each for each in ast.walk(value) if isinstance(each, ast.Name) and each.id == name]
    for each in sorted(names, key=file.start):
        parts += [(at, file.start(each)), new]
        at = file.end(each)
    return [*parts, (at, end)]


def _in_other_loop(scope: Scope, name: ast.Name) -> bool:
    """Whether a name is read inside of another loop, or a function, that binds it."""
    return any(
        isinstance(each, ast.For | ast.comprehension | ast.FunctionDef)
        and each is not scope
        and stores(each, name.id)
        and any(node is name for node in ast.walk(each))
        for each in ast.walk(scope)
    ) or any(
        isinstance(each, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp)
        and stores(each, name.id)
        and any(node is name for node in ast.walk(each))
        for each in ast.walk(scope)
    )


def _appended(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list and the value of `X.append(value)`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "append"
            and isinstance(call.func.value, ast.Name)
            and len(call.args) == 1
            and not call.keywords
        ):
            return call.func.value.id, call.args[0]
    return None


def _is_empty(statement: ast.Assign) -> bool:
    """`X = []` or `X, Y = [], []`; not `X = Y = []`, which is one list."""
    if len(statement.targets) != 1:
        return False
    value = statement.value
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    empty = all(isinstance(each, ast.List) and not each.elts for each in values)
    return empty and len(values) == len(_names_of(statement.targets[0]))


def _names_of(target: ast.expr) -> list[str]:
    inner = target.elts if isinstance(target, ast.Tuple) else [target]
    return [each.id for each in inner if isinstance(each, ast.Name)]


# ---- how they are fed --------------------------------------------------------------------------------


def feeds_of_lists(file: PlainFile) -> list[Change]:
    """`for k in range(n): feed[X[k]] = value` as a list that is filled, and fed by `dict([*zip(X, values)])`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, _ in blocks(scope):
            for number in range(len(body)):
                loops = [n for n in range(number + 1, len(body)) if isinstance(body[n], ast.For)]
                for at in loops[:1]:
                    changes = _fed_in_turn(file, scope, body, number, at)
                    found += [Change(*change, where) for change in changes]
    return found


def _fed_in_turn(
    file: PlainFile, scope: Scope, body: list[ast.stmt], number: int, at: int
) -> list[Changed]:
    first, loop = body[number], body[at]
    if not isinstance(first, ast.Assign) or not isinstance(loop, ast.For) or loop.orelse:
        return []
    (target, *others), value = first.targets, first.value
    if others or not isinstance(target, ast.Name) or not isinstance(loop.target, ast.Name):
        return []
    name, index = target.id, loop.target.id
    if not (isinstance(value, ast.Dict) and not value.keys or ast.unparse(value) == "dict()"):
        return []
    if not _counts(loop.iter) or stores_in(loop.body, index):
        return []
    if any(isinstance(each, ast.Break | ast.Continue | ast.Return) for each in ast.walk(loop)):
        return []
    if any(_mentions(each, name) for each in body[number + 1 : at]):
        return []
    set_here: dict[str, ast.Assign] = {}
    for each in loop.body:
        filled = _set_in_turn(each, name, index)
        if filled is None:
            if _mentions(each, name):
                return []
            continue
        if filled in set_here or not isinstance(each, ast.Assign) or _mentions(each.value, name):
            return []
        set_here[filled] = each
    changed = [first, *set_here.values()]
    if not set_here or any(file.alone(each) is None for each in [*changed, loop]):
        return []
    if any(file.commented(*file.span(each)) for each in changed):
        return []
    if any(stores_in([loop], each) for each in set_here):
        return []
    end = at
    more: list[tuple[ast.expr, ast.expr]] = []
    for each in body[at + 1 :]:
        item = _set_item(each, name)
        if (
            item is None
            or file.alone(each) is None
            or file.commented(file.end(body[end]), file.end(each))
        ):
            break
        more.append(item)
        end += 1
    lists = {own: file.fresh(f"{own.lower()}_of_towers") for own in set_here}
    margin, inner = file.alone(first) or "", file.alone(loop.body[0]) or ""
    if bindings(scope, name) < 1 or not inner:
        return []
    changes: list[Changed] = [
        (*file.span(first), (f"\n{margin}".join(f"{new} = []" for new in lists.values()),))
    ]
    for own, each in set_here.items():
        changes.append((*file.span(each), (f"{lists[own]}.append(", file.span(each.value), ")")))
    display: list[Part] = []
    for own, new in lists.items():
        display.append(f"{', ' if display else ''}*zip({own}, {new})")
    for key, fed in more:
        display += [", (", file.span(key), ", ", file.span(fed), ")"]
    behind = (file.end(loop), file.end(body[end]))
    changes.append((*behind, (f"\n{margin}{name} = dict([", *display, "])")))
    return changes


def feeds_one_by_one(file: PlainFile) -> list[Change]:
    """`{X[0]: a, X[1]: b}` as `dict([*zip(X, [a, b])])`."""
    return [
        Change(*file.span(node), parts, where)
        for where, scope in file.scopes
        for node in own_nodes(scope)
        if isinstance(node, ast.Dict) and (parts := _each_fed(file, node))
    ]


def _each_fed(file: PlainFile, display: ast.Dict) -> tuple[Part, ...]:
    """What a display is that feeds lists of placeholders an item at a time; nothing where it is no such one."""
    fed: dict[str, list[ast.expr]] = {}
    places: list[str | None] = []
    display_parts: list[Part] = []
    for key, value in zip(display.keys, display.values, strict=True):
        owner = _item_of(key)
        places.append(owner[0] if owner else None)
        if owner is None:
            if key is None:
                return ()
            display_parts += [", (", file.span(key), ", ", file.span(value), ")"]
        elif owner[1] != len(fed.setdefault(owner[0], [])):
            return ()
        else:
            fed[owner[0]].append(value)
    apart = [place for n, place in enumerate(places) if not n or place != places[n - 1]]
    in_order = None not in apart[: len(fed)] and len(apart) <= len(fed) + 1
    if not fed or any(len(values) < 2 for values in fed.values()):
        return ()
    if not (in_order or all(isinstance(each, ast.Name | ast.Constant) for each in display.values)):
        return ()  # what is fed would be evaluated in another order
    if file.commented(*file.span(display)):
        return ()
    lists: list[Part] = []
    for own, values in fed.items():
        lists.append(f"{', ' if lists else ''}*zip({own}, [")
        for number, value in enumerate(values):
            lists += [", "] if number else []
            lists.append(file.span(value))
        lists.append("])")
    return ("dict([", *lists, *display_parts, "])")


def _item_of(key: ast.expr | None) -> tuple[str, int] | None:
    """The list and the number of `X[0]`."""
    if (
        isinstance(key, ast.Subscript)
        and isinstance(key.value, ast.Name)
        and isinstance(key.slice, ast.Constant)
        and type(key.slice.value) is int
    ):
        return key.value.id, key.slice.value
    return None


def _counts(node: ast.expr) -> bool:
    """`range(n)`: whether its turns are those of all towers, who reads the runs knows."""
    named = isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "xrange")
    return named and isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords


def _set_in_turn(statement: ast.stmt, name: str, index: str) -> str | None:
    """`X` of `feed[X[k]] = value`."""
    key = _key_of(statement, name)
    if (
        isinstance(key, ast.Subscript)
        and isinstance(key.value, ast.Name)
        and isinstance(key.slice, ast.Name)
        and key.slice.id == index
    ):
        return key.value.id
    return None


def _set_item(statement: ast.stmt, name: str) -> tuple[ast.expr, ast.expr] | None:
    """`feed[rate] = value` behind the loop."""
    key = _key_of(statement, name)
    if isinstance(key, ast.Name) and isinstance(statement, ast.Assign):
        if not _mentions(statement.value, name):
            return key, statement.value
    return None


def _key_of(statement: ast.stmt, name: str) -> ast.expr | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return target.slice if target.value.id == name else None
    return None


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def stores_in(body: list[ast.stmt], name: str) -> bool:
    """Whether statements bind a name."""
    return any(stores(each, name) for each in body)
