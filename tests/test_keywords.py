"""Words that are keywords now and were names: renamed where that is safe, else said."""

from __future__ import annotations

import ast
import doctest

import pytest

from towermigrate.python2 import Ported, Unported, keywords, port
from towermigrate.rewrite import rewrite_tree

RENAMED = [
    pytest.param("def f(async=True):\n    return async\n", "def f(async_=True):\n    return async_\n", id="a parameter"),
    pytest.param("def f(a, async):\n    pass\nf(1, async=2)\n", "def f(a, async_):\n    pass\nf(1, async_=2)\n", id="a keyword argument of the file's function"),
    pytest.param("async = 1\nx = async + 1\n", "async_ = 1\nx = async_ + 1\n", id="a variable"),
    pytest.param("def async(x):\n    return x\ny = async(3)\n", "def async_(x):\n    return x\ny = async_(3)\n", id="a function"),
    pytest.param("class A:\n    def __init__(self, async):\n        self.async = async\n    def f(self):\n        return self.async\n", "class A:\n    def __init__(self, async_):\n        self.async_ = async_\n    def f(self):\n        return self.async_\n", id="an attribute"),
    pytest.param("class A:\n    def async(self):\n        return self.async()\n", "class A:\n    def async_(self):\n        return self.async_()\n", id="a method"),
    pytest.param("await = [1]\nfor x in await: pass\n", "await_ = [1]\nfor x in await_: pass\n", id="await"),
    pytest.param("é = 'é'; async = é\r\nx = async\r\n", "é = 'é'; async_ = é\r\nx = async_\r\n", id="letters and line ends stay"),
    pytest.param("async = 7 / 2\n", "async_ = 7 / 2\n", id="what Python 3 parses then is not taken for Python 2"),
    pytest.param("print 'a', 7 / 2\nasync = 1\n", "print('a', 7 // 2)\nasync_ = 1\n", id="Python 2 all the same"),
    pytest.param("nonlocal = 1\nprint nonlocal\n", "nonlocal_ = 1\nprint(nonlocal_)\n", id="nonlocal"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), RENAMED)
def test_names_are_renamed(before: str, after: str) -> None:
    ported = port(before, "a.py")
    assert isinstance(ported, Ported)
    assert ported.text == after
    ast.parse(after)
    assert "got another name" in ported.findings[0].message


KEPT = [
    pytest.param("import m\nm.async(1)\n", "attribute of another", id="an attribute of a module"),
    pytest.param("x = FLAGS.async\n", "attribute of another", id="an attribute of the flags"),
    pytest.param("class A(B):\n    def f(self):\n        return self.async\n", "does not set", id="an attribute of a base class"),
    pytest.param("from m import async\n", "another file", id="an import"),
    pytest.param("apply(async=True)\n", "no function of the file", id="a keyword argument of another function"),
    pytest.param("def f(**k):\n    return k['async']\nf(async=1)\n", "a text of the file", id="a text names it"),
    pytest.param("async = async_ = 1\n", "is taken", id="the new name is taken"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), KEPT)
def test_a_name_that_may_mean_something_elsewhere_is_kept_and_said(text: str, reason: str) -> None:
    result = port(text, "a.py")
    assert isinstance(result, Unported) and reason in result.reason
    report = rewrite_tree({"a.py": f"import tensorflow as tf\n{text}"})
    (finding,) = report.files[0].findings
    assert finding.rule == "TM101" and reason in finding.message and not report.texts


CONSTANTS = [
    pytest.param("from __builtin__ import False\nprint 1\n", "pass\nprint(1)\n", id="alone"),
    pytest.param("def f():\n    from __builtin__ import True, None\n    print 1\n", "def f():\n    pass\n    print(1)\n", id="in a function"),
    pytest.param("from __builtin__ import open, True\nprint 1\n", "from builtins import open\nprint(1)\n", id="beside another name"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CONSTANTS)
def test_constants_are_no_names_any_more(before: str, after: str) -> None:
    ported = port(before, "a.py")
    assert isinstance(ported, Ported) and ported.text == after


def test_real_keywords_stay() -> None:
    text = "print 'a'\nasync def f():\n    async with a: await b\n"
    result = port(text, "a.py")
    assert isinstance(result, Unported)
    assert "keyword since" not in result.reason


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(keywords).failed == 0
