"""Python 2: a placeholder in each tower, `xrange`, losses by the name of the tower, moving averages."""

REPOSITORY = "SoulDuck/multi_gpu"
PROGRAM = "sync_cifar.py"
STYLE = "session"
REFERENCE = "tower"
RACES = "ExponentialMovingAverage"


def run(field):
    images = field.random.randint(0, 255, (64, 32, 32, 3)).astype("float32")
    labels = field.random.randint(0, 10, 64).astype("float32")
    field.module(
        "cifar_input",
        get_images_labels=lambda *files: (images, labels),
        next_batch=lambda images, labels, size: (images[:size], labels[:size]),
    )
    __import__("os").makedirs("model")
    field.script("sync_cifar.py", "--train_dir=out", "--batch_size=4", runs=4)
