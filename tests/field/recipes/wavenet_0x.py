"""TensorFlow 0.x: `reuse_variables()` without an outer scope, None gradients dropped or passed on, a queue per tower."""

REPOSITORY = "nakosung/tensorflow-wavenet"
PROGRAM = "train.py"
REFERENCE = "tower"
OUTER = "missing"


def run(field):
    import json

    tf = field.tf
    field.stub("librosa")
    with open("small.json", "w") as file:
        sizes = {
            "filter_width": 2, "sample_rate": 16000, "dilations": [1, 2], "residual_channels": 4,
            "dilation_channels": 4, "quantization_channels": 16, "skip_channels": 8,
            "use_biases": True, "scalar_input": False, "initial_filter_width": 32,
        }  # fmt: skip
        json.dump(sizes, file)
    wave = field.random.rand(1, 200, 1).astype("float32") * 2 - 1

    class Reader:
        def __init__(self, *arguments, **options):
            pass

        def dequeue(self, count):
            return tf.constant(wave)

        def start_threads(self, session):
            pass

    import wavenet

    wavenet.AudioReader = Reader
    arguments = "--data_dir . --logdir log --wavenet_params small.json --num_gpus 2 --num_steps 20"
    arguments += " --checkpoint_every 1000 --learning_rate 0.01"
    field.script("train.py", *arguments.split(), runs=4, globals={"xrange": range})
