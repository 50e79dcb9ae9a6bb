"""A class whose method builds one tower and another loops; the same batch for all, and UPDATE_OPS of all towers in the train op."""

REPOSITORY = "arashno/tensorflow_multigpu_imagenet"
PROGRAM = "architectures/model.py"
REFERENCE = "tower"
# Both towers update them in one run: the tower graph differs from itself by 9e-02.
RACES = "moving_"


def run(field):
    import sys

    tf = field.tf
    sys.path.insert(0, field.tree)
    field.stub("scipy", "matplotlib")
    from architectures.model import model

    def loss(logits, labels):
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )

    field.begin()
    images = tf.placeholder(tf.float32, [None, 64, 64, 3])
    labels = tf.placeholder(tf.int32, [None])
    training = tf.placeholder(tf.bool)
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    made = model(
        images, labels, loss, optimizer, 1e-4, "resnet18", 10, training, [0], top_n=3, num_gpus=2
    )
    fetches = made.train_ops()
    feed = {
        images: field.random.rand(4, 64, 64, 3),
        labels: field.random.randint(0, 10, 4),
        training: True,
    }
    field.train(fetches, feed, steps=4)
