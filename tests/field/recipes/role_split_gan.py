"""Towers with different roles: critics on one half of the devices, penalties on the other."""

REPOSITORY = "biuyq/CT-GAN"
PROGRAM = "CT-GANs/tensorflow_generative_model/CT_gan_cifar_resnet.py"
REFERENCE = "tower"


def run(field):
    import os

    field.stub("sklearn", "matplotlib", "scipy")
    os.chdir("CT-GANs/tensorflow_generative_model")
    __import__("sys").path.insert(0, os.getcwd())

    def load(size, folder, count):
        def batches():
            while True:
                images = field.random.randint(0, 255, (size, 3072)).astype("int32")
                yield images, field.random.randint(0, 10, size).astype("int32")

        return batches, batches

    import tflib

    tflib.cifar10 = field.module("tflib.cifar10", load=load)
    field.module("tflib.inception_score", get_inception_score=None)
    settings = {
        "\nBATCH_SIZE = 64": "\nBATCH_SIZE = 4",
        "\nDIM_G = 128": "\nDIM_G = 8",
        "\nDIM_D = 128": "\nDIM_D = 8",
        "\nN_CRITIC = 5": "\nN_CRITIC = 2",
    }
    field.script("CT_gan_cifar_resnet.py", runs=5, change=settings)
