"""`fetches = [train_op, loss]` in the loop that runs it: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

RUN = "            _, value = sess.run([train_op, loss], feed_dict={X: bx, Y: by})\n"
FEED = "feed_dict={X: bx, Y: by}"


def steps(*lines: str) -> Change:
    return RUN, "".join(f"            {each}\n" for each in lines)


TAKEN = [
    taken("a list", steps("fetches = [train_op, loss]", f"_, value = sess.run(fetches, {FEED})")),
    taken("a tuple", steps("fetches = (train_op, loss)", f"_, value = sess.run(fetches, {FEED})")),
    taken("a dict", steps("fetches = {'train': train_op, 'loss': loss}", f"value = sess.run(fetches, {FEED})['loss']")),
    taken("a dict whose results are kept", steps("ops = {'train': train_op, 'loss': loss}", f"out = sess.run(ops, {FEED})", "value = out['loss']")),
    taken("of a branch", steps("if step % 2:", "    ops = [train_op, loss]", f"    _, value = sess.run(ops, {FEED})", "else:", f"    value, _ = sess.run([loss, train_op], {FEED})")),
    taken("run twice", steps("ops = [train_op, loss]", f"sess.run(ops, {FEED})", f"_, value = sess.run(ops, {FEED})")),
    taken("with more added", steps("ops = [train_op]", f"_, value = sess.run(ops + [loss], {FEED})")),
    taken("run in a loop in it", steps("ops = [train_op, loss]", "for _ in range(2):", f"    _, value = sess.run(ops, {FEED})")),
]  # fmt: skip

LEFT = [
    left("that holds what the loop binds", "TM209", steps("fetches = [train_op, loss]", f"_, loss = sess.run(fetches, {FEED})", "value = loss")),
    left("that grows", "TM209", steps("fetches = [train_op]", "fetches.append(loss)", f"_, value = sess.run(fetches, {FEED})")),
    left("that is bound anew", "TM209", steps("fetches = [train_op, loss]", "if step:", "    fetches = [train_op, loss]", f"_, value = sess.run(fetches, {FEED})")),
    left("that is run behind the loop", "TM209", steps("fetches = [train_op, loss]", f"_, value = sess.run(fetches, {FEED})"), ("        saver.save(sess, 'ckpt/model')\n", f"        saver.save(sess, 'ckpt/model')\n        sess.run(fetches, {FEED})\n")),
    left("that is counted", "TM209", steps("fetches = [train_op, loss]", "print(len(fetches))", f"_, value = sess.run(fetches, {FEED})")),
    left("of one branch, run behind it", "TM209", steps("if step % 2:", "    ops = [train_op, loss]", "else:", "    ops = [train_op, out]", f"value = sess.run(ops, {FEED})[1].mean()")),
    left("of one branch, run in the next step", "TM209", steps("if step % 2 == 0:", "    ops = [train_op, loss]", f"_, value = sess.run(ops, {FEED})")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
