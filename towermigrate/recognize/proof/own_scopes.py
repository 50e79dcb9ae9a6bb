"""Reads of a collection by the text that the tower's name scope is called: `tf.get_collection('losses', 'tower_%d' % i)`.

TF1 gives what that text begins the name of: of all that towers add, what this one did, as no tower before it has a number that
begins with its own. A replica names the same in a scope of its own, which the helpers put in front of the text.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from towermigrate.flow.values import Value
from towermigrate.recognize.proof.code import Code, Codes, last_name
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.frames import Frame
from towermigrate.recognize.proof.live import is_dead, live_functions
from towermigrate.recognize.proof.natives import Arguments
from towermigrate.recognize.proof.norms import Norms
from towermigrate.recognize.proof.so_far import added_elsewhere
from towermigrate.recognize.proof.values import Items, Tensor, Text, text_of

_FORM = re.compile(r"[A-Za-z0-9_]*\{\}[A-Za-z0-9_]*/?")
_NAMES = ("name_scope", "op_scope", "variable_scope", "variable_op_scope")


@dataclass(frozen=True)
class Scoped:
    """A call that reads a collection by a text: where it stands, in which function, the collection's key, the text's form."""

    code: Code
    call: ast.Call
    function: str
    key: str
    form: str


class OwnScopes(Norms):
    """Evaluates reads of collections by the text of a tower's name scope; `scoped` are those."""

    def __init__(self, codes: Codes) -> None:
        super().__init__(codes)
        self.scoped: dict[int, Scoped] = {}
        self.entered: set[str | None] = set()
        """The forms of the texts by which the loop itself enters name scopes."""

    def name_scope(self, args: Arguments) -> Text:
        first = args.get(0, "name")
        if self.where == "a tower" and not self.stack:
            self.entered.add(first.form if isinstance(first, Text) else None)
        return super().name_scope(args)

    def tf_call(self, name: str, args: Arguments, node: ast.Call, frame: Frame) -> Value:
        looks = self.strict and self.where == "a tower" and not self.evaluates and not args.starred
        if name == "tf.get_collection" and looks:
            found = self._by_text(args, node, frame)
            if found is not None:
                return found
        return super().tf_call(name, args, node, frame)

    def _by_text(self, args: Arguments, node: ast.Call, frame: Frame) -> Value | None:
        """What a collection holds of this tower's; None where that is not what is asked for."""
        key, scope, code = text_of(args.get(0, "key")), args.get(1, "scope"), frame.code
        if key is None or not isinstance(scope, Text) or scope.of != "index":
            return None
        if len(node.args) != 2 or node.keywords or code is not self.home:
            return None
        around = [each for each in code.tree.body if any(n is node for n in ast.walk(each))]
        if scope.form is None or not _FORM.fullmatch(scope.form) or len(around) != 1:
            return None
        if not isinstance(around[0], ast.FunctionDef):
            return None
        self.scoped[id(node)] = Scoped(code, node, around[0].name, key, scope.form)
        return Items([*self.collections.get(key, []), (Tensor(), False)], False)


def check_scoped(proof: OwnScopes, home: Code, loop: ast.For) -> None:
    """Report reads by a text that may not be the name scope of the tower, or may find what others added.

    Args:
        proof: the run of the program.
        home: its file.
        loop: its towers.
    """
    files = files_beside(proof.codes, home.path) if proof.scoped else None
    live = live_functions(proof.codes, files or [])
    kept = _is_kept(loop)
    for one in proof.scoped.values():
        named = kept and {None if form is None else form.rstrip("/") for form in proof.entered} == {
            one.form.rstrip("/")
        }
        around = None if files is None else _scope_elsewhere(proof, files, live)
        added = None if files is None else added_elsewhere(proof, files, live, one.key)
        if files is None or not named or around is not None or added is not None:
            where = around or added
            said = f" (line {where[0].place(where[1])[0]} of {where[0].path})" if where else ""
            proof.always(
                "TM219", one.code, one.call,
                f"`{one.code.said(one.call)}` reads a collection by a text for its tower; a replica's scopes are called "
                f"otherwise{said}",
            )  # fmt: skip


def _is_kept(loop: ast.For) -> bool:
    """Whether the loop enters one name scope, which it reads itself."""
    scopes = [
        (block, item)
        for block in ast.walk(loop)
        if isinstance(block, ast.With)
        for item in block.items
        if isinstance(item.context_expr, ast.Call)
        and last_name(item.context_expr.func) in ("name_scope", "op_scope")
    ]
    if len(scopes) != 1 or not isinstance(scopes[0][1].optional_vars, ast.Name):
        return False
    block, name = scopes[0][0], scopes[0][1].optional_vars.id
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        for statement in block.body
        for each in ast.walk(statement)
    )


def _scope_elsewhere(
    proof: OwnScopes, files: list[Code], live: frozenset[tuple[str, str]]
) -> tuple[Code, ast.AST] | None:
    """Where something may be named around the towers, or before them."""
    for code in files:
        for node in code.nodes:
            if not isinstance(node, ast.Call) or last_name(node.func) not in _NAMES:
                continue
            root = bool(node.args) and "get_variable_scope()" in ast.unparse(node.args[0])
            moved = id(node) in proof.moved_calls and id(node) not in proof.staying_calls
            if not moved and not root and not is_dead(code, node, live):
                return code, node
    return None
