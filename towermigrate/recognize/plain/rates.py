"""A learning rate that is computed where the optimizer is made: `tf.train.AdamOptimizer(lr * 0.5)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import once_in, only_here, towers_of
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.python_scopes import own_nodes

_SCHEDULES = ("decay", "piecewise_constant")


def computed_rates(file: PlainFile) -> list[Change]:
    """Such an optimizer's rate as a statement in front of it."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                found += _named(file, scope, each, where)
    return found


def _named(file: PlainFile, scope: Scope, statement: ast.stmt, where: str) -> list[Change]:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return []
    call, margin = statement.value, file.alone(statement)
    func = ast.unparse(call.func)
    if not func.startswith("tf.train.") or not func.endswith("Optimizer") or margin is None:
        return []
    rates = [each.value for each in call.keywords if each.arg == "learning_rate"] + call.args[:1]
    if (
        len(rates) != 1
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return []
    (rate,) = rates
    if not isinstance(rate, ast.BinOp | ast.Call) or not _of_graph(scope, rate):
        return []
    if isinstance(rate, ast.Call) and ast.unparse(rate.func).endswith(_SCHEDULES):
        return []
    start, end = file.span(statement)
    if file.commented(start, end):
        return []
    name = file.fresh("learning_rate")
    first, last = file.span(rate)
    parts = (f"{name} = (", (first, last), f")\n{margin}", (start, first), name, (last, end))
    if rate.lineno == rate.end_lineno:
        parts = (f"{name} = ", (first, last), f"\n{margin}", (start, first), name, (last, end))
    return [Change(start, end, parts, where)]


def _of_graph(scope: Scope, rate: ast.expr) -> bool:
    """Whether a rate is computed by TensorFlow, or of what a call of it gave."""
    names = {each.id for each in ast.walk(rate) if isinstance(each, ast.Name)}
    made = {
        target.id
        for each in own_nodes(scope)
        if isinstance(each, ast.Assign) and "tf." in ast.unparse(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return bool(names & made) or any(
        isinstance(each, ast.Call) and ast.unparse(each.func).startswith("tf.")
        for each in ast.walk(rate)
    )


# ---- rates that are computed in steps ----------------------------------------------------------------


def rates_bound_anew(file: PlainFile) -> list[Change]:
    """`lr = tf.train.exponential_decay(…)`, then `lr = tf.maximum(lr, 1e-5)`: all but the last under names of their own."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            made = [each for each in body if always and _made_by_schedule(each)]
            for each in made:
                found += _apart(file, scope, body, each, where)
    return found


def _made_by_schedule(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func)):
            return ast.unparse(func).startswith("tf.train.") and ast.unparse(func).endswith(
                _SCHEDULES
            )
    return False


def _apart(
    file: PlainFile, scope: Scope, body: Sequence[ast.stmt], first: ast.stmt, where: str
) -> list[Change]:
    assert isinstance(first, ast.Assign) and isinstance(first.targets[0], ast.Name)
    name = first.targets[0].id
    bound = [each for each in body if isinstance(each, ast.Assign) and _binds(each, name)]
    if len(bound) < 2 or bound[0] is not first or len(bound) != bindings(scope, name):
        return []
    if name in file.shared_between_functions or file.finds_names_by_text:
        return []
    if not only_here(file, scope, name):
        return []
    uses = [each for each in own_nodes(scope) if isinstance(each, ast.Name) and each.id == name]
    found: list[Change] = []
    for one, following in zip(bound, bound[1:], strict=False):
        new = file.fresh(f"decayed_{name}")
        last = file.span(following.value)[1]
        for each in uses:
            start, end = file.span(each)
            loaded = isinstance(each.ctx, ast.Load)
            if each is one.targets[0] or loaded and file.span(one)[1] < start < last:
                found.append(Change(start, end, (new,), where))
    return found


def _binds(statement: ast.Assign, name: str) -> bool:
    (target, *others) = statement.targets
    return isinstance(target, ast.Name) and target.id == name and not others


# ---- rates that runs fetch ---------------------------------------------------------------------------

_NO_RATES = ("tf.placeholder", "tf.placeholder_with_default", "tf.Variable", "tf.get_variable")


def fetched_rates(file: PlainFile) -> list[Change]:
    """`sess.run([train_op, lr])` of a computed `lr` as one of `tf.identity(lr)`, a value of its own."""
    found: list[Change] = []
    for where, scope in file.scopes:
        loops = [each for body, always in blocks(scope) if always for each in towers_of(body)]
        if len(loops) != 1:
            continue
        (loop,) = loops
        margin = file.alone(loop)
        for each in once_in(scope):
            name, made = only_name(each), _made_by(each) or ""
            given = isinstance(_value_of(each), ast.BinOp) or made.startswith("tf.")
            given = given or _gives_rates(file, scope, made)
            if not name or not given or made in _NO_RATES or each.lineno > loop.lineno:
                continue
            fetched = _fetched(scope, name) if _is_given(scope, name) else []
            if not fetched or margin is None:
                continue
            new = file.fresh(f"{name}_value")
            stop = file.text.find("\n", file.end(loop))
            stop = len(file.text) if stop < 0 else stop
            found.append(Change(stop, stop, (f"\n{margin}{new} = tf.identity({name})",), where))
            found += [Change(*file.span(one), (new,), where) for one in fetched]
    return found


def _gives_rates(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether a function of the file gives back what TensorFlow computes in it."""
    if not isinstance(scope, ast.Module) and bindings(scope, name):
        return False
    found = [one for one in file.tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    if len(found) != 1 or not isinstance(found[0].body[-1], ast.Return):
        return False
    return any(
        isinstance(each, ast.Call) and ast.unparse(each.func).startswith("tf.")
        for each in own_nodes(found[0])
    )


def _is_given(scope: Scope, name: str) -> bool:
    """Whether an optimizer is made of a name."""
    return any(
        isinstance(each, ast.Call)
        and ast.unparse(each.func).startswith("tf.train.")
        and ast.unparse(each.func).endswith("Optimizer")
        and any(
            isinstance(one, ast.Name) and one.id == name
            for one in [*each.args, *(keyword.value for keyword in each.keywords)]
        )
        for each in own_nodes(scope)
    )


def _fetched(scope: Scope, name: str) -> list[ast.Name]:
    """Where runs fetch a name beside others."""
    return [
        one
        for each in own_nodes(scope)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "run"
        and each.args
        and isinstance(each.args[0], ast.List | ast.Tuple)
        for one in each.args[0].elts
        if isinstance(one, ast.Name) and one.id == name
    ]


# ---- variables that runs are fed ---------------------------------------------------------------------


def loaded_variables(file: PlainFile) -> list[Change]:
    """`set_lr = tf.assign(lr, new_lr)` and `sess.run(set_lr, feed_dict={new_lr: rate})` as `lr.load(rate, sess)`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        once = [each for body, always in blocks(scope) if always for each in body]
        for each in once:
            found += _loaded(file, scope, once, each, where)
    return found


def _loaded(
    file: PlainFile, scope: Scope, once: list[ast.stmt], update: ast.stmt, where: str
) -> list[Change]:
    named, value = only_name(update), _value_of(update)
    if not named or not isinstance(value, ast.Call) or value.keywords:
        return []
    given = value.args
    if isinstance(value.func, ast.Attribute) and value.func.attr == "assign" and len(given) == 1:
        given = [value.func.value, *given]
    elif ast.unparse(value.func) != "tf.assign":
        return []
    if len(given) != 2 or not all(isinstance(each, ast.Name) for each in given):
        return []
    variable, fed = (each.id for each in given if isinstance(each, ast.Name))
    holders = [each for each in once if only_name(each) == fed]
    makers = [each for each in once if only_name(each) == variable]
    if len(holders) != 1 or len(makers) != 1 or not _is_own(makers[0]):
        return []
    if _made_by(holders[0]) != "tf.placeholder" or {named, fed, variable} & file.words_of_users:
        return []
    runs = [
        (each, _run_of(each, named, fed)) for each in ast.walk(scope) if isinstance(each, ast.Expr)
    ]
    own = [(each, told) for each, told in runs if told is not None]
    rest = "".join(file.text[begin:end] for begin, end in _between(file, (update, holders[0])))
    words = re.findall(r"\w+", rest)
    # Each name stands where it is bound and where the runs are, and nowhere else, in no text either.
    if not own or any(words.count(each) != len(own) for each in (named, fed)):
        return []
    gone = (update, holders[0])
    if any(file.alone(each) is None for each in (*gone, *(each for each, _ in own))):
        return []
    if any(file.commented(*file.span(each)) for each in (*gone, *(each for each, _ in own))):
        return []
    changes = [Change(*file.without(each), (), where) for each in gone]
    for each, (session, rate) in own:
        parts = (f"{variable}.load(", file.span(rate), f", {session})")
        changes.append(Change(*file.span(each), parts, where))
    return changes


def _between(file: PlainFile, statements: tuple[ast.stmt, ...]) -> list[tuple[int, int]]:
    """The stretches of a text without some statements."""
    found, done = [], 0
    for start, end in sorted(file.span(each) for each in statements):
        found.append((done, start))
        done = end
    return [*found, (done, len(file.text))]


def _value_of(statement: ast.stmt) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Assign) else None


def _made_by(statement: ast.stmt) -> str | None:
    value = _value_of(statement)
    return ast.unparse(value.func) if isinstance(value, ast.Call) else None


def _is_own(statement: ast.stmt) -> bool:
    """Whether a statement makes a variable that is not trained."""
    value = _value_of(statement)
    if not isinstance(value, ast.Call):
        return False
    trained = [ast.unparse(each.value) for each in value.keywords if each.arg == "trainable"]
    return _made_by(statement) in ("tf.Variable", "tf.get_variable") and trained == ["False"]


def _run_of(statement: ast.Expr, update: str, fed: str) -> tuple[str, ast.expr] | None:
    """The session and what it feeds of `sess.run(update, feed_dict={fed: rate})`."""
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    session = call.func.value
    given = [*call.args[1:], *(each.value for each in call.keywords if each.arg == "feed_dict")]
    if call.func.attr != "run" or not isinstance(session, ast.Name) or len(given) != 1:
        return None
    if (
        len(call.args) + len(call.keywords) != 2
        or not call.args
        or not isinstance(given[0], ast.Dict)
    ):
        return None
    (feed,) = given
    assert isinstance(feed, ast.Dict)
    if ast.unparse(call.args[0]) != update or [ast.unparse(k) for k in feed.keys if k] != [fed]:
        return None
    return session.id, feed.values[0]
