"""Values of the towers that a collection gathers: in a list of their own."""

from __future__ import annotations

import ast
import keyword
import re

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope
from towermigrate.recognize.plain.collected import loops_of_towers
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Tree

# The keys of TensorFlow's own collections (`tf.GraphKeys`), which it fills and reads itself.
_OWN_KEYS = frozenset(
    "variables local_variables model_variables trainable_variables metric_variables summaries _summary_tags queue_runners "
    "table_initializer asset_filepaths moving_average_variables regularization_losses concatenated_variables savers weights "
    "biases activations update_ops losses saved_op init_op local_init_op ready_op ready_for_local_init_op summary_op "
    "global_step eval_step train_op cond_context while_context control_outputs global_step_read_op trainable_resource_variables "
    "resources local_resources streaming_model_ports".split()
)
_READERS = frozenset({"len", "sum", "list", "tuple", "enumerate", "zip"})


def gathered_values(tree: Tree, file: PlainFile) -> list[Change]:
    """`tf.add_to_collection("accs", acc)` in the towers and `tf.get_collection("accs")` behind them as a list of that name.

    Only of collections that nothing else of the tree names.
    """
    if "add_to_collection(" not in file.text:
        return []
    return [
        change
        for where, scope, loop in loops_of_towers(file)
        for change in _of_loop(tree, file, scope, loop, where)
    ]


def _of_loop(tree: Tree, file: PlainFile, scope: Scope, loop: ast.For, where: str) -> list[Change]:
    margin = file.alone(loop)
    if margin is None:
        return []
    own = {id(each) for each in own_nodes(scope)}
    added: dict[str, list[tuple[ast.Call, ast.Constant]]] = {}
    read: dict[str, list[tuple[ast.Call, ast.Constant]]] = {}
    for statement in _plain(loop.body):
        call = statement.value if isinstance(statement, ast.Expr) else None
        key = _key(call, "add_to_collection", 2)
        if isinstance(call, ast.Call) and key is not None:
            added.setdefault(str(key.value), []).append((call, key))
    for each in ast.walk(scope):
        key = _key(each, "get_collection", 1)
        if isinstance(each, ast.Call) and key is not None and each.lineno > (loop.end_lineno or 0):
            if id(each) in own:
                read.setdefault(str(key.value), []).append((each, key))
    only_read = {
        id(one)
        for each in ast.walk(scope)
        if isinstance(each, ast.Call)
        and (ast.unparse(each.func).startswith("tf.") or ast.unparse(each.func) in _READERS)
        for one in each.args
    }
    changes: list[Change] = []
    before = ""
    for text, calls in added.items():
        reads = read.get(text, [])
        keys = {id(key) for _, key in [*calls, *reads]}
        if (
            not reads
            or text in _OWN_KEYS
            or len(calls) != 1
            or not _named_here(tree, file, text, keys)
        ):
            continue
        if len(reads) > 1 and not all(id(call) in only_read for call, _ in reads):
            continue  # each is a list of its own
        name = re.sub(r"\W", "_", text)
        if not name.isidentifier() or keyword.iskeyword(name):
            continue
        name = file.free(scope, name, f"{name}_of_towers")
        before += f"{name} = []\n{margin}"
        ((call, _),) = calls
        value = call.args[1]
        if any(file.commented(*file.span(one)) for one, _ in [*calls, *reads]):
            continue
        changes.append(Change(*file.span(call), (f"{name}.append(", file.span(value), ")"), where))
        changes += [Change(*file.span(one), (name,), where) for one, _ in reads]
    if changes:
        changes.append(Change(file.start(loop), file.start(loop), (before,), where))
    return changes


def _plain(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a tower that are under no condition."""
    return [
        one
        for each in body
        for one in (_plain(each.body) if isinstance(each, ast.With) else [each])
    ]


def _key(node: ast.AST | None, function: str, count: int) -> ast.Constant | None:
    """The text that names the collection, of a call with so many arguments."""
    if not isinstance(node, ast.Call) or len(node.args) != count or node.keywords:
        return None
    key = node.args[0]
    if ast.unparse(node.func) != f"tf.{function}" or not isinstance(key, ast.Constant):
        return None
    return key if isinstance(key.value, str) else None


def _named_here(tree: Tree, file: PlainFile, text: str, keys: set[int]) -> bool:
    """Whether nothing but these nodes names a collection: no other file, no other node of this one, none by a name."""
    others = [other for path, other in tree.sources.items() if path != file.path]
    if any(text in other for other in others) or any(map(_BY_NAME.search, [file.text, *others])):
        return False
    return all(
        id(each) in keys
        for each in file.nodes
        if isinstance(each, ast.Constant) and each.value == text
    )


# A collection that is asked for by what a name holds, or all of them.
_BY_NAME = re.compile(
    r"get_all_collection_keys|(?:get_collection(?:_ref)?|add_to_collections?)\((?!\s*(?:['\"]|[\w.]*GraphKeys\.))"
)
