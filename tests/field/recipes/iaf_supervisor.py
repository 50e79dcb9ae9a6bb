"""Towers in a constructor, the model built once before under another mode, a Supervisor of the repository's own, Adamax by assigns."""

REPOSITORY = "openai/iaf"
PROGRAM = "tf_train.py"
REFERENCE = "tower"
OUTER = "missing"
RACES = "ExponentialMovingAverage"
DIFFERS = "it starts 4e-09 apart, where values are made from data; why gradients then differ by 3e-05 is not shown"


def run(field):
    tf = field.tf
    field.stub("tqdm", "scipy", "matplotlib", "theano", "graphy", "PIL")
    field.module("tf_utils.data_utils", get_inputs=None, get_images=None)
    # Python 2 divided whole numbers so.
    division = "hps.image_size / 2 ** len(layers)"
    field.edit("tf_train.py", {division: division.replace("/", "//")})
    # Else Adamax makes steps of the learning rate out of gradients that are no more than rounding.
    field.edit("tf_utils/adamax.py", {"eps = 1e-8": "eps = 1e-2"})
    layers = {each: each.replace("/", "//") for each in ("n_out / n_in", "n_in / n_out", "1) / 2")}
    field.edit("tf_utils/layers.py", layers)
    program = field.load("tf_train.py")
    images = field.random.randint(0, 255, (4, 3, 8, 8)).astype("uint8")
    # The repository's own Supervisor calls a private method that TensorFlow 1.x no longer has.
    program.NotBuggySupervisor = tf.train.Supervisor
    program.get_inputs = lambda *arguments: tf.constant(images)
    hps = program.get_default_hparams()
    sizes = {
        "batch_size": 2,
        "z_size": 4,
        "h_size": 8,
        "depth": 1,
        "num_blocks": 1,
        "image_size": 8,
    }
    for name, value in sizes.items():
        setattr(hps, name, value)
    program.FLAGS(["train", "--num_gpus=2", "--logdir=log"])
    field.watch(8)
    field.begin()
    program.run(hps)
