"""What is called surely unchanged is unchanged: of texts that try to hide something, of all fixtures, of random ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towermigrate.reading import read, read_again
from towermigrate.symbols import rewrite_symbols
from towermigrate.symbols.quick import surely_unchanged

ROOT = Path(__file__).parents[2]
TF = "import tensorflow as tf\n"
HELPERS = "import towermigrate.helpers\n"

CERTAIN = [
    pytest.param(TF + "tf.compat.v1.placeholder(tf.float32)\n", id="names of compat.v1"),
    pytest.param(TF + "tf.reshape(x, y)  # not tf.placeholder\n", id="a comment"),
    pytest.param(TF + '"""tf.placeholder, `tf.log`\n"""\ns = r\'tf.log\\\'\' "\\"tf.log"\n', id="strings"),
    pytest.param(TF + "def f(x):\n    self.tf.log(x.tf.log)\n", id="a member that is called tf"),
    pytest.param(TF + "a = tf.compat.v1.flags\na.DEFINE_string('a', '', '')\nb = a.FLAGS\n", id="aliases"),
    pytest.param(TF + "tf.concat([a, b], 1)\ntf.split(x, 2, axis=1)\n", id="arguments in today's order"),
    pytest.param(TF + "tf.reduce_mean(tf.shape(x), axis=[0])\ntf.constant(1., name='tf.log')\n", id="calls that mean the same"),
    pytest.param(TF + "tf.contrib.crf.crf_decode(x)\n", id="a name without successor"),
    pytest.param(HELPERS + "import tf_slim as slim\n" + TF + "slim.conv2d(x)\n", id="tf_slim"),
    pytest.param(HELPERS + TF + "tf.compat.v1.layers.dense(x, 2)\n", id="legacy Keras"),
    pytest.param("from tensorflow import float32, reshape\nreshape(x, float32)\n", id="names of their own"),
    pytest.param("from tensorflow.python.ops import (  # private\n    math_ops)\nmath_ops.add(1)\n", id="a private module"),
    pytest.param("try: import tensorflow as tf\nexcept ImportError: tf = None\nelse: import os; import sys\n", id="imports behind colons"),
    pytest.param("import os, \\\n    tensorflow as tf\ntf.reshape(\n    x, y)\n", id="a line that goes on"),
    pytest.param("from .tensorflow_tools import log\nlog.placeholder\n", id="a file of the tree"),
    pytest.param(TF.replace("\n", "\r\n") + "tf.range(3)\r\n", id="CRLF"),
]  # fmt: skip

UNCERTAIN = [
    pytest.param(TF + "tf.placeholder(tf.float32)\n", id="a name of TensorFlow 1"),
    pytest.param(TF + "tf . log(x)\n", id="blanks"),
    pytest.param(TF + "tf.reduce_mean(x)\ntf.reduce_mean(x, keep_dims=True)\n", id="a call that does not mean the same"),
    pytest.param(TF + "tf.reduce_mean(x)\ntf.map_fn(\n    tf.reduce_mean, x)\n", id="what is called elsewhere, handed on"),
    pytest.param(TF + "f = tf.shape\nf(x)\n", id="what would mean the same, under another name"),
    pytest.param(TF + "(tf\n .log(x))\n", id="a chain over lines"),
    pytest.param(TF + "tf.\\\nlog(x)\n", id="a chain over a backslash"),
    pytest.param(TF + "(tf  # why\n .log(x))\n", id="a comment in a chain"),
    pytest.param(TF + "print(f'{tf.log(x)}')\n", id="code in a string"),
    pytest.param(TF + "print(rF'{tf.log(x)}')\n", id="code in a raw string"),
    pytest.param(TF + "ｔｆ.log(x)\n", id="another spelling of an identifier"),
    pytest.param(TF + "n = tf.nn\nn.max_pool(x)\n", id="through an alias"),
    pytest.param(TF + "def f():\n    n = (tf.\n         nn)\n    return n.max_pool\n", id="through an alias in a function"),
    pytest.param(TF + "a = tf; b = a.nn; b.max_pool\n", id="through two aliases"),
    pytest.param(TF + "if x: (a) = tf\na.log(x)\n", id="an alias in parentheses, behind a colon"),
    pytest.param(TF + "tf.concat(1, [a, b])\n", id="arguments of 0.x"),
    pytest.param(TF + "tf.concat(\n    axis, [f(')'), [']']]\n)\n", id="arguments of 0.x over lines"),
    pytest.param(TF + "(tf.concat)(1, [a, b])\n", id="arguments of 0.x in brackets of their own"),
    pytest.param(TF + "(tf).log(x)\n", id="the module in brackets"),
    pytest.param(TF + "( ( tf.train\n) ).Saver()\n", id="a chain in brackets"),
    pytest.param("from tensorflow import train\n@(train).Saver\ndef f(): pass\n", id="a name in brackets"),
    pytest.param(TF + "x = (tf).concat\nx(1, [a])\n", id="an alias of what stands in brackets"),
    pytest.param(TF + "if 1: ( x )= tf.concat\nx(1, [a])\n", id="an alias with blanks in its brackets"),
    pytest.param(TF + 'x = f"{\n1}" + tf.log(x, name="a")\n', id="code in a string over lines"),
    pytest.param(TF + "x = f'{a:{\n1}}' + tf.log(x, name='a')\n", id="code in a string over lines, other quotes"),
    pytest.param(TF + "".join(f"x{n + 1} = x{n}\n" for n in range(3000)).replace("x0", "tf"), id="very many aliases"),
    pytest.param(TF + "tf.scalar_summary(a, b)\n", id="a name of 0.x that needs its arguments"),
    pytest.param(TF + "y = x.get_shape()[0].value\n", id="a dimension"),
    pytest.param(TF + "x = x.get_shape()[0] \\\n  .value\n", id="a dimension over lines"),
    pytest.param("import tensorflow.contrib.slim as slim\nslim.conv2d(x)\n", id="contrib"),
    pytest.param("from tensorflow.contrib import slim\n", id="contrib that is not used"),
    pytest.param(TF + "slim = tf.contrib.slim\n", id="an alias of contrib"),
    pytest.param("from tensorflow import log\nlog(x)\n", id="a name of TensorFlow 1 by itself"),
    pytest.param("from tensorflow import (\n    # both\n    float32,\n    log)\n", id="a name in a list over lines"),
    pytest.param("if x: from tensorflow import log\n", id="an import behind a colon"),
    pytest.param("import tf_slim as slim\n" + TF + "slim.conv2d(x)\n", id="tf_slim without the helpers"),
    pytest.param("import tf_slim\n" + HELPERS + TF, id="tf_slim before the helpers"),
    pytest.param('"""\n' + HELPERS + '"""\nimport tf_slim  # of tensorflow\n', id="the helpers in a string only"),
    pytest.param("from tensorflow.examples.tutorials.mnist import input_data\n", id="data of an example"),
]  # fmt: skip


@pytest.mark.parametrize("text", CERTAIN)
def test_is_certain(text: str) -> None:
    assert surely_unchanged(text) is not None
    assert rewrite_symbols(text, "a.py", tf1=True).text == text


@pytest.mark.parametrize("text", UNCERTAIN)
def test_is_not_certain(text: str) -> None:
    """Each of these is changed by the pass, or would be where another Python reads it."""
    assert surely_unchanged(text) is None


def test_gives_the_modules_of_the_imports_that_matter() -> None:
    text = (
        "import os\nfrom tensorflow.python import a\nfrom .tensorflow_tools import (\n    b,\n)\n"
    )
    found = surely_unchanged(text)
    assert found is not None
    assert found.modules == {
        (0, "tensorflow.python"),
        (0, "tensorflow.python.a"),
        (1, "tensorflow_tools"),
        (1, "tensorflow_tools.b"),
    }


TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in ("fixtures", "tests", "towermigrate")
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def test_the_texts_of_this_project_are_told_rightly() -> None:
    parsed = {path: text for path, text in TEXTS.items() if _parses(text)}
    certain = {path for path, text in parsed.items() if surely_unchanged(text) is not None}
    wrong = [path for path in certain if rewrite_symbols(parsed[path], path, tf1=True).text != parsed[path]]  # fmt: skip
    assert wrong == []


def test_nearly_all_that_a_rewrite_gives_is_certain() -> None:
    """Otherwise it would be of no use, and nothing here would notice."""
    given = {path: read(path, text).symbols for path, text in TEXTS.items() if "/before/" in path}
    new = {path: symbols.text for path, symbols in given.items() if symbols.text != TEXTS[path]}
    certain = [path for path, text in new.items() if surely_unchanged(text) is not None]
    assert len(new) > 10 and len(certain) > 0.8 * len(new)


def test_a_file_read_again_says_what_one_that_is_read_afresh_says() -> None:
    for path, text in TEXTS.items():
        first = read(path, text)
        if first.problem is None:
            for new in {first.symbols.text, first.symbols.script and first.symbols.script.switched} - {None}:  # fmt: skip
                again, afresh = read_again(path, new, first), read(path, new)
                assert again.modules == afresh.modules
                assert (again.problem, again.symbols.text) == (None, afresh.symbols.text)
                assert again.symbols.mode == afresh.symbols.mode
                assert (again.symbols.script is None) == (afresh.symbols.script is None)


def test_a_file_that_runs_otherwise_than_its_old_names_said_is_read_in_full() -> None:
    train = "from tensorflow.contrib.slim.python.slim.learning import train\n"
    first = read("a.py", train + TF + 'if __name__ == "__main__":\n    train(1)\n')
    again = read_again("a.py", first.symbols.text, first)
    assert (first.symbols.mode.graph, again.symbols.mode.graph) == (False, True)


def test_a_text_that_would_change_again_is_read_in_full() -> None:
    first = read("a.py", TF + "tf.log(x)\n")
    text = first.symbols.text + "tf.log(y)\n"
    assert read_again("a.py", text, first).symbols.text.endswith("tf.math.log(y)\n")
    broken = read_again("a.py", first.symbols.text + "(\n", first)
    assert broken.problem is not None and broken.problem.rule == "TM101"


# Lines that are harmless, and lines that are not, in scopes and spellings of all kinds.
_IMPORTS = st.sampled_from(
    """import tensorflow as tf|import tensorflow|from tensorflow import nn, log|from tensorflow.compat import v1 as tf
    import numpy as np, tensorflow as tf|from tensorflow import *|import tensorflow.contrib.slim as slim|import tf_slim
    import tf_slim as slim|from tensorflow.contrib import layers as nn|import towermigrate.helpers|import tensorflow.nn as nn
    from tensorflow.python.framework import ops|import tensorflow.compat.v1 as tf|from tensorflow import (nn,\n    log as tf)
    from tensorflow import keras|from tensorflow.keras import layers|import nn|from a import tf|import tensorflow.layers as nn
    import tf_slim.nets as nn|from tf_slim import layers as slim|from tensorflow import concat as log|from . import tensorflow as tf
    """.strip().replace("\n    i", "|i").replace("\n    f", "|f").split("|")
)  # fmt: skip
_ROOTS = st.sampled_from(["tf", "nn", "slim", "log", "tensorflow", "x", "a", "tf_slim", "layers"])
_PARTS = st.sampled_from(
    "log nn max_pool reshape compat v1 placeholder layers dense contrib slim crf float32 concat split value shape mul "
    "get_shape train Saver conv2d keras pack summary rnn_cell flags float".split()
)
_JOINTS = st.sampled_from([".", ".", ".", ".", " . ", ".\\\n  ", "\n  .", ". # c\n  "])
_CONTEXTS = st.sampled_from(
    ["{}", "{}(1, [a, b])", "a = {}", "({}).log", "({}).nn.max_pool", "a = ({}).concat", "({})", "({})", "a = ({})", "nn = ({})", "tf = ({})", "({})(1, [a, b])", "(({})(axis, [a]))", "f(a=({}))", "log = x = ({})"]
    + ["({})[0].value", "a = ({}).get_shape(); a[0].value", "'({})'", "f'{{({})}}'", '"""({})"""', "# {}", "(a := ({}))"]
    + ["lambda tf: ({})", "[({}) for tf in x]", "for tf in ({}): pass", "with ({}) as nn: pass", "a: int = ({})", "a, b = ({})"]
    + ["def f(tf, nn=({})): pass", "class A(({})): a = tf", "global tf; ({})", "import os; nn = ({}); nn.max_pool", "del x"]
    + ["if x: a = ({})", "a = a.nn", "nn = tf.nn", "a = tf", "a.log", "tf = None", "@({})\ndef f(): pass", "(\n{}\n)"]
)  # fmt: skip


@st.composite
def _lines(draw: st.DrawFn) -> str:
    first, *rest = [draw(_ROOTS), *draw(st.lists(_PARTS, max_size=4))]
    chain = first + "".join(draw(_JOINTS) + part for part in rest)
    return draw(_CONTEXTS).format(chain)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A module of imports and uses, at its outermost level and in functions and classes."""
    lines = draw(st.lists(_IMPORTS, min_size=1, max_size=3))
    for _ in range(draw(st.integers(1, 4))):
        body = draw(st.lists(st.one_of(_lines(), _lines(), _IMPORTS), min_size=1, max_size=3))
        block = draw(st.sampled_from(["", "", "def f():", "class A:", "try:", "def f(tf):"]))
        if block:
            body = [block, *(f"    {line}" for line in body)]
            body += ["except E: pass"] if block == "try:" else []
        lines += body
    return "\n".join(lines) + "\n"


@settings(max_examples=1500, deadline=None)
@given(texts())
def test_random_texts_are_told_rightly(text: str) -> None:
    if _parses(text) and surely_unchanged(text) is not None:
        assert rewrite_symbols(text, "a.py", tf1=True).text == text
        assert rewrite_symbols(text, "a.py").text == text
