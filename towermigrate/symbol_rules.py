"""Rules TM1xx: what can be wrong with a file, and with a TensorFlow name in it."""

from __future__ import annotations

from towermigrate.rule import Rule

SYMBOL_RULES: tuple[Rule, ...] = (
    Rule(
        "TM100", "towermigrate itself failed at this file", "error",
        "An exception of towermigrate's own. The file stays byte for byte as it was, and so does the program that was "
        "worked on; all other files and programs are done as if it were not there.",
        "Please report the text of the finding, with the lines of your program that it speaks of. Exclude the file to "
        "be rid of the finding.",
        "KeyError: 'loss' (emit/steps.py:120, _fetched); please report this text",
    ),
    Rule(
        "TM101", "The file is neither Python 3 nor Python 2", "error",
        "A file that cannot be parsed cannot be read safely, so it is never written.",
        "Mend the line that is named, or exclude the file. With `--py2 never`, Python 2 files are not ported.",
        "for i in range(:",
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
        "TM105", "The file cannot be read", "error",
        "A file or folder that cannot be opened, or more than 1 MiB of code, which nobody wrote by hand, is "
        "neither read nor written.",
        "Mend the permissions, or exclude it.",
        "-rw------- root model.py",
    ),
    Rule(
        "TM106", "Left alone, as asked", "info",
        "The file says `# towermigrate: skip-file`, it is excluded, or one program of it was asked for by name. What "
        "stays as it is needs TensorFlow 1 where it did before.",
        "Nothing, or take the comment away, or give the file without a function's name.",
        "# towermigrate: skip-file",
    ),
    Rule(
        "TM107", "A change would reach what must stay as it is", "error",
        "The program cannot be converted without a change in a file that is excluded or says "
        "`# towermigrate: skip-file`, or in another program of its file.",
        "Let that file be changed as well, or give the file without a function's name.",
        "# towermigrate: skip-file\ndef variable_on_cpu(name):\n    with tf.device('/cpu:0'):\n        ...",
    ),
    Rule(
        "TM108", "A link or special file is not followed", "info",
        "A link that leads out of the tree leads to what is not yours to rewrite here; one that leads nowhere, a "
        "pipe or a device is no file. (A link inside the tree leads to a file that is found anyway.)",
        "Run towermigrate on the tree that the link leads to as well.",
        "model.py -> /elsewhere/model.py",
    ),
    Rule(
        "TM109", "A file that stays on TensorFlow 1 is imported by one that goes to TensorFlow 2", "warning",
        "The importing file runs on TensorFlow 2 after the rewrite, and the imported one with it, which was left alone "
        "as asked. It fails where it reaches a name that TensorFlow 2 does not have or means otherwise.",
        "Let the imported file be rewritten as well.",
        "from legacy.model import build  # legacy/model.py: # towermigrate: skip-file",
    ),
    Rule(
        "TM111", "A name of tf.contrib has no successor", "warning",
        "TensorFlow 2 has no `tf.contrib`. This name is not in `tf_slim` or `tf.compat.v1` either, so the code "
        "fails where it runs.",
        "Replace it by hand, or copy its source from TensorFlow 1.15 into your project.",
        "tf.contrib.crf.crf_log_likelihood(scores, tags, lengths)",
    ),
    Rule(
        "TM112", "TensorFlow 2 does not have this name", "warning",
        "It is neither in `tf` nor in `tf.compat.v1` of the release the table was made from: TensorFlow removed "
        "it, or never had it.",
        "Replace it by hand; for `tf.estimator` write the training loop out.",
        "tf.estimator.Estimator(model_fn)",
    ),
    Rule(
        "TM113", "A star import hides which names are TensorFlow's", "warning",
        "After `from tensorflow.nn import *` a bare name may or may not be TensorFlow's; such names are not changed. (Of "
        "`from tensorflow import *` and of modules of tf.contrib that went to tf_slim the whole import moves.)",
        "Import TensorFlow as `tf` and write `tf.` before its names.",
        "from tensorflow.nn import *",
    ),
    Rule(
        "TM114", "A private module of TensorFlow", "info",
        "`tensorflow.python` and `tensorflow.core` are not public: they change without notice. What programs most often ask "
        "them for and TensorFlow 2 no longer has there is written by its public name (`control_flow_ops.cond` as "
        "`tf.compat.v1.cond`); an import of such a name itself is said (TM112).",
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
        "TM118", "A form of TensorFlow 0.x that was not changed", "warning",
        "TensorFlow 1.0 renamed functions and changed the order of arguments, of some without an error. What is "
        "certain is changed; here the old meaning is not certain, or the new function takes other arguments.",
        "Look at the call and name its arguments as TensorFlow 1.x does.",
        "tf.mul(a, b)\ntf.concat(axis, values)",
    ),
    Rule(
        "TM119", "The script runs a graph in a session", "info",
        "Under TensorFlow 2 such a script must turn the behaviour of TensorFlow 2 off before anything else. That "
        "is done where nothing that it imports runs eagerly, as rewritten tower programs do.",
        "Separate what runs eagerly from this script, or call `tf.compat.v1.disable_v2_behavior()` at its start.",
        "import train_towers  # rewritten: it runs eagerly\n\nwith tf.Session() as sess:\n    sess.run(train_op)",
    ),
    Rule(
        "TM120", "A module runs a graph, and no script turns the behaviour of TensorFlow 2 off", "warning",
        "Sessions and placeholders work in a graph only. A script that mentions TensorFlow is switched by `rewrite`; "
        "this one does not mention it, and is left as it is. Where the module itself is reported, no script of the "
        "tree was seen to import it.",
        "Import TensorFlow and call `tf.compat.v1.disable_v2_behavior()` at the start of the script that runs the "
        "module, or build the graph inside `with tf.Graph().as_default():`.",
        "# run.py\nimport model\nmodel.main()\n# model.py\ndef main():\n    with tf.Session() as sess:\n        ...",
    ),
    Rule(
        "TM121", "The file was brought from Python 2", "info",
        "Only Python 2 could parse it. Its syntax, and what Python 3 calls or counts otherwise, was changed first; "
        "`towermigrate undo` gives the Python 2 file back.",
        "Read the findings beside this one, then run the program. `--py2 never` leaves such files alone.",
        "print \"loss\", loss_value",
    ),
    Rule(
        "TM122", "A `/` that may divide integers", "warning",
        "Python 2 rounds `/` of two integers down, Python 3 does not. In a file that only Python 2 parses, `//` was "
        "written where both are known to be integers (literals, `len`, shapes, `range`, integer flags). Here one is "
        "not known, and `//` of a tensor has no gradient, so `/` stays. In a file that both parse and that uses names "
        "of Python 2 (TM127), nothing was changed; only the `/` between known integers are named.",
        "Write `//` where both sides are integers; leave it where one is a float. In a slice or a `range` a fraction "
        "raises an error, so there it is nearly always `//`.",
        "def half(count):\n    return count / 2",
    ),
    Rule(
        "TM123", "Bytes that were text in Python 2", "warning",
        "Python 2's `str` held bytes. What a binary file, a pickle or a socket gives is `bytes` in Python 3, which "
        "does not mix with text.",
        "Read old pickles with `pickle.load(file, encoding=\"latin1\")`; use `io.BytesIO` for bytes; encode and "
        "decode at the border.",
        "data = pickle.load(open(\"data_batch_1\", \"rb\"))",
    ),
    Rule(
        "TM124", "Python 3 does this otherwise", "warning",
        "It parses, but it is gone or means something else, and what was meant cannot be told from the file. In a file "
        "that both Pythons parse and that uses names of Python 2 (TM127), nothing was changed; only lists that become what "
        "can be gone through once (`map`, `filter`, `zip`) are named: a second loop over one does nothing, without an error.",
        "See the words at each line; rewrite it by hand. Write `list(map(…))` where a list was meant.",
        "step = int(round(total * 0.5))",
    ),
    Rule(
        "TM125", "The notebook cannot be read", "error",
        "It is no JSON, or has no cells, so nothing in it can be found.",
        "Open it in Jupyter and save it anew.",
        "{\"cells\": [",
    ),
    Rule(
        "TM126", "A cell of a notebook stays as it was", "warning",
        "The code cells are rewritten as one program and put back cell by cell, magics in their places. This one "
        "is no Python, or its part of the result cannot be told from that of its neighbours.",
        "Mend the cell; keep the towers, their averaging and the session in one cell.",
        "for i in range(",
    ),
    Rule(
        "TM127", "A name that only Python 2 has", "warning",
        "Python 3 parses the file, so it is not known which Python it was written for, and only its TensorFlow names "
        "change. The name is bound nowhere in the file, nor in a part that asks for the Python version: Python 3 "
        "raises an error there, and TensorFlow 2 runs on Python 3 only. So it is with `+` of what `.keys()`, `.values()` and "
        "`.items()` of dictionaries give, which were lists.",
        "Write what Python 3 calls it, or import it from `six.moves` to keep both.",
        "for i in xrange(num_gpus):\n    grads[i] = {k: v for k, v in sums.iteritems()}",
    ),
    Rule(
        "TM128", "An import that only Python 2 finds", "warning",
        "Inside a package Python 2 looks for a module beside the file first, Python 3 does not. Where all that runs the "
        "file imports it as a part of its package, the dot is written. Here a script in its own folder runs it too, or "
        "`sys.path` is changed, so that either may be right.",
        "Write `from . import ops` where the file runs as a part of a package, and leave it where its own folder is on "
        "`sys.path`.",
        "# nets/model.py, imported as nets.model\nimport ops  # nets/ops.py",
    ),
)  # fmt: skip
