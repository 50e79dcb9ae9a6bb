"""Updates kept in a list until they are grouped, checkpoints asked for: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

APPLIED = "    train_op = opt.apply_gradients(grads, global_step=step_count)\n"
AVERAGES = """\
    apply_op = opt.apply_gradients(grads, global_step=step_count)
    ema = tf.train.ExponentialMovingAverage(0.9, step_count)
    with tf.control_dependencies([apply_op]):
        averaged = ema.apply(tf.trainable_variables())
"""
STEPS = "        for step in range(4):\n"
RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"


def update(text: str) -> tuple[str, str]:
    return (APPLIED, AVERAGES + "".join(f"    {line}\n" for line in text.split("\n")))


TAKEN = [
    taken("a list", update("ops = [apply_op, averaged]\ntrain_op = tf.group(*ops)")),
    taken("groups in groups", update("train_op = tf.group(tf.group(apply_op, tf.group(averaged)), name='train')")),
    taken("a group in a group", update("train_op = tf.group(apply_op, tf.group(\n    averaged,\n))")),
    taken("as it is", update("ops = [apply_op, averaged]\ntrain_op = tf.group(ops)")),
    taken("with a name", update("ops = [apply_op, averaged]\ntrain_op = tf.group(*ops, name='train')")),
    taken("appended", update("ops = [apply_op]\nops.append(averaged)\ntrain_op = tf.group(*ops)")),
    taken("begun empty", update("ops = []\nops.append(apply_op)\nops.append(averaged)\ntrain_op = tf.group(*ops)")),
    taken("made in it", (APPLIED, "    ops = [opt.apply_gradients(grads, global_step=step_count)]\n    train_op = tf.group(*ops)\n")),
    taken("appended as it is made", (APPLIED, "    ops = []\n    ops.append(opt.apply_gradients(grads, global_step=step_count))\n    train_op = tf.group(*ops)\n")),
    taken("a checkpoint that may be there", (STEPS, "        if tf.train.checkpoint_exists('ckpt/model'):\n            saver.restore(sess, 'ckpt/model')\n            print('restored')\n" + STEPS)),
    taken("a checkpoint that is there", (STEPS, "        saver.save(sess, 'ckpt/early')\n" + STEPS), (RUN, RUN + "            if step == 1 and tf.train.checkpoint_exists('ckpt/early'):\n                saver.restore(sess, 'ckpt/early')\n                print('restored')\n")),
]  # fmt: skip

LEFT = [
    left("counted", "TM204", update("ops = [apply_op, averaged]\nprint(len(ops))\ntrain_op = tf.group(*ops)")),
    left("only some of them", "TM204", update("ops = [apply_op, averaged]\ntrain_op = tf.group(*ops[:1])")),
    left("fetched as well", "TM204", update("ops = [apply_op, averaged]\ntrain_op = tf.group(*ops)"), (RUN, RUN + "            sess.run(ops, feed_dict={X: bx, Y: by})\n")),
    left("under another name too", "TM206", update("ops = [apply_op]\nmore = ops\nmore.append(averaged)\ntrain_op = tf.group(*ops)")),
    left("in a loop", "TM220", update("ops = [apply_op]\nfor each in [averaged]:\n    ops.append(each)\ntrain_op = tf.group(*ops)")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
