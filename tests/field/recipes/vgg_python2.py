"""Python 2 and TensorFlow 0.x: `tf.split(0, …)`, a model in another file, a placeholder split over the towers."""

REPOSITORY = "huyng/tensorflow-vgg"
PROGRAM = "train_model_parallel.py"
STYLE = "session"
REFERENCE = "tower"
OUTER = "missing"


def run(field):
    field.stub("skimage", "matplotlib", "dataset", "yaml", "requests", "h5py", "PIL")
    program = field.load("train_model_parallel.py")
    program.config.update(
        checkpoint_dir="out", learning_rate=0.001, data_dims=[32, 32, 3], batch_size=1, num_gpus=2,
        num_epochs=1, num_samples_per_epoch=100, pretrained_weights=None, checkpoint_iter=1000,
        experiment_dir=".", num_classes=10,
    )  # fmt: skip
    __import__("os").makedirs("out")
    program.tools.MetricsLogger = _Log  # which the repository names and lacks
    program.tools.save_weights = lambda *arguments: None
    field.watch(3)
    program.train(_Batches(field.random))


class _Batches:
    def __init__(self, random):
        self.random = random

    def __next__(self):
        return self.random.rand(2, 32, 32, 3), self.random.randint(0, 10, 2)

    next = __next__


class _Log:
    def __init__(self, path):
        pass

    def report(self, **values):
        pass
