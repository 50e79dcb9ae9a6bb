"""Files that both Pythons parse and that use names of Python 2: each is said once, and nothing else is."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys

import pytest

from towermigrate.python2 import unbound
from towermigrate.python2.unbound import may_be_python2, python2_names

SAID = [
    pytest.param("for i in xrange(3): pass", "`xrange`, it is `range` there", id="xrange"),
    pytest.param("isinstance(s, basestring)", "`basestring`, it is `str` there", id="basestring"),
    pytest.param("f(unicode(s), list(map(unicode, t)))", "`unicode`, it is `str` there", id="unicode, also where it is no call"),
    pytest.param("x = raw_input()", "`raw_input`, it is `input` there", id="raw_input"),
    pytest.param("x = unichr(3)", "`unichr`, it is `chr` there", id="unichr"),
    pytest.param("x = 1 + long(n)", "`long`, it is `int` there", id="long"),
    pytest.param("x = reduce(f, y)", "`reduce`, it is `functools.reduce` there", id="reduce"),
    pytest.param("x = file(p).read()", "`file`, it is `open` there", id="file"),
    pytest.param("if cmp(a, b): pass", "`cmp`", id="a builtin that has no other name"),
    pytest.param("for k, v in d.iteritems(): pass", "`.iteritems()` of a dictionary, it is `.items()` there", id="iteritems"),
    pytest.param("f(self.d.itervalues(), d.iterkeys)", "`.itervalues()` of a dictionary, it is `.values()` there", id="itervalues"),
    pytest.param("d = {}\nd.has_key(1)", "`.has_key()` of a dictionary, it is `key in dictionary` there", id="has_key of what is a dictionary"),
    pytest.param("def g(): yield 1\nx = g()\nx.next()", "`.next()` of a generator, it is `next(…)` there", id="next of what is a generator"),
    pytest.param("print >>f, x", "`print >>`, it is `print(…, file=…)` there", id="print to a file, which Python 3 parses"),
    pytest.param("f(a.values() + b.values())", "`+` for what `.values()` gives, it is `list(…) + list(…)` there", id="two views added"),
    pytest.param("x = set(self.a.keys() + self.b.keys() + c)", "`+` for what `.keys()` gives, it is `list(…) + list(…)` there", id="three things added"),
    pytest.param("d = {1: 2}\nx = d.items() + [(3, 4)]", "`+` for what `.items()` gives, it is `list(…) + list(…)` there", id="a view of a dictionary and a list"),
    pytest.param("d = dict(a=1)\nx = ['b'] + d.keys()", "`+` for what `.keys()` gives, it is `list(…) + list(…)` there", id="a list and a view of a dictionary"),
    pytest.param("import cPickle as pickle", "module `cPickle`, it is `pickle` there", id="a module"),
    pytest.param("import os, sys, Queue", "module `Queue`, it is `queue` there", id="a module among others"),
    pytest.param("from StringIO import StringIO", "module `StringIO`, it is `io` there", id="from a module"),
    pytest.param("import urllib2", "module `urllib2`, it is `urllib.request` there", id="urllib2"),
    pytest.param("import urllib\nurllib.urlretrieve(u)", "`urllib.urlretrieve`, it is `urllib.request.urlretrieve` there", id="a function that moved"),
    pytest.param("from urllib import urlencode", "`urllib.urlencode`, it is `urllib.parse.urlencode` there", id="from a module that stayed"),
    pytest.param("import itertools\nitertools.izip(a, b)", "`itertools.izip`, it is `zip` there", id="itertools"),
    pytest.param("from string import maketrans", "`string.maketrans`, it is `str.maketrans` there", id="string"),
    pytest.param("try: train(xrange(3))\nexcept ValueError: pass", "`xrange`, it is `range` there", id="in a try that expects something else"),
    pytest.param("try:\n    xs = xrange(3)\n    train(xs)\nexcept: pass", "`xrange`, it is `range` there", id="in a try that expects anything"),
    pytest.param("try: f()\nexcept NameError: pass\nfinally: xrange(3)", "`xrange`, it is `range` there", id="after a try, whatever comes"),
    pytest.param("if tf.__version__ < '2': xrange(3)", "`xrange`, it is `range` there", id="where the version of something else is asked for"),
    pytest.param("from m import *\nf(xrange(3))", "`xrange`, it is `range` there, unless `from m import *` brings it", id="where a star import may bring it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), SAID)
def test_a_name_that_only_python2_has_is_said(text: str, words: str) -> None:
    found = python2_names("m.py", f"import tensorflow as tf\n{text}\n")
    assert [(f.rule, f.message) for f in found] == [("TM127", f"Python 3 has no {words}")]
    assert found == python2_names(
        "m.py", f"import tensorflow as tf\n{text}\n", ast.parse(f"\n{text}")
    )


QUIET = [
    pytest.param("from six.moves import xrange\nxrange(3)", id="imported"),
    pytest.param("from six.moves import *\nxrange(3)", id="imported with a star from six.moves"),
    pytest.param("from six.moves import urllib, cPickle, queue as Queue\nurllib.urlopen", id="modules of six.moves"),
    pytest.param("import six.moves.cPickle", id="a module of six.moves by its whole name"),
    pytest.param("from functools import reduce\nreduce(f, x)", id="reduce from functools"),
    pytest.param("def f(file, cmp): return file(cmp)", id="a parameter"),
    pytest.param("try: xrange\nexcept NameError: xrange = range\nxrange(3)", id="defined where it is missing"),
    pytest.param("try: text = unicode\nexcept NameError: text = str", id="a try for a missing name"),
    pytest.param("try: text = unicode\nexcept: text = str", id="a try that is there for one name only"),
    pytest.param("try: import cPickle as pickle\nexcept ImportError: import pickle", id="a try for a missing module"),
    pytest.param("try: import queue\nexcept (OSError, ImportError): import Queue as queue", id="the other branch of it"),
    pytest.param("try:\n    import urllib2, cPickle\n    import StringIO\nexcept Exception: pass", id="a try of imports only"),
    pytest.param("try: f(d.iteritems())\nexcept AttributeError: f(d.items())", id="a try for a missing method"),
    pytest.param("import sys\nif sys.version_info[0] < 3: text = unicode(s)\nelse: text = s", id="a part for Python 2"),
    pytest.param("import six\nif six.PY3:\n    pass\nelif a:\n    unicode(s)", id="the other part of one for Python 3"),
    pytest.param("x = unicode(s) if PY2 else str(s)", id="an expression for Python 2"),
    pytest.param("import six\nif six.PY2 and isinstance(s, unicode): pass", id="a condition that asks first"),
    pytest.param("def f(s):\n    if IS_PY3:\n        return s\n    return unicode(s)", id="what only Python 2 comes to"),
    pytest.param("import six\n@skip_if(six.PY3)\ndef f(s): return unicode(s)", id="a function for Python 2"),
    pytest.param("if hasattr(d, 'iteritems'): d.iteritems()", id="a method that is asked for"),
    pytest.param("import builtins\nbuiltins.unicode = str\nf(unicode(s))", id="a builtin that the file makes"),
    pytest.param("six.iteritems(d); d.iteritems(sort=True)", id="calls that take arguments"),
    pytest.param("class D:\n    def iteritems(self): pass\nD().iteritems()", id="a method of the file"),
    pytest.param("reader.next(); store.has_key(k)", id="methods that may be those of another class"),
    pytest.param("x = iter(loader)\nx.next()", id="next of an iterator that may have one"),
    pytest.param("def g():\n    def h(): yield 1\n    return Ahead(h())\nx = g()\nx.next()", id="next of what a generator is put into"),
    pytest.param("import urllib\nfrom six.moves import urllib\nurllib.urlopen(u)", id="a module whose name means another one"),
    pytest.param("from .urllib import quote\nfrom .StringIO import x", id="modules of the package"),
    pytest.param("import commands, thread, exceptions", id="modules that the tree may have"),
    pytest.param("import urllib.request\nurllib.request.urlopen(u); urllib.parse.quote(u)", id="Python 3's urllib"),
    pytest.param("x = list(a.values()) + list(b.values())", id="lists of views added"),
    pytest.param("x = store.values() + y; y = n + store.keys()", id="views of what may be no dictionary"),
    pytest.param("x = a.keys() - b.keys() | c.keys(); x = a.values(1) + b.values(1)", id="what views have, and other methods"),
    pytest.param("class D:\n    def values(self): return []\nx = D().values() + D().values()", id="views that the file makes lists of"),
    pytest.param("if six.PY2: x = a.values() + b.values()", id="views added in a part for Python 2"),
    pytest.param("x = 'xrange(3)'  # xrange(3), d.iteritems()", id="texts and comments"),
    pytest.param("x = tf.reduce_sum(np.long(y.file(3)))\n7 / 2", id="attributes, and no word about `/`"),
]  # fmt: skip


@pytest.mark.parametrize("text", QUIET)
def test_what_python3_has_or_the_file_is_ready_for_is_not_said(text: str) -> None:
    assert python2_names("m.py", f"import tensorflow as tf\n{text}\n") == ()


def test_a_name_is_said_once_at_its_first_line() -> None:
    text = "def f():\n    caf\xe9 = 'é'; g(xrange(1), xrange(2))\n    xrange(3)\nfor i in xrange(4): unicode(i)\n"
    found = python2_names("m.py", text)
    assert [(f.line, f.column, f.message) for f in found] == [
        (2, 18, "Python 3 has no `xrange`, it is `range` there (and on 2 other lines)"),
        (4, 20, "Python 3 has no `unicode`, it is `str` there"),
    ]
    assert text.splitlines()[1][18:24] == "xrange"


DIVISIONS = [
    pytest.param("xrange(3)\n7 / 2\nlen(a) / 2; a / 2", [2, 3], id="between known integers only"),
    pytest.param("xrange(3)\na / 2; 1 / 2.", [], id="not what may be anything"),
    pytest.param("7 / 2", [], id="not in a file without names of Python 2"),
    pytest.param("from six.moves import xrange\nxrange(7 / 2)", [], id="nor in one that is ready for both"),
    pytest.param("from __future__ import division\nxrange(3)\n7 / 2", [], id="nor in one that divides as Python 3 does"),
    pytest.param("xrange(3)\nf'{x}'\n7 / 2", [], id="nor in one that Python 2 cannot parse"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), DIVISIONS)
def test_divisions_that_give_another_number_are_named(text: str, lines: list[int]) -> None:
    found = [f for f in python2_names("m.py", text) if f.rule == "TM122"]
    said = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    message = f"`/` between integers gives a fraction in Python 3, Python 2 rounded it down: {said}"
    assert [(f.line, f.message) for f in found] == ([(lines[0], message)] if lines else [])


LISTS = [
    pytest.param("steps = map(int, texts)\nxrange(3)", [1], id="bound to a name"),
    pytest.param("xrange(3)\nmap(work, xs)", [2], id="called for what it does"),
    pytest.param("xrange(3)\nif filter(None, xs): f()\nself.pairs = zip(a, b)\nreturned = [zip(a, b)]", [2, 3, 4], id="asked, kept"),
    pytest.param("xrange(3)\nf(zip(*towers), map(g, xs))", [2], id="handed on"),
    pytest.param("xrange(3)\nx = list(map(int, y)), sum(map(f, y)), ','.join(map(str, y)), {*zip(y, y)}", [], id="taken whole"),
    pytest.param("xrange(3)\nfor a, b in zip(x, y): f(a)\nz = [a for a in map(f, x)]", [], id="gone through where it stands"),
    pytest.param("xrange(3)\nfor i, (a, b) in enumerate(zip(x, map(f, y))): g(a)", [], id="counted, zipped"),
    pytest.param("xrange(3)\nopt.apply_gradients(zip(grads, variables)); d.update(zip(a, b))", [], id="handed to what goes once"),
    pytest.param("steps = map(int, texts)", [], id="not in a file without names of Python 2"),
    pytest.param("def map(f, x): return x\nxrange(3)\ny = map(f, x)", [], id="nor a function of the file's own"),
    pytest.param("xrange(3)\nf'{x}'\ny = map(f, x)", [], id="nor in one that Python 2 cannot parse"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), LISTS)
def test_lists_that_python3_goes_through_once_are_named(text: str, lines: list[int]) -> None:
    found = [f for f in python2_names("m.py", text) if f.rule == "TM124"]
    assert [f.line for f in found] == lines[:1]
    if lines:
        assert found[0].message.endswith(
            f": line{'s'[: len(lines) - 1]} {', '.join(map(str, lines))}"
        )


def test_a_quick_look_passes_over_most_files() -> None:
    assert not may_be_python2(
        "from six.moves import xrange\nfor i in xrange(3): profile(tf.reduce(i))\n"
    )
    assert not may_be_python2("for k, v in d.items(): n += f(k) + sum(d.values()) * 2\n")
    assert not may_be_python2("import unicodedata\n# how long (or file) it takes\n'unicode'\n")


def test_the_example() -> None:
    assert doctest.testmod(unbound).failed == 0


def test_a_quick_look_loads_no_parser_of_python2() -> None:
    command = "import sys, towermigrate.python2.unbound; print({'fissix', 'libcst', 'tensorflow'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
