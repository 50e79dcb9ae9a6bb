"""A device function per tower, an outer scope that is told to reuse, `get_next()` in each tower, `reduce_mean` of a list."""

REPOSITORY = "Sanster/tf_multi_gpu_example"
PROGRAM = "multi_gpu_train.py"


def run(field):
    tf = field.tf
    images = field.random.rand(32, 784).astype("float32")
    labels = field.random.randint(0, 10, 32).astype("uint8")
    program = field.load("multi_gpu_train.py")
    program.training_dataset = lambda epochs: (
        tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(4)
    )
    field.watch(4)
    program.main(None)
