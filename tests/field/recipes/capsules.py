"""A model class whose method builds one tower, called in a loop of another method; losses by the scope of a tower."""

REPOSITORY = "Sarasra/models"
PROGRAM = "research/capsules/models/model.py"
REFERENCE = "tower"


def run(field):
    import os
    import sys

    tf = field.tf
    os.chdir("research/capsules")
    sys.path.insert(0, os.getcwd())
    field.contrib()
    from models import conv_model, model

    model.xrange = conv_model.xrange = range  # which Python 2 has

    settings = (
        tf.contrib.training if hasattr(tf, "contrib") else __import__("tensorflow").contrib.training
    )
    hparams = settings.HParams(
        decay_rate=0.96, decay_steps=2000, leaky=False, learning_rate=0.001, loss_type="margin",
        num_prime_capsules=32, padding="VALID", remake=True, routing=3, verbose=False,
    )  # fmt: skip
    features = []
    for _ in range(2):
        labels = field.random.randint(0, 10, 2)
        one_hot = (labels[:, None] == list(range(10))).astype("float32")
        images = field.random.rand(2, 1, 28, 28).astype("float32")
        features.append(
            {
                "images": tf.constant(images), "labels": tf.constant(one_hot), "height": 28, "depth": 1,
                "num_targets": 1, "num_classes": 10, "recons_label": tf.constant(labels),
                "recons_image": tf.constant(images),
            }
        )  # fmt: skip
    field.begin()
    result, _ = conv_model.ConvModel(hparams).multi_gpu(features, 2)
    field.train([result.train_op, result.correct, result.almost], steps=3)
