"""The symbol pass itself: find what to change in one file, and splice it in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from towermigrate.findings import Finding
from towermigrate.symbols import contrib
from towermigrate.symbols.edits import Edit, Text, splice
from towermigrate.symbols.placement import added_imports
from towermigrate.symbols.scopes import FileNames, Use, chain_of, file_names
from towermigrate.symbols.tables import load_names, prefix_in
from towermigrate.tree import parse_python

# What needs legacy Keras (FACTS: `tf.compat.v1.layers` is missing under Keras 3).
LEGACY_KERAS = frozenset(
    "layers nn.rnn_cell nn.dynamic_rnn nn.bidirectional_dynamic_rnn nn.static_rnn nn.raw_rnn keras "
    "nn.static_bidirectional_rnn nn.static_state_saving_rnn".split()
)
_TF2_ONLY = frozenset(
    "function TensorSpec distribute compat.v2 keras.optimizers random.set_seed summary.create_file_writer "
    "config GradientTape".split()
)
_SESSIONS = frozenset(
    "Session InteractiveSession train.MonitoredTrainingSession train.Supervisor".split()
)
_SWITCHES = frozenset("disable_v2_behavior disable_eager_execution".split())


@dataclass(frozen=True)
class SymbolResult:
    """The new text of one file (the old one when nothing changed) and what could not be changed."""

    text: str
    findings: tuple[Finding, ...]


@dataclass
class Pass:
    """What the pass over one file has found so far."""

    path: str
    text: Text
    tree: ast.Module
    names: FileNames
    edits: list[Edit] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    """Local names of `tf.contrib` modules that some use still needs."""
    to_v1: set[str] = field(default_factory=set)
    """Local names whose import must move to `tensorflow.compat.v1`."""
    uses_slim: bool = False
    adds_slim: bool = False
    legacy_keras: bool = False

    def find(self, rule: str, node: ast.expr | ast.stmt | ast.alias, message: str) -> None:
        start = self.text.starts[node.lineno - 1]
        column = self.text.offset(node.lineno, node.col_offset) - start
        self.findings.append(Finding(rule, self.path, node.lineno, column, message))

    def replace(self, start: int, end: int, new: str, node: ast.expr | ast.stmt) -> bool:
        """Replace unless a comment would be lost; then a finding says so."""
        if "#" in self.text.text[start:end]:
            self.find("TM117", node, "a comment stands inside this name, so it was left as it is")
            return False
        self.edits.append(Edit(start, end, new))
        return True

    def tensorflow_alias(self, use: Use | None = None) -> str | None:
        """A name that means `tensorflow` itself, seen from a use or from module level."""
        scope = use.scope if use else self.names.module
        while scope is not None:
            for name in scope.bound:
                if scope.lookup(name) == {"tensorflow"}:
                    return name
            if scope.parent is None:
                break
            scope = scope.parent
        return None


def normal(dotted: str) -> tuple[str, bool] | None:
    """A TensorFlow name without `tensorflow.` and `compat.v1.`, and whether `compat.v1` stood in it."""
    if dotted != "tensorflow" and not dotted.startswith("tensorflow."):
        return None
    rest = dotted[len("tensorflow.") :]
    if rest == "compat.v1" or rest.startswith("compat.v1."):
        return rest[len("compat.v1.") :], True
    return rest, False


def is_module(name: str) -> bool:
    """Whether `tf.contrib.<name>` is a module that the tables know."""
    return any(name == old for old, _ in contrib.TREES) or any(
        key.startswith(name + ".") for key in contrib.EXACT
    )


def rewrite_symbols(source: str, path: str, *, tf1: bool | None = None) -> SymbolResult:
    """Change the TensorFlow 1 names of one file to names that TensorFlow 2 has.

    Args:
        source: the text of the file, line ends as they are, without a byte order mark.
        path: its path relative to the tree's root, for findings.
        tf1: whether the file is TensorFlow 1 code; None decides by the names in it. Code written for
            TensorFlow 2 is left alone: `tf.Variable` means something else there.

    Returns:
        The new text and findings. Nothing but names and imports differs from `source`; running the pass
        again on the result changes nothing.

    Example:
        >>> rewrite_symbols("import tensorflow as tf\\ntf.placeholder(tf.float32)\\n", "m.py").text
        'import tensorflow as tf\\ntf.compat.v1.placeholder(tf.float32)\\n'
    """
    from towermigrate.symbols.imports import rewrite_alias, rewrite_imports

    if "tensorflow" not in source:
        return SymbolResult(source, ())
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        column = max((getattr(error, "offset", None) or 1) - 1, 0)
        message = f"Python 3 cannot parse this file: {error}"
        return SymbolResult(source, (Finding("TM101", path, line, column, message),))
    names = file_names(tree)
    if not (is_tf1(names) if tf1 is None else tf1):
        return SymbolResult(source, ())
    work = Pass(path, Text(source), tree, names)
    handled = {id(root) for root in rewrite_alias(work)}
    for use in names.uses:
        if id(use.root) not in handled:
            _rewrite_use(work, use)
    for root in names.ambiguous:
        meanings = _meanings(work, root)
        if not all(meaning.startswith("tensorflow") for meaning in meanings):
            work.find("TM116", root, f"`{root.id}` is TensorFlow and something else in this scope")
    rewrite_imports(work)
    _rewrite_dimensions(work)
    _report_sessions(work)
    work.edits += added_imports(
        work.text, tree, names, work.adds_slim, work.legacy_keras, work.uses_slim
    )
    findings = tuple(sorted(set(work.findings), key=lambda f: (f.line, f.column, f.rule)))
    try:
        return SymbolResult(splice(source, work.edits), findings)
    except ValueError as error:
        stuck = Finding("TM104", path, 1, 0, f"its names were not changed: {error}")
        return SymbolResult(source, (*findings, stuck))


def is_tf1(names: FileNames) -> bool:
    """Whether a file is TensorFlow 1 code: some name only TensorFlow 1 has, or no sign of TensorFlow 2."""
    modern = False
    for use in names.uses:
        found = normal(use.dotted)
        if use.meaning.startswith("tf_slim"):
            continue
        if found is None or found[1]:
            continue
        if prefix_in(found[0], load_names().missing) or found[0].startswith("contrib"):
            return True
        modern = modern or prefix_in(found[0], _TF2_ONLY) is not None
    return not modern


def _meanings(work: Pass, root: ast.Name) -> set[str]:
    return set().union(*(scope.bound.get(root.id, set()) for scope in work.names.scopes.values()))


def _rewrite_use(work: Pass, use: Use) -> None:
    if use.dotted.startswith("tf_slim"):
        work.uses_slim = True
        return
    found = normal(use.dotted)
    if found is None:
        return
    name, compat = found
    if name == "contrib" or name.startswith("contrib."):
        _rewrite_contrib(work, use, name[len("contrib.") :])
        return
    if name.startswith(("python.", "core.", "compat.")) or use.meaning.startswith(
        "tensorflow.python"
    ):
        return
    table = load_names()
    if prefix_in(name, LEGACY_KERAS):
        work.legacy_keras = True
    if prefix_in(name, table.gone):
        work.find("TM112", use.chain, f"`tf.{name}` is not in TensorFlow {table.tensorflow}")
    elif prefix_in(name, contrib.RENAMED_0X):
        work.find("TM118", use.chain, f"`tf.{name}` was renamed in TensorFlow 1.0")
    if prefix_in(name, table.renamed) and not compat:
        if use.meaning == "tensorflow":
            end = work.text.span(use.root)[1]
            work.edits.append(Edit(end, end, ".compat.v1"))
        else:
            work.to_v1.add(use.root.id)


def _rewrite_contrib(work: Pass, use: Use, name: str) -> None:
    """One chain through `tf.contrib`, whatever part of it was imported under a name of its own."""
    target = contrib.successor(name)
    meaning = normal(use.meaning)
    module = meaning[0].removeprefix("contrib").removeprefix(".") if meaning else ""
    imported = meaning is not None and meaning[0].startswith("contrib") and is_module(module)
    if imported and not use.links:
        work.kept.add(use.root.id)
        return
    if imported:
        moved = contrib.successor(module)
        if moved is not None:
            work.uses_slim = work.legacy_keras = True
            if contrib.in_tf_slim(moved + name[len(module) :]):
                return
    elif meaning is not None and meaning[0].startswith("contrib."):
        # A single function imported by name: its import line is what changes.
        return
    if target is None:
        if imported:
            work.kept.add(use.root.id)
        work.find(
            "TM111", use.chain, f"`tf.contrib.{name}` has no successor in tf_slim or tf.compat.v1"
        )
        return
    new = target
    if target.startswith("tf."):
        here = use.meaning in ("tensorflow", "tensorflow.compat.v1")
        alias = use.root.id if here else work.tensorflow_alias(use)
        if alias is None:
            work.kept.add(use.root.id)
            work.find("TM117", use.chain, f"needs `import tensorflow as tf` to become `{target}`")
            return
        rest = target[len("tf.") :]
        new = (
            alias + "." + (rest.removeprefix("compat.v1.") if use.meaning.endswith(".v1") else rest)
        )
        if prefix_in(rest.removeprefix("compat.v1."), LEGACY_KERAS):
            work.legacy_keras = True
    start, end = work.text.span(use.chain)
    if work.replace(start, end, new, use.chain) and target.startswith("tf_slim"):
        work.adds_slim = work.uses_slim = work.legacy_keras = True


def _shape_names(scope: ast.AST) -> set[str]:
    """Names that are only ever bound to a shape (`shape = x.get_shape()`) in one function or module."""
    bound: dict[str, set[bool]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            bound.setdefault(node.targets[0].id, set()).add(_is_shape(node.value, frozenset()))
    return {name for name, kinds in bound.items() if kinds == {True}}


def _is_shape(node: ast.expr, names: frozenset[str]) -> bool:
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Attribute) and node.func.attr == "get_shape" and not node.args
        )
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _rewrite_dimensions(work: Pass) -> None:
    """`x.get_shape()[1].value` -> `tf.compat.dimension_value(x.get_shape()[1])`."""
    names = frozenset(_shape_names(work.tree))
    for node in ast.walk(work.tree):
        if not (isinstance(node, ast.Attribute) and node.attr == "value"):
            continue
        item = node.value
        if not isinstance(item, ast.Subscript) or isinstance(item.slice, ast.Slice):
            continue
        if not _is_shape(item.value, names) or not isinstance(node.ctx, ast.Load):
            continue
        alias = work.tensorflow_alias()
        if alias is None:
            compat = [
                n for n, m in work.names.module.bound.items() if m == {"tensorflow.compat.v1"}
            ]
            alias = compat[0] if compat else None
        if alias is None:
            work.find(
                "TM117", node, "needs `import tensorflow as tf`: use tf.compat.dimension_value here"
            )
            continue
        (start, middle), (_, end) = work.text.span(item), work.text.span(node)
        if work.replace(middle, end, ")", node):
            work.edits.append(Edit(start, start, f"{alias}.compat.dimension_value("))


def _report_sessions(work: Pass) -> None:
    """Findings about how a file runs: sessions without a switch, version tests, 0.x argument orders."""
    rests = {id(use.root): found for use in work.names.uses if (found := normal(use.dotted))}
    plain = {name for name, _ in rests.values()}
    script = any(isinstance(node, ast.If) and _is_main_guard(node) for node in work.tree.body)
    if script and plain & _SESSIONS and not plain & _SWITCHES:
        first = next(u for u in work.names.uses if (n := normal(u.dotted)) and n[0] in _SESSIONS)
        work.find("TM119", first.chain, "this script runs a graph in a session")
    for node in ast.walk(work.tree):
        if isinstance(node, ast.Call):
            chain = chain_of(node.func)
            name = rests.get(id(chain[0]), ("", False))[0] if chain else ""
            first_argument = node.args[0] if len(node.args) > 1 else None
            number = isinstance(first_argument, ast.Constant) and isinstance(
                first_argument.value, int
            )
            if name in ("concat", "split") and number:
                work.find("TM118", node, f"`tf.{name}` with the axis first is the order of 0.x")
        elif isinstance(node, ast.If | ast.IfExp):
            for inner in ast.walk(node.test):
                name = rests.get(id(inner), ("", False))[0]
                if name.startswith(("__version__", "VERSION")) and isinstance(inner, ast.Name):
                    work.find("TM115", inner, "what runs here depends on TensorFlow's version")


def _is_main_guard(node: ast.If) -> bool:
    test = node.test
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Name) and part.id == "__name__"
        for part in [test.left, *test.comparators]
    )
