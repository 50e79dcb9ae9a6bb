"""What the files of a tree need of each other under TensorFlow 2, where a rewrite cannot give it: findings."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from towermigrate.faults import fault
from towermigrate.findings import Finding
from towermigrate.symbols import tf0
from towermigrate.symbols.bindings import chain_of
from towermigrate.symbols.scopes import file_names
from towermigrate.symbols.switch import with_switch
from towermigrate.symbols.tables import load_names, normal, prefix_in
from towermigrate.symbols.work import SymbolResult
from towermigrate.tree import import_closure, is_script, module_file, modules_in, parse_python

_OUTERMOST_CALL = re.compile(r"^(?:[\w, ]+= *)?[a-zA-Z_][\w.]*\(", re.MULTILINE)


def left_behind(
    sources: Mapping[str, str],
    path: str,
    imported: set[str],
    symbols: Mapping[str, SymbolResult],
    fixed: Mapping[str, Finding],
) -> list[Finding]:
    """Findings at the imports of `path`, which goes to TensorFlow 2, of files that stay on TensorFlow 1.

    Args:
        sources: texts of the tree, by path, as they were.
        path: the importing file.
        imported: the files of the tree that it imports.
        symbols: what the symbol pass made of every file.
        fixed: files that do not change, each with the finding that says why.
    """
    found: list[Finding] = []
    for other in sorted(imported & fixed.keys()):
        names = tf1_names(sources[other]) if symbols[other].text != sources[other] else []
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            reason = fixed[other].message.removeprefix("not changed: ")
            message = f"{other}, imported here, still uses `{names[0]}`{more}: {reason}"
            line, column = _import_of(sources, path, other)
            found.append(Finding("TM109", path, line, column, message))
    return found


def tf1_names(text: str) -> list[str]:
    """The names of TensorFlow 1 in a file, each once, that TensorFlow 2 lacks or gives another meaning.

    Example:
        >>> tf1_names("import tensorflow as tf\\ntf.Session(tf.mul(tf.compat.v1.log(1), tf.add(2, 3)))\\n")
        ['tf.Session', 'tf.mul']
    """
    table = load_names()
    found: dict[str, None] = {}
    for use in file_names(parse_python(text)).uses:
        name, compat = normal(use.dotted) or ("", True)
        if not compat and (
            prefix_in(name, table.renamed)
            or prefix_in(name, tf0.NAMES)
            or name.startswith("contrib.")
        ):
            found[f"tf.{name}"] = None
    return list(found)


def _import_of(sources: Mapping[str, str], path: str, other: str) -> tuple[int, int]:
    """Where `path` imports `other`: line and column."""
    for node in ast.walk(parse_python(sources[path])):
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            module_file(sources, path, *module) == other for module in modules_in([node])
        ):
            return node.lineno, node.col_offset
    return 1, 0


@dataclass(frozen=True)
class Unswitched:
    """What needs a graph where nothing turns eager execution off.

    `findings` by path, and `texts` of scripts that do not mention TensorFlow, with the switch put in.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def unswitched(
    graph: Mapping[str, set[str]],
    symbols: Mapping[str, SymbolResult],
    launchers: Mapping[str, str],
    kept: Collection[str],
) -> Unswitched:
    """Scripts that do not mention TensorFlow and run a module that needs a graph, and modules that no script runs.

    Args:
        graph: the files of the tree that each file imports.
        symbols: what the symbol pass made of every file that mentions TensorFlow.
        launchers: texts of the files, by path, that may be such scripts.
        kept: files that stay as they are: what runs one of them is taken to stay on TensorFlow 1.
    """
    waiting = {path: each.needs_graph for path, each in symbols.items() if each.needs_graph}
    if not waiting:
        return Unswitched()
    starts = [path for path, each in symbols.items() if each.script or each.mode.switched]
    imported = set().union(*graph.values())
    found: dict[str, Finding] = {}
    texts: dict[str, str] = {}
    for path, text in launchers.items():
        if not ("__main__" in text or (path not in imported and _OUTERMOST_CALL.search(text))):
            continue
        closure = import_closure({}, [path], graph)
        results = [symbols[each] for each in closure & symbols.keys()]
        if (
            closure.isdisjoint(waiting)
            or not closure.isdisjoint(kept)
            or any(each.mode.eager for each in results)
        ):
            continue
        try:
            finding = _launch(path, text, graph, waiting.keys())
            if finding is None:
                continue
            starts.append(path)
            # What is switched already, or is a script that gets the switch, is so when it is imported.
            if not any(each.switches for each in results):
                # A script where the graph of the towers begins has been changed before.
                now = symbols[path].text if path in symbols else text
                new = with_switch(now, early=any(each.builds for each in results))
                found[path] = finding if new is not None else replace(finding, rule="TM120")
                if new is not None:
                    texts[path] = new
        except Exception as error:
            found[path] = fault(path, error)
    reached = import_closure({}, starts, graph)
    missed = {path: finding for path, finding in waiting.items() if path not in reached}
    return Unswitched({**found, **missed}, texts)


def _launch(
    path: str, text: str, graph: Mapping[str, set[str]], waiting: Collection[str]
) -> Finding | None:
    """The finding at the first import through which a script reaches one of the modules that are `waiting`.

    None where the file is no script: it has no `__main__` test, and no call of what it so imports or of `main`
    at its outermost level.
    """
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return None
    places: list[tuple[int, int, str]] = []
    names = {"main"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = {module_file(graph, path, *module) for module in modules_in([node])}
            files = {file for file in found if file is not None and file != path}
            reached = import_closure({}, files, graph) & set(waiting)
            if reached:
                places.append((node.lineno, node.col_offset, min(reached & files or reached)))
                names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
    if not places or not (is_script(text) or _calls_one_of(tree, names)):
        return None
    line, column, module = min(places)
    advice = "that calls for `tf.compat.v1.disable_v2_behavior()` at its start"
    return Finding("TM119", path, line, column, f"runs {module}, which needs a graph: {advice}")


def _calls_one_of(tree: ast.Module, names: Collection[str]) -> bool:
    """Whether a statement at the outermost level is a call of, or through, one of these names."""
    for node in tree.body:
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            chain = chain_of(node.value.func)
            if chain is not None and chain[0].id in names:
                return True
    return False
