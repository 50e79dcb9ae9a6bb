"""A device function per tower, an outer scope that is told to reuse, `get_next()` in each tower, `reduce_mean` of a list."""

REPOSITORY = "Sanster/tf_multi_gpu_example"
PROGRAM = "multi_gpu_train.py"
STYLE = "session"


def run(field):
    tf = field.tf
    # With pixels from 0 to 1 a unit of a ReLU lies on rounding: one of 1024 gradients is another under 1.15.
    images = field.random.rand(32, 784).astype("float32") - 0.5
    labels = field.random.randint(0, 10, 32).astype("uint8")
    # Else Adam makes steps of the learning rate out of gradients that are no more than rounding.
    field.edit("multi_gpu_train.py", {"(learning_rate=1E-3)": "(learning_rate=1E-3, epsilon=1E-3)"})
    program = field.load("multi_gpu_train.py")
    program.training_dataset = lambda epochs: (
        tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(4)
    )
    field.watch(4)
    program.main(None)
