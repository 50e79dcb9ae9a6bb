"""A copy of the cifar10 tutorial beside other programs of its repository."""

REPOSITORY = "bgshin/doc-classify-multi-gpu"
PROGRAM = "src/cifar10/cifar10_multi_gpu_train.py"
STYLE = "session"
RACES = "ExponentialMovingAverage"


def run(field):
    import os

    os.chdir("src/cifar10")
    images = field.random.rand(4, 24, 24, 3).astype("float32")
    labels = field.random.randint(0, 10, 4).astype("int32")
    program = field.load("cifar10_multi_gpu_train.py")
    tf = field.tf
    program.cifar10.distorted_inputs = lambda: (tf.constant(images), tf.constant(labels))
    program.FLAGS(["train", "--num_gpus=2", "--batch_size=4", "--train_dir=out"])
    field.watch(4)
    program.train()
