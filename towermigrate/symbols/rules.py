"""Rules TM1xx: what can be wrong with a file, and with a TensorFlow name in it."""

from __future__ import annotations

from towermigrate.findings import Rule

SYMBOL_RULES: tuple[Rule, ...] = (
    Rule(
        "TM101", "The file is not Python 3", "error",
        "A file that Python 3 cannot parse cannot be read safely, so it is never written.",
        "Port it to Python 3 first (`2to3`, then look at every `/` between integers), or exclude it.",
        "print \"loss\", loss",
    ),
    Rule(
        "TM102", "The file cannot be decoded", "error",
        "The bytes do not fit the encoding that the file declares (UTF-8 when it declares none, PEP 263).",
        "Save the file as UTF-8, or declare its encoding in the first line: `# -*- coding: latin-1 -*-`.",
        "caf\\xe9 in a file without a coding line",
    ),
    Rule(
        "TM103", "The file stays as it was", "warning",
        "It holds a tower program that was refused. Half a rewrite is worse than none, so no name in it was "
        "changed either.",
        "See the findings beside this one. `--refused symbols` changes the TensorFlow names all the same.",
        "for i in range(num_gpus):  # in a form that is not understood",
    ),
    Rule(
        "TM104", "Rewriting the result again would change it", "error",
        "A rewrite must be finished after one run. One that is not was misunderstood somewhere, so it is not "
        "written.",
        "This is a limit of towermigrate. Please report the program's form.",
        "a rewritten file in which a TF1 name still stands",
    ),
    Rule(
        "TM105", "The file cannot be read or is not followed", "error",
        "A file that cannot be opened, or a link that leads out of the tree, is neither read nor written.",
        "Mend the permissions, or run towermigrate on the tree that the link leads to.",
        "model.py -> /elsewhere/model.py",
    ),
    Rule(
        "TM111", "A name of tf.contrib has no successor", "warning",
        "TensorFlow 2 has no `tf.contrib`. This name is not in `tf_slim` or `tf.compat.v1` either, so the code "
        "fails where it runs.",
        "Replace it by hand, or copy its source from TensorFlow 1.15 into your project.",
        "tf.contrib.crf.crf_log_likelihood(scores, tags, lengths)",
    ),
    Rule(
        "TM112", "TensorFlow 2 no longer has this name", "warning",
        "TensorFlow 1.15 had it; it is neither in `tf` nor in `tf.compat.v1` of the release the table was made "
        "from.",
        "Replace it by hand; for `tf.estimator` write the training loop out.",
        "tf.estimator.Estimator(model_fn)",
    ),
    Rule(
        "TM113", "A star import hides which names are TensorFlow's", "warning",
        "After `from tensorflow import *` a bare name may or may not be TensorFlow's; such names are not changed.",
        "Import TensorFlow as `tf` and write `tf.` before its names.",
        "from tensorflow import *",
    ),
    Rule(
        "TM114", "A private module of TensorFlow", "info",
        "`tensorflow.python` and `tensorflow.core` are not public: they change without notice.",
        "Use the public name where there is one.",
        "from tensorflow.python.ops import control_flow_ops",
    ),
    Rule(
        "TM115", "The TensorFlow version decides what runs", "warning",
        "A test of `tf.__version__` that was written for 0.x and 1.x can take the wrong branch under TensorFlow 2.",
        "Keep the branch for 1.x and remove the test.",
        "if tf.__version__.startswith('1.'):",
    ),
    Rule(
        "TM116", "A TensorFlow module under a name that is used for something else too", "warning",
        "The name is bound more than once in the same scope, so it is not certain that it is TensorFlow here; "
        "nothing was changed.",
        "Bind TensorFlow to one name only.",
        "import tensorflow as tf\ntf = make_filter()",
    ),
    Rule(
        "TM117", "The TensorFlow 1 names are written in a way that cannot be changed safely", "warning",
        "A comment stands inside the name, or the import mixes names that went to different places.",
        "Write the name on one line, one import for each module, and run towermigrate again.",
        "from tensorflow.contrib.rnn import (\n    BasicLSTMCell,  # kept\n    AttentionCellWrapper)",
    ),
    Rule(
        "TM118", "A name of TensorFlow 0.x", "warning",
        "TensorFlow 1.0 renamed it, and changed the order of arguments of `tf.concat`, `tf.split` and others "
        "without an error, so the program is older than what is understood here.",
        "Port the program to TensorFlow 1.x first.",
        "tf.concat(1, [a, b])",
    ),
    Rule(
        "TM119", "The script runs a graph in a session", "info",
        "Under TensorFlow 2 a script that builds a graph must say so first. Its names were changed, nothing else.",
        "Call `tf.compat.v1.disable_v2_behavior()` at its start, and run it.",
        "with tf.Session() as sess:\n    sess.run(train_op)",
    ),
)  # fmt: skip
