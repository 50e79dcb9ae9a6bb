"""The files of a proof: their syntax trees, where their nodes stand, and what their names are bound to."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cached_property

from towermigrate.findings import Finding
from towermigrate.flow.scopes import Definition, bindings, body_of, parameters
from towermigrate.recognize.source import Tree
from towermigrate.recognize.switched import switches_in
from towermigrate.tree import all_nodes, imported_files, modules_in

Scope = ast.Module | Definition


class Code:
    """One file of the tree, parsed by Python itself."""

    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self.path = path
        self.text = text
        self.tree = tree
        self._bound: dict[int, dict[str, list[ast.AST]]] = {}
        self._below: dict[int, tuple[ast.AST, ...]] = {}
        self._mentions: dict[int, tuple[ast.Name | ast.Attribute, ...]] = {}

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column of a node, the column in characters."""
        line = getattr(node, "lineno", 1)
        offset = getattr(node, "col_offset", 0)
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return line, len(text.encode()[:offset].decode(errors="ignore"))

    def finding(self, rule: str, node: ast.AST, message: str) -> Finding:
        line, column = self.place(node)
        return Finding(rule, self.path, line, column, " ".join(message.split()))

    def said(self, node: ast.AST, most: int = 60) -> str:
        """The source of a node, shortened, to quote it."""
        text = " ".join(ast.unparse(node).split())
        return text if len(text) <= most else text[: most - 1] + "…"

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the file, as `ast.walk` gives them; found once, since proofs look through files many times."""
        return tuple(all_nodes(self.tree))

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """The imports of the file, in the order of `nodes`."""
        return tuple(each for each in self.nodes if isinstance(each, ast.Import | ast.ImportFrom))

    @cached_property
    def switches(self) -> tuple[ast.expr, ...]:
        """Where the file names what switches TensorFlow 2's behaviour off."""
        return tuple(switches_in(self.nodes))

    @cached_property
    def calls_of_imports(self) -> tuple[ast.Call, ...]:
        """The calls of the file of what an import binds, or of a part of that, in the order of `nodes`."""
        found: list[ast.Call] = []
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                root: ast.expr = node.func
                while isinstance(root, ast.Attribute):
                    root = root.value
                if isinstance(root, ast.Name) and isinstance(
                    next(iter(self.bindings.get(root.id, ())), None), ast.Import | ast.ImportFrom
                ):
                    found.append(node)
        return tuple(found)

    def mentions(self, node: ast.AST) -> tuple[ast.Name | ast.Attribute, ...]:
        """The names and attributes among `below`, in its order."""
        if id(node) not in self._mentions:
            self._mentions[id(node)] = tuple(
                each for each in self.below(node) if isinstance(each, ast.Name | ast.Attribute)
            )
        return self._mentions[id(node)]

    def below(self, node: ast.AST) -> tuple[ast.AST, ...]:
        """A function or class of the file and all nodes in it, as `ast.walk` gives them; found once, as `nodes` are."""
        if id(node) not in self._below:
            self._below[id(node)] = tuple(all_nodes(node))
        return self._below[id(node)]

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """What each node of the file is a part of."""
        return {id(each): node for node in self.nodes for each in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node of the file is a part of, and what that is, up to the file."""
        found = self.parents.get(id(node))
        while found is not None:
            yield found
            found = self.parents.get(id(found))

    @cached_property
    def stored_attributes(self) -> frozenset[str]:
        """The attributes that the file sets, of whatever it may be."""
        return frozenset(
            each.attr
            for each in self.nodes
            if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)
        )

    @cached_property
    def asked_names(self) -> frozenset[int]:
        """The `v.name` that are asked for a text which is of the operation's name, if it is there: `'d_' in v.name`."""
        found: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                asked, name = [node.left], node.comparators[0]
                plain = isinstance(node.ops[0], ast.In | ast.NotIn)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                asked, name = node.args, node.func.value
                plain = node.func.attr == "startswith" and len(asked) == 1 and not node.keywords
            else:
                continue
            texts = [each.value if isinstance(each, ast.Constant) else None for each in asked]
            if plain and isinstance(name, ast.Attribute) and name.attr == "name":
                if all(isinstance(t, str) and ":" not in t and t != "0" for t in texts):
                    found.add(id(name))
        return frozenset(found)

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """The calls of the file by the last name of what they call."""
        found: dict[str, list[ast.Call]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Call):
                found.setdefault(last_name(node.func), []).append(node)
        return found

    def mentions_tensorflow(self, node: ast.AST) -> bool:
        """Whether code mentions TensorFlow: then what it makes may belong to a graph."""
        return any(isinstance(n, ast.Name) and n.id in self._tensorflow for n in all_nodes(node))

    @cached_property
    def _tensorflow(self) -> frozenset[str]:
        return frozenset(
            (alias.asname or alias.name).split(".")[0]
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if "tensorflow" in (alias.name + (getattr(node, "module", "") or ""))
            or "tf_slim" in alias.name
        )

    @cached_property
    def declarations(self) -> list[ast.Global | ast.Nonlocal]:
        return [n for n in self.nodes if isinstance(n, ast.Global | ast.Nonlocal)]

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """The names that some function binds of the module, or of the function around it."""
        return frozenset(name for each in self.declarations for name in each.names)

    @cached_property
    def definitions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [n for n in self.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    @cached_property
    def named(self) -> dict[str, list[ast.AST]]:
        """The functions of a name, and the methods of a class of it, wherever they stand in the file."""
        found: dict[str, list[ast.AST]] = {}
        for function in self.definitions:
            found.setdefault(function.name, []).append(function)
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
                found.setdefault(node.name, []).extend(methods)
        return found

    @cached_property
    def names_from(self) -> dict[str, list[tuple[ast.ImportFrom, str]]]:
        """What `from … import` binds a name to: the statement and the name there. Stars are under `*`."""
        found: dict[str, list[tuple[ast.ImportFrom, str]]] = {}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found.setdefault(alias.asname or alias.name, []).append((node, alias.name))
        return found

    @cached_property
    def star_imports(self) -> list[ast.ImportFrom]:
        return [
            n
            for n in self.nodes
            if isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names)
        ]

    def bound_in(self, scope: Scope) -> dict[str, list[ast.AST]]:
        """The names that a scope of this file binds with the nodes that do, the scope itself for parameters; found once."""
        if id(scope) not in self._bound:
            given = [] if isinstance(scope, ast.Module) else parameters(scope)
            found: dict[str, list[ast.AST]] = {name: [scope] for name in given}
            for name, nodes in bindings(body_of(scope)).items():
                found.setdefault(name, []).extend(nodes)
            self._bound[id(scope)] = found
        return self._bound[id(scope)]

    @cached_property
    def bindings(self) -> dict[str, list[ast.AST]]:
        return self.bound_in(self.tree)


class Codes:
    """The files of a tree as a proof reads them, parsed when they are asked for."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known: dict[str, Code | None] = {}
        self._closures: dict[str, list[Code]] = {}
        self._imports: dict[str, list[str]] = {}

    def code(self, path: str) -> Code | None:
        if path not in self._known:
            text = self.tree.sources.get(path)
            try:
                made = None if text is None else self._read(path, text)
            except (SyntaxError, ValueError):
                made = None
            self._known[path] = made
        return self._known[path]

    def _read(self, path: str, text: str) -> Code:
        known: dict[tuple[str, str], Code] = self.tree.common.codes
        if (path, text) not in known:
            known[path, text] = Code(path, text, self.tree.common.python(path, text))
        return known[path, text]

    def imported(self, importer: str, module: str) -> Code | None:
        """The file of the tree that `import module` in a file reads."""
        path = self.tree.module_path(importer, module) if module.strip(".") else None
        return self.code(path) if path is not None else None

    def _imports_of(self, code: Code) -> list[str]:
        if code.path not in self._imports:
            modules = modules_in(code.nodes)
            found = imported_files(self.tree.sources, code.path, modules)
            self._imports[code.path] = sorted(found)
        return self._imports[code.path]

    def closure(self, path: str) -> list[Code]:
        """A file and every file of the tree that it imports, directly or through others."""
        if path not in self._closures:
            found: dict[str, Code] = {}
            waiting = [path]
            while waiting:
                current = waiting.pop()
                code = self.code(current)
                if current not in found and code is not None:
                    found[current] = code
                    waiting += self._imports_of(code)
            self._closures[path] = list(found.values())
        return self._closures[path]


def root_of(node: ast.AST) -> str | None:
    """The name that a chain of attributes and subscripts begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def last_name(func: ast.expr) -> str:
    """The last name of what is called, "" where it has none."""
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


BUILTINS = frozenset(dir(builtins)) | {"xrange", "unicode", "long", "basestring", "raw_input"}
