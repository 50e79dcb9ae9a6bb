"""Inputs read in each tower, losses of one tower taken from a collection by its scope, Nesterov momentum, queue runners."""

REPOSITORY = "normanheckscher/mnist-multi-gpu"
PROGRAM = "mnist_multi_gpu_batching_train.py"
REFERENCE = "tower"
# Because of `gate_gradients=0` the tower graph with reference variables differs from itself by 7e-02.
VARIABLES = "resource"


def run(field):
    tf = field.tf
    program = field.load("mnist_multi_gpu_batching_train.py")
    images = field.random.rand(8, 784).astype("float32") - 0.5
    labels = field.random.randint(0, 10, 8).astype("int32")
    program.inputs = lambda **settings: (tf.constant(images), tf.constant(labels))
    program.FLAGS(["train", "--train_dir=out", "--batch_size=8", "--tb_logging=True"])
    program.xrange = range  # which Python 2 has
    field.watch(4)
    program.train()
