"""The tags of summaries: TF1 numbers one (`loss_1`) where something else of the graph has its name already.

A step's graph has other names than the original's: no placeholder, no other towers, no optimizer of the session. So a
summary that a step makes must have a tag that nothing else of the program can have.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from towermigrate.flow.values import Unknown, Value
from towermigrate.recognize.proof.code import BUILTINS, Code, last_name, root_of
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.recognize.proof.values import (
    Text,
    text_of,
)

OPERATORS = frozenset(
    "abs add addn and argmax argmin assert assign beta1power beta2power biasadd cast concat cond const div expanddims "
    "fifoqueue floordiv gradients greater groupdeps identity init initializers iteratorgetnext l2loss less lrn "
    "matmul mean merge mod mul neg not or pack placeholder pow read realdiv reportuninitializedvariables reshape save "
    "select slice split stack stridedslice sub sum switch todouble tofloat toint32 transpose truediv unpack unstack "
    "variable where while xentropy xwplusb zeroslike".split()
)
"""What operations are called that operators, queues, savers and initialisers make, without case and signs."""
_NO_NAMES = frozenset(
    "get format join split startswith endswith replace append write info warning debug error add_argument save restore "
    "strip rstrip lstrip exists open makedirs count find setdefault pop encode decode add_summary".split()
)
"""Methods that name nothing in a graph by a text that they are given."""

_OF_LOSSES = re.compile(r"loss|entropy|contrib|slim|layers")
"""Functions that may call what they make after themselves with `_loss` behind it, as those of `tf.losses` do."""


def check_tags(proof: TowerProof) -> None:
    """Report the summaries of steps whose tags TF1 may have numbered."""
    scoped = proof.body is not None and proof.body.name_scope is not None
    made = {(id(one.node), text_of(one.tag)): one for one in proof.tags}.values()
    # Of towers without scopes of their own, the first one's tags are in the scope of all.
    first = [one for one in made if one.apart and not one.in_step and not scoped]
    steps = [one for one in made if one.in_step] + (first if proof.read_by_number else [])
    if not steps:
        return
    counted = Counter(_key(one.tag, one.node) for one in made if one.in_step or not scoped)
    files = files_beside(proof.codes, proof.code.path) or []
    taken = _names(proof, files, scoped)
    functions = _functions(files)
    named = proof.body.name_scope if scoped and proof.body is not None else None
    literal = re.search(r"['\"]([A-Za-z_]+)", named or "")
    own_scope = literal[1].lower() if literal else ""
    for one in steps:
        code, node, tag = one.code, one.node, one.tag
        if not files:
            why = "is made in a process whose files could not all be read: TF1 may number its tag"
        elif enters_scope(proof, node) or one.apart and one.named:
            why = "stands in a name scope, which a step does not have"
        elif counted[_key(tag, node)] > 1:
            why = "has the tag of another summary, and TF1 numbers the second"
        elif isinstance(tag, Text) and tag.of == "tensor":
            why = "has the name of an operation as its tag, which is another one in a step"
        elif isinstance(tag, Text) or isinstance(tag, Unknown):
            continue  # of a plain value it was said where it was made why nothing is known of it
        elif (text := text_of(tag)) is None:
            why = "has a tag that is not known, and TF1 numbers what is there already"
        else:
            parts = {text.lower(), text.lower().rpartition("/")[2]}
            plain = plain_name(text)
            own = own_scope and text.lower().startswith(own_scope)
            if not parts & taken and plain not in functions and not own:
                continue
            why = "has a tag that something else of the graph may have as its name: TF1 then numbers it"
        proof.always("TM231", code, node, f"`{code.said(node)}` {why}")


def _key(tag: Value | None, node: ast.Call) -> str:
    text = text_of(tag)
    if text is not None:
        return text.lower()
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg), node)
    return ast.unparse(first)


def plain_name(text: str) -> str:
    """A name without case, signs and a number at its end: `Mean_1` and `reduce_mean` are `mean`."""
    bare = re.sub(r"[^a-z0-9]", "", re.sub(r"_\d+$", "", text.lower()))
    return bare.removeprefix("reduce") or bare


def enters_scope(proof: TowerProof, node: ast.Call) -> bool:
    """Whether a call stands in a `with` that names what is made in it."""
    scope: ast.AST = proof.function[0] if proof.function else proof.code.tree
    for block in ast.walk(scope):
        if isinstance(block, ast.With) and any(inner is node for inner in ast.walk(block)):
            for item in block.items:
                call = item.context_expr
                name = (
                    call.func.attr
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                    else ""
                )
                if name in ("name_scope", "op_scope", "variable_op_scope"):
                    return True
                if name == "variable_scope" and "get_variable_scope" not in ast.unparse(call):
                    return True
    return False


def _names(proof: TowerProof, files: Sequence[Code], scoped: bool) -> set[str]:
    """The texts by which the program may name what is in its graph; those in the towers' own scope aside."""
    inside = _in_own_scope(proof) if scoped else set()
    found: set[str] = set()
    for code in files:
        for call in code.nodes:
            if not isinstance(call, ast.Call):
                continue
            last = last_name(call.func)
            if id(call) in inside and last != "get_variable":
                continue
            for value in naming(proof, code, call, last):
                for node in ast.walk(value):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        found.add(node.value.lower())
                        found.add(node.value.lower().rpartition("/")[2])
    return found


def _in_own_scope(proof: TowerProof) -> set[int]:
    """The nodes of the loop that stand in a name scope of their tower's."""
    return {
        id(inner)
        for block in ast.walk(proof.loop)
        if isinstance(block, ast.With)
        and any(
            isinstance(call := item.context_expr, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in ("name_scope", "op_scope")
            and any(isinstance(n, ast.Name) and n.id == proof.index for n in ast.walk(call))
            for item in block.items
        )
        for statement in block.body
        for inner in ast.walk(statement)
    }


def naming(proof: TowerProof, code: Code, call: ast.Call, last: str) -> Iterator[ast.expr]:
    """The arguments of a call that may name something in the graph."""
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    bound = code.bindings.get(root.id, []) if isinstance(root, ast.Name) else []
    imports = [n for n in bound if isinstance(n, ast.Import | ast.ImportFrom)]
    modules = {
        a.name.partition(".")[0] for n in imports if isinstance(n, ast.Import) for a in n.names
    }
    modules |= {
        (n.module or "").partition(".")[0] for n in imports if isinstance(n, ast.ImportFrom)
    }
    if ".summary." in f".{ast.unparse(call.func)}":
        return  # tags are compared with each other
    quiet = isinstance(root, ast.Constant | ast.JoinedStr) or last in _NO_NAMES
    quiet |= isinstance(call.func, ast.Name) and last in BUILTINS or last.startswith("DEFINE_")
    foreign = modules and "tensorflow" not in modules
    quiet |= bool(foreign and all(proof.codes.imported(code.path, m) is None for m in modules))
    names = ("name", "scope", "name_or_scope", "default_name", None)
    yield from (k.value for k in call.keywords if k.arg in names or not quiet)
    if not quiet:
        yield from call.args


def _functions(files: Sequence[Code]) -> set[str]:
    """What operations are called by default: after the functions that make them, and their classes."""
    found = set(OPERATORS)
    for code in files:
        for node in code.nodes:
            names: list[str] = []
            of_losses = True
            if isinstance(node, ast.Attribute) and _is_tf(code, node):
                # `tf.train` of `tf.train.Saver` makes nothing.
                is_module = isinstance(code.parents.get(id(node)), ast.Attribute)
                names = [] if is_module else [node.attr]
                of_losses = bool(_OF_LOSSES.search(ast.unparse(node)))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorflow"):
                names = [alias.name for alias in node.names]
            for plain in filter(None, map(plain_name, names)):
                found |= {plain, plain + "loss"} if of_losses else {plain}
                found |= {plain.removesuffix("optimizer"), plain.removeprefix("getorcreate")}
    return found


def _is_local(code: Code, node: ast.AST, name: str) -> bool:
    """Whether a name at a place is one that the functions around it bind to something that they do not import."""
    inner: ast.AST | None = node
    while (inner := code.parents.get(id(inner))) is not None:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            bound = code.bound_in(inner).get(name)
            if bound:
                kinds = ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal
                return not any(isinstance(each, kinds) for each in bound)
    return False


def _is_tf(code: Code, node: ast.expr) -> bool:
    """Whether a chain of names begins at TensorFlow, or where a star may have imported it."""
    root = root_of(node)
    if root is not None and _is_local(code, node, root):
        return False
    bound = code.bindings.get(root or "", [])
    imported = [a.name for n in bound if isinstance(n, ast.Import) for a in n.names]
    imported += [n.module or "" for n in bound if isinstance(n, ast.ImportFrom)]
    return any("tensorflow" in name for name in imported) or bool(
        root and code.star_imports and not bound
    )
