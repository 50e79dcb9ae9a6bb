"""Runs that clip a critic's variables: what loop style takes, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.loop_programs import Change
from tests.differential.spellings import asked_of

PROGRAM = """\
import numpy as np
import tensorflow as tf

CLIP = 0.3
TOWERS = 2


def init(*shape):
    return tf.constant_initializer(np.linspace(-0.5, 0.6, int(np.prod(shape))).reshape(shape))


def generator(z, reuse=False):
    with tf.variable_scope('generator', reuse=reuse):
        h = tf.nn.tanh(tf.layers.dense(z, 4, kernel_initializer=init(3, 4), name='first'))
        return tf.layers.dense(h, 2, kernel_initializer=init(4, 2), name='last')


def critic(x, reuse=False):
    with tf.variable_scope('critic', reuse=reuse):
        h = tf.nn.tanh(tf.layers.dense(x, 4, kernel_initializer=init(2, 4), name='first'))
        return tf.layers.dense(h, 1, kernel_initializer=init(4, 1), name='last')


def average_gradients(tower_grads):
    averaged = []
    for pairs in zip(*tower_grads):
        averaged.append((tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0), pairs[0][1]))
    return averaged


def main():
    rng = np.random.RandomState(0)
    real = tf.placeholder(tf.float32, [4, 2])
    noise = tf.placeholder(tf.float32, [4, 3])
    reals, noises = tf.split(real, TOWERS), tf.split(noise, TOWERS)
    d_opt = tf.train.RMSPropOptimizer(0.05)
    g_opt = tf.train.RMSPropOptimizer(0.05)
    d_tower_grads, g_tower_grads = [], []
    for i in range(TOWERS):
        with tf.device('/gpu:%d' % i):
            with tf.name_scope('tower_%d' % i):
                fake = generator(noises[i], reuse=i > 0)
                d_real = critic(reals[i], reuse=i > 0)
                d_fake = critic(fake, True)
                d_loss = tf.reduce_mean(tf.square(d_fake)) + tf.reduce_mean(tf.square(d_real - 1.0))
                g_loss = tf.reduce_mean(tf.square(d_fake - 1.0))
                t_vars = tf.trainable_variables()
                d_vars = [v for v in t_vars if v.name.startswith('critic')]
                g_vars = [v for v in t_vars if v.name.startswith('generator')]
                d_tower_grads.append(d_opt.compute_gradients(d_loss, var_list=d_vars))
                g_tower_grads.append(g_opt.compute_gradients(g_loss, var_list=g_vars))
    d_train = d_opt.apply_gradients(average_gradients(d_tower_grads))
    g_train = g_opt.apply_gradients(average_gradients(g_tower_grads))
    clip = [v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in d_vars]
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(3):
            for _ in range(2):
                feed = {real: rng.randn(4, 2), noise: rng.randn(4, 3)}
                _, dl = sess.run([d_train, d_loss], feed_dict=feed)
                sess.run(clip)
            _, gl = sess.run([g_train, g_loss], feed_dict={noise: rng.randn(4, 3)})
            print(step, '%.5f %.5f' % (dl, gl))


if __name__ == '__main__':
    main()
"""
CLIPS = "    clip = [v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in d_vars]\n"
EACH = "v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in d_vars"
RUN = "                sess.run(clip)\n"
TRAIN = "                _, dl = sess.run([d_train, d_loss], feed_dict=feed)\n"
LISTS = "                d_vars = [v for v in t_vars if v.name.startswith('critic')]\n"
ALL = "                t_vars = tf.trainable_variables()\n"
FAKE = "                fake = generator(noises[i], reuse=i > 0)\n"
FIRST = "                feed = {real: rng.randn(4, 2)"
REUSE = (FAKE, "                reuse = i > 0\n" + FAKE), ("reuse=i > 0", "reuse")
BEHIND = (
    (CLIPS, "    with tf.control_dependencies([d_train]):\n        d_clipped = tf.group(*[v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in d_vars])\n"),
    (TRAIN, TRAIN.replace("d_train", "d_clipped")), (RUN, ""),
)  # fmt: skip
CLASS = """\
class Gan(object):
    def __init__(self, bound):
        self.bound = bound
        self.build()

"""


def program(*changes: Change) -> dict[str, str]:
    """The program with each `(old, new)` applied; every `old` must be there."""
    text = PROGRAM
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {"train.py": text}


def case(name: str, *changes: Change) -> Any:
    return pytest.param(changes, id=name)


def other(name: str, rule: str, *changes: Change) -> Any:
    return pytest.param(changes, rule, id=name)


def clips(text: str) -> Change:
    return CLIPS, text


def by_names(critic: str, maker: str) -> Change:
    """The lists of variables, by other tests of their names."""
    both = (
        LISTS + "                g_vars = [v for v in t_vars if v.name.startswith('generator')]\n"
    )
    new = both.replace("v.name.startswith('critic')", critic)
    return both, new.replace("v.name.startswith('generator')", maker)


def of_class(*changes: Change) -> tuple[Change, ...]:
    """The program in a class that builds in one method and trains in another."""
    start, end = PROGRAM.index("def main"), PROGRAM.index("if __name__")
    body = PROGRAM[start:end]
    for old, new in changes:
        assert old in body, old
        body = body.replace(old, new)
    for name in ("real", "noise", "d_train", "g_train", "d_loss", "g_loss", "clip"):
        for mark in (f"    {name} =", f"    self.{name} ="), (f"[{name}", f"[self.{name}"), (f", {name}]", f", self.{name}]"), (f"{{{name}:", f"{{self.{name}:"), (f" {name}:", f" self.{name}:"), (f"run({name})", f"run(self.{name})"), (f"split({name},", f"split(self.{name},"):  # fmt: skip
            if name not in ("d_loss", "g_loss") or "    " not in mark[0]:
                body = body.replace(*mark)
    body = body.replace(
        "    self.d_train =", "    self.d_loss, self.g_loss = d_loss, g_loss\n    self.d_train ="
    )
    build, train = body.split("    with tf.Session", 1)
    build = build.replace("def main():\n    rng = np.random.RandomState(0)\n", "def build(self):\n")
    train = (
        "def train(self):\n    rng = np.random.RandomState(0)\n    with tf.Session"
        + train.rstrip()
        + "\n"
    )
    methods = "\n".join("    " + row if row else row for row in f"{build}\n{train}".split("\n"))
    return ((PROGRAM[start:end], f"{CLASS}{methods.rstrip()}\n\n\n"), ("    main()\n", "    Gan(0.3).train()\n"))  # fmt: skip


TAKEN = [
    case("a list"),
    case("in front of the step", (TRAIN + RUN, RUN + TRAIN)),
    case("in both places", (TRAIN, RUN + TRAIN)),
    case("by the function", clips("    clip = [tf.assign(v, tf.clip_by_value(v, -CLIP, CLIP)) for v in d_vars]\n")),
    case("by keywords", clips("    clip = [v.assign(tf.clip_by_value(v, clip_value_max=CLIP, clip_value_min=-0.1)) for v in d_vars]\n")),
    case("a group of a list", clips(f"    clip = tf.group(*[{EACH}])\n")),
    case("a group of a list with a name", clips(f"    clips = [{EACH}]\n    clip = tf.group(*clips)\n")),
    case("a list in a run", (RUN, "                sess.run([clip])\n"), clips(f"    clip = tf.group(*[{EACH}])\n")),
    case("a list that a loop fills", clips("    clips = []\n    for var in d_vars:\n        bounds = [-CLIP, .2]\n        clips.append(tf.assign(var, tf.clip_by_value(var, bounds[0], bounds[1])))\n    clip = tf.group(*clips)\n")),
    case("of a scope", clips(CLIPS[4:].replace("d_vars", "tf.trainable_variables('critic')").join(["    ", ""]))),
    case("of a collection's scope", clips("    clip = [v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='critic')]\n")),
    case("of all variables", clips("    clip = [v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in tf.trainable_variables()]\n")),
    case("with a test of its own", clips("    clip = [v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in d_vars if 'kernel' in v.name]\n")),
    case("listed behind the towers", clips("    critic_vars = [v for v in tf.trainable_variables() if 'critic' in v.op.name]\n" + CLIPS.replace("d_vars", "critic_vars"))),
    case("listed at once", (ALL + LISTS, "                t_vars = tf.trainable_variables()\n                d_vars = [v for v in tf.trainable_variables() if 'critic/' in v.name]\n")),
    case("by a number of the function", ("    rng =", "    bound = 0.2\n    rng ="), clips(CLIPS.replace("CLIP", "bound"))),
    case("behind the update, in its run", *BEHIND),
    case("every second time", (RUN, "                if step % 2:\n    " + RUN)),
    case("where nothing else runs", (RUN, ""), ("        for step in range(3):\n", "        sess.run(clip)\n        for step in range(3):\n")),
    case("whether a tower is the first one, by a name", *REUSE),
    case("picked by the first part of the names", by_names("v.name.split('/')[0] == 'critic'", "v.op.name.split('/')[0] == 'generator'")),
    case("picked by the first parts", by_names("v.name.split('/')[0] in ('critic', 'judge')", "v.name.split('/')[0] != 'critic'")),
    case("picked by no first part", by_names("v.name.split('/')[0] not in ['generator', 'maker']", "v.op.name.split('/')[0] not in ('critic', 'judge')")),
    case("picked by the first part in a loop", clips("    clip = [v.assign(tf.clip_by_value(v, -CLIP, CLIP)) for v in t_vars if v.name.split('/')[0] == 'critic']\n")),
    case("of an object", *of_class()),
    case("of an object, by a number that it has", *of_class((CLIPS, CLIPS.replace("CLIP", "self.bound")))),
]  # fmt: skip

LEFT = [
    other("beside the update", "TM209", (TRAIN, TRAIN.replace("_, dl", "_, _, dl").replace("[d_train,", "[d_train, clip,")), (RUN, "")),
    other("beside what it waits for", "TM204", *BEHIND, (TRAIN.replace("d_train", "d_clipped"), TRAIN.replace("_, dl", "_, _, dl").replace("[d_train,", "[d_train, d_clipped,"))),
    other("what it gives", "TM209", (RUN, "                found = sess.run(clip)\n                print(len(found))\n")),
    other("by a bound that is changed", "TM209", ("    rng =", "    bound = 0.2\n    rng ="), clips(CLIPS.replace("CLIP", "bound")), (RUN, RUN + "                bound = 0.1\n")),
    other("by a bound of the module that is changed", "TM209", ("def main():\n", "def main():\n    global CLIP\n"), (RUN, RUN + "                CLIP = 0.1\n")),
    other("by a bound that is fed", "TM209", ("    rng =", "    bound = tf.placeholder_with_default(0.2, [])\n    rng ="), clips(CLIPS.replace("CLIP", "bound"))),
    other("by a bound that is listed", "TM209", ("    rng =", "    bound = [0.2]\n    rng ="), clips(CLIPS.replace("CLIP", "bound[0]"))),
    other("of all variables, slots too", "TM209", clips(CLIPS.replace("d_vars", "tf.global_variables()"))),
    other("of those of a shape", "TM209", clips(CLIPS.replace("for v in d_vars", "for v in d_vars if v.shape.ndims == 2"))),
    other("of another's value", "TM209", clips(CLIPS.replace("by_value(v,", "by_value(tf.reduce_mean(d_vars[0]) + 0.0 * v,"))),
    other("by a norm", "TM209", clips("    clip = [v.assign(tf.clip_by_norm(v, 1.0)) for v in d_vars]\n")),
    other("listed before more is made", "TM209", (ALL + LISTS, ""), (FAKE, ALL + LISTS + FAKE), ("d_loss, var_list=d_vars", "d_loss"), ("g_loss, var_list=g_vars", "g_loss"), ("                g_vars = [v for v in t_vars if v.name.startswith('generator')]\n", "")),
    other("of a list that is changed", "TM209", clips("    d_vars.pop()\n" + CLIPS)),
    other("made again in each step", "TM209", clips(""), (RUN, CLIPS.replace("    clip", "                clip") + RUN)),
    other("picked by the second part of the names", "TM227", by_names("v.name.split('/')[1] == 'critic' or 'critic' in v.name", "'gen' in v.name")),
    other("picked by another sign", "TM227", by_names("v.name.split('_')[0].startswith('critic')", "'gen' in v.name")),
    other("picked by a name that is computed", "TM227", by_names("v.name.split('/')[0] == str('critic')", "'gen' in v.name")),
    other("picked by the name of a variable", "TM227", by_names("v.op.name.split('/')[0] == 'critic'", "'gen' in v.name"), ("    d_opt =", "    tf.get_variable('critic', [], trainable=False)\n    d_opt =")),
    other("of a number that is computed", "TM209", clips(CLIPS.replace("-CLIP", "-abs(CLIP)"))),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
) = asked_of(TAKEN, LEFT, program)
