"""A loop over device numbers given in options, two loss functions of the program, Nesterov momentum."""

REPOSITORY = "danielewworrall/harmonicConvolutions"
PROGRAM = "deprecated/model_assembly_train.py"
REFERENCE = "tower"
OUTER = "missing"


def run(field):
    import os
    import sys

    tf = field.tf
    field.stub(
        "cv2",
        "scipy",
        "skimage",
        "matplotlib",
        "input_data",
        "harmonic_network_models",
        "io_helpers",
        "io_queues",
    )
    os.chdir("deprecated")
    sys.path[:0] = [os.getcwd(), field.tree]
    program = field.load("model_assembly_train.py")
    images = field.random.rand(4, 3).astype("float32")

    def tiny(opt, x, train_phase, device=None):
        weights = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.5))
        return tf.matmul(x, weights)

    rate = tf.constant(0.1)
    nodes = {
        "io": {"x": [tf.constant(images)], "y": [tf.constant([0, 1, 0, 1], tf.int64)]},
        "learning_rate": rate,
        "train_phase": tf.constant(True),
        "test_phase": tf.constant(False),
    }
    options = {
        "deviceIdxs": [0, 1], "optimizer": tf.train.AdamOptimizer, "momentum": 0.9, "model": tiny,
        "is_classification": True, "is_bsd": False, "test_phase": False, "batch_size": 4, "n_classes": 2,
    }  # fmt: skip
    field.begin()
    loss, accuracy, op = program.construct_model_and_optimizer(options, nodes)
    field.train([op, loss, accuracy], steps=4)
