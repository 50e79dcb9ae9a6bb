"""What the model object of a tower keeps, where it is trained or collected: under a name of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope, blocks, stores
from towermigrate.recognize.plain.collected import towers_of
from towermigrate.recognize.source import Tree
from towermigrate.tree import all_nodes, import_closure

_TRAIN = frozenset({"compute_gradients", "gradients", "minimize"})
_SIMPLE = (ast.Expr, ast.Assign)


def kept_values(tree: Tree, file: PlainFile) -> list[Change]:
    """`opt.compute_gradients(model.loss)` and `losses.append(model.loss)` with `loss = model.loss` in front of them.

    Of an object that the tower itself has made, and that nothing may have changed since. What a method computes when it is
    read is left: it may be another value each time.
    """
    if file.finds_names_by_text:
        return []
    near = import_closure({}, [file.path], tree.imports) | {file.path}
    computed = _methods([tree.sources[each] for each in near if each in tree.sources])
    found: list[Change] = []
    if computed is None:
        return found
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for loop in towers_of(body) if always else ():
                for block in _blocks(loop.body):
                    found += _of_block(file, where, scope, block, computed)
    return found


def _methods(texts: Sequence[str]) -> frozenset[str] | None:
    """The names whose reading may run code: those of decorated methods. None where a file is not understood."""
    found: set[str] = set()
    for text in texts:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return None
        found |= {
            node.name
            for node in all_nodes(tree)
            if isinstance(node, ast.FunctionDef) and node.decorator_list
        }
    return frozenset(found)


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The statements of a tower: those of the loop, and of each `with` in it."""
    yield body
    for each in body:
        if isinstance(each, ast.With):
            yield from _blocks(each.body)


def _of_block(
    file: PlainFile, where: str, scope: Scope, block: Sequence[ast.stmt], computed: frozenset[str]
) -> list[Change]:
    found: list[Change] = []
    for at, made in enumerate(block):
        if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
            continue
        for target in made.targets if len(made.targets) == 1 else ():
            if isinstance(target, ast.Name) and len(stores(scope, target.id)) == 1:
                found += _of_object(file, where, scope, target.id, block[at + 1 :], computed)
    return found


def _of_object(
    file: PlainFile,
    where: str,
    scope: Scope,
    name: str,
    rest: Sequence[ast.stmt],
    computed: frozenset[str],
) -> list[Change]:
    """The change of all that one object keeps; `rest` are the statements behind the one that makes it."""
    wanted = dict.fromkeys(
        node.attr
        for each in rest
        for call in all_nodes(each)
        if isinstance(call, ast.Call)
        for node in _taken(call)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )
    made: list[tuple[int, int, str]] = []
    for attribute in wanted:
        first = next(k for k, each in enumerate(rest) if _reads(each, name, attribute))
        behind = rest[first:]
        margin = file.alone(behind[0])
        if margin is None or not isinstance(behind[0], _SIMPLE) or attribute in computed:
            return []
        if any(_may_change(each, name, computed) for each in behind):
            return []
        given = file.free(scope, attribute, f"tower_{attribute}")
        start = file.start(behind[0])
        made.append((start, start, f"{given} = {name}.{attribute}\n{margin}"))
        made += [
            (*file.span(one), given) for each in behind for one in _reads(each, name, attribute)
        ]
    if not made:
        return []
    made.sort(key=lambda one: one[:2])
    done = begin = made[0][0]
    parts: list[Part] = []
    for start, end, text in made:
        parts += [(done, start), text] if start > done else [text]
        done = end
    return [Change(begin, done, tuple(parts), where)]


def _taken(call: ast.Call) -> list[ast.expr]:
    """What a call trains or collects."""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = [*call.args, *(each.value for each in call.keywords if each.arg in ("loss", "ys"))]
    return given[:1] if last in _TRAIN or last == "append" else []


def _reads(node: ast.AST, name: str, attribute: str) -> list[ast.Attribute]:
    """Where an attribute of a name is read."""
    return [
        each
        for each in all_nodes(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Load)
        and each.attr == attribute
        and isinstance(each.value, ast.Name)
        and each.value.id == name
    ]


def _may_change(node: ast.stmt, name: str, computed: frozenset[str]) -> bool:
    """Whether a statement sets something of an object, runs code of it, hands it on or gives it another name."""
    plain: set[int] = set()
    for each in all_nodes(node):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            if each.value.id == name:
                if not isinstance(each.ctx, ast.Load) or each.attr in computed:
                    return True
                plain.add(id(each.value))
        if isinstance(each, ast.Call):
            of: ast.expr = each.func
            while isinstance(of, ast.Attribute | ast.Subscript | ast.Call):
                of = of.func if isinstance(of, ast.Call) else of.value
            if isinstance(of, ast.Name) and of.id == name:
                return True
    return any(
        isinstance(each, ast.Name) and each.id == name and id(each) not in plain
        for each in all_nodes(node)
    )
