"""Lists of what towers give in a dict: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

SAVER = "    saver = tf.train.Saver()\n"
LIST = "    tower_grads = []\n"
APPENDED = "                    tower_grads.append(grads)\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
FEED = "feed_dict={X: bx, Y: by}"


def made(value: str) -> Change:
    return LIST, f"{LIST}    stats = {value}\n"


def imports(line: str) -> Change:
    return "import numpy as np\n", f"{line}\nimport numpy as np\n"


def in_tower(*lines: str) -> Change:
    return APPENDED, APPENDED + "".join(f"                    {each}\n" for each in lines)


def behind(*lines: str) -> Change:
    return SAVER, "".join(f"    {each}\n" for each in lines) + SAVER


DICT = made("{'loss': [], 'out': []}")
FILLED = in_tower("stats['loss'].append(loss)", "stats['out'].append(tf.reduce_mean(out))")
MEANS = behind("mean_loss = tf.reduce_mean(stats['loss'])", "mean_out = tf.add_n(stats['out']) / 2")
READ = (RUN, f"            _, value, o = sess.run([train_op, mean_loss, mean_out], {FEED})\n            print('%.5f' % o)\n")  # fmt: skip
ALL = (FILLED, MEANS, READ)

TAKEN = [
    taken("a dict", DICT, *ALL),
    taken("a dict, one list unused", made("{'loss': [], 'out': [], 'more': []}"), *ALL),
    taken("lists for each key that is asked for", made("collections.defaultdict(list)"), imports("import collections"), *ALL),
    taken("lists for each key, by its own name", made("defaultdict(list)"), imports("from collections import defaultdict"), *ALL),
    taken("keys of two words", made("{'the loss': [], 'out': []}"), in_tower("stats['the loss'].append(loss)"), behind("mean_loss = tf.reduce_mean(stats['the loss'])"), (RUN, RUN.replace("loss]", "mean_loss]"))),
    taken("the gradients too", (LIST, "    towers = {'grads': [], 'losses': []}\n"), (APPENDED, "                    towers['grads'].append(grads)\n                    towers['losses'].append(loss)\n"), ("= average_gradients(tower_grads)", "= average_gradients(towers['grads'])"), behind("mean_loss = tf.add_n(towers['losses']) / 2"), (RUN, RUN.replace("loss]", "mean_loss]"))),
    taken("a list that is run", DICT, FILLED, (RUN, f"            _, losses = sess.run([train_op, stats['loss']], {FEED})\n            value = np.mean(losses)\n")),
]  # fmt: skip

LEFT = [
    left("whose keys are gone over", "TM206", DICT, *ALL[:1], (MEANS[0], "    for key in stats:\n        print(key)\n" + MEANS[1]), READ),
    left("with a key that is computed", "TM206", DICT, in_tower("stats['lo' + 'ss'].append(loss)", "stats['out'].append(tf.reduce_mean(out))"), MEANS, READ),
    left("of which a list is set anew", "TM206", DICT, FILLED, (MEANS[0], "    stats['loss'] = stats['loss'][:1]\n" + MEANS[1]), READ),
    left("by another name", "TM206", DICT, (APPENDED, "                    own = stats\n" + FILLED[1].replace("stats['loss']", "own['loss']")), MEANS, READ),
    left("with a list that is no new one", "TM206", made("{'loss': tower_grads[:0], 'out': []}"), *ALL),
    left("of two keys that are one", "TM206", made("{'loss': [], 'loss': [], 'out': []}"), *ALL),
    left("that makes something else", "TM206", made("collections.defaultdict(lambda: [])"), imports("import collections"), *ALL),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
