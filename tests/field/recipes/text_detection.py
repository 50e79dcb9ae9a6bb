"""EAST: `enumerate` of a device list, a reuse flag, UPDATE_OPS of the last tower, moving averages, slim ResNet-50."""

REPOSITORY = "argman/EAST"
PROGRAM = "multigpu_train.py"
REFERENCE = "tower"
RACES = "ExponentialMovingAverage"


def run(field):
    field.stub("cv2", "matplotlib", "shapely")

    def get_batch(**settings):
        while True:
            yield (
                field.random.rand(2, 64, 64, 3) * 255,
                None,
                field.random.rand(2, 16, 16, 1).round(),
                field.random.rand(2, 16, 16, 5) * 10 + 1,
                field.random.rand(2, 16, 16, 1).round(),
            )

    field.module("icdar", get_batch=get_batch)
    field.tf.app.flags.DEFINE_string("geometry", "RBOX", "")
    arguments = "--gpu_list=0,1 --checkpoint_path=out/ --batch_size_per_gpu=1 --input_size=64"
    field.script("multigpu_train.py", *arguments.split(), runs=3)
