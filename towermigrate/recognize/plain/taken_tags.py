"""Tags that TF1 numbers, as their authors did not: `tf.summary.scalar("loss", loss)` where `loss` is an operation's name too.

A summary is an operation under the name of its tag, and its tag is what that became: `loss_1` where the graph has one `loss` already.
In a step, which has other operations, it is to be called so from the begin.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, Part, PlainFile, Scope
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Tree
from towermigrate.tree import import_closure

_SUMMARIES = frozenset(
    f"tf.summary.{kind}" for kind in ("scalar", "histogram", "image", "audio", "text")
)
_NAMED = frozenset(
    "tf.placeholder tf.placeholder_with_default tf.Variable tf.reduce_mean tf.reduce_sum tf.add_n tf.identity "
    "tf.divide tf.multiply tf.train.exponential_decay tf.train.piecewise_constant tf.train.polynomial_decay".split()
)
"""What makes one operation, or a scope, that is called as its `name` says."""
_SCOPES = ("name_scope", "variable_scope", "op_scope", "variable_op_scope")
_NO_NAMES = frozenset(
    "get format join split startswith endswith replace append write info warning debug error add_argument save restore "
    "strip rstrip lstrip exists open makedirs count find setdefault pop encode decode add_summary print".split()
)


def taken_tags(tree: Tree, file: PlainFile) -> list[Change]:
    """The summaries around towers whose tag is the name of one operation that is made before them, by what TF1 calls them."""
    if ".summary." not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        if _is_called_in_scope(tree, file, scope):
            continue
        taken = _Taken(tree, file, scope, loop)
        for each in once_in(scope):
            call = _summary(each)
            if call is None or loop.lineno < each.lineno <= (loop.end_lineno or loop.lineno):
                continue
            tag = call.args[0]
            assert isinstance(tag, ast.Constant) and isinstance(tag.value, str)
            if taken.once_before(tag.value, each):
                start, end = file.span(tag)
                quote = file.text[start]
                if quote in "\"'" and file.text[start:end] == f"{quote}{tag.value}{quote}":
                    found.append(Change(end - 1, end - 1, ("_1",), where))
    return found


def scoped_tags(tree: Tree, file: PlainFile) -> list[Change]:
    """`with tf.name_scope("train"):` around nothing but summaries, as their tags: `train/loss`."""
    if ".summary." not in file.text or "name_scope(" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        if _is_called_in_scope(tree, file, scope):
            continue
        taken = _Taken(tree, file, scope, loop)
        for each in once_in(scope):
            if isinstance(each, ast.With) and not loop.lineno <= each.lineno <= (
                loop.end_lineno or 0
            ):
                name = taken.only_scope(each)
                rows = None if name is None else _told(file, each, name)
                if rows is not None:
                    found.append(Change(*file.span(each), rows, where))
    return found


def _told(file: PlainFile, block: ast.With, name: str) -> tuple[Part, ...] | None:
    """The summaries of a block, by their whole tags, where it holds nothing else and each tag once."""
    margin, start, end = file.alone(block), *file.span(block)
    if margin is None or file.commented(start, end):
        return None
    parts: list[Part] = []
    tags: set[str] = set()
    for each in block.body:
        call = _summary(each)
        if call is None or file.alone(each) is None or "\n" in file.of(each):
            return None
        tag, value = call.args
        assert isinstance(tag, ast.Constant) and isinstance(tag.value, str)
        plain = re.fullmatch(r"[A-Za-z]\w*", tag.value) and tag.value.lower() not in tags
        if not plain or not isinstance(value, ast.Name | ast.Attribute):
            return None
        tags.add(tag.value.lower())
        at, quote = file.start(tag), file.text[file.start(tag)]
        if quote not in "\"'" or file.of(tag) != f"{quote}{tag.value}{quote}":
            return None
        parts += [f"\n{margin}" if parts else "", (file.start(each), at + 1), f"{name}/"]
        parts.append((at + 1, file.end(each)))
    return tuple(parts)


def _summary(statement: ast.stmt) -> ast.Call | None:
    """The call that makes a summary with a tag that is written out, where it is all that a statement does."""
    match statement:
        case (
            ast.Expr(value=ast.Call() as call)
            | ast.Assign(targets=[ast.Name()], value=ast.Call() as call)
        ):
            pass
        case _:
            return None
    if ast.unparse(call.func) not in _SUMMARIES or len(call.args) != 2:
        return None
    if any(each.arg != "collections" for each in call.keywords):
        return None
    tag = call.args[0]
    return call if isinstance(tag, ast.Constant) and isinstance(tag.value, str) else None


class _Taken:
    """The names that a program's calls may give to what is in its graph."""

    def __init__(self, tree: Tree, file: PlainFile, scope: Scope, loop: ast.For) -> None:
        self.file, self.scope, self.loop = file, scope, loop
        others = {file.path, *tree.users.get(file.path, ())}
        near = import_closure(tree.sources, others & tree.sources.keys(), tree.imports)
        self.trees: list[ast.Module] | None = [file.tree]
        for path in sorted(near - {file.path}):
            try:
                self.trees.append(ast.parse(tree.sources.get(path, "")))
            except (SyntaxError, ValueError, RecursionError):
                self.trees = None
                return

    def once_before(self, tag: str, summary: ast.stmt) -> bool:
        """Whether exactly one operation of a tag's name is there before its summary, and nothing else may have that name."""
        if self.trees is None or not re.fullmatch(r"[A-Za-z][A-Za-z_]*[A-Za-z]", tag):
            return False
        if not self._at_root(summary):
            return False
        own = _in_own_scope(self.loop)
        named = [
            (call, value)
            for tree in self.trees
            for call, value in _texts(tree)
            if _may_be(value, tag) and id(call) not in own
        ]
        if len({id(call) for call, _ in named}) != 1 or len(named) != 1:
            return False
        ((call, value),) = named
        if not isinstance(value, ast.Constant) or value.value != tag:
            return False
        tags = [
            each.args[0]
            for tree in self.trees
            for each in ast.walk(tree)
            if isinstance(each, ast.Call)
            and ".summary." in f".{ast.unparse(each.func)}"
            and each.args
        ]
        if sum(_may_be(each, tag) for each in tags) != 1:
            return False  # the second one has another number
        return any(
            each.lineno < summary.lineno and self._makes(each, call, value) and self._at_root(each)
            for each in once_in(self.scope)
        )

    def only_scope(self, block: ast.With) -> str | None:
        """The name of a scope, where nothing else may have it and the block opens nothing more."""
        match block.items:
            case [
                ast.withitem(
                    context_expr=ast.Call(
                        func=func, args=[ast.Constant(value=str(name)) as text], keywords=[]
                    ) as call,
                    optional_vars=None,
                )
            ] if ast.unparse(func) == "tf.name_scope":
                pass
            case _:
                return None
        if self.trees is None or not re.fullmatch(r"[A-Za-z][A-Za-z_]*[A-Za-z]", name):
            return None
        named = [
            (one, value)
            for tree in self.trees
            for one, value in _texts(tree)
            if _begins(value, name)
        ]
        tags = [
            each.args[0]
            for tree in self.trees
            for each in ast.walk(tree)
            if isinstance(each, ast.Call)
            and ".summary." in f".{ast.unparse(each.func)}"
            and each.args
        ]
        alone = len(named) == 1 and named[0][0] is call and named[0][1] is text
        if not alone or any(_begins(each, name) for each in tags) or not self._at_root(block):
            return None
        return name

    def _makes(self, statement: ast.stmt, call: ast.Call, value: ast.Constant) -> bool:
        """Whether a statement makes something that is called so."""
        if isinstance(statement, ast.With):
            (first, *others) = statement.items
            plain = first.context_expr is call and not others
            return plain and ast.unparse(call.func) == "tf.name_scope" and call.args == [value]
        if not isinstance(statement, ast.Assign) or statement.value is not call:
            return False
        func = ast.unparse(call.func)
        if func == "tf.get_variable":
            return bool(call.args) and call.args[0] is value
        return func in _NAMED and any(
            each.arg == "name" and each.value is value for each in call.keywords
        )

    def _at_root(self, statement: ast.stmt) -> bool:
        """Whether a statement stands in no block that names what is made in it."""
        for block in own_nodes(self.scope):
            if isinstance(block, ast.With) and block is not statement:
                if any(each is statement for each in ast.walk(block)):
                    for item in block.items:
                        if not _names_nothing(item.context_expr):
                            return False
        return True


def _names_nothing(entered: ast.expr) -> bool:
    if not isinstance(entered, ast.Call):
        return False
    func = ast.unparse(entered.func)
    if func == "tf.variable_scope":
        return [ast.unparse(each) for each in entered.args] == ["tf.get_variable_scope()"]
    plain = ("tf.device", "tf.Session", "tf.InteractiveSession", "tf.Graph().as_default")
    return func in plain or func.endswith(".as_default")


def _in_own_scope(loop: ast.For) -> set[int]:
    """The nodes of a tower loop that stand in a name scope of their tower's."""
    index = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    return {
        id(inner)
        for block in ast.walk(loop)
        if isinstance(block, ast.With)
        and any(
            isinstance(item.context_expr, ast.Call)
            and ast.unparse(item.context_expr.func) == "tf.name_scope"
            and index & {one.id for one in ast.walk(item.context_expr) if isinstance(one, ast.Name)}
            for item in block.items
        )
        for statement in block.body
        for inner in ast.walk(statement)
        if not (isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("get_variable"))
    }


def _texts(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The texts that calls are given, and those that are put together, with the calls; tags of summaries aside."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        last = call.func.id if isinstance(call.func, ast.Name) else last
        if ".summary." in f".{ast.unparse(call.func)}" or last in _NO_NAMES:
            continue
        if last.startswith("DEFINE_"):
            continue
        for value in [*call.args, *(each.value for each in call.keywords)]:
            waiting = [value]
            while waiting:
                node = waiting.pop()
                if isinstance(node, ast.Constant):
                    if isinstance(node.value, str):
                        yield call, node
                elif isinstance(node, ast.JoinedStr):
                    yield call, node
                elif _pattern(node) is not None:
                    yield call, node
                elif not isinstance(node, ast.Call):
                    waiting += [
                        each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
                    ]


def _may_be(value: ast.expr, tag: str) -> bool:
    """Whether a text, or its last part, may be a tag, in whatever case and with whatever number."""
    pattern = _pattern(value)
    name = re.escape(tag)
    if isinstance(value, ast.Constant):
        return bool(re.fullmatch(rf"(?:.*/)?{name}(?:_\d+)?", str(value.value), re.IGNORECASE))
    if pattern is None:
        return False
    return any(re.fullmatch(pattern, text, re.IGNORECASE) for text in (tag, f"{tag}_1", f"a/{tag}"))


def _begins(value: ast.expr, name: str) -> bool:
    """Whether a text may be a name, with whatever behind it."""
    if isinstance(value, ast.Constant):
        first = str(value.value).lower().partition("/")[0]
        return first == name.lower() or bool(re.fullmatch(rf"{re.escape(name.lower())}_\d+", first))
    pattern = _pattern(value)
    return pattern is not None and any(
        re.fullmatch(pattern, text, re.IGNORECASE) for text in (name, f"{name}_1", f"{name}/a")
    )


def _pattern(value: ast.expr) -> str | None:
    """What a text looks like that is put together; None where nothing of it is written out."""
    match value:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(text))):
            parts = re.split(r"%(?:\([^)]*\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z%]", text)
            return ".*".join(map(re.escape, parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            sides = _pattern(left), _pattern(right)
            return None if sides == (None, None) else "".join(each or ".*" for each in sides)
        case ast.JoinedStr(values=values):
            return "".join(_pattern(each) or ".*" for each in values)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return ".*".join(map(re.escape, re.split(r"\{[^}]*\}", text)))
    return None


def _is_called_in_scope(tree: Tree, file: PlainFile, scope: Scope) -> bool:
    """Whether a function may be called where names of the graph have something in front."""
    if not isinstance(scope, ast.FunctionDef):
        return False
    texts = [file.text, *(tree.sources.get(each, "") for each in tree.users.get(file.path, ()))]
    for text in texts:
        try:
            parsed = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return True
        for block in ast.walk(parsed):
            if isinstance(block, ast.With) and any(
                isinstance(each, ast.Attribute) and each.attr in _SCOPES
                for item in block.items
                for each in ast.walk(item.context_expr)
            ):
                for each in block.body:
                    for one in ast.walk(each):
                        if isinstance(one, ast.Name | ast.Attribute):
                            if ast.unparse(one).rpartition(".")[2] == scope.name:
                                return True
    return False


__all__ = ["scoped_tags", "taken_tags"]
