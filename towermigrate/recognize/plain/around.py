"""A graph, or a device, that a program is called in: `with tf.Graph().as_default(): train()` is `train()`.

Whoever else looks for the graph that was the default one in front of it is asked for its own reasons; where nobody does, a new
graph is the same to a program as that of its process. A device changes nothing of what is computed.
"""

from __future__ import annotations

import ast

from towermigrate.recognize.entered import Around
from towermigrate.recognize.plain.changes import ALWAYS, Change, Part, PlainFile
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import Unjoined
from towermigrate.recognize.source import Tree

_SEED = "set_random_seed"


def called_in_graphs(tree: Tree, path: str, file: PlainFile) -> list[Change]:
    """The `with` statements of a file around calls that lead to the towers of `path`, undone."""
    if "as_default()" not in file.text and "tf.device(" not in file.text:
        return []
    try:
        there = file if file.path == path else PlainFile(path, tree.sources[path])
    except Unjoined:
        return []
    files = {file.path: file.tree, path: there.tree}
    functions = {
        scope.name for _, scope, _ in loops_of_towers(there) if isinstance(scope, ast.FunctionDef)
    }
    if len(functions) != 1 or "__init__" in functions:
        return []
    around = Around(files, path, functions)
    if not around.begins_plainly():
        return []
    found = [
        change
        for each in around.withs(file.path)
        if all(map(_means_nothing, each.items)) and not _seeded_elsewhere(tree, around, file, each)
        if (change := _undone(file, each)) is not None
    ]
    return found[:1]


def _seeded_elsewhere(tree: Tree, around: Around, file: PlainFile, node: ast.With) -> bool:
    """Whether a seed may be set that is another graph's: it would be the program's."""
    if not any("Graph()" in ast.unparse(item) for item in node.items):
        return False
    seeds = sum(text.count(_SEED) for text in tree.sources.values())
    own = [each for each in around.builders if not any(each is one for one in ast.walk(node))]
    return seeds > sum(ast.unparse(each).count(_SEED) for each in [node, *own])


def _means_nothing(item: ast.withitem) -> bool:
    match item:
        case ast.withitem(
            context_expr=ast.Call(
                func=ast.Attribute(value=ast.Call(func=made, args=[], keywords=[]), attr="as_default"), args=[], keywords=[]
            ), optional_vars=None,
        ):  # fmt: skip
            return ast.unparse(made) == "tf.Graph"
        case ast.withitem(
            context_expr=ast.Call(func=entered, args=[ast.Constant(value=str())], keywords=[]),
            optional_vars=None,
        ):
            return ast.unparse(entered) == "tf.device"
    return False


def _undone(file: PlainFile, node: ast.With) -> Change | None:
    """The lines of a block as far to the left as its `with`."""
    outer, inner = file.alone(node), file.alone(node.body[0])
    if outer is None or inner is None or not inner.startswith(outer):
        return None
    for each in ast.walk(node):
        if isinstance(each, ast.Constant | ast.JoinedStr) and (each.end_lineno or 0) > each.lineno:
            return None  # a text over several lines would be another one
    begin, end = file.start(node), file.end(node)
    header = file.text.index("\n", file.end(node.items[-1].context_expr))
    if file.commented(begin, header):
        return None
    parts: list[Part] = []
    at = header + 1
    while at <= end:
        stop = file.text.find("\n", at)
        stop = len(file.text) if stop < 0 else stop
        stop = min(stop, end)
        line = file.text[at:stop]
        if line.startswith(inner):
            parts += [outer if parts else "", (at + len(inner), stop), "\n"]
        elif not line.strip():
            parts.append("\n")
        else:
            return None
        at = stop + 1
    return Change(begin, end, tuple(parts[:-1]), ALWAYS)
