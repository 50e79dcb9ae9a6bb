"""Summaries of towers, merged in a program whose own files are called outside of the towers: they make none."""

from __future__ import annotations

from collections.abc import Mapping

from tests.differential.loop_programs import HEAD, MODEL, TRAIN, Change
from tests.differential.spellings import asked_of_all, left, taken

MARGIN = " " * 20
BATCH = MODEL[MODEL.index("def batch(rows):") :]
DATA = f"import numpy as np\n\nimport settings\n\ndrawn = [0]\n\n\n{BATCH}"
SETTINGS = '"""What is set."""\n\nROWS = 4\nSTEPS = 4\nMOMENTUM = 0.9\n'
LOOP = (
    "            print('step'",
    "            writer.add_summary(text, step)\n            print('step'",
)
TEXT = """\
        for each in tf.train.summary_iterator(glob.glob('logs/*')[0]):
            print([(value.tag, '%.5f' % value.simple_value) for value in each.summary.value])
"""
SUMMARIES = (
    (f"{MARGIN}tf.get_variable_scope().reuse", f"{MARGIN}tf.summary.scalar('loss', loss)\n{MARGIN}tf.get_variable_scope().reuse"),
    ("    saver = ", "    merged = tf.summary.merge_all()\n    saver = "),
    ("            _, value = sess.run([train_op, loss]", "            _, value, text = sess.run([train_op, loss, merged]"),
    LOOP,
    ("        sess.run(tf.global", "        writer = tf.summary.FileWriter('logs', sess.graph)\n        sess.run(tf.global"),
    ("        saver.save", "        writer.close()\n        saver.save"),
    ("batch(4)", "data.batch(settings.ROWS)"),
    ("range(4)", "range(settings.STEPS)"),
    ("drawn[0])", "data.drawn[0])"),
    ("0.1, 0.9)", "0.1, settings.MOMENTUM)"),
)  # fmt: skip


def program(*changes: Change) -> Mapping[str, str]:
    train = "\n\n".join(
        [
            HEAD.replace(
                "import tensorflow as tf\n",
                "import tensorflow as tf\n\nimport data\nimport settings\n",
            ),
            MODEL.replace(BATCH, ""),
            TRAIN,
            "if __name__ == '__main__':\n    train()\n",
        ]
    )
    files = {"train.py": train, "data.py": DATA, "settings.py": SETTINGS}
    for old, new in (*SUMMARIES, *changes):
        assert any(old in text for text in files.values()), old
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


STEP = (
    ("    step_count = tf.train.get_or_create_global_step()\n", ""),
    ("global_step=step_count", "global_step=tf.train.get_or_create_global_step()"),
)
FILE = "drawn = [0]\n\n\ndef batch"
TAKEN = [
    taken("of arrays"),
    taken("of what a file of settings says", ("import settings\n\ndrawn", "from settings import ROWS\n\ndrawn")),
    taken("a comment that speaks of queues", ("    drawn[0] += 1\n", "    # tf.train.shuffle_batch(rows)\n    drawn[0] += 1\n")),
    taken("a package of the standard library", ("import settings\n\ndrawn", "import collections\nimport settings\n\ndrawn")),
    taken("a step in place, and a saver of all variables", *STEP, ("tf.train.Saver()", "tf.train.Saver(tf.global_variables())")),
]  # fmt: skip

LEFT = [
    left("a file that makes one", "TM219", (FILE, "import tensorflow as tf\n\ndrawn = [0]\n\n\ndef shown(x):\n    tf.summary.scalar('shown', x)\n\n\ndef batch"), ("    tower_grads = []\n", "    data.shown(tf.constant(1.0))\n    tower_grads = []\n")),
    left("a file with queues", "TM219", (FILE, "import tensorflow as tf\n\ndrawn = [0]\n\n\ndef queued(x):\n    return tf.train.batch([x], 2)\n\n\ndef batch")),
    left("a file that imports what is not known", "TM219", ("import settings\n\ndrawn", "import settings\ntry:\n    import stranger\nexcept ImportError:\n    pass\n\ndrawn")),
    left("a file that imports what is not known beside another", "TM219", ("import settings\n\ndrawn", "import settings\ntry:\n    import os, stranger\nexcept ImportError:\n    pass\n\ndrawn")),
    left("a saver by a function of another file, before the step", "TM211", *STEP, (FILE, "import tensorflow as tf\n\ndrawn = [0]\n\n\ndef kept():\n    return tf.train.Saver()\n\n\ndef batch"), ("    saver = tf.train.Saver()\n", ""), ("    train_op = opt", "    saver = data.kept()\n    train_op = opt")),
    left("a step in place, and variables that are listed", "TM211", *STEP, ("        saver.save", "        print([v.name for v in tf.global_variables()])\n        saver.save")),
]  # fmt: skip


(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT, program)
