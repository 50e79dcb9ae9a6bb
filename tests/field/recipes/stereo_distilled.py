"""The model class takes a flag for reuse; `tf` by plain import, slim by alias."""

REPOSITORY = "goldenwoman/Recursive_Stereo_Disill"
PROGRAM = "MS_main.py"
REFERENCE = "tower"
STYLE = "session"
DIFFERS = "not explained; the tower graph is the same twice"


def run(field):
    field.stub("matplotlib", "cv2", "scipy")
    images = field.random.rand(2, 128, 256, 3).astype("float32")

    class Loader:
        def __init__(self, *settings):
            for number, side in enumerate(("left", "central", "right")):
                batch = field.tf.constant((images + number * 0.01).clip(0, 1))
                setattr(self, side + "_image_batch", batch)

    field.module("MS_dataloader", MSDataloader=Loader)
    with open("files.txt", "w") as file:
        file.write("a b c\n" * 2)
    arguments = "--encoder resASPPNet --data_path . --filenames_file files.txt --input_height 128"
    arguments += " --input_width 256 --batch_size 2 --num_gpus 2 --log_directory log"
    # Else Adam makes steps of the learning rate out of gradients that are no more than rounding.
    change = {"AdamOptimizer(learning_rate)": "AdamOptimizer(learning_rate, epsilon=1e-2)"}
    field.script("MS_main.py", *arguments.split(), runs=4, change=change)
