"""A library: its trainer class builds towers from a function that its user gives; variables exist before."""

REPOSITORY = "JiahuiYu/neuralgym"
PROGRAM = "neuralgym/train/multigpu_trainer.py"


def run(field):
    tf = field.tf
    field.stub("cv2", "tensorflow.contrib", "yaml")
    from neuralgym.train.multigpu_trainer import MultiGPUTrainer

    images = field.random.rand(2, 4, 3).astype("float32")

    def graph_def(gpu_id):
        weights = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
        return tf.reduce_mean(tf.square(tf.matmul(tf.constant(images[gpu_id]), weights) - 1.0))

    field.begin()
    tf.get_variable("w", [3, 1], initializer=tf.constant_initializer(0.5))
    trainer = MultiGPUTrainer(
        optimizer=tf.train.AdamOptimizer(0.1), graph_def=graph_def, graph_def_kwargs={}, num_gpus=2,
        grads_summary=True, log_dir="log", log_progress=False, max_iters=10,
    )  # fmt: skip
    field.watch(6)
    trainer.train()
