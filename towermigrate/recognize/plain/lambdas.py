"""Lambdas that run something, or make what is fed, under a name: functions that are defined there.

`evaluate = lambda x, y: sess.run(loss, feed_dict={X: x, Y: y})` is `def evaluate(x, y):` that returns it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import Change, PlainFile, bindings
from towermigrate.recognize.python_scopes import own_nodes


def named_lambdas(file: PlainFile) -> list[Change]:
    """The lambdas of functions that a name has, which is only called."""
    if "lambda" not in file.text or file.finds_names_by_text:
        return []
    return [
        change
        for where, scope in file.scopes
        if isinstance(scope, ast.FunctionDef)
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign)
        for change in _defined(file, scope, each, where)
    ]


def _defined(
    file: PlainFile, scope: ast.FunctionDef, statement: ast.Assign, where: str
) -> Iterator[Change]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=spec, body=body)):
            pass
        case _:
            return
    if not isinstance(body, ast.Dict) and ".run(" not in ast.unparse(body):
        return
    defaults = [*spec.defaults, *spec.kw_defaults]
    if not all(each is None or isinstance(each, ast.Constant) for each in defaults):
        return
    if bindings(scope, name) != 1 or name in file.shared_between_functions:
        return
    called = {id(each.func) for each in ast.walk(scope) if isinstance(each, ast.Call)}
    reads = [each for each in file.uses(name) if isinstance(each.ctx, ast.Load)]
    own = {id(each) for each in ast.walk(scope)}
    if not reads or any(id(each) in own and id(each) not in called for each in reads):
        return
    margin = file.alone(statement)
    start, end = file.span(statement)
    if margin is None or file.commented(start, end):
        return
    begin = file.text.index("lambda", file.end(statement.targets[0])) + len("lambda")
    colon = _colon(file, statement.value, begin)
    if colon is None:
        return
    given = file.text[begin:colon].strip()
    inner = file.span(body)
    wide = "\n" in file.text[inner[0] : inner[1]]
    text = ("return (", inner, ")") if wide else ("return ", inner)
    yield Change(start, end, (f"def {name}({given}):\n{margin}    ", *text), where)


def _colon(file: PlainFile, node: ast.expr, begin: int) -> int | None:
    """Where the parameters of a lambda end, of which no default is more than a constant."""
    assert isinstance(node, ast.Lambda)
    colon = file.text.rfind(":", begin, file.start(node.body))
    between = file.text[colon + 1 : file.start(node.body)]
    if colon < 0 or between.strip(" (\n\\"):
        return None
    # What is left is the same lambda only where the text up to there is its parameters.
    try:
        told = ast.parse(f"lambda {file.text[begin:colon]}: 0", mode="eval").body
    except SyntaxError:
        return None
    return colon if ast.dump(told.args) == ast.dump(node.args) else None  # type: ignore[attr-defined]


__all__ = ["named_lambdas"]
