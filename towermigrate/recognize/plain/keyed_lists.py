"""What towers append to lists in a dict: `values = {"loss": [], "hits": []}` as `values_loss = []` and `values_hits = []`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, Changed, PlainFile, Scope, bindings
from towermigrate.recognize.plain.collected import is_pythons, loops_of_towers, once_in
from towermigrate.recognize.python_scopes import own_nodes


def keyed_lists(file: PlainFile) -> list[Change]:
    """Dicts of empty lists of which only the lists are used, each by a key that is written out, also in a tower loop."""
    if ".append(" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    done: set[int] = set()
    for where, scope, loop in loops_of_towers(file):
        inside = {id(each) for each in ast.walk(loop)}
        for name, statement, keys in _dicts(file, scope):
            if id(statement) in done:
                continue  # of two loops the first has taken it apart
            changes = _apart(file, scope, inside, name, statement, keys)
            found += [Change(*each, where) for each in changes]
            done |= {id(statement)} if changes else set()
    return found


def _dicts(
    file: PlainFile, scope: Scope
) -> Iterator[tuple[ast.Name, ast.Assign, list[str] | None]]:
    """The names that are bound to a dict of empty lists, and its keys; None where it makes a list for each that is asked for."""
    for each in once_in(scope):
        match each:
            case ast.Assign(targets=[ast.Name() as name], value=ast.Dict() as made) if made.keys:
                pass
            case ast.Assign(targets=[ast.Name() as name], value=ast.Call() as made):
                if _makes_lists(file, made):
                    yield name, each, None
                continue
            case _:
                continue
        keys = [key.value for key in made.keys if isinstance(key, ast.Constant)]
        texts = [key for key in keys if isinstance(key, str)]
        empty = [one for one in made.values if isinstance(one, ast.List) and not one.elts]
        if len(set(texts)) == len(made.keys) == len(empty):
            yield name, each, texts


def _makes_lists(file: PlainFile, made: ast.Call) -> bool:
    """Whether a call is `collections.defaultdict(list)`, or that by its own name."""
    if made.keywords or [ast.unparse(each) for each in made.args] != ["list"]:
        return False
    called = ast.unparse(made.func)
    module, _, name = called.rpartition(".")
    if name != "defaultdict" or module not in ("", "collections") or not is_pythons(file, "list"):
        return False
    known = module or name
    imports = [
        each
        for each in file.nodes
        if isinstance(each, ast.Import)
        and module
        and any(one.name == module and one.asname is None for one in each.names)
        or isinstance(each, ast.ImportFrom)
        and not module
        and each.module == "collections"
        and any(one.name == name and one.asname is None for one in each.names)
    ]
    return len(imports) == 1 and len(_bound(file, known)) == 1


def _bound(file: PlainFile, name: str) -> list[ast.AST]:
    """What binds a name anywhere in a file."""
    return [
        each
        for each in file.nodes
        if isinstance(each, ast.alias)
        and (each.asname or each.name) == name
        or isinstance(each, ast.arg)
        and each.arg == name
        or isinstance(each, ast.FunctionDef | ast.ClassDef)
        and each.name == name
        or isinstance(each, ast.Name)
        and each.id == name
        and not isinstance(each.ctx, ast.Load)
    ]


def _apart(
    file: PlainFile,
    scope: Scope,
    inside: set[int],
    name: ast.Name,
    statement: ast.Assign,
    keys: list[str] | None,
) -> list[Changed]:
    margin = file.alone(statement)
    if margin is None or file.commented(*file.span(statement)) or bindings(scope, name.id) != 1:
        return []
    if name.id in file.shared_between_functions or name.id in file.words_of_users:
        return []
    own = {
        id(each.value): each
        for each in own_nodes(scope)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
    }
    given: dict[str, str] = {}
    changes: list[Changed] = []
    uses = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and each.id == name.id and each is not name
    ]
    if not any(id(each) in inside for each in uses):
        return []
    for use in sorted(uses, key=lambda one: (one.lineno, one.col_offset)):
        read = own.get(id(use))
        key = None if read is None else read.slice
        if read is None or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return []
        if keys is not None and key.value not in keys or file.commented(*file.span(read)):
            return []
        if key.value not in given:
            word = re.sub(r"\W+", "_", key.value)
            given[key.value] = file.free(scope, f"{name.id}_{word}")
        changes.append((*file.span(read), (given[key.value],)))
    lists = f"\n{margin}".join(f"{each} = []" for each in given.values())
    return [(*file.span(statement), (lists,)), *changes]
