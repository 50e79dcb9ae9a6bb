"""What the interpreter knows of values: a program each, and what it says of what is shown."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from tests.flow.probing import ANYTHING, HEAD, Probe, interpreted
from towermigrate.flow import Call, Domain, Interpreter, Limits
from towermigrate.flow.values import Const, External, Function, Items, Place, Unknown, Value

OPEN = ANYTHING


def shown(text: str, **others: str) -> list[object]:
    """What is shown, in the order of the lines; several values of one line one after the other."""
    found = interpreted(text, **others)
    return [value for line in sorted(found) for value in found[line]]


KNOWN: dict[str, tuple[str, list[object]]] = {
    "a sum": ("show(1 + 2 * 3)", [7]),
    "one, one point nought and true are three": ("show([1, 1.0, True])", [[1, 1.0, True]]),
    "both branches alike": ("a = 1\nif flip():\n    a = 2\nelse:\n    a = 2\nshow(a)", [2]),
    "branches that differ": ("a = 1\nif flip():\n    a = 2\nshow(a)", [OPEN]),
    "a branch that is known": ("a = 1\nif a == 1:\n    a = 2\nshow(a)", [2]),
    "a branch that returns": (
        "def f():\n    if flip():\n        return 1\n    return 1\nshow(f())",
        [1],
    ),
    "the state where a branch returned": (
        "a = [1]\ndef f():\n    if flip():\n        a.append(2)\n        return\n    a.append(2)\nf()\nshow(a)",
        [[1, 2]],
    ),
    "a list that a branch makes": ("if flip():\n    a = [1, 2]\nshow(a)", [[1, 2]]),
    "two names of one list": ("a = [1]\nb = a\nb.append(2)\nshow(a)", [[1, 2]]),
    "a copy of a list": ("a = [1]\nb = list(a)\nb.append(2)\nshow(a)", [[1]]),
    "a list that is added to where it is": ("a = [1]\nb = a\nb += [2]\nshow(a)", [[1, 2]]),
    "a list that a library is given": ("a = [1]\nopaque(a)\nshow(a)", [OPEN]),
    "one of two lists is changed": (
        "a, b = [1], [2]\nc = a if flip() else b\nc.append(3)\nshow(a)\nshow(b)",
        [OPEN, OPEN],
    ),
    "a default that is changed": (
        "def f(x, into=[]):\n    into.append(x)\n    return into\nf(1)\nshow(f(2))",
        [[1, 2]],
    ),
    "attributes of each object": (
        "class A:\n    def __init__(self, x):\n        self.x = x\na, b = A(1), A(2)\nb.x = 3\nshow(a.x)\nshow(b.x)",
        [1, 3],
    ),
    "an attribute of the class": (
        "class A:\n    x = 1\na = A()\nA.x = 2\nshow(a.x)\na.x = 3\nshow(A.x)",
        [2, 2],
    ),
    "an attribute that only some objects have": (
        "class A:\n    x = 1\na = A()\nif flip():\n    a.x = 2\nshow(a.x)",
        [OPEN],
    ),
    "what a base sets": (
        "class A:\n    def __init__(self, x):\n        self.x = x\nclass B(A):\n    def __init__(self):\n"
        "        super().__init__(4)\nshow(B().x)",
        [4],
    ),
    "a method of the base that calls one of the class": (
        "class A:\n    def f(self):\n        return self.g()\n    def g(self):\n        return 1\n"
        "class B(A):\n    def g(self):\n        return 2\nshow(B().f())",
        [2],
    ),
    "a property": (
        "class A:\n    def __init__(self):\n        self._x = 5\n    @property\n    def x(self):\n        return self._x\n"
        "show(A().x)",
        [5],
    ),
    "a method that is kept": (
        "class A:\n    x = 6\n    def f(self):\n        return self.x\ng = A().f\nshow(g())",
        [6],
    ),
    "a class method and a static one": (
        "class A:\n    @classmethod\n    def f(cls):\n        return cls.x\n    @staticmethod\n    def g(x):\n        return x\n"
        "    x = 7\nshow(A.f())\nshow(A().g(8))",
        [7, 8],
    ),
    "a closure sees what is bound later": (
        "def f():\n    x = 1\n    def g():\n        return x\n    x = 2\n    return g\nshow(f()())",
        [2],
    ),
    "functions made in a loop share its name": (
        "fs = []\nfor i in range(3):\n    fs.append(lambda: i)\nshow(fs[0]())",
        [2],
    ),
    "a default keeps the turn": (
        "fs = []\nfor i in range(3):\n    fs.append(lambda i=i: i)\nshow(fs[0]())",
        [0],
    ),
    "nonlocal": (
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    g()\n    return n\nshow(f())",
        [2],
    ),
    "global": ("n = 0\ndef f():\n    global n\n    n = 3\nf()\nshow(n)", [3]),
    "a local of the same name": ("n = 0\ndef f():\n    n = 3\nf()\nshow(n)", [0]),
    "partial": (
        "from functools import partial\ndef f(a, b, c=0):\n    return [a, b, c]\nshow(partial(f, 1, c=3)(2))",
        [[1, 2, 3]],
    ),
    "stars": (
        "def f(a, *b, **c):\n    return [a, b, c]\nshow(f(*[1, 2], **{'x': 3}))",
        [[1, (2,), {"x": 3}]],
    ),
    "a table by its keys": ("t = {'a': [1]}\nt['a'].append(2)\nt['b'] = 3\nshow(t)", [{"a": [1, 2], "b": 3}]),
    "a loop over a table": (
        "t = {'a': 1, 'b': 2}\nfound = []\nfor k, v in t.items():\n    found.append((k, v))\nshow(found)",
        [[("a", 1), ("b", 2)]],
    ),
    "a comprehension": ("show([(i, k) for i in range(2) for k in 'ab' if i])", [[(1, "a"), (1, "b")]]),
    "an iterator is used up": (
        "z = zip([1, 2], [3, 4])\nfirst = list(z)\nshow(first)\nshow(list(z))",
        [[(1, 3), (2, 4)], []],
    ),
    "enumerate(zip(...))": (
        "found = []\nfor i, (d, x) in enumerate(zip(['a', 'b'], [5, 6])):\n    found.append((i, d, x))\nshow(found)",
        [[(0, "a", 5), (1, "b", 6)]],
    ),
    "map": ("show(list(map(lambda x: x + 1, [1, 2])))", [[2, 3]]),
    "a generator": ("def f():\n    for i in range(2):\n        yield i\nshow(list(f()))", [[0, 1]]),
    "a generator that may stop": (
        "def f():\n    if flip():\n        return\n    yield 1\nshow(len(list(f())))",
        [OPEN],
    ),
    "break and else": (
        "a = 0\nfor i in range(5):\n    if i == 2:\n        break\n    a = i\nelse:\n    a = 9\nshow(a)",
        [1],
    ),
    "a loop of an unknown number of turns": (
        "a, b = 1, 2\nwhile flip():\n    a = a + 1\n    b = 2\nshow(a)\nshow(b)",
        [OPEN, 2],
    ),
    "while with a count": ("n = 0\nwhile n < 4:\n    n += 1\nshow(n)", [4]),
    "an exception may come from anywhere": (
        "a = 1\ntry:\n    a = 2\n    opaque()\n    a = 3\nexcept ValueError:\n    show(a)\nshow(a)",
        [OPEN, OPEN],
    ),
    "at last": ("a = 0\ndef f():\n    global a\n    try:\n        return 1\n    finally:\n        a = 5\nf()\nshow(a)", [5]),
    "exec": (
        "a = 1\nshow(a)\nexec('a = 2')\nfrom probe import show\nshow(a)",
        [1, OPEN],
    ),
    "setattr": ("class A: pass\na = A()\nsetattr(a, 'x', 4)\nshow(a.x)", [4]),
    "setattr of a name that nobody knows": (
        "class A: pass\na = A()\na.x = 1\nsetattr(a, opaque(), 4)\nshow(a.x)",
        [OPEN],
    ),
    "a class with an attribute hook": (
        "class A:\n    def __setattr__(self, name, value):\n        object.__setattr__(self, name, 0)\na = A()\na.x = 4\nshow(a.x)",
        [OPEN],
    ),
    "recursion": ("def f(n):\n    return 0 if n == 0 else f(n - 1)\nshow(f(2))", [0]),
    "recursion without an end": ("def f(n):\n    return f(n + 1)\nshow(f(1))", [OPEN]),
    "one of two functions, and what it changes": (
        "a = [0]\ndef f():\n    a.append(1)\ndef g():\n    pass\nh = f if flip() else g\nh()\nshow(len(a))",
        [OPEN],
    ),
    "a method of an object that a library was given": (
        "class A:\n    n = 0\n    def f(self):\n        A.n = 1\na = A()\nopaque(a)\na.f()\nshow(A.n)",
        [OPEN],
    ),
    "recursion that is not followed to its end, and what it changes": (
        "a, n = [], 0\ndef f(k):\n    global n\n    a.append(k)\n    n += 1\n    return 0 if k == 0 else f(k - 1)\nf(9)\nshow(len(a))\nshow(n)",
        [OPEN, OPEN],
    ),
    "a comprehension that changes a list": (
        "a = []\n[a.append(k) for k in [1, 2]]\nshow(a)\n[a.append(k) for k in opaque()]\nshow(len(a))",
        [[1, 2], OPEN],
    ),
    "a comprehension that changes a list on some turns": (
        "a, b = [], []\nshow(len([b.append(k) for k in [1, 2] if flip() if not b.append(0)]))\n{k: a.append(k) for k in [1, 2] if flip()}\nshow(len(a))\nshow(len(b))",
        [OPEN, OPEN, OPEN],
    ),
    "what a comprehension makes of what is not known": (
        "show([(1, k) for k in opaque()][0][0])",
        [1],
    ),
    "a comprehension that binds a name": ("n = 0\n[n := n + 1 for k in opaque()]\nshow(n)", [OPEN]),
    "a walrus": ("show([(y := 3), y])", [[3, 3]]),
    "format": ("show('/gpu:%d' % 1)\nshow('{}-{}'.format('a', 2))\nshow(f'{1}{\"b\"}')", ["/gpu:1", "a-2", "1b"]),
    "huge numbers are left alone": ("show(2 ** 10 ** 10)\nshow('a' * 10 ** 9)", [OPEN, OPEN]),
    "an object of a metaclass's class": (
        "class M(type):\n    def __call__(cls, *a):\n        return 3\nclass A(metaclass=M):\n    pass\nshow(A())",
        [OPEN],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known(name: str) -> None:
    text, expected = KNOWN[name]
    assert shown(text) == expected


FILES: dict[str, tuple[str, dict[str, str], list[object]]] = {
    "a name of another file": ("from a import x\nshow(x)", {"a": "x = 1\n"}, [1]),
    "a module": ("import a\na.x = 2\nimport a as b\nshow(b.x)", {"a": "x = 1\n"}, [2]),
    "all names": ("from a import *\nshow(x)", {"a": "x = 1\n"}, [1]),
    "all names that are listed": (
        "from a import *\nshow(x)",
        {"a": "__all__ = ['y']\nx = y = 1\n"},
        [OPEN],
    ),
    "a function that reads its own file": (
        "from a import f\nx = 1\nshow(f())",
        {"a": "x = 2\ndef f():\n    return x\n"},
        [2],
    ),
    "files that import each other": (
        "import a\nshow(a.x)",
        {"a": "import b\nx = b.y\n", "b": "import a\ny = 3\n"},
        [3],
    ),
    "a package": (
        "import p.a\nfrom p import b\nshow(p.a.x + b.x)",
        {"p/a": "x = 1\n", "p/b": "x = 2\n"},
        [3],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_names_of_other_files(name: str) -> None:
    text, others, expected = FILES[name]
    assert shown(text, **others) == expected


def test_a_value_knows_its_place_and_its_names() -> None:
    interpreter = Interpreter(
        {"main.py": "a = []\n\nb = a\ndef f(c):\n    d = c\nf(b)\n"}, Domain()
    )
    value = interpreter.module("main.py").lookup("a")
    assert isinstance(value, Items)
    assert value.place == Place("main.py", 1, 4)
    assert value.names == ["a", "b", "c", "d"]


def test_unknown_says_why_and_where() -> None:
    interpreter = Interpreter({"main.py": "x = nobody\n"}, Domain())
    value = interpreter.module("main.py").lookup("x")
    assert isinstance(value, Unknown)
    assert (value.reason, value.place) == ("nobody is not bound", Place("main.py", 1, 4))


def test_columns_count_characters() -> None:
    interpreter = Interpreter({"main.py": "é = 'é'; a = []\n"}, Domain())
    value = interpreter.module("main.py").lookup("a")
    assert isinstance(value, Items) and value.place.column == 13


class Names(Domain):
    """A domain with a function, a decorator and an operator of its own."""

    def spelled(self, name: str) -> str:
        return name.replace("lib.old", "lib.new")

    def function(self, call: Call) -> Value | None:
        return Const(f"called {call.name}") if call.name.startswith("lib.") else None

    def decorated(self, decorator: Value, node: object, function: Value) -> Value | None:
        return function if decorator == External("lib.new.plain") else None


def test_a_domain_says_what_libraries_mean() -> None:
    text = "import lib\nfrom lib import old\nx = lib.old.f(1)\n@old.plain\ndef f():\n    return 2\ny = f()\n@lib.other\ndef g():\n    return 2\nz = g()\n"
    scope = Interpreter({"main.py": text}, Names()).module("main.py")
    assert scope.lookup("x") == Const("called lib.new.f")
    assert scope.lookup("y") == Const(2)
    assert isinstance(scope.lookup("z"), Unknown)


class _Asked(Domain):
    """Every operation gives the name of its node's kind."""

    def operation(self, node: ast.AST, operands: Sequence[Value], place: Place) -> Value | None:
        return Const(type(node).__name__)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("not x", "UnaryOp"),
        ("-x", "UnaryOp"),
        ("1 in x", "Compare"),
        ("f'a{x}'", "JoinedStr"),
        ("'a{}'.format(x)", "Call"),
        ("'a'.startswith(x)", "Call"),
        ("'abc'[0:1] + x", "BinOp"),
    ],
)
def test_a_domain_says_what_an_operation_gives(expression: str, kind: str) -> None:
    sources = {"a.py": f"import library\nx = library.x\ny = {expression}\n"}
    assert Interpreter(sources, _Asked()).module("a.py").lookup("y") == Const(kind)


@pytest.mark.parametrize(
    "limits", [Limits(calls=1), Limits(steps=30), Limits(depth=1), Limits(cells=20)]
)
def test_past_a_limit_nothing_is_claimed(limits: Limits) -> None:
    text = (
        "def f(a):\n    a.append(1)\n    return 1\ndef g(a):\n    return f(a)\na = [0]\n"
        + "b = g(a)\n" * 12
    )
    probe = Probe()
    # Not even the names of imports are: a function that is not entered might bind them anew.
    text += "from probe import show\nshow(a)\nshow(b)\n"
    interpreter = Interpreter({"main.py": HEAD + text}, probe, limits)
    interpreter.module("main.py")
    assert [each for values in probe.shown.values() for each in values] == [OPEN, OPEN]


def test_functions_that_nothing_calls_are_run_with_unknown_arguments() -> None:
    probe = Probe()
    text = HEAD + "def f(n, k=2):\n    show(k)\n    show(n)\n    show(3)\n"
    interpreter = Interpreter({"main.py": text}, probe)
    interpreter.module("main.py")
    (function,) = interpreter.defined
    assert isinstance(function, Function)
    interpreter.call_unknown(function)
    assert [values[0] for values in probe.shown.values()] == [OPEN, OPEN, 3]
