"""Functions of other files that run in the session that is the default one: what they do, where they are called.

`weights.save(graph, path)` in `with sess.as_default():`, whose function asks `tf.get_default_session()`, and `graph` for its
variables, does there what its statements do with `sess`, in `with graph.as_default():`. Other programs keep the function.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from towermigrate.recognize.lending import Files
from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings
from towermigrate.recognize.plain.handed_on import functions_of
from towermigrate.recognize.plain.methods import makes_session, sessions_of
from towermigrate.recognize.plain.variables import KEYS
from towermigrate.recognize.python_scopes import Definition, Unjoined, lines_in_texts, own_nodes
from towermigrate.recognize.source import Tree

_ASKS = "tf.get_default_session()"
_NO_SESSIONS = ("tf.Graph()", "tf.device(", "tf.name_scope(", "tf.variable_scope(", "open(")
_ODD = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp, ast.Return, ast.Yield, ast.YieldFrom,
    ast.Await, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ExceptHandler, ast.Delete, ast.Match,
)  # fmt: skip
"""What would be something else in the middle of another function, or later."""


def default_sessions(tree: Tree, file: PlainFile) -> list[Change]:
    """Statements that call such a function, as its statements."""
    if "as_default()" not in file.text or file.finds_names_by_text:
        return []
    if {"InteractiveSession", "__enter__", "enter_context"} & file.words:
        return []  # another session may be the default one
    source = tree.file(file.path)
    if source is None or source.text != file.text or source.imports.get("tf") != "tensorflow":
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        for statement, around in _statements(scope) if sessions else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                session = _default(scope, around, sessions)
                try:
                    text = session and _Called(tree, file, scope, statement, session).text()
                except Unjoined:
                    continue
                if text:
                    found.append(Change(*file.span(statement), (text,), where))
    return found


def _statements(scope: Scope) -> Iterator[tuple[ast.stmt, list[ast.With]]]:
    """The statements of a scope, and the `with` around each, the outermost first."""
    waiting: list[tuple[list[ast.stmt], list[ast.With]]] = [(scope.body, [])]
    while waiting:
        body, around = waiting.pop()
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            yield each, around
            inside = [*around, each] if isinstance(each, ast.With) else around
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(each, name, None)
                if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                    waiting.append((inner, inside))
            waiting += [(one.body, inside) for one in getattr(each, "handlers", [])]


def _default(scope: Scope, around: list[ast.With], sessions: Collection[str]) -> str | None:
    """The session that is the default one in the last of some `with`; None where one of them may change that unseen."""
    found: str | None = None
    for each in (item for one in around for item in one.items):
        match each.context_expr:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="as_default")):
                found = name if name in sessions else found if _is_graph(scope, name) else None
            case made if makes_session(made):
                named = each.optional_vars
                found = named.id if isinstance(named, ast.Name) else None
            case ast.Name(id=name):
                found = name
            case made if not ast.unparse(made).startswith(_NO_SESSIONS):
                found = None
    return found if found in sessions else None


def _is_graph(scope: Scope, name: str) -> bool:
    """Whether a name of a scope is that of a graph of its own."""
    made = [
        each.value
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]
    ]
    return len(made) == bindings(scope, name) == 1 and ast.unparse(made[0]) == "tf.Graph()"


def _of_comprehensions(block: list[ast.stmt]) -> set[str]:
    """The names that stand in comprehensions only, which bind them."""
    nodes = [each for one in block for each in ast.walk(one)]
    inside: dict[str, set[int]] = {}
    for each in nodes:
        if isinstance(each, ast.ListComp | ast.SetComp | ast.DictComp):
            # What the first of its lists is made of is read outside of it.
            outer = {id(one) for one in ast.walk(each.generators[0].iter)}
            names = [one for one in ast.walk(each) if isinstance(one, ast.Name)]
            for name in {one.id for one in names if isinstance(one.ctx, ast.Store)}:
                found = {id(one) for one in names if one.id == name and id(one) not in outer}
                inside.setdefault(name, set()).update(found)
    return {
        name
        for name, places in inside.items()
        if all(id(one) in places for one in nodes if isinstance(one, ast.Name) and one.id == name)
    }


def _is_bound_first(block: list[ast.stmt], name: str) -> bool:
    """Whether a name is bound in front of all that reads it, whenever a block runs."""
    holding = [
        each
        for each in block
        if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(each))
    ]
    first = holding[0]
    match first:
        case ast.Assign(targets=[target]):
            inside = {id(each) for each in ast.walk(first.value)}
            names = [each for each in ast.walk(first) if isinstance(each, ast.Name)]
            own = [each for each in names if each.id == name]
            bound = any(each in own for each in ast.walk(target) if isinstance(each, ast.Name))
            return bound and not any(id(each) in inside for each in own)
        case ast.For(target=ast.Name(id=bound)) if bound == name:
            inside = {id(each) for one in first.body for each in ast.walk(one)} | {id(first.target)}
            return len(holding) == 1 and all(
                id(each) in inside
                for each in ast.walk(first)
                if isinstance(each, ast.Name) and each.id == name
            )
        case ast.For() | ast.If() | ast.With() if len(holding) == 1:
            heads = [n for n in ast.iter_child_nodes(first) if not isinstance(n, ast.stmt)]
            if any(
                isinstance(each, ast.Name) and each.id == name
                for head in heads
                for each in ast.walk(head)
            ):
                return False
            blocks = [first.body, getattr(first, "orelse", [])]
            used = [
                each
                for each in blocks
                if any(
                    isinstance(one, ast.Name) and one.id == name
                    for stmt in each
                    for one in ast.walk(stmt)
                )
            ]
            return all(_is_bound_first(each, name) for each in used)
    return False


class _Called:
    """A statement that calls a function of another file, and what that does."""

    def __init__(
        self, tree: Tree, file: PlainFile, scope: Scope, statement: ast.Expr, session: str
    ) -> None:
        assert isinstance(statement.value, ast.Call)
        self.file, self.scope, self.statement, self.call = file, scope, statement, statement.value
        self.session = session
        files = Files(tree, file.path)
        files.modules[file.path] = file
        for path, node in functions_of(tree, file, self.call.func):
            there = tree.file(path)
            name = ast.unparse(self.call.func)
            if path == file.path or there is None or there.imports.get("tf") != "tensorflow":
                continue
            if _ASKS not in ast.unparse(node):
                continue
            self.function: Definition = files.module(path).definition(node.name)
            files.sure_import(file.path, name.partition(".")[0])
            if files.is_set_elsewhere(node.name) or bindings(scope, name.partition(".")[0]):
                raise Unjoined
            for local, origin, theirs in files.borrowed(self.function):
                if not files.has(local, origin, theirs):
                    raise Unjoined
            imported = {local for local, *_ in files.borrowed(self.function)}
            for (
                each
            ) in self.function.globals:  # no function around the call has it for something else
                if bindings(file.tree, each) != (each in imported):
                    raise Unjoined
            self.module = files.module(path)
            self._look()
            return
        raise Unjoined

    def _look(self) -> None:
        node = self.function.node
        spec = node.args
        if node.decorator_list or spec.defaults or spec.kwonlyargs or spec.posonlyargs:
            raise Unjoined
        if spec.vararg or spec.kwarg or any(isinstance(n, _ODD) for n in self._inside(node)):
            raise Unjoined
        if any(each.startswith("__") for each in self.function.globals):
            raise Unjoined
        if bindings(self.scope, self.session) != 1:
            raise Unjoined
        self.names = [each.arg for each in spec.args]
        self.given = self._given()
        self.body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        asks = [
            each
            for each in self.body
            if isinstance(each, ast.Assign) and ast.unparse(each.value) == _ASKS
        ]
        if len(asks) != 1 or ast.unparse(node).count("get_default_session") != 1:
            raise Unjoined
        (self.asks,) = asks
        match self.asks.targets:
            case [ast.Name(id=name)] if bindings(node, name) == 1:
                self.own = name
            case _:
                raise Unjoined
        if any(bindings(node, each) != 1 for each in self.names):
            raise Unjoined
        own = self._bound() - _of_comprehensions(self.body)
        if not all(_is_bound_first(self.body, each) for each in own):
            raise Unjoined  # it would have what the call before gave it

    @staticmethod
    def _inside(node: ast.FunctionDef) -> Iterator[ast.AST]:
        return (each for one in node.body for each in ast.walk(one))

    def _given(self) -> Mapping[str, ast.expr]:
        """What each parameter is given."""
        call = self.call
        if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(
            self.names
        ):
            raise Unjoined
        given: dict[str, ast.expr] = dict(zip(self.names, call.args, strict=False))
        for each in call.keywords:
            if each.arg is None or each.arg in given:
                raise Unjoined
            given[each.arg] = each.value
        if given.keys() != set(self.names):
            raise Unjoined
        return given

    def text(self) -> str:
        """What stands where it is called."""
        file, margin = self.file, self.file.alone(self.statement)
        if margin is None or file.commented(*file.span(self.statement)):
            raise Unjoined
        graphs = {name for name in self.names if self._is_graph(name)}
        if len({ast.unparse(self.given[name]) for name in graphs}) > 1:
            raise Unjoined
        rows: list[str] = []
        news = {self.own: self.session}
        for name in self.names:
            value = self.given[name]
            if name in graphs or isinstance(value, ast.Name) and self._is_still(value.id):
                news[name] = ast.unparse(value)
                continue
            news[name] = file.free(self.scope, name)
            rows.append(f"{news[name]} = {file.of(value)}")
            if "\n" in rows[-1]:
                raise Unjoined
        for name in sorted(self._bound() - news.keys()):
            news[name] = file.free(self.scope, name)
        rows += self._rows(news, graphs)
        if graphs:
            (graph,) = {ast.unparse(self.given[name]) for name in graphs}
            rows = [f"with {graph}.as_default():", *(f"    {row}" if row else row for row in rows)]
        return "\n".join([rows[0], *(f"{margin}{row}" if row else row for row in rows[1:])])

    def _is_still(self, name: str) -> bool:
        """Whether a name of the caller's is the same all the while; what the statements bind has names of its own."""
        return bindings(self.scope, name) >= 1 and name not in self.file.shared_between_functions

    def _bound(self) -> set[str]:
        return {
            each.id
            for each in self._inside(self.function.node)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }

    def _is_graph(self, name: str) -> bool:
        """Whether a parameter is a graph, which is asked for lists of its variables and nothing else."""
        uses = {
            id(each)
            for each in self._inside(self.function.node)
            if isinstance(each, ast.Name) and each.id == name
        }
        asked = {id(each.value) for each in self._lists(name)}
        if not asked:
            return False
        if uses != asked or not _is_graph(self.scope, ast.unparse(self.given[name])):
            raise Unjoined
        return True

    def _lists(self, name: str) -> list[ast.Attribute]:
        """Where a parameter is asked for a list of variables."""
        return [
            each.func
            for each in self._inside(self.function.node)
            if isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and isinstance(each.func.value, ast.Name)
            and each.func.value.id == name
            and each.func.attr == "get_collection"
            and [ast.unparse(one) for one in each.args] in [[key] for key in KEYS]
            and not each.keywords
        ]

    def _rows(self, news: Mapping[str, str], graphs: Collection[str]) -> list[str]:
        """The lines of the function's statements, with the names that they have here, and no margin."""
        text, block = self.module.text, self.module.block
        edits: list[tuple[int, int, str]] = []
        for each in self._inside(self.function.node):
            if isinstance(each, ast.Name) and each.id in news:
                start = block.start(each)
                if not text.startswith(each.id, start):
                    raise Unjoined
                new = "tf" if each.id in graphs else news[each.id]
                edits.append((start, start + len(each.id), new))
            elif isinstance(each, ast.JoinedStr):
                raise Unjoined  # where names stand in it, older versions of Python do not tell
        first, last = self.body[0], self.body[-1]
        inside = lines_in_texts(text) & set(range(first.lineno, (last.end_lineno or 0) + 1))
        gone = set(range(self.asks.lineno, (self.asks.end_lineno or 0) + 1))
        shared = [s for s in self.body if s is not self.asks and s.lineno in gone]
        if inside or shared or any("\t" in row for row in text.split("\n")):
            raise Unjoined
        margin = " " * first.col_offset
        rows: list[str] = []
        for line in range(first.lineno, (last.end_lineno or 0) + 1):
            start = self.module.starts[line - 1]
            stop = text.find("\n", start)
            stop = len(text) if stop < 0 else stop
            row, done = "", start
            for begin, end, new in sorted(edits):
                if start <= begin < stop:
                    row += text[done:begin] + new
                    done = end
            row += text[done:stop]
            if line in gone:
                continue
            if row.strip() and not row.startswith(margin):
                raise Unjoined
            rows.append(row[len(margin) :].rstrip())
        if not rows:
            raise Unjoined
        return rows


__all__ = ["default_sessions"]
