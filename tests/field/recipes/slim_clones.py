"""TF-slim's clones: a named tuple per tower, losses from a collection, the sum of gradients of scaled losses."""

REPOSITORY = "balancap/SSD-Tensorflow"
PROGRAM = "deployment/model_deploy.py"


def run(field):
    tf = field.tf
    from deployment import model_deploy

    images = field.random.rand(2, 4, 3).astype("float32")
    queue = iter(images)

    def clone_fn():
        weights = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
        made = tf.matmul(tf.constant(next(queue)), weights)
        tf.losses.mean_squared_error(tf.ones([4, 1]), made)
        return made

    field.begin()
    config = model_deploy.DeploymentConfig(num_clones=2)
    with tf.device(config.variables_device()):
        step = tf.train.get_or_create_global_step()
    clones = model_deploy.create_clones(config, clone_fn)
    with tf.device(config.optimizer_device()):
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    loss, gradients = model_deploy.optimize_clones(clones, optimizer)
    op = optimizer.apply_gradients(gradients, global_step=step)
    field.train([op, loss], steps=4)
