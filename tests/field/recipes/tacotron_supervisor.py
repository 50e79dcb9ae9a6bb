"""Towers in a constructor that keeps all on `self`, gradients without None, a Supervisor."""

REPOSITORY = "Kyubyong/tacotron"
PROGRAM = "train_multi_gpus.py"


def run(field):
    tf = field.tf
    field.stub("librosa", "tqdm", "scipy", "matplotlib")
    import train_multi_gpus as program

    hp = program.hp
    hp.num_gpus, hp.batch_size, hp.embed_size, hp.logdir = 2, 4, 16, "log"
    texts = field.random.randint(1, 20, (4, 7)).astype("int32")
    mels = field.random.rand(4, 6, hp.n_mels * hp.r).astype("float32")
    whole = field.random.rand(4, 6, (1 + hp.n_fft // 2) * hp.r).astype("float32")
    program.get_batch = lambda: (tf.constant(texts), tf.constant(mels), tf.constant(whole), 10)
    made = program.Graph()
    with made.graph.as_default():
        supervisor = tf.train.Supervisor(logdir=hp.logdir)
        field.watch(3)
        with supervisor.managed_session(config=field.config()) as session:
            for _ in range(10):
                session.run([made.train_op, made.mean_loss])
