"""BERT: splits into lists, `compute_gradients` with an aggregation method, IndexedSlices, clipping, a sum of losses in a variable's place."""

REPOSITORY = "guotong1988/BERT-GPU"
PROGRAM = "run_pretraining_gpu.py"


def run(field):
    import json

    tf = field.tf
    field.contrib()
    sizes = {
        "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 16, "type_vocab_size": 2,
    }  # fmt: skip
    with open("bert.json", "w") as file:
        json.dump(sizes, file)
    features = {
        "input_ids": field.random.randint(0, 30, (4, 8)),
        "input_mask": field.random.randint(0, 2, (4, 8)),
        "segment_ids": field.random.randint(0, 2, (4, 8)),
        "masked_lm_positions": field.random.randint(0, 8, (4, 3)),
        "masked_lm_ids": field.random.randint(0, 30, (4, 3)),
        "masked_lm_weights": field.random.rand(4, 3).astype("float32"),
        "next_sentence_labels": field.random.randint(0, 2, (4, 1)),
    }
    for name, value in features.items():
        features[name] = value.astype("float32" if "weights" in name else "int32")
    field.edit("run_pretraining_gpu.py", {"\nif FLAGS.do_eval:": "\nif False:"})
    program = field.load("run_pretraining_gpu.py", "program")
    settings = "--bert_config_file=bert.json --input_file=none --output_dir=out --do_train=True"
    settings += " --train_batch_size=2 --n_gpus=2 --learning_rate=0.01"
    program.FLAGS(["program"] + settings.split())
    program.input_fn = lambda *arguments: (
        tf.data.Dataset.from_tensor_slices(features).repeat().batch(4)
    )
    field.watch(3)
    program.main(None)
