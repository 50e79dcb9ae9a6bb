"""`enumerate(zip(…))` over stored splits, `tf.gradients`, sparse gradients, an optimizer of its own that assigns."""

REPOSITORY = "openai/finetune-transformer-lm"
PROGRAM = "train.py"
VARIABLES = "resource"


def run(field):
    tf = field.tf
    field.stub("joblib", "sklearn", "ftfy", "spacy", "tqdm", "pandas")
    train = field.load("train.py", "field_train")
    settings = {
        "n_ctx": 6,
        "n_embd": 8,
        "n_head": 2,
        "n_layer": 1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "resid_pdrop": 0.1,
        "clf_pdrop": 0.1,
        "l2": 0.01,
        "vector_l2": True,
        "n_gpu": 2,
        "opt": "adam",
        "afn": "gelu",
        "lr": 0.01,
        # The other schedules read the step in the run that writes it: the original differs from itself by 1e-01.
        "lr_schedule": "warmup_constant",
        "lr_warmup": -1.0,
        "lm_coef": 0.5,
        "b1": 0.9,
        "b2": 0.999,
        "e": 1e-3,  # the gradient of clf/b is no more than rounding: both logits have it
        "max_grad_norm": 1,
        "n_vocab": 20,
        "n_special": 3,
        "clf_token": 22,
        "n_updates_total": 100,
    }
    vars(train).update(settings)
    words = field.random.randint(0, 20, (8, 2, 6, 2))
    words[:, :, -1, 0] = 22
    words[:, :, :, 1] = range(23, 29)
    x = tf.placeholder(tf.int32, [8, 2, 6, 2])
    m = tf.placeholder(tf.float32, [8, 2, 6])
    y = tf.placeholder(tf.int32, [8])
    op, logits, classes, language = train.mgpu_train(x, m, y)
    feed = {x: words, m: field.random.rand(8, 2, 6), y: field.random.randint(0, 2, 8)}
    # The optimizer's variables start as `p * 0`: TensorFlow 1.15 reads resource variables for that as they are.
    start = [tf.variables_initializer(tf.trainable_variables()), tf.global_variables_initializer()]
    field.train([op, logits, classes, language], feed, 4, start)
