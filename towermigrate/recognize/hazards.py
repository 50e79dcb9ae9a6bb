"""Things inside a tower that would silently change their meaning under a traced step: refuse them.

TF1 runs what a fetch reaches and nothing else, builds a tower once, and keeps one graph for all towers. A
traced step runs every operation with an effect, builds a tower several times, and gives every tower its own
collections. Where a program leans on the difference, the rewrite would train something else.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.evaluation import called_by, makes_variables
from towermigrate.recognize.kinds import IN_GRAPH, UPDATES, Kind, Kinds, Traits, collection_key
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.own_variables import check_flags
from towermigrate.recognize.reach import methods_by_name
from towermigrate.recognize.refusal import Reasons, note
from towermigrate.recognize.scope import Item
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import (
    argument,
    binds,
    calls,
    changes,
    code,
    dotted,
    parameters,
    reads,
    small,
    walk,
)
from towermigrate.recognize.tower import Body

_BATCH_NORM = (
    "tf.layers.BatchNormalization", "tf.keras.layers.BatchNormalization", "tf.nn.fused_batch_norm",
)  # fmt: skip
_EFFECTS = (
    "tf.assign", "tf.assign_add", "tf.assign_sub", "tf.scatter_update", "tf.scatter_add", "tf.scatter_sub",
    "tf.train.ExponentialMovingAverage", "tf.numpy_function",
)  # fmt: skip
_ASSIGNS = ("assign", "assign_add", "assign_sub", "scatter_update", "load")
_UNSCOPED = (
    "tf.summary.merge_all", "tf.merge_all_summaries", "tf.losses.get_regularization_loss",
    "tf.losses.get_regularization_losses", "tf.contrib.slim.losses.get_regularization_losses",
)  # fmt: skip
_LOOKUPS = (
    "tf.nn.embedding_lookup", "tf.gather", "tf.contrib.layers.embed", "tf.contrib.layers.embedding",
    "tf.nn.sampled_softmax_loss", "tf.nn.nce_loss", "tf.nn.safe_embedding_lookup", "tf.boolean_mask", "tf.batch_gather",
)  # fmt: skip
_GLOBAL_STEP = (
    "tf.train.get_or_create_global_step", "tf.train.get_global_step", "tf.train.create_global_step",
    "tf.contrib.framework.get_or_create_global_step", "tf.contrib.framework.get_global_step",
)  # fmt: skip
_SUMS = (
    "tf.losses.get_total_loss", "tf.losses.get_losses", "tf.contrib.losses.get_total_loss",
    "tf.contrib.losses.get_losses", "tf.contrib.slim.losses.get_total_loss",
    "tf.contrib.slim.losses.get_losses",
)  # fmt: skip
_OWN_COLLECTIONS = {
    "REGULARIZATION_LOSSES", "regularization_losses", "TRAINABLE_VARIABLES", "trainable_variables",
    "GLOBAL_VARIABLES", "variables", "TRAINABLE_RESOURCE_VARIABLES",
}  # fmt: skip
"""Collections of variables, which are the same for every tower."""


def check(
    reasons: Reasons,
    tree: Tree,
    traits: Traits,
    candidate: Candidate,
    body: Body,
    functions: Sequence[Function],
    front: Sequence[Item],
) -> None:
    """Say every hazard of a tower's body and of the functions it calls, behind the statements in `front`."""
    file = candidate.file
    places: list[tuple[SourceFile, cst.CSTNode]] = [(file, node) for node in body.kept]
    places.extend((f.file, f.node) for f in functions)
    for where, node in places:
        for call in calls(node):
            name = where.tf(call.func)
            if name is not None:
                _tf_call(reasons, where, call, name)
            elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _ASSIGNS:
                reasons.say(
                    "TM220", where, call, f"`{code(call.func)}` in a tower assigns a variable"
                )
        for inner in walk(node):
            if isinstance(inner, cst.Global):
                reasons.say("TM206", where, inner, "a function of the tower sets a global variable")
    for function in functions:
        outer = set(changes(function.node.body)) - set(binds(function.node.body))
        outer -= set(parameters(function.node)) | set(function.file.imports)
        if outer:
            reasons.say(
                "TM206",
                function.file,
                function.node,
                f"`{function.qualified}`, which a tower calls, changes `{', '.join(sorted(outer))}` outside itself",
            )
    _python_effects(reasons, tree, candidate, body, places)
    check_flags(reasons, traits, candidate, body.kept)
    _collections(reasons, tree, file, body, functions)
    weights = any(item.kind is Kind.WEIGHTS for item in front)
    if not _shares(candidate, body, places) and not weights:
        # With weights in front of them the proof tells whether towers make any others.
        reasons.say(
            "TM218", candidate.file, candidate.loop,
            "nothing says that the towers share their variables (reuse_variables, reuse=…, AUTO_REUSE)",
        )  # fmt: skip
    _outer_objects(reasons, tree, file, body, functions)


def may_be_sparse(file: SourceFile, body: Body, functions: Sequence[Function]) -> bool:
    """Whether a tower looks rows up, so that some gradients are IndexedSlices before they are stacked."""
    places = _places(file, body, functions)
    if any(
        (where.tf(call.func) or "").startswith(_LOOKUPS)
        for where, node in places
        for call in calls(node)
    ):
        return True
    # Under another name a function of these is one that is not called where it is named.
    for where in {each.path: each for each, _ in places}.values():
        called = {id(call.func) for call in calls(where.module)}
        for node in walk(where.module):
            if isinstance(node, cst.Attribute) and id(node) not in called:
                if (where.tf(node) or "").startswith(_LOOKUPS):
                    return True
    return False


def has_control_flow(file: SourceFile, body: Body, functions: Sequence[Function]) -> bool:
    """Whether a tower has control flow in the graph: which of its gradients are sparse is another question in TF2."""
    return any(
        (where.tf(call.func) or "") in _CONTROL_FLOW
        for where, node in _places(file, body, functions)
        for call in calls(node)
    )


_CONTROL_FLOW = frozenset(
    f"tf.{name}"
    for name in "cond case switch_case while_loop map_fn scan foldl foldr vectorized_map".split()
)


def _places(
    file: SourceFile, body: Body, functions: Sequence[Function]
) -> list[tuple[SourceFile, cst.CSTNode]]:
    """What towers run: their own statements, and functions that they call."""
    places: list[tuple[SourceFile, cst.CSTNode]] = [(file, node) for node in body.kept]
    places.extend((f.file, f.node) for f in functions)
    return places


def _other_collection(file: SourceFile, call: cst.Call, name: str) -> bool:
    """`get_collection` of anything but variables."""
    if name not in ("tf.get_collection", "tf.get_collection_ref"):
        return False
    return file.tf(call.func) != name or collection_key(file, call) not in _OWN_COLLECTIONS - {
        "REGULARIZATION_LOSSES", "regularization_losses",
    }  # fmt: skip


def check_after(reasons: Reasons, kinds: Kinds, file: SourceFile, items: Sequence[Item]) -> None:
    """Say every graph statement behind the towers that has an effect or makes a model."""
    for item in items:
        evaluates = item.kind is Kind.EVALUATION  # the proof looks at the variables of such
        if item.kind not in IN_GRAPH and not evaluates:
            continue
        for call in calls(item.node):
            updates = kinds.no_updates or id(call) in kinds.updates_taken
            if updates and collection_key(file, call) in UPDATES:
                continue
            names = called_by(kinds, file, call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _ASSIGNS:
                reasons.say(
                    "TM220", file, call, f"`{code(call.func)}` assigns a variable in the graph"
                )
            for called in names:
                if called in _UNSCOPED or called in _SUMS or _other_collection(file, call, called):
                    reasons.say(
                        "TM219",
                        file,
                        call,
                        f"`{code(call.func)}` behind the towers reads what all of them collected",
                    )
                if called in _EFFECTS and called != "tf.train.ExponentialMovingAverage":
                    reasons.say(
                        "TM220",
                        file,
                        call,
                        f"`{code(call.func)}` has an effect of its own in the graph",
                    )
                if called in _GLOBAL_STEP and item.kind is not Kind.VARIABLE:
                    reasons.say(
                        "TM211", file, call, f"`{code(call.func)}` is called behind the towers"
                    )
            if makes_variables(kinds, file, call) and not evaluates:
                reasons.say(
                    "TM211", file, call, f"`{code(call.func)}` makes variables behind the towers"
                )


def _tf_call(reasons: Reasons, file: SourceFile, call: cst.Call, name: str) -> None:
    if name == "tf.Variable":
        reasons.say(
            "TM218", file, call,
            "`tf.Variable` inside a tower makes a copy per tower; only get_variable and layers share",
        )  # fmt: skip
    if name.startswith(_BATCH_NORM):
        reasons.say("TM207", file, call, f"batch normalisation in the towers: `{code(call.func)}`")
    if name in _EFFECTS:
        reasons.say(
            "TM220", file, call,
            f"`{code(call.func)}` in a tower has an effect that TF1 runs only when it is fetched",
        )  # fmt: skip
    if name in _GLOBAL_STEP:
        reasons.say("TM211", file, call, f"`{code(call.func)}` is called inside a tower")
    if name.endswith("Optimizer"):
        reasons.say(
            "TM202", file, call, f"`{code(call.func)}` is made inside a function of the tower"
        )


_PURE_METHODS = {
    "format", "get", "keys", "values", "items", "index", "split", "join", "startswith", "endswith", "lower",
    "upper", "strip", "replace", "as_list", "copy", "count", "as_default",
}  # fmt: skip


def _python_effects(
    reasons: Reasons,
    tree: Tree,
    candidate: Candidate,
    body: Body,
    places: Sequence[tuple[SourceFile, cst.CSTNode]],
) -> None:
    """Python that draws or counts: a tower is traced several times, so it would do so too often."""
    for where, node in places:
        own = set(binds(node)) | body.bound | set(body.parameters)
        if isinstance(node, cst.FunctionDef):
            own = set(binds(node.body)) | set(parameters(node))
        for call in calls(node):
            if where.tf(call.func) is not None:
                continue
            name = dotted(call.func)
            if name is None:
                continue
            root, _, rest = name.partition(".")
            origin = where.imports.get(root)
            full = f"{origin}.{rest}" if origin and rest else (origin or name)
            if full.startswith(("numpy.random", "random.")) or name == "next":
                reasons.say(
                    "TM206",
                    where,
                    call,
                    f"`{code(call.func)}` in a tower is drawn anew by every trace",
                )
            if (
                rest
                and origin is None
                and root not in own
                and root not in ("self", "cls")
                and where is candidate.file
                and rest.split(".")[-1] not in _PURE_METHODS
                and tree.resolve(where, call.func) is None
                and not list(methods_by_name(tree, where, call))
            ):
                reasons.say(
                    "TM206",
                    where,
                    call,
                    f"what `{code(call.func)}` does is not known, and a tower is traced several times",
                )


def _collections(
    reasons: Reasons, tree: Tree, file: SourceFile, body: Body, functions: Sequence[Function]
) -> None:
    """Unscoped reads of a collection see the towers built before; under a trace they do not."""
    for node in body.kept:
        summed = _summed(file, node)
        for call in calls(node):
            if call not in summed and _unscoped(file, call) and not _of_number(call, body.index):
                reasons.findings.append(_unscoped_refusal(file, call))
    for function in functions:
        summed = _summed(file, function.node) if function.file is file else set()
        seen = [c for c in calls(function.node) if _unscoped(function.file, c) and c not in summed]
        if not seen:
            continue
        in_return = {
            id(c)
            for n in walk(function.node.body)
            if isinstance(n, cst.Return) and n.value is not None
            for c in calls(n.value)
        }
        discarded = all(
            _discarded(tree, where, node, function)
            for where, node in [(file, k) for k in body.kept]
            + [(f.file, f.node) for f in functions]
        )
        if not discarded or any(id(c) not in in_return for c in seen):
            reasons.findings.append(_unscoped_refusal(function.file, seen[0]))


def _unscoped(file: SourceFile, call: cst.Call) -> bool:
    name = file.tf(call.func)
    if name in ("tf.get_collection", "tf.get_collection_ref"):
        key = collection_key(file, call)
        return argument(call, 1, "scope") is None and key not in _OWN_COLLECTIONS
    return (
        name in _SUMS
        and argument(call, None, "scope") is None
        and not (name.endswith("get_losses") and call.args)
    )


def _summed(file: SourceFile, node: cst.CSTNode) -> set[cst.Call]:
    """Reads of collections that are summed where they are read: the proof knows what they count."""
    return {
        given.value
        for call in calls(node)
        if file.tf(call.func) == "tf.add_n"
        for given in call.args[:1]
        if isinstance(given.value, cst.Call)
        and file.tf(given.value.func) == "tf.get_collection"
        and len(given.value.args) == 1
    }


def _of_number(call: cst.Call, index: str | None) -> bool:
    """Whether a collection is called after the tower's number: the proof knows what is in it."""
    key = argument(call, 0, "key")
    return key is not None and index is not None and index in reads(key)


def _unscoped_refusal(file: SourceFile, call: cst.Call) -> Finding:
    return note(
        "TM219", file, call,
        f"`{code(call)}` without a scope also sees what the towers before put there",
    )  # fmt: skip


def _discarded(tree: Tree, file: SourceFile, node: cst.CSTNode, function: Function) -> bool:
    """Whether every call of the function below a node throws its result away."""
    for line in walk(node):
        if not isinstance(line, cst.SimpleStatementLine):
            continue
        for call in calls(line):
            target = tree.resolve(file, call.func)
            if target is None or target.node is not function.node:
                continue
            inner = small(line)
            if isinstance(inner, cst.Expr) and inner.value is call:
                continue
            if (
                isinstance(inner, cst.Assign)
                and inner.value is call
                and all(set(code(t.target)) == {"_"} for t in inner.targets)
            ):
                continue
            return False
    return True


def _shares(
    candidate: Candidate, body: Body, places: Sequence[tuple[SourceFile, cst.CSTNode]]
) -> bool:
    """Towers that do not share their variables train copies; the rewrite would share them."""
    if body.sharing:
        return True
    for where, node in places:
        for inner in walk(node):
            if isinstance(inner, cst.Attribute) and inner.attr.value == "AUTO_REUSE":
                body.sharing.append("AUTO_REUSE")
                return True
            if (
                isinstance(inner, cst.Arg)
                and inner.keyword is not None
                and inner.keyword.value == "reuse"
                and body.index in reads(inner.value)
                and where is candidate.file
            ):
                body.sharing.append("reuse argument")
                return True
            if isinstance(inner, cst.Call) and where is candidate.file and body.index is not None:
                if _hands_reuse(inner, body.index, places):
                    body.sharing.append("reuse argument")
                    return True
            if isinstance(inner, cst.Attribute) and inner.attr.value == "reuse_variables":
                body.sharing.append("reuse_variables")
                return True
    return False


def _hands_reuse(
    call: cst.Call, index: str, places: Sequence[tuple[SourceFile, cst.CSTNode]]
) -> bool:
    """Whether `model(x, i > 0)` calls a function of the towers that says `reuse=` of that parameter."""
    called = (dotted(call.func) or "").rpartition(".")[2]
    for _, node in places:
        if not isinstance(node, cst.FunctionDef) or node.name.value != called:
            continue
        reused = {
            name
            for arg in walk(node)
            if isinstance(arg, cst.Arg) and arg.keyword and arg.keyword.value == "reuse"
            for name in reads(arg.value)
        }
        for parameter, arg in zip(node.params.params, call.args, strict=False):
            if arg.keyword is None and not arg.star and index in reads(arg.value):
                if parameter.name.value in reused:
                    return True
    return False


def _outer_objects(
    reasons: Reasons, tree: Tree, file: SourceFile, body: Body, functions: Sequence[Function]
) -> None:
    """Methods of an object made outside the towers that store values on it."""
    for node in body.kept:
        for call in calls(node):
            if not isinstance(call.func, cst.Attribute) or file.tf(call.func) is not None:
                continue
            root = (dotted(call.func) or "").split(".")[0]
            if root in body.bound or root in file.imports:
                continue
            for function in functions:
                if function.is_method and function.qualified.endswith("." + call.func.attr.value):
                    if _stores_on_self(function.node):
                        reasons.say(
                            "TM206", file, call,
                            f"`{code(call.func)}` stores values of the tower on `{root}`, which is made outside",
                        )  # fmt: skip


def _stores_on_self(node: cst.FunctionDef) -> bool:
    for inner in walk(node.body):
        if isinstance(inner, cst.Assign | cst.AugAssign):
            targets = (
                [t.target for t in inner.targets]
                if isinstance(inner, cst.Assign)
                else [inner.target]
            )
            if any((dotted(t) or "").startswith("self.") for t in targets):
                return True
    return False
