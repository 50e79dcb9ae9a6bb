"""The symbol pass itself: find what to change in one file, and splice it in."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

from towermigrate.findings import Finding
from towermigrate.symbols import contrib, private, tf0
from towermigrate.symbols.aligned import aligned
from towermigrate.symbols.alike import alike
from towermigrate.symbols.bindings import Use
from towermigrate.symbols.edits import Edit, Text, changes_names_only, splice
from towermigrate.symbols.imports import rewrite_alias, rewrite_imports, rewrite_module_aliases
from towermigrate.symbols.members import rewrite_dimensions
from towermigrate.symbols.placement import added_imports
from towermigrate.symbols.scopes import FileNames, file_names
from towermigrate.symbols.sessions import (
    at_import,
    in_order,
    mode,
    needs_graph,
    script_of,
    settled,
)
from towermigrate.symbols.tables import LEGACY_KERAS, load_names, normal, prefix_in
from towermigrate.symbols.work import Pass, SymbolResult, is_module
from towermigrate.tree import parse_python

_TF2_ONLY = frozenset(
    "function TensorSpec distribute compat.v2 keras.optimizers random.set_seed summary.create_file_writer "
    "config GradientTape".split()
)


def rewrite_symbols(source: str, path: str, *, tf1: bool | None = None) -> SymbolResult:
    """Change the TensorFlow 1 names of one file to names that TensorFlow 2 has.

    Args:
        source: the text of the file, line ends as they are, without a byte order mark.
        path: its path relative to the tree's root, for findings.
        tf1: whether the file is TensorFlow 1 code; None decides by the names in it. Code written for
            TensorFlow 2 is left alone: `tf.Variable` means something else there.

    Returns:
        The new text and findings. Nothing but names and imports differs from `source`, and how far lines in brackets
        are indented; running the pass again on the result changes nothing.

    Example:
        >>> rewrite_symbols("import tensorflow as tf\\ntf.placeholder(tf.float32)\\n", "m.py").text
        'import tensorflow as tf\\ntf.compat.v1.placeholder(tf.float32)\\n'
    """
    if "tensorflow" not in source:
        return SymbolResult(source, ())
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        column = max((getattr(error, "offset", None) or 1) - 1, 0)
        message = f"Python 3 cannot parse this file: {error}"
        return SymbolResult(source, (Finding("TM101", path, line, column, message),))
    return settled(file_symbols(source, path, tree, file_names(tree), tf1=tf1), None)


def file_symbols(
    source: str, path: str, tree: ast.Module, names: FileNames, *, tf1: bool | None = None
) -> SymbolResult:
    """`rewrite_symbols` of a file that is parsed already; a script still has to be settled."""
    if "tensorflow" not in source and not names.brought:
        return SymbolResult(source, ())
    runs = mode(names.dotted)
    work = Pass(path, Text(source), tree, names)
    builds, switches = at_import(work)
    if not (is_tf1(names) if tf1 is None else tf1):
        return SymbolResult(source, (), runs, builds=builds, switches=switches)
    handled = {id(root) for root in rewrite_alias(work)}
    for use in names.uses:
        if id(use.root) not in handled and not is_inert(use.dotted):
            _rewrite_use(work, use)
    _rewrite_asked(work, handled)
    for root, meanings in names.ambiguous:
        if not all(meaning.startswith("tensorflow") for meaning in meanings):
            work.find("TM116", root, f"`{root.id}` is TensorFlow and something else in this scope")
    for call, message in work.doubtful if work.is_tf0 else ():
        work.find("TM118", call, message)
    rewrite_module_aliases(work)
    rewrite_imports(work)
    rewrite_dimensions(work)
    _report_versions(work)
    work.edits += added_imports(work)
    work.edits += aligned(work.text, tree, work.edits)
    findings = in_order(work.findings)
    try:
        text = splice(source, work.edits)
        script = script_of(work, work.edits)
        graph = needs_graph(work, runs)
        plain = changes_names_only(source, work.edits)
        return SymbolResult(text, findings, runs, script, graph, builds, switches, plain)
    except ValueError as error:
        stuck = Finding("TM104", path, 1, 0, f"its names were not changed: {error}")
        return SymbolResult(source, (*findings, stuck), runs)


def _rewrite_asked(work: Pass, handled: set[int]) -> None:
    """`getattr(tf.train, name)`, `hasattr(tf, "log")`: a module that is asked for names is TensorFlow 1's, unless both have it."""
    asked: dict[int, ast.expr | None] = {}
    told: set[int] = set()
    for call in work.names.of(ast.Call):
        func, given = call.func, call.args
        if not isinstance(func, ast.Name) or not given:
            continue
        if func.id in ("getattr", "hasattr") and len(given) >= 2:
            asked[id(given[0])] = given[1]
            if func.id == "hasattr":
                told.add(id(given[0]))
        elif func.id in ("dir", "vars") and len(given) == 1:
            asked[id(given[0])] = None
    listed = any(node.attr == "__dict__" for node in work.names.of(ast.Attribute))
    for use in work.names.uses if asked or listed else ():
        found = normal(use.dotted)
        if found is None or id(use.root) in handled:
            continue
        module, lists, _ = found[0].partition("__dict__")
        if not lists and id(use.chain) not in asked:
            continue
        name, module = asked.get(id(use.chain)), module.rstrip(".")
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            whole = f"{module}.{name.value}".lstrip(".")
            if id(use.chain) in told and _is_gone(whole):
                said = f"`tf.{whole}` is not in TensorFlow {load_names().tensorflow}: what asks for it goes another way"
                work.find("TM112", use.chain, said)
            elif not _fate(whole).renamed and prefix_in(whole, _TF2_ONLY) is None:
                continue
        if found[1] or prefix_in(module, load_names().renamed):
            continue  # it is TensorFlow 1's already, or the module itself changes
        if use.meaning == "tensorflow":
            end = work.text.span(use.root)[1]
            work.edits.append(Edit(end, end, ".compat.v1"))
        elif id(use.chain) in told and use.root.id not in work.names.brought:
            work.to_v1.add(use.root.id)


def _is_gone(name: str) -> bool:
    """Whether TensorFlow 1 had a name that `tf.compat.v1` has not."""
    return name.split(".")[0] == "contrib" or prefix_in(name, load_names().gone) is not None


def is_tf1(names: FileNames) -> bool:
    """Whether a file is TensorFlow 1 code: some name only TensorFlow 1 has, or no sign of TensorFlow 2."""
    modern = False
    for name in names.dotted:
        found = normal(name)
        if found is None or found[1]:
            continue
        old = prefix_in(found[0], load_names().missing) or prefix_in(found[0], tf0.NAMES)
        if old or found[0].startswith("contrib"):
            return True
        modern = modern or prefix_in(found[0], _TF2_ONLY) is not None
    return not modern


@dataclass(frozen=True)
class _Fate:
    """What TensorFlow 2 made of a name."""

    missing: bool
    renamed: bool
    legacy_keras: bool


@cache
def _fate(name: str) -> _Fate:
    table = load_names()
    return _Fate(
        missing=bool(prefix_in(name, table.gone) or table.unknown(name)),
        renamed=prefix_in(name, table.renamed) is not None,
        legacy_keras=prefix_in(name, LEGACY_KERAS) is not None,
    )


@cache
def is_inert(dotted: str) -> bool:
    """Whether there is nothing to do about a name whatever stands around it: most are of this kind."""
    found = normal(dotted)
    if found is None:
        return dotted.startswith("towermigrate")
    name, compat = found
    if prefix_in(name, tf0.NAMES) or name.split(".")[0] == "contrib" or name in tf0.ORDERED:
        return False
    if private.moved(dotted) is not None:
        return False
    fate = _fate(name)
    return not fate.missing and not fate.legacy_keras and (compat or not fate.renamed)


def _rewrite_use(work: Pass, use: Use) -> None:
    if use.dotted.startswith("tf_slim"):
        work.uses_slim = True
        if not contrib.in_tf_slim(use.dotted):
            work.find("TM111", use.chain, f"`{use.dotted}` is not in tf_slim")
        return
    found = normal(use.dotted)
    if found is None:
        return
    name, compat = found
    if tf0.rename(work, use, name):
        return
    if name == "contrib" or name.startswith("contrib."):
        _rewrite_contrib(work, use, name[len("contrib.") :])
        return
    if name.startswith(("python.", "core.", "compat.")) or use.meaning.startswith(
        ("tensorflow.python", "tensorflow.examples")
    ):
        private.rename(work, use)
        return  # their imports are looked at
    fate = _fate(name)
    work.legacy_keras |= fate.legacy_keras
    if fate.missing:
        version = load_names().tensorflow
        work.find("TM112", use.chain, f"`tf.{name}` is not in TensorFlow {version}")
    elif not compat and id(use.chain) in work.calls:
        tf0.order_arguments(work, name, work.calls[id(use.chain)])
    if fate.renamed and not compat:
        if use.meaning == "tensorflow":
            call = work.calls.get(id(use.chain))
            same = alike(name, call)
            if same is not None and call is not None:
                for keyword in call.keywords:
                    old = keyword.arg or ""
                    if old in same.renamed:
                        start = work.text.span(keyword)[0]
                        work.replace(start, start + len(old), same.renamed[old], keyword.value)
                if same.now is None:
                    return
            start, end = work.text.span(use.root)
            moved = same.now if same is not None else load_names().moved.get(name)
            if moved is not None:
                work.replace(
                    start, work.text.span(use.chain)[1], f"{use.root.id}.{moved}", use.chain
                )
                return
            work.edits.append(Edit(end, end, ".compat.v1"))
        elif use.root.id in work.names.brought:
            _spell_out(work, use)
        else:
            work.to_v1.add(use.root.id)


def _spell_out(work: Pass, use: Use) -> None:
    """`nn.rnn_cell` -> `tf.compat.v1.nn.rnn_cell` where another file gives `nn`, whose import must not move for it."""
    name = (normal(use.meaning) or ("", False))[0]
    if prefix_in(name, load_names().renamed):
        return  # it is of TensorFlow 1 itself: that file's import moves for its own sake
    new = work.spelled(f"tf.compat.v1.{name}", use)
    if new is None:
        work.find(
            "TM117", use.chain, f"needs `import tensorflow as tf` to become `tf.compat.v1.{name}`"
        )
        return
    work.replace(*work.text.span(use.root), new, use.chain)


def _rewrite_contrib(work: Pass, use: Use, name: str) -> None:
    """One chain through `tf.contrib`, whatever part of it was imported under a name of its own."""
    target = contrib.successor(name)
    meaning = normal(use.meaning)
    module = meaning[0].removeprefix("contrib").removeprefix(".") if meaning else ""
    of_contrib = meaning is not None and meaning[0].split(".")[0] == "contrib"
    # What has attributes, or stands right below `tf.contrib`, is a module.
    imported = of_contrib and (
        is_module(module) or "." not in module or (bool(use.links) and module.islower())
    )
    if imported and not use.links:
        work.kept.add(use.root.id)
        if not module:
            work.told.add(use.root.id)
            work.find("TM111", use.chain, "`tf.contrib` itself has no successor")
        return
    if imported:
        moved = contrib.successor(module)
        if moved is not None:
            work.uses_slim = work.legacy_keras = True
            if contrib.in_tf_slim(moved + name[len(module) :]):
                return
    elif of_contrib:
        # A single function imported by name: its import line is what changes.
        return
    if target is None:
        if imported:
            work.kept.add(use.root.id)
            work.told.add(use.root.id)
        work.find("TM111", use.chain, contrib.no_successor(name))
        return
    new = target
    if target.startswith(contrib.HELPERS):
        new = work.of_helpers(target)
        work.legacy_keras = True
    elif target.startswith("tf."):
        rest = target[len("tf.") :]
        if use.meaning == "tensorflow":
            spelled: str | None = f"{use.root.id}.{rest}"
        elif use.meaning == "tensorflow.compat.v1":
            spelled = f"{use.root.id}.{rest.removeprefix('compat.v1.')}"
        else:
            spelled = work.spelled(target, use)
        if spelled is None:
            work.kept.add(use.root.id)
            work.find("TM117", use.chain, f"needs `import tensorflow as tf` to become `{target}`")
            return
        new = spelled
        if prefix_in(rest.removeprefix("compat.v1."), LEGACY_KERAS):
            work.legacy_keras = True
    start, end = work.text.span(use.chain)
    if work.replace(start, end, new, use.chain) and target.startswith("tf_slim"):
        work.adds_slim = work.uses_slim = work.legacy_keras = True


def _report_versions(work: Pass) -> None:
    """A finding where a test of TensorFlow's version decides what runs."""
    versions = [
        use.root
        for use in work.names.uses
        if (found := normal(use.dotted)) and found[0].startswith(("__version__", "VERSION"))
    ]
    if not versions:
        return
    tests: list[ast.If | ast.IfExp] = [*work.names.of(ast.If), *work.names.of(ast.IfExp)]
    inside = {id(inner) for node in tests for inner in ast.walk(node.test)}
    for root in versions:
        if id(root) in inside:
            work.find("TM115", root, "what runs here depends on TensorFlow's version")
