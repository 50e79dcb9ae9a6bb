"""A copy of the MNIST script with flags for the number of towers and the data."""

REPOSITORY = "JeremyTF/Yolov3-Tensorflow-Multi-GPU"
PROGRAM = "multiple_cnn.py"
STYLE = "session"


def run(field):
    import os
    import sys

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from mnist_script import Sets

    settings = {
        "input_data.read_data_sets(": "(lambda *arguments, **options: tiny_sets)(",
        "display_step = 10": "display_step = 1",
        # Else Adam makes steps of the learning rate out of gradients that are no more than rounding.
        "AdamOptimizer(learning_rate=learning_rate)": "AdamOptimizer(learning_rate=learning_rate, epsilon=1e-3)",
    }
    arguments = "--num_gpus 2 --batch_size 4".split()
    sets = {"tiny_sets": Sets(field.random)}
    field.script("multiple_cnn.py", *arguments, runs=3, change=settings, globals=sets)
