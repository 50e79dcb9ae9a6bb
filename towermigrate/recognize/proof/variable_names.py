"""Names of the variables that optimizers and programs make beside the towers: TF1 put scopes of names and numbers in them.

They are keys of checkpoints. Loop style makes these variables where no graph is: what else the graph holds, and the scopes
it is in, are not there to change a name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from towermigrate.flow.scopes import own_nodes
from towermigrate.flow.values import External
from towermigrate.recognize.proof.code import Code, last_name, root_of
from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.tags import OPERATORS, enters_scope, naming, plain_name
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.tree import all_nodes

# Optimizers whose variables are slots only, which are called after the variables that they are of.
_SLOTS_ONLY = frozenset(
    f"{name}Optimizer"
    for name in "GradientDescent Momentum RMSProp Adagrad Adadelta Ftrl ProximalGradientDescent ProximalAdagrad".split()
)

_TELLS = re.compile(
    r"\b(?:Saver|save|restore\w*|checkpoint\w*|Checkpoint\w*|Supervisor|Monitored\w*|Scaffold|\w*[Ee]stimator"
    r"|(?!(?:trainable|reuse)_)\w*variables|get_variables\w*|get_slot\w*"
    r"|(?:\w+_)?VARIABLES(?<!TRAINABLE_VARIABLES)|get_operation\w*|get_tensor_by_name|get_all_collection_keys"
    r"|\w*graph_def|\w*meta_graph\w*|saved_model\w*|SavedModel\w*|getattr|globals|__dict__|vars|eval|exec)\b|\w_checkpoint|[gG]raph[dD]ef|^\*$"
)
"""Words without which no name of an optimizer's variable comes out of a graph."""


def check_variable_names(proof: TowerProof) -> None:
    """Report variables that TF1 may have called otherwise."""
    scope: ast.AST = proof.function[0] if proof.function else proof.code.tree
    inside = {id(node) for node in all_nodes(proof.loop)}
    made: list[tuple[ast.Call, str]] = []
    for call in own_nodes(getattr(scope, "body", [])):
        if not isinstance(call, ast.Call) or id(call) in inside:
            continue
        with proof.mode(False):
            value = proof.value(call.func, proof.top)
        if isinstance(value, External) and value.name == "tf.Variable":
            made.append((call, _name_of(call)))
        if isinstance(call.func, ast.Attribute) and call.func.attr in (
            "apply_gradients",
            "minimize",
        ):
            slots = _has_slots_only(proof, scope, call.func.value)
            if not slots and enters_scope(proof, call) and _are_told(proof):
                _say(
                    proof,
                    call,
                    "makes variables of an optimizer in a name scope, which TF1 puts before their names",
                )
    _check_shared_names(proof, scope, inside)
    counted = Counter(name.lower() for _, name in made)
    for call, name in made:
        shared = id(call) in proof.makes_weights  # in a graph of its own, which numbers as TF1 does
        if not shared and enters_scope(proof, call):
            _say(proof, call, "makes a variable in a name scope, which TF1 puts before its name")
        elif not shared and counted[name.lower()] > 1:
            _say(proof, call, f"makes one of several variables called `{name}`, which TF1 numbers")
        elif name.lower() in _others(proof, call):
            _say(
                proof,
                call,
                f"makes a variable called `{name}`, as something else of the graph may be, and TF1 then numbers it",
            )


def _check_shared_names(proof: TowerProof, scope: ast.AST, inside: set[int]) -> None:
    """Report variables of the towers that have the name of an operation or name scope that TF1's graph had before.

    A variable's operation is called after its variable scopes alone, and TF1 numbers one whose name is taken (`w_1`): so it is
    called in checkpoints, too. What towers make in a name scope of their own has longer names.
    """
    scoped = proof.body is not None and proof.body.name_scope is not None
    files = files_beside(proof.codes, proof.code.path) or [proof.code]
    foreign = _foreign(proof, files)
    own = list(own_nodes(getattr(scope, "body", [])))
    apart = [node for node in own if id(node) in inside and scoped]
    graph = [node for node in own if not (id(node) in inside and scoped)]
    taken: set[str] = set()
    for node in [*graph, *_reached(scope, files, graph, foreign)]:
        taken |= _taken(node, foreign)
    for node in apart:  # the towers' own scopes
        taken |= _taken(node, foreign) if _kind(node) == "name_scope" else set()
    for code in files:
        for call in code.nodes:
            if _kind(call) != "get_variable" or not isinstance(call, ast.Call):
                continue
            for text in _asked_for(code, call, files):
                last = text.lower().rpartition("/")[2]
                if last in taken or plain_name(last) in OPERATORS:
                    proof.always(
                        "TM211", code, call,
                        f"`{code.said(call)}` makes a variable called `{text}`, as something else of the graph may be, and TF1 then numbers it",
                    )  # fmt: skip


def _asked_for(code: Code, call: ast.Call, files: Sequence[Code]) -> Iterator[str]:
    """The names that a call of `get_variable` may give; where its function is given it, all texts that this is given."""
    named = [each.value for each in call.keywords if each.arg == "name"]
    name = (*call.args[:1], *named, None)[0]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield name.value
        return
    inner: ast.AST | None = call
    while inner is not None and not isinstance(inner, ast.FunctionDef):
        inner = code.parents.get(id(inner))
    if inner is None:
        return
    for other in (node for each in files for node in each.nodes):
        if isinstance(other, ast.Call) and last_name(other.func) == inner.name:
            for given in (*other.args, *(each.value for each in other.keywords)):
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value


def _kind(node: ast.AST) -> str:
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def _taken(node: ast.AST, foreign: set[str]) -> set[str]:
    """The last parts of the names, without case, that a call gives to an operation or a scope of names."""
    kind = _kind(node)
    if not isinstance(node, ast.Call) or kind in _MAKES_VARIABLES:
        return set()
    given = [each.value for each in node.keywords if each.arg in _GIVES_NAME]
    given += node.args[:1] if kind in _OPENS else []
    if not given and isinstance(node.func, ast.Attribute) and root_of(node.func) in foreign:
        return {plain_name(kind)}
    return {
        value.value.lower().rpartition("/")[2]
        for value in given
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def _foreign(proof: TowerProof, files: Sequence[Code]) -> set[str]:
    """The names that modules have which are no files of the tree."""
    return {
        alias.asname or alias.name.partition(".")[0]
        for code in files
        for node in code.nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if proof.codes.imported(code.path, alias.name) is None
    }


def _reached(
    scope: ast.AST, files: Sequence[Code], nodes: Sequence[ast.AST], foreign: set[str]
) -> list[ast.AST]:
    """The calls in all functions and classes that others speak of, and that these speak of; those of `scope` aside."""
    defined: dict[str, list[tuple[Code, ast.AST]]] = {}
    for code in files:
        for node in code.nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node is not scope:
                defined.setdefault(node.name, []).append((code, node))
    found: list[ast.AST] = []
    waiting = list(nodes)
    while waiting:
        match waiting.pop():
            case ast.Attribute() as node if root_of(node) in foreign:
                pass  # `tf.train`
            case ast.Name(id=name) | ast.Attribute(attr=name):
                for code, node in defined.pop(name, ()):
                    found += [each for each in code.below(node) if isinstance(each, ast.Call)]
                    waiting += code.mentions(node)
    return found


_OPENS = frozenset({"name_scope", "op_scope", "variable_scope", "variable_op_scope"})
_GIVES_NAME = frozenset({"name", "scope", "name_or_scope", "default_name"})
_MAKES_VARIABLES = frozenset({"get_variable", "Variable"})


def _say(proof: TowerProof, call: ast.Call, why: str) -> None:
    proof.always("TM211", proof.code, call, f"`{proof.code.said(call)}` {why}")


def _name_of(call: ast.Call) -> str:
    """What a variable is called; one whose name is not written out is taken for one without."""
    for keyword in call.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return "Variable"


def _are_told(proof: TowerProof) -> bool:
    """Whether a program may say, keep or look for what an optimizer's variables are called."""
    codes = files_beside(proof.codes, proof.code.path)
    return codes is None or any(_TELLS.search(word) for code in codes for word in _words(code))


def _words(code: Code) -> Iterator[str]:
    """The names of a file, those that it asks objects for, and its texts without those that only describe."""
    for node in code.nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str() as text) if not text.count("\n"):
                yield text


def _has_slots_only(proof: TowerProof, scope: ast.AST, optimizer: ast.expr) -> bool:
    """Whether every optimizer that a name may be bound to has no variables but slots."""
    if not isinstance(optimizer, ast.Name):
        return False
    classes = [
        last_name(node.value.func)
        for node in all_nodes(scope)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == optimizer.id for t in node.targets)
        and isinstance(node.value, ast.Call)
    ]
    return bool(classes) and all(each in _SLOTS_ONLY for each in classes)


def _others(proof: TowerProof, own: ast.Call) -> set[str]:
    """The texts by which other calls may name what is in the graph."""
    found: set[str] = set()
    for code in files_beside(proof.codes, proof.code.path) or []:
        for call in code.nodes:
            if not isinstance(call, ast.Call) or call is own:
                continue
            for value in naming(proof, code, call, last_name(call.func)):
                for node in all_nodes(value):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        found |= {node.value.lower(), node.value.lower().rpartition("/")[2]}
    return found
