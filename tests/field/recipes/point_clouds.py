"""PointNet: the model is built once before the towers, which all reuse it; `tf.slice`; losses by the scope."""

REPOSITORY = "charlesq34/pointnet2"
PROGRAM = "train_multi_gpu.py"
REFERENCE = "tower"
RACES = "/bn/moving_"


def run(field):
    class Dataset:
        def __init__(self, *arguments, **options):
            self.left = 0

        def num_channel(self):
            return 3

        def reset(self):
            self.left = 5

        def has_next_batch(self):
            self.left = self.left - 1 if self.left else 4
            return self.left > 0

        def next_batch(self, augment=False):
            return field.random.rand(4, 16, 3), field.random.randint(0, 40, 4)

    field.module("provider")
    field.module("modelnet_dataset", ModelNetDataset=Dataset)
    field.module("modelnet_h5_dataset", ModelNetH5Dataset=Dataset)
    arguments = (
        "--num_gpus 2 --model pointnet_cls_basic --num_point 16 --batch_size 4 --log_dir log"
    )
    # Python 2 divided whole numbers so.
    change = {"BATCH_SIZE / NUM_GPUS": "BATCH_SIZE // NUM_GPUS"}
    field.script("train_multi_gpu.py", *arguments.split(), runs=4, change=change)
