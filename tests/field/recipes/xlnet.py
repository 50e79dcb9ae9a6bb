"""`tf.gradients` in towers, dictionaries of split features, clipping and rates per layer in another file."""

REPOSITORY = "zihangdai/xlnet"
PROGRAM = "train_gpu.py"


def run(field):
    tf = field.tf
    field.stub("sentencepiece", "tensorflow.contrib")
    program = field.load("train_gpu.py", "train_gpu")
    settings = (
        "--num_core_per_host=2 --train_batch_size=4 --bi_data=False --seq_len=8 --reuse_len=4 --mem_len=4"
        " --perm_size=4 --n_layer=2 --d_model=8 --d_embed=8 --n_head=2 --d_head=4 --d_inner=8"
        " --train_steps=100 --save_steps=1000 --learning_rate=0.01 --model_dir=out --num_predict=3 --warmup_steps=0"
        " --untie_r=True --record_info_dir=. --ff_activation=relu --uncased=False"
    )
    program.FLAGS(["train_gpu"] + settings.split())
    program.FLAGS.n_token = 20
    mask = field.random.rand(4, 8, 8).round().astype("float32")
    features = {
        "input_k": field.random.randint(0, 20, (4, 8)).astype("int32"),
        "input_q": field.random.rand(4, 8).round().astype("float32"),
        "seg_id": field.random.randint(0, 2, (4, 8)).astype("int32"),
        "target": field.random.randint(0, 20, (4, 3)).astype("int32"),
        "target_mask": field.random.rand(4, 3).round().astype("float32"),
        "perm_mask": mask,
        "target_mapping": field.random.rand(4, 3, 8).astype("float32"),
    }

    def get_input_fn(**settings):
        def make(parameters):
            return tf.data.Dataset.from_tensor_slices(features).repeat().batch(4, True)

        return make, {"num_batch": 10}

    program.data_utils.get_input_fn = get_input_fn
    field.watch(4)
    program.train("/gpu:0")
