"""Whether a name holds a number or a text, which nothing can change in place: `BATCH_SIZE = FLAGS.batch_size // NUM_GPUS`.

What a command line is asked for is one where its parser says so (`type=int`, `DEFINE_integer`), and what is computed of such is.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from towermigrate.recognize.proof.code import Code, last_name
from towermigrate.recognize.proof.frames import Frame

_OF_NUMBERS = frozenset("int float str bool len round abs min max".split())
"""Builtins that give numbers or texts, of numbers and texts."""
_PATHS = frozenset("join basename dirname abspath".split())
_TYPES = frozenset("int float str bool".split())
_DEFINED = frozenset("DEFINE_integer DEFINE_float DEFINE_string DEFINE_boolean DEFINE_bool".split())
_PLAIN = frozenset("type default help dest required choices metavar action const".split())
"""What an option may say and give one value."""
_DEEP = 8


def holds_number(files: Sequence[Code], frame: Frame, name: str) -> bool:
    """Whether the one statement that binds a name of a scope gives it a number or a text.

    Args:
        files: all files that may run with the program.
    """
    inner = frame.parent is not None and not frame.parent.is_module
    return not inner and _Numbers(files).of_name(frame.code, frame.own, name, 0)


class _Numbers:
    def __init__(self, files: Sequence[Code]) -> None:
        self.files = files

    def of_name(
        self, code: Code, own: dict[str, list[ast.AST]] | None, name: str, deep: int
    ) -> bool:
        value = _bound_once(code, own, name)
        return value is not None and self._is(code, own, value, deep + 1)

    def _is(
        self, code: Code, own: dict[str, list[ast.AST]] | None, node: ast.expr, deep: int
    ) -> bool:
        if deep > _DEEP:
            return False
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int | float | str | bytes | complex)
            case ast.JoinedStr():
                return True
            case ast.Name(id=name):
                return self.of_name(code, own, name, deep)
            case ast.BinOp(left=left, right=right):
                return self._is(code, own, left, deep) and self._is(code, own, right, deep)
            case ast.UnaryOp(operand=operand):
                return self._is(code, own, operand, deep)
            case ast.IfExp(body=body, orelse=orelse):
                return self._is(code, own, body, deep) and self._is(code, own, orelse, deep)
            case ast.Call(func=ast.Name(id=called), args=args, keywords=[]) if (
                called in _OF_NUMBERS
            ):
                if called in code.bindings or own is not None and called in own:
                    return False
                return called == "len" or all(self._is(code, own, each, deep) for each in args)
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr=called
                )
            ):
                return called in _PATHS and _imported(code, "os") and "os" not in (own or ())
            case ast.Attribute(value=ast.Name(id=holder), attr=attribute):
                return self._option(code, own, holder, attribute)
        return False

    def _option(
        self, code: Code, own: dict[str, list[ast.AST]] | None, holder: str, name: str
    ) -> bool:
        """Whether an attribute is what a command line gives for an option of one value."""
        if any(_sets(each, name) for each in self.files):
            return False
        value = _bound_once(code, own, holder)
        if isinstance(value, ast.Call) and last_name(value.func) == "parse_args":
            if value.args or value.keywords or not isinstance(value.func, ast.Attribute):
                return False
            parser = value.func.value
            made = _bound_once(code, own, parser.id) if isinstance(parser, ast.Name) else None
            if not isinstance(made, ast.Call) or last_name(made.func) != "ArgumentParser":
                return False
            return not made.args and self._added(code, name)
        if value is not None and ast.unparse(value).endswith("flags.FLAGS"):
            defined = [
                call
                for each in self.files
                for key, calls in each.calls.items()
                if key.startswith("DEFINE_")
                for call in calls
                if call.args and not _is_text_other_than(call.args[0], name)
            ]
            return bool(defined) and all(last_name(each.func) in _DEFINED for each in defined)
        return False

    def _added(self, code: Code, name: str) -> bool:
        """Whether what a file adds to its parsers under a name is an option of one value."""
        if any(code.calls.get(each) for each in ("set_defaults", "add_subparsers")):
            return False
        found = False
        for call in code.calls.get("add_argument", ()):
            texts = [each.value if isinstance(each, ast.Constant) else None for each in call.args]
            given = {each.arg: each.value for each in call.keywords}
            named = given.get("dest")
            if isinstance(named, ast.Constant):
                texts = [named.value]
            elif named is not None:
                return False
            if not all(isinstance(each, str) for each in texts) or not texts:
                return False
            long = [str(each) for each in texts if str(each).startswith("--")] or [str(texts[0])]
            if long[0].lstrip("-").replace("-", "_") != name:
                continue
            if not _gives_one(given):
                return False
            found = True
        return found


def _gives_one(given: dict[str | None, ast.expr]) -> bool:
    """Whether an option's keywords let it give nothing but a number or a text."""
    if not set(given) <= _PLAIN:
        return False
    kind, action, default = given.get("type"), given.get("action"), given.get("default")
    if kind is not None and not (isinstance(kind, ast.Name) and kind.id in _TYPES):
        return False
    if action is not None and not (
        isinstance(action, ast.Constant) and action.value in ("store", "store_true", "store_false")
    ):
        return False
    while isinstance(default, ast.UnaryOp):
        default = default.operand
    return default is None or isinstance(default, ast.Constant)


def _is_text_other_than(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value != name


def _imported(code: Code, name: str) -> bool:
    nodes = code.bindings.get(name, [])
    return bool(nodes) and all(isinstance(each, ast.Import) for each in nodes)


def _sets(code: Code, name: str) -> bool:
    """Whether a file may set an attribute of a name."""
    by_text = any(
        code.calls.get(each) for each in ("setattr", "vars", "exec", "eval", "__setattr__")
    )
    if by_text or "__dict__" in code.text:
        return True
    return name in code.stored_attributes and any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and not isinstance(node.ctx, ast.Load)
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        for node in code.nodes
    )


def _bound_once(code: Code, own: dict[str, list[ast.AST]] | None, name: str) -> ast.expr | None:
    """What the one statement that binds a name gives it: of a function, or of the file where that does not bind it."""
    nodes = (own or {}).get(name) or code.bindings.get(name, [])
    if len(nodes) != 1 or name in code.shared_names or hasattr(builtins, name):
        return None
    (node,) = nodes
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    return node.value if isinstance(node.targets[0], ast.Name) else None


__all__ = ["holds_number"]
