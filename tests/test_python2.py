"""Files that only Python 2 parses: the same program in Python 3, remarks about the rest, or the file as it was."""

from __future__ import annotations

import ast
import doctest
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towermigrate.cli import main
from towermigrate.listing import list_tree
from towermigrate.project import decode, read_tree
from towermigrate.python2 import Ported, Unported, in_python3, looks_like_python2, port, syntax
from towermigrate.rewrite import rewrite_tree

OLD = "print 'old'\n"
"""A line that makes a file one that only Python 2 parses."""
NEW = "print('old')\n"
TF = "import tensorflow as tf\n"


def ported(text: str) -> Ported:
    result = port(text, "m.py")
    assert isinstance(result, Ported), result
    return result


CHANGED = [
    pytest.param("print\nprint x,\nprint (a, b)\nprint >>f, x", "print()\nprint(x, end=' ')\nprint((a, b))\nprint(x, file=f)", id="print"),
    pytest.param('print "x\\n",\nprint "%d\\n" % n,', 'print("x\\n", end=\'\')\nprint("%d\\n" % n, end=\'\')', id="print writes no space after a line end"),
    pytest.param("try:\n    f()\nexcept (A, B), e:\n    pass", "try:\n    f()\nexcept (A, B) as e:\n    pass", id="except"),
    pytest.param("raise E, 'why'\nraise E('why'), None\nraise E, 'why', tb", "raise E('why')\nraise E('why')\nraise E('why').with_traceback(tb)", id="raise"),
    pytest.param("x = 0755 + 10L + 0xFFL", "x = 0o755 + 10 + 0xFF", id="octal and long literals"),
    pytest.param("x = `y`\nx <> y", "x = repr(y)\nx != y", id="backticks and <>"),
    pytest.param("exec code in ns", "exec(code, ns)", id="exec"),
    pytest.param("d.has_key(k)\nif not d.has_key(k): pass", "k in d\nif k not in d: pass", id="has_key"),
    pytest.param("lambda (a, b): a", "lambda a_b: a_b[0]", id="a tuple as a parameter"),
    pytest.param(r"x = '\user', u'\u0041', r'\u', ur'\d'", r"x = '\\user', u'\u0041', r'\u', r'\d'", id="escapes that were characters"),
    pytest.param("for i in xrange(3): pass\nx = xrange(3)", "for i in range(3): pass\nx = range(3)", id="xrange"),
    pytest.param("x = unicode(a) + unichr(3)\nlong(raw_input()); isinstance(a, basestring)", "x = str(a) + chr(3)\nint(input()); isinstance(a, str)", id="builtins"),
    pytest.param("def f(long, file): return long, file", "def f(long, file): return long, file", id="names that the file binds are no builtins"),
    pytest.param("x = reduce(f, xs)", "import functools\nx = functools.reduce(f, xs)", id="reduce"),
    pytest.param("for k, v in d.iteritems(): pass\nd.itervalues().next()\nf(d.iterkeys())", "for k, v in d.items(): pass\nnext(iter(d.values()))\nf(d.keys())", id="iteritems and kin"),
    pytest.param("x = d.keys()\nfor k in d.keys(): pass\nfor k in d.keys(): del d[k]\nsorted(d.values()); len(d.items()); k in d.keys()", "x = list(d.keys())\nfor k in d.keys(): pass\nfor k in list(d.keys()): del d[k]\nsorted(d.values()); len(d.items()); k in d.keys()", id="a list of keys only where it matters"),
    pytest.param("x = map(f, xs)\nfor y in map(f, xs): pass\na, b = map(f, xs); sum(map(f, xs)); ','.join(map(str, xs))", "x = list(map(f, xs))\nfor y in list(map(f, xs)): pass\na, b = map(f, xs); sum(map(f, xs)); ','.join(map(str, xs))", id="map"),
    pytest.param("x = zip(a, b)\nfor i, (y, z) in enumerate(zip(a, b)): pass\nfor y, z in zip(f(), b): pass\nfor i, (y, z) in enumerate(zip(f(), b)): pass\nu, v = zip(*x)", "x = list(zip(a, b))\nfor i, (y, z) in enumerate(zip(a, b)): pass\nfor y, z in list(zip(f(), b)): pass\nfor i, (y, z) in enumerate(list(zip(f(), b))): pass\nu, v = zip(*x)", id="zip"),
    pytest.param("x = range(3)\nfor i in range(3): pass\nnp.array(range(3)); range(3)[0]; range(3) + x", "x = list(range(3))\nfor i in range(3): pass\nnp.array(range(3)); range(3)[0]; list(range(3)) + x", id="range"),
    pytest.param("xs.sort(f)\nsorted(xs, cmp=f)\nsorted(xs, key=f)", "import functools\nxs.sort(key=functools.cmp_to_key(f))\nsorted(xs, key=functools.cmp_to_key(f))\nsorted(xs, key=f)", id="cmp"),
    pytest.param("import string\nstring.join(string.split(a + b), ', ')\nstring.letters", "import string\n', '.join((a + b).split())\nstring.ascii_letters", id="functions of the string module"),
    pytest.param("import cPickle as pickle, Queue, cPickle\nfrom StringIO import StringIO\nimport urllib2", "import pickle, queue as Queue, pickle as cPickle\nfrom io import StringIO\nimport urllib.request as urllib2", id="modules keep the name that the file calls them by"),
    pytest.param("import urllib\nurllib.urlopen(urllib.quote(x))\nfrom urllib import urlretrieve", "import urllib.parse\nimport urllib.request\nimport urllib\nurllib.request.urlopen(urllib.parse.quote(x))\nfrom urllib.request import urlretrieve", id="urllib"),
    pytest.param("from itertools import izip, chain\nimport itertools\nitertools.imap(f, izip(a, b))", "from itertools import chain; izip = zip\nimport itertools\nmap(f, izip(a, b))", id="itertools"),
    pytest.param("def g():\n    yield 1\nit = g()\nit.next()\nother.next()", "def g():\n    yield 1\nit = g()\nnext(it)\nother.next()", id="next of what is surely a generator"),
    pytest.param("class I:\n    def __iter__(self): return self\n    def next(self): return 1\n    def __nonzero__(self): return True", "class I:\n    def __iter__(self): return self\n    def next(self): return 1\n\n    __next__ = next\n    def __bool__(self): return True", id="methods that Python 3 calls otherwise"),
    pytest.param("if a:\n\tb = 1\n        c = '''\n\tx'''", "if a:\n        b = 1\n        c = '''\n\tx'''", id="a tab goes to the next multiple of 8, not inside a text"),
    pytest.param("'''Doc.'''\nfrom __future__ import absolute_import\nx = reduce(f, y)", "'''Doc.'''\nfrom __future__ import absolute_import\nimport functools\nx = functools.reduce(f, y)", id="imports come after the docstring and __future__"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_same_program_in_python3(before: str, after: str) -> None:
    result = ported(f"{before}\n{OLD}").text
    assert result == f"{after}\n{NEW}"
    ast.parse(result)


CLASS = """\
class A(object):
    size = 4
    def __init__(self, data, rate):
        self.n, self.rate, self.half = len(data), rate, 0.5
        self.n += 1
    def parts(self):
        a = self.n / 2
        b = self.size / 2
        return a, b, self.rate / 2, self.half / 2"""

DIVIDED = [
    pytest.param("x = 7 / 2\ny = (x + 1) * 2 / x", "x = 7 // 2\ny = (x + 1) * 2 // x", [], id="integers by their literals"),
    pytest.param("len(a) / 2; x.get_shape().as_list()[1] / 2; x.shape[0] / 2; x.get_shape()[1].value / 2", "len(a) // 2; x.get_shape().as_list()[1] // 2; x.shape[0] // 2; x.get_shape()[1].value // 2", [], id="sizes"),
    pytest.param("_, h, w, _ = x.get_shape().as_list()\nh / 2, w / 2", "_, h, w, _ = x.get_shape().as_list()\nh // 2, w // 2", [], id="a shape taken apart"),
    pytest.param("for i in range(9):\n    a = i / 2\n    i / 2.0\nfor j, z in enumerate(y):\n    j / 2", "for i in range(9):\n    a = i // 2\n    i / 2.0\nfor j, z in enumerate(y):\n    j // 2", [], id="loops"),
    pytest.param("def f(n, m=2):\n    m = n / m\n    return m", "def f(n, m=2):\n    m = n / m\n    return m", [2], id="a parameter may be anything, also one whose default is an integer"),
    pytest.param("s = [int(d) for d in x]\ns[0] / 2", "s = [int(d) for d in x]\ns[0] // 2", [], id="a list of integers"),
    pytest.param("import math, random\nmath.factorial(5) / 7; random.randint(1, 9) / 2; random.random() / 2", "import math, random\nmath.factorial(5) // 7; random.randint(1, 9) // 2; random.random() / 2", [], id="functions that give integers"),
    pytest.param(CLASS, CLASS.replace("self.n / 2", "self.n // 2").replace("self.size / 2", "self.size // 2"), [9], id="an attribute that the class binds to integers only"),
    pytest.param(f"{CLASS}\nclass B(A): pass", f"{CLASS}\nclass B(A): pass", [7, 8, 9], id="not one of a class that another derives from"),
    pytest.param(CLASS.replace("(object)", "(B)"), CLASS.replace("(object)", "(B)"), [7, 8, 9], id="nor of one that derives from another"),
    pytest.param(f"{CLASS}\na.n = 2.5", f"{CLASS}\na.n = 2.5".replace("self.size / 2", "self.size // 2"), [7, 9], id="nor one that is set from outside"),
    pytest.param(f"{CLASS}\nsetattr(a, n, 2.5)", f"{CLASS}\nsetattr(a, n, 2.5)", [7, 8, 9], id="nor one that may be set by its name"),
    pytest.param("N = 64\ndef f(): return N / 2", "N = 64\ndef f(): return N // 2", [], id="a constant of the module"),
    pytest.param("N = 64\ndef f():\n    global N\n    N = g()\nN / 2", "N = 64\ndef f():\n    global N\n    N = g()\nN / 2", [5], id="not one that a function sets anew"),
    pytest.param("N = 64\nfrom m import *\nN / 2", "N = 64\nfrom m import *\nN / 2", [3], id="nor one that a star import may hide"),
    pytest.param("n = 8\nn /= 2\nm = n\nm /= 2.\nm / 2", "n = 8\nn //= 2\nm = n\nm /= 2.\nm / 2", [5], id="in place"),
    pytest.param(TF + "tf.app.flags.DEFINE_integer('n', 8, '')\ntf.app.flags.DEFINE_float('r', 8, '')\nF = tf.app.flags.FLAGS\nF.n / 2, F.r / 2, F.z / 2", TF + "tf.app.flags.DEFINE_integer('n', 8, '')\ntf.app.flags.DEFINE_float('r', 8, '')\nF = tf.app.flags.FLAGS\nF.n // 2, F.r / 2, F.z / 2", [5], id="flags"),
    pytest.param("p.add_argument('--n', type=int, default=3)\np.add_argument('--r', type=float)\na = p.parse_args()\na.n / 2, a.r / 2", "p.add_argument('--n', type=int, default=3)\np.add_argument('--r', type=float)\na = p.parse_args()\na.n // 2, a.r / 2", [4], id="arguments"),
    pytest.param(TF + "x = tf.add_n(y)\nx / 2; tf.shape(x)[0] / 2", TF + "x = tf.add_n(y)\nx / 2; tf.shape(x)[0] / 2", [3], id="a tensor never"),
    pytest.param(TF + "tf.nn.l2_loss(x) / 3; tf.cast(n, tf.float32) / 2; time.time() / 2; np.mean(x) / n; x.astype('float32') / 9", TF + "tf.nn.l2_loss(x) / 3; tf.cast(n, tf.float32) / 2; time.time() / 2; np.mean(x) / n; x.astype('float32') / 9", [], id="what is surely no integer"),
    pytest.param("def f(a, b):\n    return a / b\nf.x / 2\ns = [1]\ns.append(.5)\ns[0] / 2", "def f(a, b):\n    return a / b\nf.x / 2\ns = [1]\ns.append(.5)\ns[0] / 2", [2, 3, 6], id="what may be anything"),
    pytest.param("x = (1  # a / b\n     / 2)", "x = (1  # a / b\n     // 2)", [], id="over lines"),
    pytest.param("from __future__ import division\n7 / 2", "from __future__ import division\n7 / 2", [], id="a file that divides as Python 3 does"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "lines"), DIVIDED)
def test_only_what_surely_are_integers_is_rounded_down(
    before: str, after: str, lines: list[int]
) -> None:
    result = ported(f"{before}\n{OLD}")
    assert result.text == f"{after}\n{NEW}"
    found = [f.message for f in result.findings if f.rule == "TM122"]
    said = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    assert found == ([f"`/` may be one between integers: {said}"] if lines else [])


IN_PLACE = [
    pytest.param("def f(n, x):\n    return x[1:n / 2 + 1]", "slice", id="a slice"),
    pytest.param("def f(n, x):\n    return [i for i in range(n / x)]", "range", id="a range"),
    pytest.param(f"{TF}x[:tf.shape(x)[0] / 2]", "slice", id="a slice of a tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place"), IN_PLACE)
def test_a_division_where_a_fraction_raises_stays_and_says_so(text: str, place: str) -> None:
    result = ported(f"{text}\n{OLD}")
    assert result.text == f"{text}\n{NEW}"
    assert [f.message for f in result.findings if f.rule == "TM122"] == [
        f"`/` may be one between integers: line 2 (in a {place}: a fraction raises an error there in Python 3, "
        "write `//` if both are integers)"
    ]


REMARKED = [
    pytest.param("round(x)", "TM124", "round takes halves to the even number", id="round"),
    pytest.param("map(None, a, b)", "TM124", "map needs a function", id="map of None"),
    pytest.param("reader.next()", "TM124", ".next() is next(…)", id="next of something unknown"),
    pytest.param("[i for i in a]; f(i)", "TM124", "i has no longer the value", id="a name that leaked from a comprehension"),
    pytest.param("try: f()\nexcept E, e: pass\ng(e)", "TM124", "e has no longer the value", id="a name that outlived its except"),
    pytest.param("class A:\n    def __cmp__(self, b): pass", "TM124", "__cmp__ is not called", id="a method"),
    pytest.param("def f():\n    exec 'x = 1'\n    return x", "TM124", "exec binds no local names", id="exec in a function"),
    pytest.param("import md5", "TM124", "there is no module md5", id="a module that is gone"),
    pytest.param("from string import letters", "TM124", "string has no letters", id="a function that is gone"),
    pytest.param("import cPickle\ncPickle.load(open(n, 'rb'))", "TM123", "open in a binary mode", id="a binary file"),
    pytest.param("from StringIO import StringIO\ns = StringIO()", "TM123", "StringIO", id="StringIO held bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "words"), REMARKED)
def test_what_only_a_person_can_decide_is_said(text: str, rule: str, words: str) -> None:
    found = [f.message for f in ported(f"{text}\n{OLD}").findings if f.rule == rule]
    assert len(found) == 1 and words in found[0]


UNREMARKED = [
    pytest.param("i = [i for i in a]; f(i)", id="a name bound anew after its comprehension"),
    pytest.param("try: f()\nexcept E, e: g(e)", id="a name read in its except"),
    pytest.param("x = [f(i) for i in a if i]", id="a name read in its comprehension"),
]  # fmt: skip


@pytest.mark.parametrize("text", UNREMARKED)
def test_what_means_the_same_is_not_remarked(text: str) -> None:
    assert [f.rule for f in ported(f"{text}\n{OLD}").findings] == ["TM121"]


LEFT = [
    pytest.param("print 'a'\nx = = 1\n", False, id="no Python at all"),
    pytest.param("print 'a'\nx: int = 1\n", False, id="Python 2 beside Python 3"),
    pytest.param("print f'{a}'\n", False, id="an f-string in a print statement"),
    pytest.param("print ur'\\u0041'\n", True, id="a raw text with an escape"),
    pytest.param("def f((a, b)):\r\n    print a\n", True, id="mixed line ends and a statement more"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "python2"), LEFT)
def test_what_cannot_be_ported_has_a_reason(text: str, python2: bool) -> None:
    result = port(text, "m.py")
    assert isinstance(result, Unported) and result.reason
    assert result.python2 is python2
    report = rewrite_tree({"m.py": f"# tensorflow\n{text}"})
    assert [file.status for file in report.files] == ["unparsable"]
    assert report.texts == {}


def test_the_example_of_port() -> None:
    assert doctest.testmod(sys.modules[port.__module__]).failed == 0


def test_line_ends_and_what_is_around_stay() -> None:
    assert ported("print 1\r\nx  =  1 # a\r\n").text == "print(1)\r\nx  =  1 # a\r\n"
    assert ported("print 1\nx = 1\r\n\x0c\ny = 2").text == "print(1)\nx = 1\r\n\x0c\ny = 2"


# Programs whose output is the same under Python 2 as they are and under this Python when ported.
PROGRAMS = [
    pytest.param("def f((a, b), n):\n    return a * n + b\nprint f((1, 2), 3), (lambda (x, y): x - y)((3, 1))", id="tuple parameters"),
    pytest.param("for i in xrange(7 / 2):\n    print i / 2,\nprint -7 / 2, 7 / 2., len('abc') / 2", id="division"),
    pytest.param("import string\nprint string.join(map(str, [1, 2]), '-'), filter(None, [0, 1]), zip([1], [2]), range(3) + [1]", id="lists"),
    pytest.param("def g():\n    for i in xrange(3): yield i\nit = g()\nprint it.next(), it.next()\nclass A(object):\n    def __init__(self): self.n = 0\n    def __iter__(self): return self\n    def next(self):\n        self.n += 1\n        if self.n > 2: raise StopIteration\n        return self.n\nprint list(A())", id="iterators"),
    pytest.param("xs = [3, 1, 2]\nxs.sort(lambda a, b: b - a)\nprint xs, sorted(xs, cmp=lambda a, b: a - b), `xs`, 0777, 1 <> 2", id="cmp and literals"),
    pytest.param("try:\n    raise ValueError, 'bad'\nexcept ValueError, e:\n    print 'caught', e\nd = {1: 2}\nfor k in d.keys():\n    del d[k]\nprint d, d.has_key(1)", id="exceptions and dictionaries"),
    pytest.param("if True:\n\tx = 1\n        y = '\\u12'\n\tprint x, len(y), '''a\n\tb'''", id="tabs and escapes"),
    pytest.param("h, w = [7, 9]\nn = h / 2 + w / 2\nn /= 2\ntotal = 0\nfor i in range(4):\n    total += i / 2\nprint n, total, (1, 2), `n / 2`", id="integers in names"),
]  # fmt: skip


@functools.cache
def python2() -> str | None:
    """An interpreter of Python 2: TOWERMIGRATE_PYTHON2, one of pyenv's, or one on the path."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [os.environ.get("TOWERMIGRATE_PYTHON2", "python2.7")]
    candidates += [str(path) for path in kept.glob("2.7*/bin/python")]
    for candidate in candidates:
        try:
            run = subprocess.run([candidate, "-c", "print 1"], capture_output=True, timeout=30)
        except OSError:
            continue
        if run.returncode == 0:
            return candidate
    return None


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_ported_program_prints_what_python2_printed(text: str) -> None:
    old = python2()
    if old is None:
        pytest.skip("no Python 2 found (name one in TOWERMIGRATE_PYTHON2)")
    result = ported(f"{text}\n")
    assert [f.rule for f in result.findings] == ["TM121"]
    outputs = [
        subprocess.run([python, "-c", program], capture_output=True, check=True).stdout
        for python, program in ((old, text), (sys.executable, result.text))
    ]
    assert outputs[0] == outputs[1] != b""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def document(root: Path, *arguments: str | Path) -> Any:
    target = root.parent / "report.json"
    run(*arguments, root, "--json", target)
    return json.loads(target.read_text(encoding="utf-8"))


OLD_FILE = "# -*- coding: latin-1 -*-\r\n# caf\xe9\r\nprint 'a'\r\nimport tensorflow as tf\r\ntf.placeholder(1)\r\n"
HELPER = "def show(x):\n    print x\n"


def test_a_tree_is_ported_and_put_back(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    raw = {"old.py": OLD_FILE.encode("latin-1"), "helper.py": HELPER.encode()}
    for name, content in raw.items():
        (root / name).write_bytes(content)
    found = document(root, "rewrite")
    assert [(file["path"], file["status"]) for file in found["files"]] == [
        ("helper.py", "rewritten"), ("old.py", "rewritten"),
    ]  # fmt: skip
    assert [finding["rule"] for finding in found["files"][1]["findings"]] == ["TM121", "TM120"]
    assert (root / "old.py").read_bytes() == (
        OLD_FILE.replace("print 'a'", "print('a')")
        .replace("tf.placeholder", "tf.compat.v1.placeholder")
        .encode("latin-1")
    )
    assert run("rewrite", root, "--check").exit_code == 0
    assert run("undo", root).exit_code == 0
    assert {name: (root / name).read_bytes() for name in raw} == raw


def test_never_leaves_python2_files_as_unparsable(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "old.py").write_bytes(OLD_FILE.encode("latin-1"))
    (root / "helper.py").write_text(HELPER)
    found = document(root, "rewrite", "--py2", "never")
    assert [(file["path"], file["status"]) for file in found["files"]] == [("old.py", "unparsable")]
    assert run("rewrite", root, "--py2", "never").exit_code == 3
    assert (root / "old.py").read_bytes() == OLD_FILE.encode("latin-1")


REFUSED = """\
import tensorflow as tf
import helper

def main((a, b)):
    opt = tf.train.AdamOptimizer(0.1)
    tower_grads = []
    for i in xrange(2):
        with tf.device('/gpu:%d' % i), tf.variable_scope('tower_%d' % i):
            loss = helper.loss(i)
            tower_grads.append(opt.compute_gradients(loss))
    train_op = opt.apply_gradients(strange(tower_grads))
    with tf.Session() as sess:
        print sess.run(train_op)
"""


def test_a_refused_program_stays_python2() -> None:
    sources = {"train.py": REFUSED, "helper.py": "def loss(i):\n    print i\n"}
    report = rewrite_tree(sources)
    assert [(f.path, f.status) for f in report.files] == [
        ("helper.py", "unchanged"), ("train.py", "refused"),
    ]  # fmt: skip
    assert report.texts == {}
    program = report.programs[0]
    assert program.line == REFUSED.splitlines().index("    for i in xrange(2):") + 1
    again = rewrite_tree(sources, refused="symbols")
    assert "for i in range(2):" in again.texts["train.py"]
    assert "tf.compat.v1.Session" in again.texts["train.py"]
    assert [f.status for f in again.files] == ["rewritten", "refused"]


def test_a_python_2_program_in_session_style_is_told_by_its_own_lines() -> None:
    text = REFUSED.replace(", tf.variable_scope('tower_%d' % i)", "").replace(
        "    opt = ", "    print a,\n    step = tf.Variable(0)\n    opt = "
    )
    report = rewrite_tree({"train.py": text, "helper.py": "def loss(i):\n    print i\n"})
    (program,) = report.programs
    (said,) = [finding for finding in program.findings if finding.rule == "TM310"]
    assert program.style == "session"
    lines = text.splitlines()
    assert lines[program.line - 1] == lines[said.line - 1] == "    for i in xrange(2):"
    place = re.search(r"train\.py:(\d+)", said.message)
    assert place is not None and lines[int(place[1]) - 1] == "    step = tf.Variable(0)"
    assert (
        "    print(a, end=' ')\n    tm.mirror_variables(2)\n    step = " in report.texts["train.py"]
    )


def test_a_read_only_home_is_no_obstacle() -> None:
    command = (
        "from towermigrate.python2 import port; print(port('print 1\\n', 'm.py').text, end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, "HOME": os.devnull, "XDG_CACHE_HOME": os.path.join(os.devnull, "cache")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "print(1)\n", done.stderr


def test_originals_of_python2_can_be_run() -> None:
    sources = {"old.py": "import new\nprint new.half(7 / 2)\n", "new.py": TF, "none.py": "x = ("}
    assert in_python3(sources) == {**sources, "old.py": "import new\nprint(new.half(7 // 2))\n"}


def test_only_what_may_be_python2_is_parsed(tmp_path: Path) -> None:
    texts = {
        "new.py": "print('a')\n", "helper.py": HELPER, "broken.py": "x = (\nprint x\n", "tf.py": TF,
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert set(read_tree(tmp_path, list_tree(tmp_path))) == {"tf.py"}
    files = read_tree(tmp_path, list_tree(tmp_path), python2=True)
    assert set(files) == {"broken.py", "helper.py", "tf.py"}
    report = rewrite_tree({name: file.text or "" for name, file in files.items()})
    assert [f.path for f in report.files] == ["helper.py", "tf.py"], (
        "no Python at all is no concern"
    )


SIGNS = [
    "print 'a'", "print x", "print('a') % b", "print (a), b", "print >>f, x", "print(a) if b else c, d",
    "except E, e:", "except (A, B), e:", "raise E, 'why'", "exec 'x = 1'", "x = `y`", "a <> b", "x = 0755", "n = 10L",
    "n = 0xFFl", "s = ur'a'", "def f(a, (b, c)):", "def f((a, b)):", "lambda (a, b): a", "if a:\n\tb\n        c",
]  # fmt: skip


@pytest.mark.parametrize("text", SIGNS)
def test_a_quick_look_sees_the_signs_of_python2(text: str) -> None:
    assert looks_like_python2(f"x = 1\n{text}\ny = 2\n".encode())


def test_a_quick_look_passes_over_python3() -> None:
    text = "print(a)\nprint(a).b\nx = 0.05 + 10\nexcept_ = [e, 'print']\ndef f(a, b=(1, 2)): pass\n"
    assert not looks_like_python2(text.encode())


def test_text_that_the_encoding_cannot_hold_is_decoded_first() -> None:
    file = decode("m.py", OLD_FILE.encode("latin-1"))
    assert file.text is not None
    assert "caf\xe9" in ported(file.text).text


@pytest.mark.parametrize(
    "statement",
    [
        "except ValueError, e:",
        "exec('x')",
        "d.has_key(1)",
        "g.throw(E)",
        "print(1, 2)",
        "print >>f, 1",
        "s = '\\u0041'",
    ],
)
def test_what_a_fixer_changes_is_given_to_it(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the Python that runs this can parse: 3.14 takes `except A, e` for two exceptions."""
    monkeypatch.setattr(syntax, "parse_python", lambda text: ast.parse("x = 1"))
    assert syntax._of_both(f"try:\n    f()\n{statement}\n") is None
    assert syntax._of_both("try:\n    f()\nexcept (A, B) as e:\n    g(a, b)\n") == frozenset()
