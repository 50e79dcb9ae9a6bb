"""A GAN with a gradient penalty: towers over `enumerate(zip(…))`, variables kept in a dictionary, two `minimize` of means."""

REPOSITORY = "biuyq/CT-GAN"
PROGRAM = "CT-GANs/tensorflow_generative_model/CT_gan_64x64.py"
REFERENCE = "tower"


def run(field):
    import os
    import sys

    field.stub("sklearn", "matplotlib", "scipy")
    os.chdir("CT-GANs/tensorflow_generative_model")
    sys.path.insert(0, os.getcwd())

    def load(size, data_dir):
        def batches():
            while True:
                yield (field.random.randint(0, 255, (size, 3, 64, 64)).astype("int32"),)

        return batches, batches

    import tflib

    tflib.small_imagenet = field.module("tflib.small_imagenet", load=load)
    tflib.inception_score = field.module("tflib.inception_score")
    nothing = lambda *arguments: None  # noqa: E731
    tflib.plot = field.module("tflib.plot", plot=nothing, tick=nothing, flush=nothing)
    tflib.save_images = field.module("tflib.save_images", save_images=nothing)
    settings = {
        "\nDIM = 64": "\nDIM = 2",
        "\nBATCH_SIZE = 64": "\nBATCH_SIZE = 4",
        "\nCRITIC_ITERS = 5": "\nCRITIC_ITERS = 2",
        # Python 2 divided whole numbers so.
        "BATCH_SIZE/len(DEVICES)": "BATCH_SIZE//len(DEVICES)",
        "BATCH_SIZE / len(DEVICES)": "BATCH_SIZE // len(DEVICES)",
        "BATCH_SIZE/N_GPUS": "BATCH_SIZE//N_GPUS",
        # Biases in front of normalizations have no gradient but rounding, which Adam makes steps of lr of.
        "learning_rate=1e-4, beta1=0., beta2=0.9)": "learning_rate=1e-3, beta1=0., beta2=0.9, epsilon=1e-2)",
        "inf_train_gen().next()": "next(inf_train_gen())",  # which TM124 says
        "samples_100 = Generator(100)": "samples_100 = Generator(2)",
    }
    field.script("CT_gan_64x64.py", runs=6, change=settings)
