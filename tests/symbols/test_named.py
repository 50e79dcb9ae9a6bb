"""The original with its author's own names under TensorFlow 2: imports that change, and files that change as `rewrite` has it."""

from __future__ import annotations

import pytest

from towermigrate.symbols import rewrite_symbols, with_own_names

USE = "tf.placeholder(tf.float32)\n"

OWN = [
    pytest.param("import tensorflow as tf\ntf.log(x)\n", "import tensorflow.compat.v1 as tf\ntf.log(x)\n", id="the usual one"),
    pytest.param("import tensorflow\ntensorflow.log(x)\n", "import tensorflow.compat.v1 as tensorflow\ntensorflow.log(x)\n", id="without a name of its own"),
    pytest.param("import numpy as np, tensorflow as tf, os\n" + USE, "import numpy as np, tensorflow.compat.v1 as tf, os\n" + USE, id="one of several"),
    pytest.param("import tensorflow.train as train\ntrain.Saver()\n", "import tensorflow.compat.v1.train as train\ntrain.Saver()\n", id="a module"),
    pytest.param("from tensorflow import nn, layers as L\nL.dense(nn.relu(x), 2)\n", "import towermigrate.helpers\nfrom tensorflow.compat.v1 import nn, layers as L\nL.dense(nn.relu(x), 2)\n", id="names"),
    pytest.param("from tensorflow.train import Saver\nSaver()\n", "from tensorflow.compat.v1.train import Saver\nSaver()\n", id="names of a module"),
    pytest.param("def f():\n    import tensorflow as tf\n    return tf.log(2.0)\n", "def f():\n    import tensorflow.compat.v1 as tf\n    return tf.log(2.0)\n", id="in a function"),
    pytest.param("import tensorflow as tf\nprint(hasattr(tf, 'log'), dir(tf.train), tf.__dict__)\n", "import tensorflow.compat.v1 as tf\nprint(hasattr(tf, 'log'), dir(tf.train), tf.__dict__)\n", id="a module that is asked"),
    pytest.param("import tensorflow as tf\ntf.contrib.layers.xavier_initializer()\n", "import tensorflow.compat.v1 as tf\nimport towermigrate.helpers\nimport tf_slim\ntf_slim.xavier_initializer()\n", id="what compat.v1 has not"),
    pytest.param("from tensorflow import *\nlog(x)\n", "from tensorflow.compat.v1 import *\nlog(x)\n", id="a star"),
    pytest.param("import tensorflow.compat.v1 as tf\ntf.log(x)\n", "import tensorflow.compat.v1 as tf\ntf.log(x)\n", id="one of compat.v1 already"),
]  # fmt: skip

AS_REWRITTEN = [
    pytest.param("import tensorflow as tf\ntf.mul(a, b)\ntf.log(x)\n", id="0.x"),
    pytest.param("import tensorflow as tf\ntf.concat(1, [tf.log(x), y])\n", id="0.x by the order of arguments"),
    pytest.param("import tensorflow as tf\nimport tensorflow.contrib.slim\ntf.log(x)\ntensorflow.contrib.slim.conv2d(x, 2, 3)\n", id="a name that both imports bind"),
    pytest.param("import tensorflow as tf\ntf.python.ops.log(x)\ntf.log(x)\n", id="private names behind tf"),
    pytest.param("import tensorflow as tf\n@tf.function\ndef f(x):\n    return tf.math.log(x)\n", id="TensorFlow 2"),
    pytest.param("import tensorflow as tf\nprint 1\n", id="Python 2"),
    pytest.param("import numpy as np\n", id="no TensorFlow"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), OWN)
def test_only_the_import_changes(source: str, expected: str) -> None:
    assert with_own_names(source, "m.py") == expected


@pytest.mark.parametrize("source", AS_REWRITTEN)
def test_what_cannot_keep_its_names_is_as_rewrite_makes_it(source: str) -> None:
    assert with_own_names(source, "m.py") == rewrite_symbols(source, "m.py").text
