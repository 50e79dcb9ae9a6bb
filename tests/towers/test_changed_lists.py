"""Lists and objects that towers change, of which not all is known: the towers' own, and those of all towers."""

from __future__ import annotations

import pytest

from tests.towers.looping import towers
from towermigrate.towers.names import differing_name
from towermigrate.towers.twice import Turns

LAYERS = """
layers = []
for a in range(config.depth):
    layers.append({row})
    for b in range(config.blocks):
        layers[-1].append(Sub(a > 0 and b == 0))
{then}for a, layer in enumerate(layers):
    for b, sub in enumerate(layer):
        with tf.variable_scope({name}):
            pass
"""
SUB = "class Sub(object):\n    def __init__(self, down):\n        self.down = down\n"
ROW = "one = []\nother = []\n"
COUNTED = "class Counted(object):\n    def __init__(self):\n        self.count = 0\n    def more(self):\n        self.count += 1\n"
OBJECTS = "one = Counted()\nother = Counted()\n"


def layers(
    row: str = "[]", then: str = "", name: str = "'w%d_%d' % (a, b)", inside: str = ""
) -> Turns:
    """Towers that make a list of lists of unknown lengths, and name variables by them."""
    return towers(LAYERS.format(row=row, then=then, name=name), SUB, inside)


def rows(does: str, name: str = "len(one)", inside: str = ROW, before: str = "") -> Turns:
    """Towers that do something to one of two lists, and name variables by the first one, or by what it is."""
    chosen = "rows = one if config.depth > 1 else other\n"
    return towers(
        f"{chosen}{does}\nwith tf.variable_scope('w%d' % {name}):\n    pass\n", before, inside
    )


def own(does: str, name: str = "len(one)") -> Turns:
    """The same, of lists that each tower makes."""
    return rows(f"{ROW}rows = one if config.depth > 1 else other\n{does}", name)


TABLES = "one = {}\nother = {}\n"
FULL = "one = [1, 1, 1, 1]\nother = [2, 2, 2, 2]\n"

OTHERS = [
    pytest.param(layers("one", inside=ROW), id="a row of all towers"),
    pytest.param(
        layers("one if a else []", inside=ROW), id="a row of all towers, or one of its own"
    ),
    pytest.param(
        layers("one[a]", inside="one = [[], [], [], []]\n"), id="rows that were there before"
    ),
    pytest.param(layers("one.setdefault(a, [])", inside=TABLES), id="rows that a table keeps"),
    pytest.param(
        layers("one[-1] if one else []", "one.append(layers[-1])\n", inside=ROW),
        id="a row that is kept",
    ),
    pytest.param(rows("rows.append(1)"), id="append"),
    pytest.param(rows("rows.append(1)", "len(rows)"), id="append, and what it is"),
    pytest.param(rows("rows += [1]"), id="plus and assign"),
    pytest.param(rows("rows += [1]", "len(rows)"), id="plus and assign, and what it is"),
    pytest.param(rows("rows[len(rows):] = [1]"), id="a part that is set"),
    pytest.param(
        rows("grow(rows)", before="def grow(k):\n    k.append(1)\n"), id="a function that appends"
    ),
    pytest.param(
        rows("rows.extend([])\none.append(1)"), id="an append to one of which no more is known"
    ),
    pytest.param(
        rows("one.append(1)", inside=ROW + "(one if config.depth else other).append(1)\n"),
        id="an append to one of which no more was known before",
    ),
    pytest.param(rows("rows.remove(1)", inside=FULL), id="remove"),
    pytest.param(rows("del rows[0]", inside=FULL), id="delete"),
    pytest.param(rows("rows.pop()", inside=FULL), id="pop"),
    pytest.param(rows("rows[0] = rows[0] + 1", "one[0]", FULL), id="an entry that is counted up"),
    pytest.param(rows("rows[i] = 5", "one[0]", FULL), id="an entry at the tower's index"),
    pytest.param(rows("rows[0] = i", "one[0]", FULL), id="an entry that is the tower's index"),
    pytest.param(rows("rows.update({len(rows): 1})", inside=TABLES), id="update"),
    pytest.param(rows("rows[len(rows)] = 1", inside=TABLES), id="an entry of a table"),
    pytest.param(rows("rows.setdefault(len(rows), 1)", inside=TABLES), id="setdefault"),
    pytest.param(
        rows("rows.count = rows.count + 1", "one.count", OBJECTS, COUNTED),
        id="an attribute that is counted up",
    ),
    pytest.param(rows("rows.more()", "one.count", OBJECTS, COUNTED), id="a method that counts up"),
    pytest.param(
        rows("rows.insert(0, 2)", "one.index(1)", FULL),
        id="where something is in a list that grows in front",
    ),
    pytest.param(
        own("rows.append(i)\nrows.append(1)", "one.index(1)"),
        id="where something is behind the tower's index",
    ),
    pytest.param(own("rows.append(i)", "one[0]"), id="an own list that holds the tower's index"),
    pytest.param(own("rows += [i]", "rows[0]"), id="an own list that is given the tower's index"),
    pytest.param(
        own("rows.append(1)\nrows.append(2)\ndel rows[i]", "rows[0]"),
        id="an own list without the tower's entry",
    ),
]
ALIKE = [
    pytest.param(layers(), id="rows of its own"),
    pytest.param(layers(name="'w%d_%d_%d' % (a, b, len(layer))"), id="the length of rows of its own"),
    pytest.param(layers("list(one)", inside=ROW), id="copies of a row of all towers"),
    pytest.param(layers(then="layers.pop()\n"), id="without the last of its own"),
    pytest.param(layers(then="layers[0][0] = Sub(False)\n"), id="an entry of its own that is set"),
    pytest.param(own("rows.append(1)"), id="append to its own"),
    pytest.param(own("rows.append(1)", "len(rows)"), id="append to its own, and what it is"),
    pytest.param(own("rows += [1]", "len(rows)"), id="plus and assign to its own"),
    pytest.param(
        own("rows.append(config.a)", "one.index(config.a)"), id="where something is in its own"
    ),
    pytest.param(
        towers(
            "places = []\nfor k in range(config.blocks):\n    places.append(config.step * k)\n"
            "for k in range(config.depth):\n    if k in places:\n"
            "        with tf.variable_scope('cell_{}'.format(places.index(k))):\n            pass\n"
        ),
        id="where something is in a list that it fills",
    ),
    pytest.param(rows("names.index(rows.count(1))", inside=FULL), id="only looked at"),
    pytest.param(rows("list(rows.items())", inside=TABLES), id="a table that is only looked at"),
]  # fmt: skip


GROWN = {
    "append": ("seen.append('x')", "len(seen)"),
    "append what is there": ("seen.append(config.names[0])", "len(seen)"),
    "extend": ("seen.extend(config.names)", "len(seen)"),
    "plus and assign": ("seen += config.names", "len(seen)"),
    "a loop that appends": ("for k in config.names:\n    seen.append('x')", "len(seen)"),
    "how many are the same": ("seen.append('x')", "seen.count('x')"),
    "in front": ("seen.insert(0, 'y')", "seen.index('x')"),
    "a part": ("seen.append('x')", "len(seen[:])"),
    "as a tuple": ("seen.append('x')", "len(tuple(seen))"),
    "as a text": ("seen.append('x')", "len(''.join(seen))"),
    "what a loop counts": ("seen.append('x')\nk = 0\nfor s in seen:\n    k += 1", "k"),
    "the last that a loop counts": (
        "seen.append('x')\nfor k, s in enumerate(seen):\n    pass",
        "k",
    ),
    "a table": ("table[len(table)] = 1", "len(table)"),
}
"""What makes a list longer whose length is not known, and a name by that."""


@pytest.mark.parametrize("made", ["list(config.names)", "[k for k in config.names]"])
@pytest.mark.parametrize("name", GROWN)
def test_a_list_of_unknown_length_is_longer_for_each_tower(name: str, made: str) -> None:
    does, number = GROWN[name]
    scope = f"\nwith tf.variable_scope('w%d' % {number}):\n    pass\n"
    lists = f"seen = {made}\ntable = dict(config.table)\n"
    assert differing_name(towers(does + scope, inside=lists)) is not None
    if name != "a table":  # of which it is not told what its entries are
        assert differing_name(towers(lists + does + scope)) is None


@pytest.mark.parametrize("found", OTHERS)
def test_what_towers_change_says_another_name_each_time(found: Turns) -> None:
    assert found.whole
    assert differing_name(found) is not None


@pytest.mark.parametrize("found", ALIKE)
def test_what_each_tower_makes_and_changes_says_the_same_name(found: Turns) -> None:
    assert found.whole
    assert differing_name(found) is None
