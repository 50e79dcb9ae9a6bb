"""Faults that the engine cannot make: texts of a program's rewritten form and what stands in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.verify.plant import Fault
from towermigrate.verify.probes import Splice


@dataclass(frozen=True)
class _Edit:
    kind: str
    path: str
    old: str
    new: str


_BY_HAND: dict[str, tuple[_Edit, ...]] = {
    "mnist_feed": (
        _Edit("inputs: other range", "digits.py", "(prototypes[classes] + noise).astype", "((prototypes[classes] + noise) * 255).astype"),
        _Edit("model: reuse of nothing", "digits.py", "tf.compat.v1.layers.max_pooling2d(x, 2, 2)\n        x = tf.compat.v1.layers.conv2d", "tf.compat.v1.layers.average_pooling2d(x, 2, 2)\n        x = tf.compat.v1.layers.conv2d"),
    ),
    "cifar_queue": (
        _Edit("inputs: other range", "textures_input.py", "image = tf.image.per_image_standardization(image)", "image = image / 255."),
        _Edit("inputs: other labels", "textures_input.py", "tf.strided_slice(record, [0], [label_bytes])", "0 * tf.strided_slice(record, [0], [label_bytes])"),
        _Edit("regulariser: on all weights", "textures.py", "[3, 3, 8, 8], stddev=0.1, wd=None", "[3, 3, 8, 8], stddev=0.1, wd=0.004"),
    ),
    "cifar_same_batch": (
        _Edit("inputs: other range", "spirals.py", "stddev=0.01)", "stddev=10.)"),
    ),
    "wgan_gp": (
        _Edit("model: sign of the loss", "rings.py", "LAMBDA * penalty - distance", "LAMBDA * penalty + distance"),
        _Edit("model: the slope of the mean", "rings.py", "axis=[1]))", "axis=[0]))"),
    ),
    "staged_gan": (
        _Edit("model: noise left out", "complete.py", "conv(images + noise, 8", "conv(images + 0 * noise, 8"),
        _Edit("model: stopped gradient", "complete.py", "build_discriminator(generated, _noise)", "build_discriminator(tf.stop_gradient(generated), _noise)"),
    ),
    "session_tagger": (
        _Edit("gradient: sparse summed for averaged", "model.py", "tf.add_n([tf.convert_to_tensor(g) for g in grads]) / len(grads)", "tf.add_n([tf.convert_to_tensor(g) for g in grads]) / (1 if isinstance(grads[0], tf.IndexedSlices) else len(grads))"),
        _Edit("inputs: remainder dropped", "train.py", ".repeat().batch(settings.ROWS)", ".batch(settings.ROWS).skip(1).repeat()"),
    ),
    "gan": (
        _Edit("clipping: weights not clipped", "gan.py", "sess.run(clip)", "pass"),
        _Edit("stages: one never trained", "gan.py", 'sess.run(train["g"])', "pass"),
    ),
    "trainer": (
        _Edit("schedule: decay", "trainer.py", "0.1 * 0.9**step", "0.1 * 0.8**step"),
        _Edit("schedule: off by one", "trainer.py", "0.1 * 0.9**step", "0.1 * 0.9**(step + 1)"),
        _Edit("regulariser: on the first tower only", "trainer.py", "return loss + self.decay", "return loss + (0 if tf.compat.v1.get_variable_scope().reuse else self.decay)"),
        _Edit("returned: another tower's", "trainer.py", "self.losses.append(loss)", "self.losses.insert(0, loss)"),
        _Edit("steps: an update more in each", "trainer.py", "with tf.control_dependencies([apply]):", "twice = opt.apply_gradients(average)\n        with tf.control_dependencies([apply, twice]):"),
    ),
    "shared_adam": (
        _Edit("gradient: sparse summed for averaged", "shared_adam.py", "opt.apply_gradients(grads)\n            return first_loss", 'opt.apply_gradients([(g if g is None or "table" not in v.name else tf.math.scalar_mul(2., g), v) for g, v in grads])\n            return first_loss'),
    ),
}  # fmt: skip


def by_hand(program: str, tree: dict[str, str]) -> Iterator[Fault]:
    """The faults made by hand for a program.

    Raises:
        ValueError: a text is not in the program, or several times.
    """
    for edit in _BY_HAND.get(program, ()):
        text = tree[edit.path]
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.path} has {text.count(edit.old)} times {edit.old!r}")
        at = text.index(edit.old)
        yield Fault(
            edit.kind,
            f"{edit.old!r} is {edit.new!r}",
            edit.path,
            text.count("\n", 0, at) + 1,
            (Splice(at, at + len(edit.old), edit.new),),
        )
