"""`tf.gradients` inside a function of another file, memories of every tower fed back, a learning rate by `tf.where`."""

REPOSITORY = "kimiyoung/transformer-xl"
PROGRAM = "tf/train_gpu.py"


def run(field):
    tf = field.tf
    program = field.load("tf/train_gpu.py", "train_gpu")
    settings = (
        "--num_core_per_host=2 --train_batch_size=4 --tgt_len=5 --mem_len=4 --n_layer=2 --d_model=8"
        " --d_embed=8 --n_head=2 --d_head=4 --d_inner=8 --train_steps=100 --div_val=1"
        " --learning_rate=0.01 --model_dir=out --tie_weight=True --untie_r=True"
    )
    program.FLAGS(["train_gpu"] + settings.split())
    words = field.random.randint(0, 20, (4, 6)).astype("int32")

    def get_input_fn(**settings):
        def make(parameters):
            pairs = (words[:, :-1], words[:, 1:])
            return tf.data.Dataset.from_tensor_slices(pairs).repeat().batch(4, drop_remainder=True)

        return make, {"num_batch": 10}

    program.data_utils.get_input_fn = get_input_fn
    field.watch(4)
    program.train(20, [], "/gpu:0")
