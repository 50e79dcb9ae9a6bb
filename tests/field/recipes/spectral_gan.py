"""A GAN with several tower loops of one role each, a session opened before the graph, hinge losses averaged, two optimizers."""

REPOSITORY = "watsonyanghx/GAN_Lib_Tensorflow"
PROGRAM = "SNGAN/gan_cifar_resnet.py"
DIFFERS = "not explained; only names were changed, it is refused"


def run(field):
    field.stub("tqdm", "matplotlib", "imageio", "scipy", "PIL")
    sys_path = __import__("sys").path
    sys_path.insert(0, field.tree)

    def load(size, folder):
        def batches():
            while True:
                images = field.random.randint(0, 255, (size, 3072)).astype("int32")
                yield images, field.random.randint(0, 10, size).astype("int32")

        return batches, batches

    field.module("common.inception.inception_score", get_inception_score=None)
    import common.data.cifar10

    common.data.cifar10.load = load
    settings = {
        "\nBATCH_SIZE = 64": "\nBATCH_SIZE = 4",
        "\nDIM_G = 128": "\nDIM_G = 8",
        "\nDIM_D = 128": "\nDIM_D = 8",
        "\nN_GPUS = 1": "\nN_GPUS = 2",
        "\nN_CRITIC = 5": "\nN_CRITIC = 2",
        "EMBEDDING_DIM = 300": "EMBEDDING_DIM = 8",
    }
    field.script("SNGAN/gan_cifar_resnet.py", runs=5, change=settings)
