"""What is added once to the mean of the towers' losses, `opt.minimize(tf.reduce_mean(losses) + decay)`, as added to each of them.

The mean of `loss + decay` over the towers is `tf.reduce_mean(losses) + decay`, but for how it is rounded, and so are its
gradients.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    blocks,
    names_in,
    own_calls,
    sets_of,
    stores,
)
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.plain.named import filled

_GRADIENTS = (".minimize", ".compute_gradients")
_OF_VARIABLES = ("tf.nn.l2_loss", "tf.add_n", "tf.reduce_sum", "tf.square", "tf.abs", "tf.trainable_variables", "tf.multiply")  # fmt: skip
_TEXTS = ("startswith", "endswith", "lower")
_NAMES = ("name", "op")


@dataclass(frozen=True)
class _Trained:
    """What an update is made of: the expression, the mean in it, and the statements of the other terms by name."""

    total: ast.expr
    mean: ast.expr
    listed: str
    append: ast.Call
    penalties: Sequence[ast.Assign]


def penalties(file: PlainFile) -> list[Change]:
    """Penalties of variables alone, which stand behind the towers, in them."""
    if file.finds_names_by_text or not re.search(r"\.(minimize|compute_gradients)\(", file.text):
        return []
    found: list[Change] = []
    for where, scope, loop in loops_of_towers(file):
        for trained in _trained(file, scope, loop):
            found += [Change(*each, where) for each in _inside(file, scope, trained)]
            break  # another one may add the same penalty
    return found


def _trained(file: PlainFile, scope: Scope, loop: ast.For) -> Iterator[_Trained]:
    once = once_in(scope)
    behind = {only_name(each): each for each in once if file.start(each) > file.end(loop)}
    updates = [
        call
        for call in own_calls(scope)
        if ast.unparse(call.func).endswith(_GRADIENTS) and file.start(call) > file.end(loop)
    ]
    if len(updates) != 1:
        return
    (update,) = updates
    given = [*update.args[:1], *(each.value for each in update.keywords if each.arg == "loss")]
    if len(given) != 1:
        return
    total: ast.expr | None = given[0]
    if isinstance(total, ast.Name):
        total = _value(file, scope, behind, total.id)
    if not isinstance(total, ast.BinOp):
        return
    means: list[tuple[ast.expr, str, ast.Call]] = []
    made: list[ast.Assign] = []
    for term in _terms(total):
        value = _value(file, scope, behind, term.id) if isinstance(term, ast.Name) else term
        listed = None if value is None else _mean_of(value)
        of_towers = None if listed is None else filled(file, scope, loop, listed, anew=True)
        if value is not None and listed is not None and of_towers is not None:
            means.append((value, listed, of_towers[1]))
            continue
        statement = behind.get(term.id) if isinstance(term, ast.Name) else None
        if value is None or not isinstance(statement, ast.Assign):
            return
        early = file.end(statement) < file.start(update) and file.alone(statement) is not None
        beside = any(statement in body and len(body) > 1 for body, _ in blocks(scope))
        if not early or not beside or file.commented(*file.span(statement)):
            return
        if not _is_scalar(value) or not _of_variables(file, scope, loop, value):
            return
        made.append(statement)
    if len(means) == 1 and made:
        yield _Trained(total, *means[0], made)


def _value(
    file: PlainFile, scope: Scope, behind: dict[str, ast.stmt], name: str
) -> ast.expr | None:
    """What a name is bound to behind the towers, once and for all."""
    statement = behind.get(name)
    if not isinstance(statement, ast.Assign) or bindings(scope, name) != 1:
        return None
    return None if name in file.shared_between_functions else statement.value


def _terms(total: ast.expr) -> list[ast.expr]:
    if isinstance(total, ast.BinOp) and isinstance(total.op, ast.Add):
        return [*_terms(total.left), *_terms(total.right)]
    return [total]


def _mean_of(value: ast.expr) -> str | None:
    """The list of which an expression is the mean: `losses` of `tf.reduce_mean(losses)` or `tf.add_n(losses) / n`."""
    text = ast.unparse(value)
    for form in (
        r"tf\.reduce_mean\((\w+)\)",
        r"tf\.reduce_mean\(tf\.stack\((\w+)\)\)",
        r"tf\.add_n\((\w+)\) / (?:\w+|len\(\w+\)|float\(\w+\)|[\d.]+)",
    ):
        found = re.fullmatch(form, text)
        if found is not None:
            return found[1]
    return None


def _is_scalar(value: ast.expr, variables: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is one number, where `variables` are not: a mean of several would not be what is minimized."""
    match value:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Name() | ast.Attribute():  # `_of_variables` asks what else it is
            return ast.unparse(value).partition(".")[0] not in variables
        case ast.BinOp(left=left, right=right):
            return _is_scalar(left, variables) and _is_scalar(right, variables)
        case ast.UnaryOp(operand=operand):
            return _is_scalar(operand, variables)
        case ast.Call(func=func, args=[ast.List(elts=listed)], keywords=[]):
            called = ast.unparse(func) == "tf.add_n"
            return called and all(_is_scalar(each, variables) for each in listed)
        case ast.Call(func=func, args=[ast.ListComp(elt=each, generators=made)], keywords=[]):
            own = {one.id for g in made for one in ast.walk(g.target) if isinstance(one, ast.Name)}
            return ast.unparse(func) == "tf.add_n" and _is_scalar(each, variables | own)
        case ast.Call(func=func, args=[_], keywords=[]):
            return ast.unparse(func) in ("tf.nn.l2_loss", "tf.reduce_sum")
        case ast.Call(func=func, args=[left, right], keywords=[]):
            both = _is_scalar(left, variables) and _is_scalar(right, variables)
            return ast.unparse(func) == "tf.multiply" and both
    return False


def _of_variables(file: PlainFile, scope: Scope, loop: ast.For, value: ast.expr) -> bool:
    """Whether an expression is made of variables and of numbers that are there in front of the towers."""
    bound = {
        each.id
        for node in ast.walk(value)
        if isinstance(node, ast.comprehension)
        for each in ast.walk(node.target)
        if isinstance(each, ast.Name)
    }
    called: set[int] = set()
    reads_variables = False
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            called |= {id(each) for each in ast.walk(node.func)}
            func = ast.unparse(node.func)
            reads_variables |= func == "tf.trainable_variables"
            of_text = isinstance(node.func, ast.Attribute) and node.func.attr in _TEXTS
            if func not in _OF_VARIABLES and not (of_text and func.split(".")[0] in bound):
                return False
    for node in ast.walk(value):
        if isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.Subscript):
            return False
        if id(node) in called:
            continue
        if isinstance(node, ast.Attribute):
            root = ast.unparse(node).split(".")[0]
            of_name = root in bound and node.attr in _NAMES
            if not of_name and (root in bound or not _is_there(file, scope, loop, root)):
                return False
            if not of_name and (sets_of(file, node.attr) or "setattr" in file.words):
                return False
        elif isinstance(node, ast.Name) and node.id not in bound | {"tf"}:
            if not _is_there(file, scope, loop, node.id):
                return False
    return reads_variables


def _is_there(file: PlainFile, scope: Scope, loop: ast.For, name: str) -> bool:
    """Whether a name is bound once, in front of the towers, to what is no tensor there."""
    if name in file.shared_between_functions or bindings(file.tree, name) != 1:
        return False
    bound = stores(file.tree, name)
    if not bound:  # an import, a parameter
        return False
    makers = [
        each
        for each in file.nodes
        if isinstance(each, ast.Assign) and any(one is bound[0] for one in ast.walk(each))
    ]
    if len(makers) != 1 or file.start(makers[0]) > file.start(loop):
        return False
    value = makers[0].value
    return isinstance(value, ast.Constant) or bool(re.match(r"\w*[pP]arser\.parse_args\(|tf\.(app\.)?flags\.FLAGS$|flags\.FLAGS$", ast.unparse(value)))  # fmt: skip


def _inside(
    file: PlainFile, scope: Scope, trained: _Trained
) -> list[tuple[int, int, tuple[str | tuple[int, int], ...]]]:
    """The changes: the penalties behind the loss on its list, their sum on a list of its own, of which the mean is."""
    starts = [
        each
        for each in once_in(scope)
        if isinstance(each, ast.Assign) and only_name(each) == trained.listed
    ]
    appended = [
        each for each in file.nodes if isinstance(each, ast.Expr) and each.value is trained.append
    ]
    if len(starts) != 1 or ast.unparse(starts[0].value) != "[]" or len(appended) != 1:
        return []
    begin, inner = file.alone(starts[0]), file.alone(appended[0])
    if begin is None or inner is None:
        return []
    (loss,) = trained.append.args
    names = [only_name(each) for each in trained.penalties]
    # Nothing in the loop may have the name of a penalty, and nothing reads it before it is made.
    if any(
        file.start(each) < file.start(statement)
        for name, statement in zip(names, trained.penalties, strict=True)
        for each in names_in(scope, name)
    ):
        return []
    listed = file.fresh(f"{trained.listed}_with_penalty")
    behind = f"\n{inner}"
    parts: list[str | tuple[int, int]] = []
    for statement in trained.penalties:
        parts += [behind, file.span(statement)]
    one = file.fresh(f"{file.of(loss)}_with_penalty")
    parts.append(f"{behind}{one} = {' + '.join([file.of(loss), *names])}")
    parts.append(f"{behind}{listed}.append({one})")
    mean = re.sub(rf"\b{trained.listed}\b", listed, ast.unparse(trained.mean))
    at, first = _line_end(file, appended[0]), _line_end(file, starts[0])
    return [
        (first, first, (f"\n{begin}{listed} = []",)),
        (at, at, tuple(parts)),
        *((*file.without(each), ()) for each in trained.penalties),
        (*file.span(trained.total), (mean,)),
    ]


def _line_end(file: PlainFile, statement: ast.stmt) -> int:
    stop = file.text.find("\n", file.end(statement))
    return len(file.text) if stop < 0 else stop
