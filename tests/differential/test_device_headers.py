"""Tower loops whose header says the devices, and other headers that count from zero."""

from __future__ import annotations

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of_all, left, taken

HEAD, DEVICE = "for i in range(2):", "tf.device('/gpu:%d' % i)"


def over(header: str, device: str = "tf.device(d)", *more: Change) -> tuple[Change, ...]:
    """The program whose towers stand in a loop with another header."""
    return (HEAD, header), (DEVICE, device), *more


PRINTED = (
    "                tower_grads.append(",
    "                print('built', d)\n                tower_grads.append(",
)
DRAWN = "drawn = [0]\n"
TAKEN = [
    taken("a list of texts", *over("for i, d in enumerate(['/gpu:0', '/gpu:1']):")),
    taken("a tuple beside a range", *over("for i, d in zip(range(2), ('/cpu:0', '/cpu:0')):")),
    taken("texts of numbers", *over("for i, d in enumerate(['/gpu:%d' % n for n in range(2)]):")),
    taken("texts of numbers, one by one", *over("for i, d in enumerate('/gpu:{}'.format(n) for n in range(2)):")),
    taken("texts of numbers, added", *over("for i, d in enumerate(['/gpu:' + str(n) for n in range(2)]):")),
    taken("texts that have no number", *over("for d in ['/gpu:0', '/gpu:1']:", "tf.device(d)", ("X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]", "X, Y"), ("with tf.name_scope('tower_%d' % i) as scope", "with tf.name_scope('tower')"))),
    taken("a list of a range", *over("for i in list(range(2)):", DEVICE)),
    taken("a count from nothing", *over("for i, d in enumerate(DEVICES, 0):")),
    taken("a list of what a text has", *over("for i, g in enumerate(GPUS):", "tf.device('/gpu:' + g)"), (DRAWN, DRAWN + "GPUS = '0,1'.split(',')\n")),
]  # fmt: skip
LEFT = [
    left("a device that is read behind", "TM201", *over("for i, d in enumerate(['/gpu:0', '/gpu:1']):"), ("    train_op = ", "    print('last', d)\n    train_op = ")),
    left("texts that are others each time", "TM201", *over("for i, d in enumerate(['/gpu:%d' % drawn.append(n) or 0 for n in range(2)]):")),
    left("texts by a function of the file", "TM201", (DRAWN, DRAWN + "\n\ndef str(n):\n    return '%d' % (1 - n)\n\n\n"), *over("for i, d in enumerate(['/gpu:' + str(n) for n in range(2)]):")),
    left("a device in a text", "TM227", *over("for i, d in enumerate(['/gpu:0', '/gpu:1']):", "tf.device(f'{d}')")),
    left("some of them", "TM201", *over("for i, d in enumerate(['/gpu:%d' % n for n in range(3) if n]):")),
    left("a count from one", "TM201", *over("for i, d in enumerate(DEVICES, 1):", "tf.device(d)", ("i * 2:(i + 1) * 2]", "(i - 1) * 2:i * 2]"))),
    left("a list and a longer range", "TM201", *over("for i, d in zip(range(3), ['/gpu:0', '/gpu:1']):")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
