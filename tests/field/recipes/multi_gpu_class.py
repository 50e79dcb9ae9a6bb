"""A class for one tower in one file, its multi-GPU child in another; `minimize` of a masked mean of tower losses."""

REPOSITORY = "SeonbeomKim/TensorFlow-MultiGPU"
PROGRAM = "multi_gpu/Placeholder/MultiGPU.py"
REFERENCE = "tower"
VARIABLES = "resource"


def run(field):
    field.stub("tqdm", "tensorflow.contrib")
    trainer = field.load("multi_gpu/Placeholder/Trainer.py", "field_trainer")
    trainer.tqdm = lambda values, **options: _Bar(values)
    trainer.FLAGS.batch_size = 8
    images = field.random.rand(64, 784).astype("float32")
    labels = field.random.randint(0, 10, 64)
    one_hot = (labels[:, None] == list(range(10))).astype("float32")
    one = trainer.Trainer(["0", "1"])
    one.load_dataset = lambda: ((images, one_hot),) * 3
    field.watch(4)
    trainer.FLAGS.init_lr = 0.1
    one.run("save")


class _Bar:
    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def update(self, count):
        pass

    def set_description(self, text, refresh):
        pass

    def close(self):
        pass
