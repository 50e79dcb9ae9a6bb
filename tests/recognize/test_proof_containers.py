"""What the proof must not take for known: a draw with a seed stands where it has to look."""

from __future__ import annotations

import pytest

from tests.recognize.programs import LOSS, program, rules

DRAWS = "loss = loss + tf.random_normal([], seed=3)"
OF_EARLY = f"for v in early: {DRAWS}"
ACTIVATION = "def act(v, k=1): return v + tf.random_normal([], seed=3)"

MOVED = [
    ("a dict made by its function", "o = dict(reg=True)\nif o: {draws}"),
    ("its values", "for v in dict(reg=1).values(): {draws}"),
    ("the keys of a dict", "for k in {'x': 64}:\n    if k == 'x': {draws}"),
    ("a list of its keys", "for k in list({'x': 1}):\n    if k == 'x': {draws}"),
    ("its keys in a display", "for k in [*{'x': 1}]:\n    if k == 'x': {draws}"),
    ("its keys in a zip", "for k, j in zip({'x': 1}, [1]):\n    if k == 'x': {draws}"),
    ("its keys unpacked", "k, = {'x': 1}\nif k == 'x': {draws}"),
    ("the keys of keywords", "def f(**kw):\n    return list(kw)\nfor k in f(x=1):\n    if k == 'x': {draws}"),
    ("a dict by numbers", "g = {k: k for k in (1, 0)}\nif g[0] == 0: {draws}"),
    ("a dict spread", "d = {**{'x': []}}\nd['x'].append(1)\nfor v in d['x']: {draws}"),
    ("a list in a dict", "g = {'w': [], 'b': []}\ng['w'].append(1)\nfor v in g['w']: {draws}"),
    ("a default of a dict's", "d = {'x': []}\nd.get('x', []).append(1)\nfor v in d['x']: {draws}"),
    ("a list in a list", "g = [[], []]\ng[N - N].append(1)\nfor v in g[0]: {draws}"),
    ("a set", "if len({1, 1}) == 1: {draws}"),
    ("one of two lists", "a, b = [], []\nif N > 5:\n    c = a\nelse:\n    c = b\nc.append(1)\nfor v in b: {draws}"),
    ("one of two, changed before", "a, b = [], []\nc = a if N > 5 else b\na.append(1)\nfor v in c: {draws}"),
    ("one of two by a function", "a, b = [], []\ndef pick(f): return a if f else b\npick(N).append(1)\nfor v in b: {draws}"),
    ("an entry of one of two", "a, b = [0], [0]\nc = a if N > 5 else b\nc[0] = 1\nif b[0] == 1: {draws}"),
    ("one of two added to", "a, b = [], []\nc = a if N > 5 else b\nc += [1]\nfor v in b: {draws}"),
    ("a list in a slice", "a = []\n[a, [2]][:1][0].append(1)\nfor v in a: {draws}"),
    ("a starred target", "a = []\nb, *c = 1, a\nc[0].append(1)\nfor v in a: {draws}"),
    ("comparisons in a row", "if not 3 > 5 < 6: {draws}"),
    ("numbers from another one on", "for k, v in enumerate([5], start=3):\n    if k == 3: {draws}"),
    ("one of ten functions", "f = abs\nfor k in (1, 2, 3, 4, 5, 6, 7, 8, 9):\n    if N > k: f = lambda v, k=k: v\nif N > 50: f = act\nloss = f(loss)"),
    ("a key to order by", "n = max([1, 2], key=act)"),
    ("a key to sort by", "a = [1, 2]\na.sort(key=act)"),
    ("what replaces a text", "re.sub('a', act, 'a')"),
    ("a partial activation", "loss = loss + tf.reduce_mean(tf.layers.dense([[loss]], 1, activation=functools.partial(act, k=2), name='d'))"),
    ("one of two activations", "f = act if N > 5 else (lambda v: v)\nloss = loss + tf.reduce_mean(tf.layers.dense([[loss]], 1, activation=f, name='d'))"),
]  # fmt: skip
"""What code that moves does."""

STAYS = [
    ("filled by a lambda", "early = []\n(lambda l: l.append(1))(early)", OF_EARLY),
    ("filled by another name", "early = []\nother = early\nother.append(1)", OF_EARLY),
    ("filled in a tuple", "early = []\npair = (early, 1)\npair[0].append(1)", OF_EARLY),
    ("filled by a map", "early = []\nlist(map(early.append, range(2)))", OF_EARLY),
    ("filled by its method", "early = []\nadd = early.append\nadd(1)", OF_EARLY),
    ("filled in a while", "early = []\nwhile len(early) < 1: early.append(1)", OF_EARLY),
    ("filled in a try", "early = []\ntry: early.append(1)\nfinally: pass", OF_EARLY),
    ("filled by a slice", "early = []\nearly[:] = [3]", OF_EARLY),
    ("added to", "early = []\nearly += [1]", OF_EARLY),
    ("emptied in part", "early = [1, 2]\ndel early[0]", f"if len(early) == 1: {DRAWS}"),
    ("an entry added to", "early = [5]\nearly[0] -= 4", f"if early[0] == 1: {DRAWS}"),
    ("a number of a while", "early = 5\nwhile early > 1: early -= 1", f"if early == 1: {DRAWS}"),
    ("a number of a try", "early = 5\ntry: early = 1\nexcept ValueError: pass", f"if early == 1: {DRAWS}"),
    ("a number of a walrus", "early = 5\nif (early := 1): pass", f"if early == 1: {DRAWS}"),
    ("a name of an exception", "early = 5\ntry: int('x')\nexcept ValueError as early: pass", f"if early != 5: {DRAWS}"),
    ("a name of a match", "early = 5\nmatch 1:\n    case early: pass", f"if early != 5: {DRAWS}"),
    ("filled where its own loop hides it", "early = []\ndef fill(l):\n    while not l: l.append(1)\nfill(early)", OF_EARLY),
]  # fmt: skip
"""What code that stays does, and what moved code then asks."""

FILLS = [
    ("at once", "def fill(l): l.append(1)"),
    ("by another name", "def fill(l):\n    k = l\n    k.append(1)"),
    ("by another function", "def put(k): k.append(1)\ndef fill(l): put(l)"),
    ("in a loop", "def fill(l):\n    while not l: l.append(1)"),
]


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


def _program(outside: str, inside: str, *more: tuple[str, str]) -> str:
    head = f"import functools\nimport re\nN = len(str(7))\n{ACTIVATION}\n{outside}\n"
    extra = (
        f"def extra(loss):\n{_indented(inside.replace('{draws}', DRAWS), 4)}    return loss\n\n\n"
    )
    called = (LOSS, LOSS + "            loss = extra(loss)\n")
    return program(("def model(x)", head + extra + "def model(x)"), called, *more)


@pytest.mark.parametrize("inside", [pytest.param(inside, id=name) for name, inside in MOVED])
def test_draws_are_found_in_moved_code(inside: str) -> None:
    assert rules(_program("", inside))


@pytest.mark.parametrize(
    ("outside", "inside"), [pytest.param(outside, inside, id=name) for name, outside, inside in STAYS]
)  # fmt: skip
def test_draws_are_found_behind_what_a_module_does(outside: str, inside: str) -> None:
    assert rules(_program(outside, inside))


@pytest.mark.parametrize(
    ("outside", "inside"), [pytest.param(outside, inside, id=name) for name, outside, inside in STAYS]
)  # fmt: skip
def test_draws_are_found_behind_what_a_function_does(outside: str, inside: str) -> None:
    extra = f"    def extra(loss):\n{_indented(inside, 8)}        return loss\n"
    start = "    tower_grads = []\n"
    text = program(
        (start, start + _indented(outside, 4) + extra),
        (LOSS, LOSS + "            loss = extra(loss)\n"),
    )
    assert rules(text)


@pytest.mark.parametrize("fill", [pytest.param(fill, id=name) for name, fill in FILLS])
@pytest.mark.parametrize(
    "change",
    [
        ("def train(", "def main():\n    fill(early)\n    train()\n\n\ndef train("),
        ("    tower_grads = []\n", "    tower_grads = []\n    fill(early)\n"),
    ],
    ids=["before it is called", "before the towers"],
)
def test_a_list_that_functions_fill_is_not_empty(fill: str, change: tuple[str, str]) -> None:
    assert rules(_program(f"early = []\n{fill}", OF_EARLY, change))


def test_what_is_known_stays_loop_style() -> None:
    inside = "sizes = {'x': [2]}\nfor k in sizes: loss = loss + len(sizes[k]) / 2\nif len(early) == 1 and early[0] == 4: loss = loss * 2.0"
    assert rules(_program("early = [4]", inside)) == []
