"""`tf.DeviceSpec` as device, dictionaries of splits, a model function that its user gives."""

REPOSITORY = "vahidk/TensorflowFramework"
PROGRAM = "common/optimizer.py"
REFERENCE = "tower"


def run(field):
    tf = field.tf
    field.contrib()
    from common import optimizer

    images = field.random.rand(8, 3).astype("float32")

    def model_fn(features, labels, mode, params):
        weights = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
        made = tf.matmul(features["x"], weights)
        loss = tf.reduce_mean(tf.square(made - labels["y"]))
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.nn.l2_loss(weights))
        return {"made": made}, loss, {}

    features, labels = {"x": tf.constant(images)}, {"y": tf.ones([8, 1])}
    made = optimizer.make_parallel(model_fn, features, labels, "train", None, 2)
    loss = tf.add_n(made[1]) / 2 + tf.add_n(made[2])
    op = tf.train.AdamOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
    field.train([op, loss], steps=4)
