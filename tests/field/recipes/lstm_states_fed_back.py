"""LSTM states of every tower fetched and fed back, clipping by global norm, IndexedSlices made unique by the author."""

REPOSITORY = "allenai/bilm-tf"
PROGRAM = "bilm/training.py"

WORDS = 30


def run(field):
    from bilm import training

    options = {
        "bidirectional": True,
        "dropout": 0.1,
        "lstm": {
            "cell_clip": 3,
            "dim": 8,
            "n_layers": 1,
            "proj_clip": 3,
            "projection_dim": 4,
            "use_skip_connections": True,
        },
        "all_clip_norm_val": 10.0,
        "n_epochs": 1,
        "n_train_tokens": 1000,
        "batch_size": 2,
        "n_tokens_vocab": WORDS,
        "unroll_steps": 4,
        "n_negative_samples_batch": 8,
        "sample_softmax": False,
    }
    field.watch(4)
    field.begin()
    training.train(options, _Data(field.random), 2, ".", "log")


class _Data:
    def __init__(self, random):
        self.random = random

    def iter_batches(self, size, steps):
        names = ("token_ids", "token_ids_reverse", "next_token_id", "next_token_id_reverse")
        while True:
            yield {name: self.random.randint(0, WORDS, (size, steps)) for name in names}
