"""Towers in a constructor, `tf.gradients` with clipping per tower, moving averages, a Supervisor; TensorFlow 0.x."""

REPOSITORY = "rafaljozefowicz/lm"
PROGRAM = "language_model.py"
REFERENCE = "tower"


def run(field):
    import language_model
    import model_utils
    import run_utils

    # 0.x scaled a shard by the whole variable's shape; later TensorFlow does not know that keyword.
    model_utils.tf.compat.v1.uniform_unit_scaling_initializer = lambda full_shape, dtype: (
        field.tf.random_uniform_initializer(-0.1, 0.1, dtype=dtype)
    )

    hps = language_model.LM.get_default_hparams()
    sizes = {
        "batch_size": 4,
        "num_steps": 3,
        "num_shards": 2,
        "vocab_size": 20,
        "emb_size": 8,
        "state_size": 8,
        "projected_size": 8,
        "num_sampled": 0,
        "num_gpus": 2,
    }
    for name, value in sizes.items():
        setattr(hps, name, value)
    field.watch(6)
    run_utils.run_train(_Data(field.random), hps, "log", "/gpu:0")


class _Data:
    def __init__(self, random):
        self.random = random

    def iterate_forever(self, size, steps):
        while True:
            words = self.random.randint(0, 20, (2, size, steps))
            yield words[0], words[1], words[0] * 0 + 1
