"""At module level: a device function per tower, an optimizer made in the loop, the first tower's accuracy."""

REPOSITORY = "aymericdamien/TensorFlow-Examples"
PROGRAM = "tensorflow_v1/examples/6_MultiGPU/multigpu_cnn.py"
STYLE = "session"


class _Set:
    def __init__(self, random):
        self.random = random

    def next_batch(self, size):
        labels = self.random.randint(0, 10, size)
        one_hot = (labels[:, None] == list(range(10))).astype("float32")
        return 0.1 * self.random.rand(size, 784).astype("float32"), one_hot


class Sets:
    def __init__(self, random):
        self.train = _Set(random)


def run(field, program=PROGRAM):
    import os

    folder, name = os.path.split(program)
    os.chdir(folder or ".")
    field.tf.logging.set_verbosity(field.tf.logging.ERROR)
    settings = {
        "input_data.read_data_sets(": "(lambda *arguments, **options: tiny_sets)(",
        "batch_size = 1024": "batch_size = 4",
        "display_step = 10": "display_step = 1",
        # Else Adam makes steps of the learning rate out of gradients that are no more than rounding.
        "AdamOptimizer(learning_rate=learning_rate)": "AdamOptimizer(learning_rate=learning_rate, epsilon=1e-3)",
    }
    field.script(name, runs=3, change=settings, globals={"tiny_sets": Sets(field.random)})
