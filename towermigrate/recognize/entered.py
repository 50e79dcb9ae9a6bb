"""What stands around the calls that lead to a program: scopes, devices and graphs of TensorFlow that it is built in.

Loop style builds nothing where the program is called: no graph is the default one there, devices are set up only when the
strategy is made, and a scope of variables is not that of the steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from towermigrate.recognize.source import Tree
from towermigrate.tree import all_nodes

_ENTERS = re.compile(
    r"as_default|arg_scope|\btf\.|\btensorflow\b|\.(?:device|variable_scope|name_scope|Graph|Session)\b"
)
_QUIET = re.compile(r"\btf\.(?:io\.)?(?:gfile|logging|python_io|test|app|flags)\.[\w.]+")
_BY_HAND = ("__enter__", "enter_context")
_REPEATS = (
    ast.For, ast.While, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_MAPS = frozenset("map imap starmap filter imap_unordered map_async".split())
"""What calls the function that it is handed again and again."""
_OF_THREADS = frozenset("start join daemon setDaemon is_alive name __name__ __doc__".split())
_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef


def around_of(tree: Tree, path: str, function: str | None) -> Around | None:
    """What stands around a program; None where nothing can.

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
        try:
            files[each] = tree.common.python(each, tree.sources[each])
        except (SyntaxError, ValueError):
            continue
    return Around(files, path, [function])


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
        of_file = {path: tuple(all_nodes(tree)) for path, tree in files.items()}
        self.nodes = [node for nodes in of_file.values() for node in nodes]
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.called = {id(each.func) for each in calls}
        self.asked = {
            id(node.value)
            for node in self.nodes
            if isinstance(node, ast.Attribute) and node.attr in _OF_THREADS
        }
        """What is started, or asked what it is called: it is not begun there. Nor is a module by the name of its function."""
        for nodes in of_file.values():
            whole = {
                alias.asname or alias.name.partition(".")[0]
                for node in nodes
                if isinstance(node, ast.Import)
                for alias in node.names
            }
            for node in nodes if whole else ():
                if isinstance(node, ast.Name) and node.id in whole:
                    self.asked.add(id(node))
        self.own = {
            id(name)
            for node in self.nodes
            if isinstance(node, _DEFINITION)
            for name in _of_parameters(node)
        }
        """The parameters of functions, whatever they are called: what is handed over is looked at where it is handed."""
        self.silent = self.asked | self.own
        self.mains = {
            id(each.func)
            for each in calls
            if ast.unparse(each.func).endswith("app.run")
            and not each.args
            and not any(one.arg == "main" for one in each.keywords)
        }
        """What begins the `main` of the script."""
        self.classes = {
            id(one): node
            for node in self.nodes
            if isinstance(node, ast.ClassDef)
            for one in node.body
            if isinstance(one, _DEFINITION)
        }
        last = {each.rpartition(".")[2] for each in functions}
        self.builders = [
            node
            for node in all_nodes(files[path] if path in files else ast.Module([], []))
            if isinstance(node, _DEFINITION) and node.name in last
        ]
        self.modules = set(_imported(self.nodes))
        self.defined: dict[str, list[ast.AST]] = {}
        for node in self.nodes:
            if isinstance(node, _DEFINITION | ast.ClassDef):
                self.defined.setdefault(node.name, []).append(node)
        self.bound: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(node, ast.Assign) and isinstance(target, ast.Name | ast.Attribute):
                    self.bound.setdefault(_name_of(target), []).append(node.value)
        self._known: dict[str, list[ast.AST]] = {}
        self._reads: dict[int, Sequence[ast.AST]] = {}
        self.names: set[str] = set()
        """By these names the program may be begun; `methods` are names behind a dot."""
        self.methods: set[str] = set()
        for builder in self.builders:
            self._add(builder)
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

    def again(self) -> tuple[str, int, str] | None:
        """What may begin the program another time: a second mention, one that is repeated, or a function that is handed it."""
        seen: dict[str, int] = {}
        for path, tree in self.files.items():
            for node in self._outside(tree):
                name = self._mentioned(node)
                if name is not None:
                    seen[name] = seen.get(name, 0) + 1
                    if seen[name] > 1:
                        return path, getattr(node, "lineno", 0), ast.unparse(node)
                repeats = isinstance(node, _REPEATS) and not isinstance(node, ast.Lambda)
                if repeats and self._mentions(node):
                    return path, getattr(node, "lineno", 0), ast.unparse(node).split("\n")[0]
                if isinstance(node, ast.Call) and self._is_handed_on(node):
                    return path, node.lineno, ast.unparse(node)
                if isinstance(node, _DEFINITION) and self._leads_here(node):
                    for each in node.decorator_list:
                        if self._repeats(each):
                            return path, each.lineno, ast.unparse(each)
        return None

    def _is_handed_on(self, call: ast.Call) -> bool:
        given = [*call.args, *(each.value for each in call.keywords)]
        if not any(map(self._hands_on, given)):
            return False
        return ast.unparse(call.func).rpartition(".")[2] in _MAPS or self._repeats(call.func)

    def _repeats(self, function: ast.expr) -> bool:
        """Whether a function of the program's may call what it is handed more than once."""
        for each in all_nodes(function):
            if isinstance(each, ast.Name | ast.Attribute):
                for made in self.defined.get(_name_of(each), ()):
                    parameters = {one.arg for one in all_nodes(made) if isinstance(one, ast.arg)}
                    uses = [
                        n for n in all_nodes(made) if isinstance(n, ast.Name) and n.id in parameters
                    ]
                    repeated = any(isinstance(n, _REPEATS) for n in all_nodes(made))
                    called = [n for n in uses if id(n) in self.called]
                    if len(called) > 1 or called and repeated:
                        return True
        return False

    def begins_plainly(self) -> bool:
        """Whether all that leads to the program are calls by its name, each in a place that shows how often it runs."""
        if self.again() is not None:
            return False
        plain = {id(n.func) for n in self.nodes if isinstance(n, ast.Call)}
        return all(
            id(n) in plain for n in self.nodes if self._mentioned(n) and not self._in_builder(n)
        )

    def _in_builder(self, node: ast.AST) -> bool:
        return any(node is one for each in self.builders for one in all_nodes(each))

    # ---- who leads to the program

    def _add(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        owner = self.classes.get(id(function))
        if owner is None:
            self.names.add(function.name)
        elif function.name in ("__init__", "__call__"):
            self.names.add(owner.name)
            if function.name == "__call__":
                self.names |= {
                    target.id
                    for node in self.nodes
                    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                    if ast.unparse(node.value.func).rpartition(".")[2] == owner.name
                    for target in node.targets
                    if isinstance(target, ast.Name)
                } - {owner.name}  # fmt: skip
        else:
            self.methods.add(function.name)

    def _close(self) -> None:
        """All names by which the program may be begun: of functions that call it, of what it is bound to."""
        while True:
            before = len(self.names) + len(self.methods)
            for node in self.nodes:
                if isinstance(node, _DEFINITION) and not self._is_builder(node):
                    if any(self._mentions(each) for each in node.body):
                        self._add(node)
                elif isinstance(node, ast.Assign) and self._hands_on(node.value):
                    self.names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
            if len(self.names) + len(self.methods) == before:
                return

    def _is_builder(self, node: ast.AST) -> bool:
        return any(node is each for each in self.builders)

    def _leads_here(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        return self._is_builder(node) or node.name in self.names | self.methods

    def _mentions(self, node: ast.AST) -> bool:
        """Whether a node may begin the program: by a name of it, or by TensorFlow, which calls `main`."""
        return any(map(self._mentioned, self._reads_in(node)))

    def _reads_in(self, node: ast.AST) -> Sequence[ast.AST]:
        """What may be a name of the program's in a node of the files: looked for again whenever there are more names."""
        found = self._reads.get(id(node))
        if found is None:
            found = self._reads[id(node)] = [
                each for each in all_nodes(node) if isinstance(each, ast.Name | ast.Attribute)
            ]
        return found

    def _mentioned(self, node: ast.AST) -> str | None:
        """The name of the program's that a node is."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            known = node.id in self.names and id(node) not in self.silent
            return node.id if known else None
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return None
        root: ast.expr = node
        while isinstance(root, ast.Attribute | ast.Call):
            root = root.value if isinstance(root, ast.Attribute) else root.func
        library = isinstance(root, ast.Name) and root.id in self.modules
        if id(node) in self.mains:
            return "main" if "main" in self.names else None
        if node.attr in self.names and library and not _is_librarys(node):
            return node.attr
        session = node.attr == "run" and "sess" in ast.unparse(node.value).lower()
        own = id(node) in self.called and not _is_librarys(node) and not session
        return node.attr if node.attr in self.methods and own else None

    def _hands_on(self, value: ast.expr) -> bool:
        """Whether an expression holds the program's function itself, not what it gives."""
        return any(
            self._mentioned(each) is not None and id(each) not in self.called
            or isinstance(each, ast.Lambda) and self._mentions(each.body)
            for each in all_nodes(value)
        )  # fmt: skip

    # ---- what is entered

    def _enters(self, node: ast.AST, depth: int = 3) -> bool:
        """Whether an expression may enter something of TensorFlow's, itself or by what of the program it names."""
        if _ENTERS.search(_QUIET.sub("", ast.unparse(node))):
            return True
        if not depth:
            return False
        while isinstance(node, ast.Call):
            node = node.func
        names = [
            _name_of(each) for each in all_nodes(node) if isinstance(each, ast.Name | ast.Attribute)
        ]
        return any(
            self._enters(each, depth - 1)
            for name in names
            for each in [*self._entering(name), *self.bound.get(name, ())]
        )

    def _entering(self, name: str) -> list[ast.AST]:
        """What a function or a class enters: the `with` statements in it, and what it gives."""
        if name in self._known:
            return self._known[name]
        found: list[ast.AST] = self._known.setdefault(name, [])
        for made in self.defined.get(name, ()):
            for each in all_nodes(made):
                if isinstance(each, ast.With):
                    found += [item.context_expr for item in each.items]
                elif isinstance(each, ast.Return) and each.value is not None:
                    found.append(each.value)
                elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
                    if each.func.attr in _BY_HAND:
                        found.append(each.func.value)
        return found

    def _wraps(self, node: ast.AST) -> bool:
        """Whether something of the program that enters TensorFlow's is handed the program, or decorates it."""
        if isinstance(node, _DEFINITION):
            return self._leads_here(node) and any(map(self._may_wrap, node.decorator_list))
        if not isinstance(node, ast.Call):
            return False
        given = [*node.args, *(each.value for each in node.keywords)]
        return any(self._hands_on(each) for each in given) and self._may_wrap(node.func)

    def _may_wrap(self, function: ast.expr) -> bool:
        return any(
            self._enters(one, 2)
            for each in all_nodes(function)
            if isinstance(each, ast.Name | ast.Attribute)
            for one in self._entering(each.id if isinstance(each, ast.Name) else each.attr)
        )


def _of_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Name]:
    """The names in a function that are its parameters."""
    given = {each.arg for each in all_nodes(function.args) if isinstance(each, ast.arg)}
    for statement in function.body:
        for each in all_nodes(statement):
            if isinstance(each, ast.Name) and each.id in given:
                yield each


def _name_of(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names of modules that files import."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]


def _is_librarys(node: ast.Attribute) -> bool:
    """Whether an attribute is one of TensorFlow or of NumPy: `tf.train`."""
    return re.match(r"(?:tf|tensorflow|np|numpy|os|sys|slim)\.", ast.unparse(node)) is not None
