"""The symbol pass: before, after, findings. Every case is also run twice and must not change again."""

from __future__ import annotations

import ast

import pytest

from towermigrate.symbols import rewrite_symbols

TF = "import tensorflow as tf\n"
HELPERS = "import towermigrate.helpers\n"
SLIM = HELPERS + "import tf_slim\n"

CHANGED = [
    pytest.param(TF + "tf.placeholder(tf.float32)\n", TF + "tf.compat.v1.placeholder(tf.float32)\n", id="a name that only TF1 has"),
    pytest.param(TF + "tf.name_scope(a)\n", TF + "tf.compat.v1.name_scope(a)\n", id="a name that means something else in TF2"),
    pytest.param(TF + "FLAGS = tf.app.flags.FLAGS\n", TF + "FLAGS = tf.compat.v1.app.flags.FLAGS\n", id="flags"),
    pytest.param(TF + "tf.gfile.Exists(tf.GraphKeys.LOSSES, tf.log(1), tf.NodeDef)\n", TF + "tf.compat.v1.gfile.Exists(tf.compat.v1.GraphKeys.LOSSES, tf.math.log(1), tf.compat.v1.NodeDef)\n", id="modules, classes and functions"),
    pytest.param("import tensorflow\ntensorflow.Session()\n", "import tensorflow\ntensorflow.compat.v1.Session()\n", id="no alias"),
    pytest.param(TF + "n = tf.nn\nn.dropout(x)\n", TF + "n = tf.compat.v1.nn\nn.dropout(x)\n", id="a module under a name of its own"),
    pytest.param(TF + "n = tf.nn\nn.relu(x)\n", TF + "n = tf.nn\nn.relu(x)\n", id="a module of which nothing is TensorFlow 1"),
    pytest.param(TF + "def f():\n    a = tf; b = a.train\n    b.Saver()\n", TF + "def f():\n    a = tf; b = a.compat.v1.train\n    b.Saver()\n", id="a module under two names"),
    pytest.param(TF + "a = (tf.train)\nb = a\nb.Saver()\n", TF + "a = (tf.compat.v1.train)\nb = a\nb.Saver()\n", id="a name of a name of a module"),
    pytest.param("from tensorflow import train\nt = train\nt.Saver()\n", "from tensorflow.compat.v1 import train\nt = train\nt.Saver()\n", id="a name of an imported module"),
    pytest.param("import tensorflow as T\nT.Session()\n", "import tensorflow as T\nT.compat.v1.Session()\n", id="another alias"),
    pytest.param(TF + "x = (tf\n     .train  # why\n     .Saver())\n", TF + "x = (tf.compat.v1\n     .train  # why\n     .Saver())\n", id="a chain over lines keeps its comment"),
    pytest.param("from tensorflow import Session, float32\nSession()\n", "from tensorflow.compat.v1 import Session, float32\nSession()\n", id="from import"),
    pytest.param("from tensorflow import nn\nnn.max_pool(x)\n", "from tensorflow.compat.v1 import nn\nnn.max_pool(x)\n", id="from import of a module, by its use"),
    pytest.param(TF + "x.get_shape()[1].value\n", TF + "tf.compat.dimension_value(x.get_shape()[1])\n", id="get_shape()[i].value"),
    pytest.param(TF + "x.shape[-1].value\n", TF + "tf.compat.dimension_value(x.shape[-1])\n", id="shape[i].value"),
    pytest.param(TF + "s = x.get_shape()\nn = s[0].value\n", TF + "s = x.get_shape()\nn = tf.compat.dimension_value(s[0])\n", id="a shape with a name"),
    pytest.param(TF + "tf.placeholder(a).shape[1].value\n", TF + "tf.compat.dimension_value(tf.compat.v1.placeholder(a).shape[1])\n", id="a name inside a dimension"),
    pytest.param(TF + "tf.layers.dense(x, 1)\n", TF + HELPERS + "tf.compat.v1.layers.dense(x, 1)\n", id="tf.layers needs legacy Keras"),
    pytest.param("import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 1)\n", "import tensorflow.compat.v1 as tf\n" + HELPERS + "tf.layers.dense(x, 1)\n", id="so it does under compat.v1"),
    pytest.param(TF + "tf.contrib.slim.conv2d(x)\n", TF + SLIM + "tf_slim.conv2d(x)\n", id="slim in full"),
    pytest.param(TF + "q = tf.contrib.slim.prefetch_queue.prefetch_queue(x)\n", TF + SLIM + "q = tf_slim.prefetch_queue.prefetch_queue(x)\n", id="a module inside slim"),
    pytest.param(TF + "slim = tf.contrib.slim\nslim.conv2d(x)\n", TF + HELPERS + "import tf_slim as slim\nslim.conv2d(x)\n", id="slim by assignment"),
    pytest.param(TF + "import tensorflow.contrib.slim as slim\nslim.conv2d(x)\n", TF + HELPERS + "import tf_slim as slim\nslim.conv2d(x)\n", id="slim by import"),
    pytest.param("from tensorflow.contrib import slim\n" + TF + "slim.conv2d(x)\n", HELPERS + "import tf_slim as slim\n" + TF + "slim.conv2d(x)\n", id="slim before TensorFlow: the helpers come first"),
    pytest.param(TF + "from tensorflow.contrib import slim, rnn\nrnn.GRUCell(slim.x)\n", None, id="names that went to different places"),
    pytest.param(TF + "from tensorflow.contrib.layers import xavier_initializer as xavier\n", TF + HELPERS + "from tf_slim import xavier_initializer as xavier\n", id="an initializer under its own name"),
    pytest.param(TF + "from tensorflow.contrib import rnn\nrnn.BasicLSTMCell(2)\n", TF + HELPERS + "tf.compat.v1.nn.rnn_cell.BasicLSTMCell(2)\n", id="rnn has no module any more"),
    pytest.param(TF + "from tensorflow.contrib.rnn import GRUCell\nGRUCell(2)\n", TF + HELPERS + "from tensorflow.compat.v1.nn.rnn_cell import GRUCell\nGRUCell(2)\n", id="a cell by its own name"),
    pytest.param(TF + "from tensorflow.contrib.framework.python.ops import add_arg_scope, arg_scope\n", TF + HELPERS + "from tf_slim import add_arg_scope, arg_scope\n", id="a function that has the name of its module"),
    pytest.param(TF + "from tensorflow.contrib.framework.python.ops.arg_scope import arg_scope\n", TF + HELPERS + "from tf_slim import arg_scope\n", id="the same out of its module"),
    pytest.param(TF + "tf.contrib.layers.flatten(x)\n", TF + SLIM + "tf_slim.flatten(x)\n", id="flatten"),
    pytest.param(TF + "tf.contrib.framework.nest.flatten(x)\n", TF + "tf.nest.flatten(x)\n", id="nest"),
    pytest.param(TF + "from tensorflow.examples.tutorials.mnist import input_data\ninput_data.read_data_sets('d')\ntf.placeholder(1)\n", TF + "from towermigrate.helpers import mnist_input as input_data\ninput_data.read_data_sets('d')\ntf.compat.v1.placeholder(1)\n", id="the MNIST reader"),
    pytest.param('"""Doc."""\nfrom __future__ import division\n\n# why tf\nimport tensorflow as tf  # here\nimport os\ntf.layers.dense(x)\n', '"""Doc."""\nfrom __future__ import division\n\n# why tf\nimport tensorflow as tf  # here\nimport towermigrate.helpers\nimport os\ntf.compat.v1.layers.dense(x)\n', id="imports keep their comments"),
    pytest.param(TF + "import towermigrate.helpers as tm\ntf.contrib.slim.conv2d(tf.function)\n", TF + "import towermigrate.helpers as tm\nimport tf_slim\ntf_slim.conv2d(tf.function)\n", id="tf_slim after helpers that are there"),
    pytest.param("def f():\n    import tensorflow as tf\n    return tf.layers.dense(1)\n", HELPERS + "def f():\n    import tensorflow as tf\n    return tf.compat.v1.layers.dense(1)\n", id="TensorFlow imported in a function"),
    pytest.param(TF.replace("\n", "\r\n") + "tf.layers.dense(x)\r\n", TF.replace("\n", "\r\n") + "import towermigrate.helpers\r\ntf.compat.v1.layers.dense(x)\r\n", id="CRLF"),
    pytest.param(TF + "é = 'ü'; tf.log(é); x = 'ñ', tf.log(2)\n", TF + "é = 'ü'; tf.math.log(é); x = 'ñ', tf.math.log(2)\n", id="columns count characters"),
    pytest.param(TF + "def f(tf):\n    tf.Session()\ntf.Session()\n", TF + "def f(tf):\n    tf.Session()\ntf.compat.v1.Session()\n", id="a shadowed name"),
    pytest.param(TF + "f = lambda tf: tf.log(1)\ng = [tf.log(1) for tf in y]\nh = [tf.log(i) for i in y]\n", TF + "f = lambda tf: tf.log(1)\ng = [tf.log(1) for tf in y]\nh = [tf.math.log(i) for i in y]\n", id="shadowed in lambda and comprehension"),
]  # fmt: skip

FORMS = [
    pytest.param("import tensorflow.contrib as c\n" + TF + "c.layers.conv2d(x)\nc.rnn.GRUCell(3)\n", HELPERS + "import tf_slim\n" + TF + "tf_slim.layers.conv2d(x)\ntf.compat.v1.nn.rnn_cell.GRUCell(3)\n", id="tf.contrib under a name"),
    pytest.param("import tensorflow.contrib as c\nc.rnn.GRUCell(3)\n", TF + HELPERS + "tf.compat.v1.nn.rnn_cell.GRUCell(3)\n", id="TensorFlow has to be imported"),
    pytest.param("import tensorflow.contrib as c\ntf = c.rnn.GRUCell(3)\n", "import tensorflow\n" + HELPERS + "tf = tensorflow.compat.v1.nn.rnn_cell.GRUCell(3)\n", id="the name tf is taken"),
    pytest.param("import tensorflow.contrib\n" + TF + "tf.contrib.layers.conv2d(x)\n", HELPERS + "import tf_slim\nimport tensorflow\n" + TF + "tf_slim.layers.conv2d(x)\n", id="tf.contrib alone"),
    pytest.param("from tensorflow import contrib, nn\ncontrib.slim.conv2d(nn.relu(x))\n", HELPERS + "import tf_slim\nfrom tensorflow import nn\ntf_slim.conv2d(nn.relu(x))\n", id="tf.contrib among others"),
    pytest.param("from tensorflow.contrib import seq2seq, slim\nseq2seq.f(slim.conv2d)\n", HELPERS + "import tf_slim as slim\ntry:\n    from tensorflow.contrib import seq2seq\nexcept ImportError:\n    seq2seq = None\nseq2seq.f(slim.conv2d)\n", id="what is gone fails only where it is used"),
    pytest.param("import tensorflow.contrib.seq2seq as s\ns.f(x)\n", "try:\n    import tensorflow.contrib.seq2seq as s\nexcept ImportError:\n    s = None\ns.f(x)\n", id="so does a module under a name"),
    pytest.param("from tensorflow.contrib.layers import *\nconv2d(x)\n", HELPERS + "from tf_slim.layers import *\nconv2d(x)\n", id="a star of a module that moves"),
    pytest.param("from tensorflow import *\nx = placeholder(float32)\n", "from tensorflow.compat.v1 import *\nx = placeholder(float32)\n", id="a star of TensorFlow"),
    pytest.param(TF + "tf.contrib.training.HParams(a=1)\n", TF + HELPERS + "towermigrate.helpers.contrib.HParams(a=1)\n", id="what our helpers have"),
    pytest.param(TF + "import towermigrate.helpers as tm\ntf.contrib.training.HParams(a=1)\n", TF + "import towermigrate.helpers as tm\ntm.contrib.HParams(a=1)\n", id="what our helpers have, under their name"),
    pytest.param(TF + "from towermigrate.helpers import towers\ntf.contrib.training.HParams(a=1)\n", TF + HELPERS + "from towermigrate.helpers import towers\ntowermigrate.helpers.contrib.HParams(a=1)\n", id="what our helpers have, of which one is imported"),
    pytest.param("from tensorflow.contrib.training import HParams\nHParams(a=1)\n", "from towermigrate.helpers.contrib import HParams\nHParams(a=1)\n", id="what our helpers have, by name"),
    pytest.param("try:\n    from tensorflow.contrib import slim\nexcept ImportError:\n    import tf_slim as slim\nslim.conv2d(x)\n", "try:\n    " + HELPERS + "    import tf_slim as slim\nexcept ImportError:\n    import tf_slim as slim\nslim.conv2d(x)\n", id="tf_slim or tf.contrib.slim"),
    pytest.param("try:\n    " + TF + "except ImportError:\n    tf = None\ntf.log(1)\n", "try:\n    " + TF + "except ImportError:\n    tf = None\ntf.math.log(1)\n", id="TensorFlow or nothing"),
]  # fmt: skip

UNCHANGED = [
    pytest.param(TF + "tf.reshape(tf.stack(x), tf.float32)\n", id="names that did not change"),
    pytest.param(TF + "@tf.function\ndef f():\n    return tf.Variable(1), tf.TensorSpec([])\n", id="code for TensorFlow 2"),
    pytest.param("import tensorflow.compat.v1 as tf\ntf.placeholder(1)\n", id="compat.v1 under the name tf"),
    pytest.param(TF + "x = 'tf.placeholder'  # tf.placeholder\n", id="strings and comments"),
    pytest.param("try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\ntf.placeholder(1)\n", id="a fallback import"),
    pytest.param("from tensorflow import *\nfor i in range(3): abs(i)\n", id="a star of TensorFlow of which nothing has moved"),
    pytest.param("from tensorflow import *\nclass M(keras.Model):\n    pass\nx = GradientTape()\n", id="a star of TensorFlow 2"),
    pytest.param("x = 'tensorflow'\ntf.placeholder(1)\n", id="a tf that is not TensorFlow"),
]  # fmt: skip

FOUND = [
    pytest.param(TF + "tf.contrib.crf.crf_decode(x)\n", ["TM111"], id="contrib without a successor"),
    pytest.param(TF + "tf.contrib.slim.metrics.mean(x)\n", ["TM111"], id="a name that slim had and tf_slim has not"),
    pytest.param(HELPERS + "import tf_slim as slim\n" + TF + "slim.metrics.mean(x), slim.conv2d(x), slim.nets.x\n", ["TM111"], id="the same once it was rewritten"),
    pytest.param("from tensorflow.contrib import crf\ncrf.decode(x)\n", ["TM111"], id="once where a module of it is imported"),
    pytest.param(TF + "tf.estimator.Estimator(f)\n", ["TM112"], id="gone"),
    pytest.param("from tensorflow.nn import *\n", ["TM113"], id="star"),
    pytest.param("from tensorflow.python.ops import array_ops\n", ["TM114"], id="private"),
    pytest.param("if a:\n    from tensorflow.python.x import ops\nelse:\n    from tensorflow.python.y import ops\ndef f(ops):\n    pass\nops.z()\n", ["TM114", "TM114"], id="two modules of TensorFlow under one name are both TensorFlow"),
    pytest.param(TF + "if tf.__version__ < '1':\n    pass\n", ["TM115"], id="version"),
    pytest.param(TF + "tf = 3\ntf.log\n", ["TM116"], id="two meanings"),
    pytest.param(TF + "x = (tf.contrib  # why\n .slim.conv2d(x))\n", ["TM117"], id="a comment inside a name"),
    pytest.param(TF + "tf.Saver()\n", ["TM112"], id="a name that TensorFlow never had"),
    pytest.param(TF + "tf.gfile.OpenFast(f)\n", ["TM112"], id="a member that no module has"),
    pytest.param("from tensorflow import google\n", ["TM112"], id="a name that is imported and never was"),
    pytest.param(TF + "print 'x'\n", ["TM101"], id="Python 2"),
    pytest.param(TF + "if __name__ == '__main__':\n    tf.Session()\n", ["TM119"], id="a script with a session"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [*CHANGED, *FORMS])
def test_names_change(before: str, after: str | None) -> None:
    result = rewrite_symbols(before, "m.py")
    if after is not None:
        assert result.text == after
    ast.parse(result.text)
    again = rewrite_symbols(result.text, "m.py")
    assert again.text == result.text
    assert rewrite_symbols(result.text, "m.py", tf1=True).text == result.text


@pytest.mark.parametrize("source", UNCHANGED)
def test_names_stay(source: str) -> None:
    result = rewrite_symbols(source, "m.py")
    assert result.text == source
    assert result.findings == ()


@pytest.mark.parametrize(("source", "rules"), FOUND)
def test_findings(source: str, rules: list[str]) -> None:
    findings = rewrite_symbols(source, "m.py").findings
    assert [finding.rule for finding in findings] == rules
    assert all(finding.path == "m.py" and finding.message for finding in findings)


def test_names_that_went_to_different_places_are_imported_from_there() -> None:
    before = TF + "from tensorflow.contrib import slim, rnn\nrnn.GRUCell(slim.conv2d)\n"
    after = TF + HELPERS + "import tf_slim as slim\ntf.compat.v1.nn.rnn_cell.GRUCell(slim.conv2d)\n"
    assert rewrite_symbols(before, "m.py").text == after


def test_a_private_import_is_told_where_the_public_names_are() -> None:
    source = "from tensorflow.python.ops import rnn_cell, array_ops\n"
    (finding,) = rewrite_symbols(source, "m.py").findings
    assert finding.rule == "TM114"
    assert finding.message.endswith("look for it in tf.compat.v1 or tf.compat.v1.nn.rnn_cell")


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [
        ("getattr(tf.train, name)", "getattr(tf.compat.v1.train, name)"),
        ("getattr(tf.train, 'AdamOptimizer')", "getattr(tf.compat.v1.train, 'AdamOptimizer')"),
        ("getattr(tf.nn, 'relu')", "getattr(tf.nn, 'relu')"),
        ("getattr(tf.nn, name, None)", "getattr(tf.compat.v1.nn, name, None)"),
        ("getattr(tf, name)", "getattr(tf.compat.v1, name)"),
        ("getattr(tf.compat.v1.train, name)", "getattr(tf.compat.v1.train, name)"),
        ("hasattr(tf, 'log')", "hasattr(tf.compat.v1, 'log')"),
        ("hasattr(tf, 'AUTO_REUSE')", "hasattr(tf.compat.v1, 'AUTO_REUSE')"),
        ("hasattr(tf.train, 'Saver')", "hasattr(tf.compat.v1.train, 'Saver')"),
        ("hasattr(tf.nn, 'xw_plus_b')", "hasattr(tf.compat.v1.nn, 'xw_plus_b')"),
        ("hasattr(tf, 'layers')", "hasattr(tf.compat.v1, 'layers')"),
        ("hasattr(tf.layers, 'dense')", "hasattr(tf.compat.v1.layers, 'dense')"),
        ("hasattr(tf.nn, 'relu')", "hasattr(tf.nn, 'relu')"),
        ("hasattr(tf, 'compat')", "hasattr(tf, 'compat')"),
        (
            "[hasattr(tf, name) for name in names]",
            "[hasattr(tf.compat.v1, name) for name in names]",
        ),
        ("'Saver' in dir(tf.train)", "'Saver' in dir(tf.compat.v1.train)"),
        ("'log' in vars(tf)", "'log' in vars(tf.compat.v1)"),
        ("'log' in tf.__dict__", "'log' in tf.compat.v1.__dict__"),
        ("tf.train.__dict__.get('Saver')", "tf.compat.v1.train.__dict__.get('Saver')"),
        ("hasattr(x, 'log')", "hasattr(x, 'log')"),
        ("dir()", "dir()"),
    ],
)
def test_modules_that_are_asked_for_a_name_are_those_of_tensorflow_1(
    asked: str, becomes: str
) -> None:
    source = "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n"
    result = rewrite_symbols(f"{source}made = {asked}\n", "m.py").text
    assert result.endswith(f"made = {becomes}\n")
    assert rewrite_symbols(result, "m.py").text == result


def test_a_module_with_another_name_is_asked_as_tensorflow_1s() -> None:
    source = "import tensorflow as tf\nlib = tf\nold = hasattr(lib, 'placeholder')\n"
    assert "hasattr(lib.compat.v1, 'placeholder')" in rewrite_symbols(source, "m.py").text
    source = "from tensorflow import nn\nold = hasattr(nn, 'rnn_cell')\n"
    assert "from tensorflow.compat.v1 import nn" in rewrite_symbols(source, "m.py").text


@pytest.mark.parametrize("asked", ["hasattr(tf, 'contrib')", "hasattr(tf.contrib, 'slim')"])
def test_what_asks_for_a_name_that_is_gone_is_told(asked: str) -> None:
    assert rewrite_symbols(f"import tensorflow as tf\nold = {asked}\n", "m.py").findings
