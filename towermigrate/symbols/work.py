"""What the symbol pass keeps of a file while it works on it, and what it gives."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cache, cached_property

from towermigrate.findings import Finding
from towermigrate.symbols import contrib
from towermigrate.symbols.bindings import Scope, Use
from towermigrate.symbols.edits import Edit, Text
from towermigrate.symbols.scopes import FileNames
from towermigrate.symbols.switch import Alias, free_alias
from towermigrate.symbols.tables import LEGACY_KERAS, prefix_in


@dataclass(frozen=True)
class Mode:
    """What one file says about how it runs."""

    graph: bool = False
    eager: bool = False
    switched: bool = False


@dataclass(frozen=True)
class Script:
    """A file that is run.

    `switched` is its new text with the switch, None where there is no place for it; in `early` the switch comes
    before what the file imports, in `guarded` where the file knows that it is run, and not imported.
    """

    first: Finding
    switched: str | None
    early: str | None = None
    guarded: str | None = None


@dataclass(frozen=True)
class SymbolResult:
    """The new text of one file (the old one when nothing changed) and what could not be changed.

    `mode` is how the file runs, and `script` is there where the file is run; `sessions.settled` uses both.
    `needs_graph` is there where it is a module whose importers must see to a graph. As it is imported, a file
    `builds` a part of one, or `switches` the behaviour of TensorFlow 2 off. `names_only` says that the text surely parses.
    """

    text: str
    findings: tuple[Finding, ...]
    mode: Mode = Mode()
    script: Script | None = None
    needs_graph: Finding | None = None
    builds: bool = False
    switches: bool = False
    names_only: bool = False


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
    told: set[str] = field(default_factory=set)
    """Those of them of whose uses something was said: nothing need be said of their imports."""
    to_v1: set[str] = field(default_factory=set)
    """Local names whose import or assignment must move to `tensorflow.compat.v1`."""
    uses_slim: bool = False
    adds_slim: bool = False
    adds_helpers: bool = False
    """Whether our helpers have to be imported by their own name for what was written."""
    adds_tensorflow: str | None = None
    """The name under which TensorFlow has to be imported for what was written."""
    legacy_keras: bool = False
    is_tf0: bool = False
    """Whether something in the file is certainly of TensorFlow 0.x."""
    doubtful: list[tuple[ast.Call, str]] = field(default_factory=list)
    """What is wrong if the file is of TensorFlow 0.x, and right if it is not."""

    @cached_property
    def calls(self) -> dict[int, ast.Call]:
        """The calls of the file by the identity of what they call."""
        return {id(node.func): node for node in self.names.of(ast.Call)}

    def uses_keras(self, name: str) -> None:
        """Note that `tf.<name>` is used: some names need legacy Keras."""
        if prefix_in(name, LEGACY_KERAS):
            self.legacy_keras = True

    def find(self, rule: str, node: ast.expr | ast.stmt | ast.alias, message: str) -> None:
        self.findings.append(self.finding(rule, node, message))

    def finding(self, rule: str, node: ast.expr | ast.stmt | ast.alias, message: str) -> Finding:
        start = self.text.starts[node.lineno - 1]
        column = self.text.offset(node.lineno, node.col_offset) - start
        return Finding(rule, self.path, node.lineno, column, message)

    def replace(self, start: int, end: int, new: str, node: ast.expr | ast.stmt) -> bool:
        """Replace unless a comment would be lost; then a finding says so."""
        if "#" in self.text.text[start:end]:
            self.find("TM117", node, "a comment stands inside this name, so it was left as it is")
            return False
        self.edits.append(Edit(start, end, new))
        return True

    def alias(self, use: Use | None = None) -> Alias | None:
        """A name that means TensorFlow or its `compat.v1`, seen from a use or from module level; the former first."""
        for v1, wanted in ((False, "tensorflow"), (True, "tensorflow.compat.v1")):
            scope: Scope | None = use.scope if use else self.names.module
            while scope is not None:
                for name in scope.bound:
                    if scope.meaning(name) == wanted:
                        return Alias(name, v1)
                scope = scope.parent
        return None

    def of_helpers(self, target: str) -> str:
        """A name of our helpers as the file can write it: it may have them under a name of its own."""
        module = self.names.module
        for name in module.bound:
            if module.meaning(name) == "towermigrate.helpers":
                return name + target.removeprefix("towermigrate.helpers")
        self.adds_helpers = "towermigrate" not in module.bound
        return target

    def spelled(self, target: str, use: Use | None = None) -> str | None:
        """`tf.<…>` as the file can write it at a use: with its own name of TensorFlow, or one that is imported for it.

        None where every name that TensorFlow could have is taken.
        """
        alias = self.alias(use)
        if alias is None:
            name = self.adds_tensorflow or free_alias(self.names)
            if name is None:
                return None
            self.adds_tensorflow = name
            alias = Alias(name)
        rest = target.removeprefix("tf.")
        return f"{alias.name}.{rest.removeprefix('compat.v1.') if alias.v1 else rest}"


@cache
def is_module(name: str) -> bool:
    """Whether `tf.contrib.<name>` is a module that the tables know."""
    return any(name == old for old, _ in contrib.TREES) or any(
        key.startswith(name + ".") for key in contrib.EXACT
    )
