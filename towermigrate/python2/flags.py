"""What the flags of a program hold: those that the file itself defines, by `tf.app.flags` or `argparse`."""

from __future__ import annotations

import ast
from typing import Literal

from towermigrate.python2.source import Source, dotted

Kind = Literal["unset", "int", "ints", "float", "tensor", "unknown"]
"""`ints` is a sequence of integers such as a shape; `tensor` a value of the graph that may be an integer one."""


def flags_of(source: Source) -> tuple[set[str], dict[str, Kind]]:
    """The names that hold the flags, such as `FLAGS` and `args`, and the kind of each flag."""
    holders: set[str] = set()
    kinds: dict[str, Kind] = {}
    for assignment in source.all(ast.Assign):
        match assignment:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                held = dotted(value.func) if isinstance(value, ast.Call) else dotted(value)
                if (held or "").endswith((".FLAGS", ".parse_args")):
                    holders.add(name)
    for call in source.all(ast.Call):
        match call.args:
            case [ast.Constant(value=str(option)), *_] if (kind := _kind(call)) is not None:
                flag = option.lstrip("-").replace("-", "_")
                kinds[flag] = kind if kinds.get(flag, kind) == kind else "unknown"
    for attribute in source.all(ast.Attribute):
        if not isinstance(attribute.ctx, ast.Load):
            kinds[attribute.attr] = "unknown"
    return holders, kinds


def _kind(node: ast.Call) -> Kind | None:
    """The kind of the flag that a call defines, None where it defines none."""
    name = (dotted(node.func) or "").rsplit(".", 1)[-1]
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    default = given.get("default", node.args[1] if len(node.args) > 1 else None)
    fraction = isinstance(default, ast.Constant) and isinstance(default.value, float)
    if name == "add_argument":
        wanted = given.get("type")
        whole = wanted is not None and dotted(wanted) == "int"
        return (
            "int"
            if whole and not fraction and not {"nargs", "action"} & given.keys()
            else "unknown"
        )
    if name == "DEFINE_integer":
        return "unknown" if fraction else "int"
    if name == "DEFINE_float":
        return "float"
    return "unknown" if name.startswith("DEFINE_") else None
