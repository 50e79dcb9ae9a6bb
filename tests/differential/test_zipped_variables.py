"""Variables beside their values (`zip(variables, sess.run(variables))`): loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
SAVER = "    saver = tf.train.Saver()\n"
SAVE = "        saver.save(sess, 'ckpt/model')\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
PRINTED = "        for v, held in zip(kept, sess.run(kept)):\n            print(v.name, '%.6f' % held.sum())\n"
START = "    tower_grads = []\n"
TRAINED = "tf.trainable_variables()"


def kept(listed: str = TRAINED, margin: str = "    ") -> tuple[str, str]:
    """A list of variables behind the update."""
    return (APPLIED, f"{APPLIED}{margin}kept = {listed}\n")


def at_end(text: str) -> tuple[str, str]:
    return (SAVE, text + SAVE)


TAKEN = [
    taken("a list behind the update", kept(), at_end(PRINTED)),
    taken("a list behind the session", at_end(f"        kept = {TRAINED}\n" + PRINTED)),
    taken("without a name", at_end(PRINTED.replace("kept", TRAINED))),
    taken("of all variables", kept("tf.global_variables()"), at_end(PRINTED)),
    taken("a list behind the saver", (SAVER, f"{SAVER}    kept = {TRAINED}\n"), at_end(PRINTED)),
    taken("after every step", kept(), (RUN, RUN + PRINTED.replace("        for", "            for").replace("            print", "                print"))),
    taken("as a dict", kept(), at_end("        held = {v.op.name: value for v, value in zip(kept, sess.run(kept))}\n        print(sorted((name, round(float(one.sum()), 5)) for name, one in held.items()))\n")),
    taken("as a list", kept(), at_end("        print([(v.op.name, '%.5f' % one.sum()) for v, one in zip(kept, sess.run(kept))])\n")),
    taken("values with a name", kept(), at_end("        values = sess.run(kept)\n        for v, held in zip(kept, values):\n            print(v.name, '%.6f' % held.sum())\n")),
    taken("values alone", kept(), at_end("        for held in sess.run(kept):\n            print('%.6f' % held.sum())\n")),
    taken("how many there are", kept(), at_end("        print(len(kept))\n        print(['%.5f' % one.sum() for one in sess.run(kept)])\n")),
    taken("names in front", (APPLIED, APPLIED + "    names = [v.name for v in tf.trainable_variables()]\n"), at_end("        for name, held in zip(names, sess.run(tf.trainable_variables())):\n            print(name, '%.6f' % held.sum())\n")),
    taken("its name is read behind", kept(), at_end(PRINTED + "        print('last', '%.6f' % held.sum())\n")),
]  # fmt: skip

LEFT = [
    left("in another order", "TM209", kept(), at_end(PRINTED.replace("zip(kept", "zip(kept[::-1]"))),
    left("training in between", "TM210", kept(), at_end(PRINTED + "            sess.run(train_op, {X: bx, Y: by})\n")),
    left("a function in between", "TM210", kept(), ("def train():\n", "def more(sess, op, feed):\n    sess.run(op, feed)\n\n\ndef train():\n"), at_end(PRINTED + "            more(sess, train_op, {X: bx, Y: by})\n")),
    left("an object that trains", "TM210", kept(), ("def train():\n", "class Trainer(object):\n    def step(self, sess, op, feed):\n        sess.run(op, feed)\n\n\ndef train():\n"), at_end("        trainer = Trainer()\n" + PRINTED + "            trainer.step(sess, train_op, {X: bx, Y: by})\n")),
    left("slots that a function makes behind the list", "TM209", (APPLIED, "    kept = tf.global_variables()\n    train_op = applied(opt, grads, step_count)\n"), ("def train():\n", "def applied(opt, grads, step):\n    return opt.apply_gradients(grads, global_step=step)\n\n\ndef train():\n"), at_end(PRINTED)),
    left("three of them", "TM209", kept(), at_end("        for i, v, held in zip(range(9), kept, sess.run(kept)):\n            print(i, v.name, '%.6f' % held.sum())\n")),
    left("a list before the towers", "TM209", (START, f"{START}    kept = {TRAINED}\n"), at_end(PRINTED)),
    left("a variable more behind the list", "TM209", kept(), (SAVER, "    more = tf.get_variable('more', [], initializer=tf.zeros_initializer())\n" + SAVER), at_end(PRINTED + "        print(sess.run(more))\n")),
    left("values read twice", "TM209", kept(), at_end("        values = sess.run(kept)\n        for v, held in zip(kept, values):\n            print(v.name, '%.6f' % held.sum())\n        print(len(values))\n")),
    left("a zip of its own", "TM209", kept(), ("def train():\n", "def zip(a, b):\n    return [(one, other) for one, other in __builtins__.zip(a, b)]\n\n\ndef train():\n"), at_end(PRINTED)),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
