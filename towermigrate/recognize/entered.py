"""What stands around the calls that lead to a program: scopes, devices and graphs of TensorFlow that it is built in.

Loop style builds nothing where the program is called: no graph is the default one there, devices are set up only when the
strategy is made, and a scope of variables is not that of the steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from towermigrate.recognize.source import Tree

_ENTERS = re.compile(
    r"as_default|arg_scope|\btf\.|\btensorflow\b|\.(?:device|variable_scope|name_scope|Graph|Session)\b"
)
_QUIET = re.compile(r"\btf\.(?:io\.)?(?:gfile|logging|python_io|test|flags)\.[\w.]+")
_BY_HAND = ("__enter__", "enter_context")
_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef


def entered_around(tree: Tree, path: str, function: str | None) -> tuple[str, int, str] | None:
    """What may be entered around a program: its file and line, and how it is written there; None where there is nothing.

    Args:
        tree: the tree of files.
        path: the file of the program.
        function: its function, `Class.method` for a method; None at module level.
    """
    if function is None:
        return None
    reached, waiting = {path}, [path]
    while waiting:
        more = tree.users.get(waiting.pop(), set()) & tree.sources.keys()
        waiting += more - reached
        reached |= more
    files: dict[str, ast.Module] = {}
    for each in sorted(reached):
        if _ENTERS.search(tree.sources[each]):
            try:
                files[each] = ast.parse(tree.sources[each])
            except (SyntaxError, ValueError):
                continue
    return Around(files, path, [function]).found()


class Around:
    """Who leads to a program, and what is entered there.

    Args:
        files: the files that may lead to it, parsed.
        path: the file of the program.
        functions: its functions: of a method, `Class.method`.
    """

    def __init__(
        self, files: Mapping[str, ast.Module], path: str, functions: Collection[str]
    ) -> None:
        self.files = files
        last = {each.rpartition(".")[2] for each in functions}
        self.builders = [
            node
            for node in ast.walk(files[path] if path in files else ast.Module([], []))
            if isinstance(node, _DEFINITION) and node.name in last
        ]
        # A class is called where its `__init__` is.
        self.names = {
            each.rpartition(".")[0].rpartition(".")[2] if each.endswith(".__init__") else each.rpartition(".")[2]
            for each in functions
        }  # fmt: skip
        self.libraries = {name for tree in files.values() for name in _libraries(tree)}
        self.defined: dict[str, list[ast.AST]] = {}
        for tree in files.values():
            for node in ast.walk(tree):
                if isinstance(node, _DEFINITION | ast.ClassDef):
                    self.defined.setdefault(node.name, []).append(node)
        self._close()

    def found(self) -> tuple[str, int, str] | None:
        """The file, the line and the text of the first that may be entered around the program."""
        for path, tree in self.files.items():
            for node in self._outside(tree):
                if isinstance(node, ast.With | ast.AsyncWith):
                    entered = [each for each in node.items if self._enters(each.context_expr)]
                    if entered and self.leads(node):
                        return path, node.lineno, ast.unparse(entered[0].context_expr)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if node.func.attr in _BY_HAND and self._enters(node):
                        return path, node.lineno, ast.unparse(node)
                if self._wraps(node):
                    return path, getattr(node, "lineno", 0), ast.unparse(node).split("\n")[0]
        return None

    def withs(self, path: str) -> Iterator[ast.With]:
        """The `with` statements of a file that the program is begun in."""
        for node in self._outside(self.files[path]):
            if isinstance(node, ast.With) and self.leads(node):
                yield node

    def leads(self, node: ast.With | ast.AsyncWith) -> bool:
        return any(self._mentions(each) for each in node.body)

    def _outside(self, tree: ast.AST) -> Iterator[ast.AST]:
        """The nodes of a file that are no part of the program's own function."""
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            if any(node is each for each in self.builders):
                yield node  # for its decorators
                continue
            yield node
            waiting += reversed([*ast.iter_child_nodes(node)])

    # ---- who leads to the program

    def _close(self) -> None:
        """All names by which the program may be begun: of functions that call it, of what it is bound to."""
        while True:
            before = len(self.names)
            for tree in self.files.values():
                for node in ast.walk(tree):
                    if isinstance(node, _DEFINITION) and not any(node is b for b in self.builders):
                        if any(self._mentions(each) for each in node.body):
                            self.names.add(node.name)
                    elif isinstance(node, ast.ClassDef) and "__init__" in self.names:
                        if any(
                            isinstance(n, _DEFINITION) and n.name == "__init__" for n in node.body
                        ):
                            self.names.add(node.name)
                    elif isinstance(node, ast.Assign) and self._hands_on(node.value):
                        self.names |= {
                            each.id for each in node.targets if isinstance(each, ast.Name)
                        }
            if len(self.names) == before:
                return

    def _mentions(self, node: ast.AST) -> bool:
        """Whether a node may begin the program: by a name of it, or by TensorFlow, which calls `main`."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                if each.id in self.names:
                    return True
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
                if each.attr in self.names and self._may_be_own(each):
                    return True
                if each.attr == "run" and ast.unparse(each).endswith("app.run"):
                    if "main" in self.names:
                        return True
        return False

    def _may_be_own(self, node: ast.Attribute) -> bool:
        """Whether an attribute may be the program's: no library's, and no session's `run`."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute | ast.Call):
            root = root.value if isinstance(root, ast.Attribute) else root.func
        if isinstance(root, ast.Name) and root.id in self.libraries:
            return False
        return node.attr != "run" or "sess" not in ast.unparse(node.value).lower()

    def _hands_on(self, value: ast.expr) -> bool:
        """Whether an expression holds the program's function itself, not what it gives."""
        called = {id(each.func) for each in ast.walk(value) if isinstance(each, ast.Call)}
        return any(
            isinstance(each, ast.Name | ast.Attribute)
            and id(each) not in called
            and (each.id if isinstance(each, ast.Name) else each.attr) in self.names
            and (isinstance(each, ast.Name) or self._may_be_own(each))
            for each in ast.walk(value)
        )

    # ---- what is entered

    def _enters(self, node: ast.AST, depth: int = 3) -> bool:
        """Whether an expression may enter something of TensorFlow's, itself or by what of the program it names."""
        if _ENTERS.search(_QUIET.sub("", ast.unparse(node))):
            return True
        names = [
            each.id if isinstance(each, ast.Name) else each.attr
            for each in ast.walk(node)
            if isinstance(each, ast.Name | ast.Attribute)
        ]
        if not depth:
            return False
        return any(
            self._enters(each, depth - 1)
            for name in names
            for each in [*self._entering(name), *self._values(name)]
        )

    def _entering(self, name: str) -> list[ast.AST]:
        """What a function or a class enters: the `with` statements in it, and what it gives."""
        found: list[ast.AST] = []
        for made in self.defined.get(name, ()):
            for each in ast.walk(made):
                if isinstance(each, ast.With):
                    found += [item.context_expr for item in each.items]
                elif isinstance(each, ast.Return) and each.value is not None:
                    found.append(each.value)
                elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
                    if each.func.attr in _BY_HAND:
                        found.append(each.func.value)
        return found

    def _values(self, name: str) -> list[ast.AST]:
        """What a name is bound to, where an assignment binds it."""
        return [
            each.value
            for tree in self.files.values()
            for each in ast.walk(tree)
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name | ast.Attribute)
            and (target.id if isinstance(target, ast.Name) else target.attr) == name
        ]

    def _wraps(self, node: ast.AST) -> bool:
        """Whether something of the program that enters TensorFlow's is handed the program, or decorates it."""
        if isinstance(node, _DEFINITION):
            leads = node.name in self.names or any(node is each for each in self.builders)
            return leads and any(self._may_wrap(each) for each in node.decorator_list)
        if not isinstance(node, ast.Call):
            return False
        given = [*node.args, *(each.value for each in node.keywords)]
        return any(self._hands_on(each) for each in given) and self._may_wrap(node.func)

    def _may_wrap(self, function: ast.expr) -> bool:
        return any(
            self._enters(one, 2)
            for each in ast.walk(function)
            if isinstance(each, ast.Name | ast.Attribute)
            for one in self._entering(each.id if isinstance(each, ast.Name) else each.attr)
        )


def _libraries(tree: ast.Module) -> Iterator[str]:
    """The names of modules that a file imports by `import`, TensorFlow's among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in ("tensorflow", "numpy", "os", "sys", "tf_slim"):
                    yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow"):
            yield from (alias.asname or alias.name for alias in node.names)
