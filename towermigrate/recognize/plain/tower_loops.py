"""Tower loops over several lists at once, or over devices without a number: as a count, and items by it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    settled,
)
from towermigrate.recognize.plain.collected import is_pythons, is_tower_loop

# What only reads a list that it is given.
_READERS = frozenset({"len", "enumerate", "zip", "range", "str", "print", "repr", "list", "tuple"})
Length = int | str


def tower_loops(file: PlainFile) -> list[Change]:
    """`for d, x in zip(DEVICES, tf.split(X, 2))` as a loop over `enumerate(DEVICES)` in which `x = xs[i]`.

    Only of lists that are written out, of ranges and of splits, which are all as long as each other: `zip` ends with the
    shortest.
    """
    return [
        change
        for each in _loops(file)
        for change in _over_numbers(each)
        or _over_displayed(each)
        or _items_by_number(each)
        or _one(each)
        or _count(each)
    ]


def loops_from_zero(file: PlainFile) -> list[Change]:
    """`for i in range(0, n)`, `range(0, n, 1)` and `list(range(n))` as a loop over `range(n)`, `enumerate(xs, 0)` as one over `enumerate(xs)`."""
    found: list[Change] = []
    for loop in _loops(file):
        over = loop.node.iter
        listed = _called(over, "list") or _called(over, "tuple") or []
        if len(listed) == 1 and _called(listed[0], "range") and isinstance(over, ast.Call):
            if is_pythons(file, "range") and is_pythons(file, ast.unparse(over.func)):
                found.append(Change(*file.span(over), (file.span(listed[0]),), loop.where))
        numbered = _called(over, "enumerate") or []
        if len(numbered) == 2 and is_pythons(file, "enumerate"):
            if isinstance(numbered[1], ast.Constant) and numbered[1].value == 0:
                kept = (file.start(over), file.end(numbered[0]))
                found.append(Change(*file.span(over), (kept, ")"), loop.where))
        given = _called(loop.node.iter, "range") or []
        if len(given) in (2, 3) and is_pythons(file, "range"):
            ends = [given[0], *given[2:]]
            numbers = [each.value if isinstance(each, ast.Constant) else None for each in ends]
            if all(type(each) is int for each in numbers) and numbers in ([0], [0, 1]):
                text = f"range({file.of(given[1])})"
                found.append(Change(*file.span(loop.node.iter), (text,), loop.where))
    return found


def _over_displayed(loop: _Loop) -> list[Change]:
    """`for i, d in enumerate(['/gpu:0', '/gpu:1'])` as a loop over `range(2)` in which `d` is `['/gpu:0', '/gpu:1'][i]`.

    Of devices that the header of the loop says, by texts that are written out or made of a number. `d` alone, and
    `zip(range(2), [...])`, too.
    """
    file, node = loop.file, loop.node
    match node.target, node.iter:
        case ast.Name(id=item), over:
            number = file.fresh("i")
        case (
            ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=item)]),
            ast.Call(func=ast.Name(id="enumerate"), args=[over], keywords=[]),
        ) if is_pythons(file, "enumerate"):
            pass
        case (
            ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=item)]),
            ast.Call(func=ast.Name(id="zip"), args=[ast.Call() as counts, over], keywords=[]),
        ) if is_pythons(file, "zip") and loop.length(counts) == loop.length(over) is not None:
            if _called(counts, "range") is None:
                return []
        case _:
            return []
    found = _displayed(loop, over, number)
    names = [each for each in (number, item) if bindings(loop.scope, each)]
    if found is None or number == item or any(bindings(loop.scope, each) != 1 for each in names):
        return []
    if {number, item} & file.shared_between_functions or file.commented(
        file.start(node.target), file.end(node.iter)
    ):
        return []
    inside = {id(each) for each in ast.walk(node)}
    reads = [each for each in file.uses(item) if isinstance(each.ctx, ast.Load)]
    if not _is_device(node, item) or any(id(each) not in inside for each in reads):
        return []
    if {id(each) for each in reads} & file.in_texts:
        return []  # older Pythons do not tell where its names stand
    if item in file.words_of_users and loop.scope is file.tree:
        return []
    count, text = found
    head = Change(
        file.start(node.target), file.end(node.iter), (f"{number} in range({count})",), loop.where
    )
    return [head, *(Change(*file.span(each), (text,), loop.where) for each in reads)]


def _displayed(loop: _Loop, over: ast.expr, number: str) -> tuple[str, str] | None:
    """How many texts a list in a loop's header has, and what says each by its number."""
    file = loop.file
    if not is_pythons(file, "range"):
        return None
    match over:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if parts:
            texts = [each.value if isinstance(each, ast.Constant) else None for each in parts]
            if not all(isinstance(each, str) for each in texts):
                return None
            return str(len(parts)), f"{file.of(over)}[{number}]"
        case (
            ast.ListComp(elt=made, generators=[only])
            | ast.GeneratorExp(elt=made, generators=[only])
        ) if not only.ifs and not only.is_async and isinstance(only.target, ast.Name):
            given = _called(only.iter, "range")
            if given is None or len(given) != 1 or not _is_text(made, only.target.id):
                return None
            if not is_pythons(file, "str"):
                return None
            at, end = file.span(made)
            pieces: list[str] = []
            for each in sorted(_names(made), key=file.start):
                pieces += [file.text[at : file.start(each)], number]
                at = file.end(each)
            return file.of(given[0]), f"({''.join(pieces)}{file.text[at:end]})"
    return None


def _is_text(made: ast.expr, number: str) -> bool:
    """Whether an expression makes a text of a number, and does nothing else."""
    match made:
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=ast.Name(id=name)):
            return name == number
        case ast.BinOp(
            left=ast.Constant(value=str()),
            op=ast.Add(),
            right=ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)], keywords=[]),
        ):
            return name == number
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str()), attr="format"),
            args=[ast.Name(id=name)],
            keywords=[],
        ):
            return name == number
    return False


def _names(made: ast.expr) -> list[ast.Name]:
    """The names in what makes a text of a number that stand for the number."""
    return [each for each in ast.walk(made) if isinstance(each, ast.Name) and each.id != "str"]


def _over_numbers(loop: _Loop) -> list[Change]:
    """`for i in [0, 1]`, and over a name of such a list, as a loop over a range."""
    over = loop.node.iter
    value = loop.value(over.id) if isinstance(over, ast.Name) else over
    if not isinstance(value, ast.List | ast.Tuple) or not is_pythons(loop.file, "range"):
        return []
    numbers = [each.value if isinstance(each, ast.Constant) else None for each in value.elts]
    if not numbers or any(type(one) is not int for one in numbers):
        return []
    if numbers != list(range(len(numbers))) or not isinstance(loop.node.target, ast.Name):
        return []
    count = str(len(numbers))
    if isinstance(over, ast.Name):
        if not is_pythons(loop.file, "len"):
            return []
        count = _named_count(loop, f"len({over.id})")
    return [Change(*loop.file.span(over), (f"range({count})",), loop.where)]


def _named_count(loop: _Loop, count: str) -> str:
    """The name that a count has in front of a loop, for good, or the count."""
    named = [
        each.targets[0].id
        for body, always in blocks(loop.scope)
        for each in (body if always else ())
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and ast.unparse(each.value) == count
        and each.lineno < loop.node.lineno
    ]
    return next((each for each in named if loop.is_one(each)), count)


def _items_by_number(loop: _Loop) -> list[Change]:
    """`d` of `for i, d in enumerate(DEVICES)` as `DEVICES[i]`, or `i` of a range, where more than a device is told by it."""
    file, node = loop.file, loop.node
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=item)]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=listed)], keywords=[]),
        ):
            pass
        case _:
            return []
    value = loop.value(listed)
    if value is None or not is_pythons(file, "enumerate"):
        return []
    if any(bindings(loop.scope, each) != 1 for each in (number, item)):
        return []
    if {number, item} & file.shared_between_functions:
        return []
    of_device = {
        id(one)
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "tf.device"
        for one in ast.walk(each)
    }
    inside = {id(each) for each in ast.walk(node)}
    reads = [
        each
        for each in ast.walk(loop.scope)
        if isinstance(each, ast.Name) and each.id == item and isinstance(each.ctx, ast.Load)
    ]
    others = [each for each in reads if id(each) not in of_device]
    if len(others) == len(reads) or any(id(each) not in inside for each in others):
        return []
    while (
        isinstance(value, ast.Call) and ast.unparse(value.func) == "list" and len(value.args) == 1
    ):
        value = value.args[0]
    counted = _called(value, "range")
    same = counted is not None and len(counted) == 1 and is_pythons(file, "range")
    text = number if same else f"{listed}[{number}]"
    return [Change(*file.span(each), (text,), loop.where) for each in others]


@dataclass(frozen=True)
class _Loop:
    """A tower loop, and where it stands."""

    file: PlainFile
    where: str
    scope: Scope
    node: ast.For

    def length(self, node: ast.expr) -> Length | None:
        """How many items a list, a range or a split has: a number, or the text of what says so; None where it is not known."""
        if isinstance(node, ast.List | ast.Tuple):
            return (
                None if any(isinstance(each, ast.Starred) for each in node.elts) else len(node.elts)
            )
        if isinstance(node, ast.ListComp) and len(node.generators) == 1:
            (only,) = node.generators
            return None if only.ifs or only.is_async else self.length(only.iter)
        if isinstance(node, ast.Call) and (called := ast.unparse(node.func)) in ("range", "xrange"):
            known = len(node.args) == 1 and not node.keywords and is_pythons(self.file, called)
            return self.number(node.args[0]) if known else None
        if isinstance(node, ast.Name):
            value = self.value(node.id)
            if value is None or bindings(self.scope, node.id) or self.scope is self.file.tree:
                return None if value is None else self.length(value)
            # What the module counts by may have another meaning under its name here.
            found = replace(self, scope=self.file.tree).length(value)
            words = re.findall(r"\w+", found) if isinstance(found, str) else []
            return None if any(bindings(self.scope, word) for word in words) else found
        count = split_count(node)
        return None if count is None else self.number(count)

    def number(self, node: ast.expr) -> Length | None:
        """A count: as a number where it is one that is written out."""
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
            if not is_pythons(self.file, "len"):
                return None
            found = self.length(node.args[0])
            return found if found is not None else ast.unparse(node)
        if isinstance(node, ast.Name):
            value = self.value(node.id)
            if isinstance(value, ast.Constant) or (
                isinstance(value, ast.Call) and ast.unparse(value.func) == "len"
            ):
                return self.number(value)
            return node.id if self.is_one(node.id) else None
        return ast.unparse(node) if settled(self.file, node) else None

    def is_one(self, name: str) -> bool:
        """Whether a name is bound once, in this scope or else in the module, and by no other function."""
        if name in self.file.shared_between_functions or name in self.file.words_of_users:
            return False
        own = bindings(self.scope, name)
        if own:
            return own == 1
        return self.scope is not self.file.tree and bindings(self.file.tree, name) == 1

    def value(self, name: str) -> ast.expr | None:
        """What a name is bound to, once and for all, where that stands before the loop and is changed nowhere."""
        if not self.is_one(name):
            return None
        scope = self.scope if bindings(self.scope, name) else self.file.tree
        found = [
            value
            for body, always in blocks(scope)
            if always
            for each in body
            if isinstance(each, ast.Assign) and each.lineno < self.node.lineno
            for target in each.targets
            for one, value in pairs_of(target, each.value)
            if isinstance(one, ast.Name) and one.id == name
        ]
        if not found and scope is self.scope:
            found = self._not_given(name)
        if len(found) != 1 or not self._only_read(name):
            return None
        return found[0]

    def _not_given(self, name: str) -> list[ast.expr]:
        """The default of a parameter that no call of the function gives."""
        file, scope = self.file, self.scope
        if not isinstance(scope, ast.FunctionDef) or scope not in file.tree.body:
            return []
        if scope.decorator_list or scope.name in file.words_of_users:
            return []
        if bindings(file.tree, scope.name) != 1 or file.finds_names_by_text:
            return []
        if scope.name == "main" and "app.run(" in file.text:
            return []  # which gives it the command line
        called = {
            id(each.func)
            for each in file.nodes
            if isinstance(each, ast.Call) and not each.args and not each.keywords
        }
        if any(id(each) not in called for each in file.uses(scope.name)):
            return []
        given = [*scope.args.posonlyargs, *scope.args.args]
        defaults = scope.args.defaults
        return [
            value
            for one, value in zip(given[len(given) - len(defaults) :], defaults, strict=True)
            if one.arg == name
        ]

    def _only_read(self, name: str) -> bool:
        """Whether all that is made of a list anywhere in the file leaves it as it is, and gives it no other name."""
        fine: set[int] = set()
        readers = {each for each in _READERS & self.file.words if is_pythons(self.file, each)}
        for each in self.file.nodes:
            if isinstance(each, ast.Call) and ast.unparse(each.func) in readers:
                fine |= {id(one) for one in each.args}
            elif isinstance(each, ast.Call) and ast.unparse(each.func).startswith("tf."):
                fine |= {id(one) for one in [*each.args, *(k.value for k in each.keywords)]}
            elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load):
                fine |= {id(each.value), id(each.slice)}
            elif isinstance(each, ast.For | ast.comprehension):
                fine.add(id(each.iter))
            elif isinstance(each, ast.BinOp):
                fine |= {id(each.left), id(each.right)}
            elif isinstance(each, ast.Compare):
                fine |= {id(each.left), *map(id, each.comparators)}
        reads = [one for one in self.file.uses(name) if isinstance(one.ctx, ast.Load)]
        return all(id(one) in fine for one in reads)


def listed_value(
    file: PlainFile, where: str, scope: Scope, loop: ast.For, name: str
) -> ast.expr | None:
    """What a list is bound to, once and for all, in front of a tower loop; None where it may be another one."""
    return _Loop(file, where, scope, loop).value(name)


def _loops(file: PlainFile) -> list[_Loop]:
    return [
        _Loop(file, where, scope, each)
        for where, scope in file.scopes
        for body, always in blocks(scope)
        for each in (body if always else ())
        if isinstance(each, ast.For) and not each.orelse and is_tower_loop(each)
    ]


def pairs_of(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What each target of an assignment is bound to."""
    if isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            return list(zip(target.elts, value.elts, strict=True))
        return []
    return [(target, value)]


def split_count(node: ast.expr | None) -> ast.expr | None:
    """Into how many parts `tf.split(value, count)` splits."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "tf.split":
        return None
    found = [each.value for each in node.keywords if each.arg == "num_or_size_splits"]
    if len(node.args) >= 2:
        found.append(node.args[1])
    return found[0] if len(found) == 1 else None


def _called(node: ast.expr, name: str) -> list[ast.expr] | None:
    """What `name(…)` is given, by position only."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id != name or node.keywords:
        return None
    return None if any(isinstance(each, ast.Starred) for each in node.args) else node.args


def _named(loop: _Loop) -> tuple[str | None, list[tuple[str, ast.expr]]] | None:
    """The name of a loop's number, and what its other targets go over."""
    target, over = loop.node.target, loop.node.iter
    number: str | None = None
    numbered = _called(over, "enumerate")
    if numbered is not None:
        if len(numbered) != 1 or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        first, target = target.elts
        if not isinstance(first, ast.Name) or not is_pythons(loop.file, "enumerate"):
            return None
        number, over = first.id, numbered[0]
    together = _called(over, "zip")
    if together is not None:
        if not isinstance(target, ast.Tuple) or len(target.elts) != len(together):
            return None
        if not is_pythons(loop.file, "zip"):
            return None
        pairs = list(zip(target.elts, together, strict=True))
    else:
        pairs = [(target, over)]
    found: list[tuple[str, ast.expr]] = []
    for one, value in pairs:
        if not isinstance(one, ast.Name):
            return None
        found.append((one.id, value))
    return number, found


def _one(loop: _Loop) -> list[Change]:
    """A loop over several things at once, or without a number, as one over a count."""
    file, node = loop.file, loop.node
    named = _named(loop)
    if named is None:
        return []
    number, pairs = named
    devices = [(name, over) for name, over in pairs if _is_device(node, name)]
    ranges = [(name, over) for name, over in pairs if _called(over, "range")]
    others = [pair for pair in pairs if pair not in devices and pair not in ranges]
    if len(devices) > 1 or len(ranges) > 1 or (ranges and number is not None):
        return []
    if not others and (number is not None or ranges):
        return []  # a plain one
    names = [name for name, _ in pairs] + ([] if number is None else [number])
    if len({*names}) < len(names) or any(n in file.shared_between_functions for n in names):
        return []
    lengths = [loop.length(over) for _, over in pairs]
    if None in lengths or len({*lengths}) != 1:
        return []
    margin, first = file.alone(node), node.body[0]
    start, end = file.start(node.target), file.end(node.iter)
    begin = file.starts[node.lineno - 1]
    if margin is None or file.alone(first) is None or file.commented(start, end):
        return []
    if isinstance(first, ast.FunctionDef | ast.ClassDef) or first.lineno == node.lineno:
        return []
    before: list[Part] = []

    def listed(name: str, over: ast.expr) -> str:
        """The name of a list, which it gets in front of the loop where it has none."""
        if isinstance(over, ast.Name):
            return over.id
        fresh = file.fresh(f"{name}s")
        parts, (begins, ends) = split_count(over), file.span(over)
        written: tuple[Part, ...] = ((begins, ends),)
        if parts is not None and devices and isinstance(devices[0][1], ast.Name):
            text = f"len({devices[0][1].id})"
            written = ((begins, file.start(parts)), text, (file.end(parts), ends))
        before.extend((f"{margin}{fresh} = ", *written, "\n"))
        return fresh

    counted = number or (ranges[0][0] if ranges else file.fresh("i"))
    lists = {name: listed(name, over) for name, over in pairs if (name, over) not in ranges}
    if devices:
        device = devices[0][0]
        head = f"{counted}, {device} in enumerate({lists[device]})"
        count = f"len({lists[device]})"
    else:
        count = _said_by_splits(loop, [over for _, over in pairs]) or _count_text(loop, lengths[0])
        if not count:
            return []
        head = f"{counted} in range({count})"
    inner = file.text[file.starts[first.lineno - 1] : file.start(first)]
    items = "".join(f"{name} = {lists[name]}[{counted}]\n{inner}" for name, _ in others)
    changes = [
        Change(begin, begin, tuple(before), loop.where),
        Change(start, end, (head,), loop.where),
        Change(file.start(first), file.start(first), (items,), loop.where),
    ]
    return [each for each in changes if each.parts] + (
        _recounted(loop, [over for _, over in others], lists[devices[0][0]]) if devices else []
    )


def _is_device(node: ast.For, name: str) -> bool:
    """Whether a loop's name is what `tf.device` is given, or the function that makes what it is given."""
    return any(
        isinstance(one, ast.Name) and one.id == name
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "tf.device"
        for given in each.args
        for one in [given, *(given.args if isinstance(given, ast.Call) else ())]
    )


def _said_by_splits(loop: _Loop, lists: Sequence[ast.expr]) -> str:
    """`len(GPU_IDS)` or `NUM_GPUS`, where that is how the splits say their count that the loop goes over, or takes items of."""
    splits = [each for each in map(split_count, lists) if each is not None]
    said = {loop.file.of(each) for each in splits} | {
        loop.file.of(parts)
        for each in _items_of(loop)
        if (parts := split_count(loop.value(each.id))) is not None
    }
    counts = [f"len({each.id})" for each in lists if isinstance(each, ast.Name)]
    counts += [each.id for each in splits if isinstance(each, ast.Name)]
    return next((each for each in counts if said == {each}), "")


def _items_of(loop: _Loop) -> Iterator[ast.Name]:
    """What a loop takes items of."""
    for each in ast.walk(loop.node):
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name):
            yield each.value


def _count_text(loop: _Loop, length: Length | None) -> str:
    """A count as a loop's range is given it, `""` where it may be none."""
    if isinstance(length, int):
        return str(length)
    ranges = (
        _called(each, "range") for each in ast.walk(loop.file.tree) if isinstance(each, ast.Call)
    )
    sure = any(given and ast.unparse(given[-1]) == length for given in ranges)
    sure = sure or length in _whole_defaults(loop.scope)
    return length if length is not None and (sure or length.startswith("len(")) else ""


def _whole_defaults(scope: Scope) -> set[str]:
    """The parameters of a function whose defaults are whole numbers."""
    if not isinstance(scope, ast.FunctionDef):
        return set()
    given = scope.args.defaults
    pairs = list(zip(scope.args.args[-len(given) :], given, strict=True)) if given else []
    return {
        argument.arg
        for argument, value in pairs
        if isinstance(value, ast.Constant) and type(value.value) is int
    }


def _recounted(loop: _Loop, lists: Sequence[ast.expr], devices: str) -> list[Change]:
    """The splits that are as long as the devices, into as many parts as there are of these, in these words."""
    found: list[Change] = []
    count, made = f"len({devices})", loop.value(devices)
    for each in lists:
        value = loop.value(each.id) if isinstance(each, ast.Name) else None
        parts = split_count(value)
        if parts is None or value is None or made is None or loop.file.of(parts) == count:
            continue  # one without a name moves, in its own words
        in_scope = [bool(bindings(loop.scope, name)) for name in (devices, ast.unparse(each))]
        if loop.scope is not loop.file.tree and in_scope == [False, True]:
            pass  # the devices are the module's
        elif in_scope[0] != in_scope[1] or made.lineno >= value.lineno:
            continue
        if loop.file.commented(*loop.file.span(parts)):
            continue
        found.append(Change(*loop.file.span(parts), (count,), loop.where))
    return found


def _count(loop: _Loop) -> list[Change]:
    """Splits into a number of parts that is written out, for a loop over as many devices: `len(DEVICES)` parts."""
    over = loop.node.iter
    numbered = _called(over, "enumerate")
    ranged = _called(over, "range")
    if numbered is not None and len(numbered) == 1 and is_pythons(loop.file, "enumerate"):
        devices = numbered[0]
    elif ranged is not None and len(ranged) == 1 and (of := _called(ranged[0], "len")):
        devices = of[0]
    else:
        return []
    if not isinstance(devices, ast.Name) or not is_pythons(loop.file, "len"):
        return []
    length = loop.length(devices)
    if length is None:
        if loop.value(devices.id) is None:
            return []
        length = f"len({devices.id})"  # whatever it is: others may be said to be as long
    used = {each.id: each for each in _items_of(loop)}
    lists = [
        each
        for name, each in used.items()
        if name != devices.id
        and split_count(loop.value(name)) is not None
        and loop.length(each) == length
    ]
    return _recounted(loop, lists, devices.id)


__all__ = ["loops_from_zero", "pairs_of", "split_count", "tower_loops"]
