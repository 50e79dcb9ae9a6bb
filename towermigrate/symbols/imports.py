"""Imports of TensorFlow and `tf.contrib`, rewritten in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from towermigrate.symbols import contrib, private, tf0
from towermigrate.symbols.bindings import chain_of
from towermigrate.symbols.edits import Edit
from towermigrate.symbols.tables import LEGACY_KERAS, load_names, normal, prefix_in
from towermigrate.symbols.work import Pass, is_module

MNIST = "tensorflow.examples.tutorials.mnist"
MNIST_HELPER = "towermigrate.helpers.mnist_input"


def rewrite_alias(work: Pass) -> Iterator[ast.Name]:
    """`slim = tf.contrib.slim` becomes `import tf_slim as slim`; gives the roots that are dealt with."""
    for use in work.names.uses:
        found = normal(use.dotted)
        if found is None or not found[0].startswith("contrib.") or use.meaning.count(".") > 2:
            continue
        name = found[0][len("contrib.") :]
        if not is_module(name):
            continue
        statement = _assignment_of(work, use.chain)
        if statement is None:
            continue
        target = statement.targets[0]
        assert isinstance(target, ast.Name)
        moved = contrib.successor(name)
        start, end = work.text.span(statement)
        if moved is None:
            continue
        if work.replace(start, end, f"import {moved} as {target.id}", statement):
            work.uses_slim = work.legacy_keras = True
        yield use.root


def _assignment_of(work: Pass, value: ast.expr) -> ast.Assign | None:
    for node in work.names.of(ast.Assign):
        if node.value is value:
            single = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            return node if single and chain_of(value) is not None else None
    return None


def rewrite_module_aliases(work: Pass) -> None:
    """`nn = tf.nn` becomes `nn = tf.compat.v1.nn` where a name of TensorFlow 1 is taken from it.

    Call it after the uses were looked at, and before the imports.
    """
    if not work.to_v1:
        return
    targets = {
        id(node.value): node.targets[0].id
        for node in work.names.of(ast.Assign)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    waiting = [use for use in work.names.uses if id(use.chain) in targets]
    while True:
        now = [use for use in waiting if targets[id(use.chain)] in work.to_v1]
        if not now:
            return
        waiting = [use for use in waiting if targets[id(use.chain)] not in work.to_v1]
        for use in now:
            name, compat = normal(use.dotted) or ("", True)
            if compat or prefix_in(name, load_names().renamed):
                continue  # it is one of TensorFlow 1 itself and was changed with the other uses
            if use.meaning == "tensorflow":
                end = work.text.span(use.root)[1]
                work.edits.append(Edit(end, end, ".compat.v1"))
            else:
                work.to_v1.add(use.root.id)


def rewrite_imports(work: Pass) -> None:
    """Every import of TensorFlow in the file; call it after the uses were looked at."""
    for _, node in work.names.imports:
        if isinstance(node, ast.ImportFrom) and (node.level, node.module or "") in work.names.given:
            _import_of_tree(work, node)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module.split(".")[0] == "tensorflow":
                _from_import(work, node)
            elif node.module.split(".")[0] == "tf_slim":
                work.uses_slim = work.legacy_keras = True
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("tensorflow."):
                    _plain_import(work, node, alias)
                elif alias.name.split(".")[0] == "tf_slim":
                    work.uses_slim = work.legacy_keras = True


def _import_of_tree(work: Pass, node: ast.ImportFrom) -> None:
    """`from ops import tf_contrib, conv`: modules of `tf.contrib` that have no successor are no longer there."""
    there = work.names.given[node.level, node.module or ""].names
    gone = [
        alias
        for alias in node.names
        if (found := normal(there.get(alias.name, ""))) is not None
        and found[0].split(".")[0] == "contrib"
        and contrib.successor(found[0].partition(".")[2]) is None
        and (found[0] == "contrib" or is_module(found[0].partition(".")[2]))
    ]
    if gone:
        kept = [work.text.of(alias) for alias in node.names if alias not in gone]
        start = f"from {'.' * node.level}{node.module or ''} import "
        _replace_statement(work, node, [start + ", ".join(kept)] if kept else [])


# Where the public names of a private module are; the longest key that fits decides.
PUBLIC = {
    "tensorflow.core": "tf.compat.v1",
    "tensorflow.python": "tf.compat.v1",
    "tensorflow.python.client.device_lib": "tf.config.list_physical_devices",
    "tensorflow.python.data": "tf.data",
    "tensorflow.python.estimator": "",
    "tensorflow.python.framework.dtypes": "tf.dtypes",
    "tensorflow.python.framework.errors": "tf.errors",
    "tensorflow.python.keras": "tf.keras",
    "tensorflow.python.layers": "tf.compat.v1.layers",
    "tensorflow.python.lib.io": "tf.io",
    "tensorflow.python.ops.init_ops": "tf.compat.v1.initializers",
    "tensorflow.python.ops.math_ops": "tf.math",
    "tensorflow.python.ops.nn": "tf.nn",
    "tensorflow.python.ops.nn_ops": "tf.nn",
    "tensorflow.python.ops.rnn": "tf.compat.v1.nn",
    "tensorflow.python.ops.rnn_cell": "tf.compat.v1.nn.rnn_cell",
    "tensorflow.python.ops.rnn_cell_impl": "tf.compat.v1.nn.rnn_cell",
    "tensorflow.python.platform.app": "tf.compat.v1.app",
    "tensorflow.python.platform.flags": "tf.compat.v1.flags",
    "tensorflow.python.platform.gfile": "tf.io.gfile",
    "tensorflow.python.platform.googletest": "tf.test",
    "tensorflow.python.platform.test": "tf.test",
    "tensorflow.python.platform.tf_logging": "tf.compat.v1.logging",
    "tensorflow.python.saved_model": "tf.compat.v1.saved_model",
    "tensorflow.python.summary": "tf.compat.v1.summary",
    "tensorflow.python.training": "tf.compat.v1.train",
    "tensorflow.python.training.moving_averages": "",
    "tensorflow.python.util.nest": "tf.nest",
}


def _private(work: Pass, node: ast.stmt, module: str) -> None:
    names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else [""]
    public = {_public(f"{module}.{name}".rstrip(".")) for name in names} - {""}
    advice = f": look for it in {' or '.join(sorted(public))}" if public else ""
    work.find("TM114", node, f"`{module}` is private to TensorFlow{advice}")
    for name in names:
        gone = private.moved(f"{module}.{name}")
        if gone is not None and gone == f"{module}.{name}".removeprefix("tensorflow.python."):
            said = f"`{module}.{name}` is not in TensorFlow {load_names().tensorflow}, it is `{private.MOVED[gone]}` there"
            work.find("TM112", node, said)


def _public(dotted: str) -> str:
    """The public module to look in for what a private one holds; empty where none is known."""
    parts = dotted.split(".")
    heads = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((PUBLIC[head] for head in heads if head in PUBLIC), "")


def _plain_import(work: Pass, node: ast.Import, alias: ast.alias) -> None:
    found = normal(alias.name)
    if found is None:
        return
    name, compat = found
    start, _ = work.text.span(alias)
    end = start + len(alias.name)
    local = alias.asname
    if name.startswith(("python", "core")):
        _private(work, node, alias.name)
    elif alias.name == MNIST + ".input_data" and local:
        work.edits.append(Edit(start, end, MNIST_HELPER))
    elif name == "contrib" or name.startswith("contrib."):
        moved = contrib.successor(name[len("contrib.") :]) if "." in name else None
        if local is None:
            work.edits.append(Edit(start, end, "tensorflow"))
        elif moved is not None and moved.startswith("tf_slim"):
            work.edits.append(Edit(start, end, moved))
            work.uses_slim = work.legacy_keras = True
        elif local not in work.kept and len(node.names) == 1:
            _remove(work, node)
        else:
            if local not in work.told:
                work.find("TM111", node, f"`{alias.name}` does not exist in TensorFlow 2")
            if len(node.names) == 1 and _may_be_guarded(work, node):
                _replace_statement(work, node, _guarded(work.text.of(node), [local]))
    elif local and local in work.to_v1 and not compat:
        work.edits.append(Edit(start, end, f"tensorflow.compat.v1.{name}"))
    elif load_names().unknown(name):
        work.find("TM112", node, f"`{alias.name}` is not in TensorFlow {load_names().tensorflow}")
    if prefix_in(name, LEGACY_KERAS):
        work.legacy_keras = True


def _from_import(work: Pass, node: ast.ImportFrom) -> None:
    module = node.module or ""
    found = normal(module)
    if found is None:
        return
    name, compat = found
    imported = [alias.name for alias in node.names]
    dotted = [f"{name}.{each}" if name else each for each in imported]
    if name.split(".")[0] in ("python", "core"):
        _private(work, node, module)
    elif imported == ["*"]:
        _star_import(work, node, module, compat)
    elif module.startswith("tensorflow.examples"):
        _mnist(work, node, module, imported)
    elif dotted[0].split(".")[0] == "contrib" or any(d.startswith("contrib") for d in dotted):
        _contrib_import(work, node, dotted)
    else:
        table = load_names()
        for alias, each in zip(node.names, dotted, strict=True):
            if prefix_in(each, tf0.NAMES):
                work.find("TM118", alias, f"`tf.{each}` is imported under a name of its own")
            elif prefix_in(each, table.gone) or table.unknown(each):
                work.find("TM112", alias, f"`tf.{each}` is not in TensorFlow {table.tensorflow}")
        locals_ = {alias.asname or alias.name for alias in node.names}
        moved = any(prefix_in(each, table.renamed) for each in dotted) or locals_ & work.to_v1
        if moved and not compat and name.split(".")[0] != "compat":
            start = _module_offset(work, node, module)
            work.edits.append(Edit(start, start + len("tensorflow"), "tensorflow.compat.v1"))
        if any(prefix_in(each, LEGACY_KERAS) for each in dotted):
            work.legacy_keras = True


def _star_import(work: Pass, node: ast.ImportFrom, module: str, compat: bool) -> None:
    """`from tensorflow import *`: the whole import moves where a bare name needs it."""
    start = _module_offset(work, node, module)
    if module == "tensorflow":
        bare = {
            name
            for name, meanings in work.names.module.bound.items()
            if meanings == {f"tensorflow.{name}"}
        }
        if bare & work.to_v1:
            work.edits.append(Edit(start, start + len(module), "tensorflow.compat.v1"))
    elif module.startswith("tensorflow.contrib."):
        name = module.removeprefix("tensorflow.contrib.")
        moved = contrib.successor(name) if is_module(name) else None
        if moved is None:
            work.find("TM111", node, contrib.no_successor(name))
            return
        work.edits.append(Edit(start, start + len(module), moved))
        work.uses_slim = work.legacy_keras = True
    elif not compat:
        work.find("TM113", node, f"`from {module} import *`: bare names are not changed")


def _module_offset(work: Pass, node: ast.ImportFrom, module: str) -> int:
    start = work.text.span(node)[0]
    return work.text.text.index(module, start + len("from"))


def _mnist(work: Pass, node: ast.ImportFrom, module: str, imported: list[str]) -> None:
    start = _module_offset(work, node, module)
    if module == MNIST and imported == ["input_data"]:
        alias = node.names[0]
        begin, end = work.text.span(alias)
        local = alias.asname or "input_data"
        work.edits.append(Edit(start, start + len(module), "towermigrate.helpers"))
        work.edits.append(Edit(begin, end, f"mnist_input as {local}"))
    elif module == MNIST + ".input_data":
        work.edits.append(Edit(start, start + len(module), MNIST_HELPER))
    else:
        work.find("TM112", node, f"`{module}` is not part of TensorFlow 2")


def _contrib_import(work: Pass, node: ast.ImportFrom, dotted: list[str]) -> None:
    """`from tensorflow.contrib… import …`: each name goes where its successor is."""
    lines: list[str] = []
    kept: list[str] = []
    missing: list[str] = []
    gone: list[str] = []
    for alias, each in zip(node.names, dotted, strict=True):
        local = alias.asname or alias.name
        suffix = f" as {local}"
        name = each.removeprefix("contrib").removeprefix(".")
        target = contrib.successor(name) if name else None
        if each.split(".")[0] != "contrib":
            kept.append(alias.name + (suffix if alias.asname else ""))
            continue
        if target is None and (not name or is_module(name)) and local not in work.kept:
            continue  # every use was written out in full, nobody needs the module's own name
        if target is None:
            if local not in work.told:
                work.find("TM111", alias, contrib.no_successor(name))
            missing.append(alias.name + (suffix if alias.asname else ""))
            gone.append(local)
            continue
        if target.startswith("tf_slim"):
            work.uses_slim = work.legacy_keras = True
        elif prefix_in(target.removeprefix("tf.").removeprefix("compat.v1."), LEGACY_KERAS):
            work.legacy_keras = True
        full = "tensorflow." + target[len("tf.") :] if target.startswith("tf.") else target
        parent, _, last = full.rpartition(".")
        if not parent:
            lines.append(f"import {full}" + (suffix if local != full else ""))
        else:
            lines.append(f"from {parent} import {last}" + (suffix if local != last else ""))
    start = f"from {node.module} import "
    lines = _merged([*lines, *([start + ", ".join(kept)] if kept else ())])
    if missing and _may_be_guarded(work, node):
        lines += _guarded(start + ", ".join(missing), gone)
    elif missing and len(missing) + len(kept) == len(node.names):
        return
    elif missing:
        lines.append(start + ", ".join(missing))
    _replace_statement(work, node, lines)


def _may_be_guarded(work: Pass, node: ast.stmt) -> bool:
    """Whether an import stands by itself at the outermost level: there its error would end the whole program."""
    start, end = work.text.span(node)
    rest = work.text.text[end : work.text.line_end(end)]
    return node in work.tree.body and work.text.indentation(start) == "" and not rest.strip()


def _guarded(statement: str, names: list[str]) -> list[str]:
    """An import of what TensorFlow 2 has not, so that only what uses it fails."""
    nothing = [f"    {name} = None" for name in names]
    return ["try:", f"    {statement}", "except ImportError:", *nothing]


def _merged(lines: Sequence[str]) -> list[str]:
    """Imports from one module in one statement, in the order of their first names."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        head, _, names = line.partition(" import ")
        groups.setdefault(head if names else line, []).append(names)
    return [
        head if names == [""] else f"{head} import {', '.join(names)}"
        for head, names in groups.items()
    ]


def _replace_statement(work: Pass, node: ast.Import | ast.ImportFrom, lines: list[str]) -> None:
    start, end = work.text.span(node)
    indentation = work.text.indentation(start)
    if not lines:
        _remove(work, node)
    elif indentation is None and len(lines) > 1:
        work.replace(start, end, "; ".join(lines), node)
    else:
        work.replace(start, end, (work.text.newline + (indentation or "")).join(lines), node)


def _remove(work: Pass, node: ast.stmt) -> None:
    """Take an import away, its line too when it stood alone there; `pass` where a block would be empty."""
    start, end = work.text.span(node)
    text = work.text
    indentation = text.indentation(start)
    stop = text.line_end(end)
    alone = indentation == "" and not text.text[end:stop].strip()
    if not alone:
        work.replace(start, end, "pass", node)
        return
    after = stop
    for newline in ("\r\n", "\n", "\r"):
        if text.text.startswith(newline, stop):
            after = stop + len(newline)
            break
    work.replace(start, after, "", node)
