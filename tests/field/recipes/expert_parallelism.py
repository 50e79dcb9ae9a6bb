"""A class whose instances call functions once per device, caching variables per device."""

REPOSITORY = "tensorflow/tensor2tensor"
PROGRAM = "tensor2tensor/utils/expert_utils.py"
REFERENCE = "tower"


def run(field):
    tf = field.tf
    field.stub("gym", "sympy", "gevent", "dopamine", "tensorflow_probability")
    field.contrib()
    field.tf.estimator = __import__("tensorflow").estimator
    from tensor2tensor.utils import expert_utils

    images = field.random.rand(2, 4, 3).astype("float32")

    def tower(batch):
        weights = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
        return tf.reduce_mean(tf.square(tf.matmul(batch, weights) - 1.0))

    parallel = expert_utils.Parallelism(["gpu:0", "gpu:1"])
    losses = parallel(tower, [tf.constant(each) for each in images])
    loss = tf.add_n(losses) / len(losses)
    op = tf.train.AdamOptimizer(0.1).minimize(loss)
    field.train([op, loss], steps=4)
