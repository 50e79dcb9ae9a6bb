"""THUMT: towers in a helper function, one `compute_gradients` of the mean of their losses, clipping, a MonitoredTrainingSession with hooks."""

REPOSITORY = "THUNLP-MT/THUMT"
PROGRAM = "thumt/utils/parallel.py"


def run(field):
    tf = field.tf
    with open("words.txt", "w") as file:
        file.write("\n".join(["<pad>", "<eos>", "<unk>", "<bos>"] + list("abcdefghijklmnop")))
    source = field.random.randint(4, 20, (4, 6)).astype("int32")
    target = field.random.randint(4, 20, (4, 5)).astype("int32")
    field.contrib()
    trainer = field.load("thumt/bin/trainer.py", "trainer")
    trainer.dataset.get_training_input = lambda files, params: {
        "source": tf.constant(source),
        "source_length": tf.fill([4], 6),
        "target": tf.constant(target),
        "target_length": tf.fill([4], 5),
    }
    # Gradients of the keys' biases are no more than rounding, out of which Adam would make steps of the learning rate.
    settings = (
        "device_list=[0,1],hidden_size=8,filter_size=8,num_heads=2,num_encoder_layers=1,"
        "num_decoder_layers=1,train_steps=100,batch_size=4,learning_rate=1.0,warmup_steps=4,"
        "save_checkpoint_steps=0,save_checkpoint_secs=1000,adam_epsilon=0.001"
    )
    arguments = ["--input", "a", "b", "--vocabulary", "words.txt", "words.txt"]
    arguments += ["--model", "transformer", "--output", "out", "--parameters", settings]
    field.watch(14)
    trainer.main(trainer.parse_args(arguments))
