"""The last look at an output: it parses, binds what it reads, and loses no comment unsaid."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
import warnings


def parses(text: str) -> str | None:
    """None where Python can parse the text, else what it says."""
    try:
        # compile() also finds what parsing lets through: a `continue` outside a loop.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's code, which is not ours to judge
            compile(text, "<rewritten>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return str(error)
    return None


class _Unbound(ast.NodeVisitor):
    """Names read in a file and bound nowhere that could be seen from there."""

    def __init__(self) -> None:
        self.scopes: list[set[str]] = [set(dir(builtins)) | {"__file__", "__name__", "__doc__"}]
        self.found: dict[str, int] = {}

    def _bound_in(self, body: list[ast.stmt]) -> set[str]:
        names: set[str] = set()
        stack: list[ast.AST] = list(body)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
                continue
            if isinstance(
                node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
            ):
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                names.add(node.id)
            elif isinstance(node, ast.alias):
                names.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names.add(node.name)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                names.update(node.names)
            stack.extend(ast.iter_child_nodes(node))
        return names

    def visit_Module(self, node: ast.Module) -> None:
        self.scopes.append(self._bound_in(node.body))
        self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = {a.arg for a in every}
        for star in (node.args.vararg, node.args.kwarg):
            if star is not None:
                names.add(star.arg)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        if isinstance(node, ast.Lambda):
            self.scopes.append(names)
            self.visit(node.body)
        else:
            for decorator in node.decorator_list:
                self.visit(decorator)
            self.scopes.append(names | self._bound_in(node.body))
            for statement in node.body:
                self.visit(statement)
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]:
            self.visit(part)
        self.scopes.append(self._bound_in(node.body))
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        names: set[str] = set()
        for generator in node.generators:
            for inner in ast.walk(generator.target):
                if isinstance(inner, ast.Name):
                    names.add(inner.id)
        self.scopes.append(names)
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_GeneratorExp = _comprehension
    visit_DictComp = _comprehension

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and not any(node.id in s for s in self.scopes):
            self.found.setdefault(node.id, node.lineno)


def unbound(text: str) -> dict[str, int]:
    """Names that the text reads and nothing in it binds, with the first line of each.

    A file with a star import may bind anything; it is passed over.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            return {}
    visitor = _Unbound()
    visitor.visit(tree)
    return visitor.found


def comment_lines(text: str) -> list[tuple[int, str]]:
    """`(line, comment)` of every comment of a text."""
    found: list[tuple[int, str]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append((token.start[0], token.string))
    except (tokenize.TokenError, IndentationError):
        return found
    return found


def lost_comments(before: str, after: str) -> list[tuple[int, str]]:
    """Comments of `before` that `after` has fewer times, with their lines."""
    left: dict[str, int] = {}
    for _, comment in comment_lines(after):
        left[comment] = left.get(comment, 0) + 1
    lost: list[tuple[int, str]] = []
    for line, comment in comment_lines(before):
        if left.get(comment, 0) > 0:
            left[comment] -= 1
        else:
            lost.append((line, comment))
    return lost
