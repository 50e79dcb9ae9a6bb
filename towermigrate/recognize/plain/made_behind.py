"""A counter or a best value that is a variable made behind the towers: in front of them, where loop style makes variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import is_tower_loop
from towermigrate.tree import all_nodes

_KEYWORDS = {
    "tf.Variable": {"initial_value", "name", "trainable", "dtype"},
    "tf.get_variable": {"name", "shape", "initializer", "trainable", "dtype"},
}
_NUMBER = r"-?(?:[\d.]+(?:e[+-]?\d+)?|np\.inf|float\('-?inf'\)|True|False)"
_VALUE = re.compile(_NUMBER)
_INITIALIZER = re.compile(
    rf"tf\.(?:zeros|ones)_initializer(?:\(\))?|tf\.constant_initializer\((?:value=)?{_NUMBER}\)|{_NUMBER}"
)
_LISTED = re.compile(
    r"\b(?:global|all)_variables\(|GLOBAL_VARIABLES|GraphKeys\.VARIABLES|uninitialized|get_all_collection|"
    r"\bget_(?!variable\()\w*variables?\w*\((?<!get_variable_scope\()|variables_to_restore|init_from_checkpoint"
)
_SAVED = re.compile(r"\bSaver\((?:var_list=)?tf\.(?:global|all)_variables\(\)")
_TRAINED = re.compile(r"trainable(?!=False)|TRAINABLE|\.minimize\(|\.apply\(\)|\bget_collection\(")
# What holds the variables that there are when it is made.
_HOLDERS = re.compile(
    r"\b(?:Saver|Session|MonitoredTrainingSession|Supervisor|Scaffold|\w*variables_initializer|initialize_\w*variables)\("
)


def variables_behind(file: PlainFile) -> list[Change]:
    """`best = tf.Variable(0.0, trainable=False, name='best')` where nothing lists variables in their order.

    One that would be trained, which no update behind the towers does, says `trainable=False` then.
    """
    if "Variable(" not in file.text and "get_variable(" not in file.text:
        return []
    texts = [file.text, *file.imported()]
    if any(_LISTED.search(_SAVED.sub("", each)) for each in texts):
        return []
    if any(re.fullmatch(r"(?:global|all)_variables", each) for each in file.words_of_users):
        return []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            places = [number for number, each in enumerate(body) if _has_towers(each)]
            if always and len(places) == 1:
                made = list(_made(file, scope, body[places[0] :]))
                if made:
                    return _moved(file, made, body[places[0]], where)
    return []


def _has_towers(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.For) and is_tower_loop(one) for one in all_nodes(statement))


def _made(file: PlainFile, scope: Scope, body: Sequence[ast.stmt]) -> Iterator[ast.Assign]:
    """The variables behind a block's first statement that nothing yet holds together with those of the towers."""
    holders = _holders(file)
    for number, each in enumerate(body):
        if number and isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            name = each.targets[0].id
            if len(each.targets) == 1 and _is_plain(file, each) and bindings(scope, name) == 1:
                if name not in file.shared_between_functions and isinstance(scope, ast.FunctionDef):
                    yield each
        text = ast.unparse(each)
        if _HOLDERS.search(text) or holders & set(re.findall(r"\w+", text)):
            return


def _holders(file: PlainFile) -> set[str]:
    """The functions of the file, and the classes, that make what holds all variables, or call one that does."""
    known = {
        each.name: ast.unparse(each)
        for each in file.nodes
        if isinstance(each, ast.FunctionDef | ast.ClassDef)
    }
    found = {name for name, text in known.items() if _HOLDERS.search(text)}
    while True:
        more = {
            name for name, text in known.items() if found & set(re.findall(r"(\w+)\(", text))
        } - found
        if not more:
            return found
        found |= more


def _is_plain(file: PlainFile, statement: ast.Assign) -> bool:
    """Whether a variable starts from a number and has a name that nothing else in the file has."""
    call = statement.value
    if not isinstance(call, ast.Call) or file.alone(statement) is None:
        return False
    function = ast.unparse(call.func)
    given = {each.arg or "": each.value for each in call.keywords}
    order = {"tf.Variable": ["initial_value"], "tf.get_variable": ["name", "shape"]}
    if function not in order or len(call.args) > len(order[function]):
        return False
    given.update(zip(order[function], call.args, strict=False))
    if not given.keys() <= _KEYWORDS[function]:
        return False
    said = {key: ast.unparse(value) for key, value in given.items()}
    if function == "tf.Variable":
        numbers = _VALUE.fullmatch(said.get("initial_value", ""))
    else:
        numbers = _INITIALIZER.fullmatch(said.get("initializer", ""))
        if said.get("shape", "[]") not in ("[]", "()"):
            return False
        if "shape" not in said and not _VALUE.fullmatch(said.get("initializer", "")):
            return False
    if numbers is None or not re.fullmatch(r"tf\.\w+", said.get("dtype", "tf.float32")):
        return False
    if said.get("trainable") != "False" and not _never_trained(file, statement):
        return False
    return _named_once(file, given.get("name"), call)


def _never_trained(file: PlainFile, statement: ast.Assign) -> bool:
    """Whether nothing but what stands in front of a variable asks for the variables that are trained."""
    others = [*file.imported(), file.text.replace(file.of(statement), "")]
    if "trainable=" in file.of(statement) or any(_TRAINED.search(each) for each in others):
        return False
    if file.words_of_users & {"trainable_variables", "TRAINABLE_VARIABLES", "minimize"}:
        return False
    computed = [
        each.lineno
        for each in file.nodes
        if isinstance(each, ast.Attribute) and each.attr in ("compute_gradients", "gradients")
    ]
    return all(line < statement.lineno for line in computed)


def _named_once(file: PlainFile, name: ast.expr | None, call: ast.Call) -> bool:
    if name is None:  # it is `Variable`, or `Variable_1` behind another
        others = [
            each
            for each in file.nodes
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "tf.Variable"
        ]
        named = all(
            any(key.arg == "name" for key in each.keywords) for each in others if each is not call
        )
        return named and not re.search(r"['\"]Variable", file.text) and not any(file.imported())
    if (
        not isinstance(name, ast.Constant)
        or not isinstance(name.value, str)
        or not name.value.isidentifier()
    ):
        return False
    again = re.compile(rf"['\"/]{name.value}['\"/:]|\.{name.value}\(")
    printed = [ast.unparse(each) for each in file.nodes if _prints(each)]
    own = len(again.findall(file.text)) - sum(len(again.findall(each)) for each in printed)
    elsewhere = any(again.search(each) for each in file.imported())
    return own == 1 and not elsewhere and name.value not in _OPERATIONS


def _prints(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


_OPERATIONS = frozenset({"add", "sub", "mul", "truediv", "floordiv", "div", "mod", "pow"})
"""What operators call their operations."""


def _moved(
    file: PlainFile, made: Sequence[ast.Assign], towers: ast.stmt, where: str
) -> list[Change]:
    if file.alone(towers) is None:
        return []
    changes: list[Change] = []
    parts: list[str | tuple[int, int]] = []
    for each in made:
        first, gone = file.above(each), file.without(each)
        if gone[0] != file.starts[each.lineno - 1]:
            continue  # a comment stands behind it
        end = file.end(each)
        said = any(key.arg == "trainable" for key in getattr(each.value, "keywords", ()))
        own: list[str | tuple[int, int]] = [(first, end), "\n"]
        if not said:
            own = [(first, end - 1), ", trainable=False)\n"]
        parts += own
        changes.append(Change(first, gone[1], (), where))
    place = file.above(towers)
    return [Change(place, place, tuple(parts), where), *changes] if changes else []
