"""A notebook of TensorFlow 0.x: encoder, generator and discriminator with an optimizer each, variables by name, an InteractiveSession."""

REPOSITORY = "timsainb/Tensorflow-MultiGPU-VAE-GAN"
PROGRAM = "VAE-GAN-multi-gpu-celebA.ipynb"
REFERENCE = "tower"
OUTER = "missing"

CELLS = (
    "# Import all", "dim1 = 64", "gpus = [2]", "def data_iterator", "def encoder", "def inference",
    "def loss", "def average_gradients", "graph = tf.Graph()", "# Make lists", "opt_D = ",
    "# Define the network for each GPU", "train_E = ", "# Start the Session", "def sigmoid",
    "total_batch = ",
)  # fmt: skip
"""What a cell that is run has; the others draw pictures and read files."""

CHANGES = {
    "gpus = [2]": "gpus = [0, 1]",
    "batch_size = 32": "batch_size = 2",
    "hidden_size = 2048": "hidden_size = 8",
    "num_examples = 60000": "num_examples = 8",
    "dim1 = 64": "dim1 = 16",
    "dim2 = 64": "dim2 = 16",
    "len(faces), batch_size)": "len(faces), batch_size*num_gpus)",
    "batch_idx+batch_size]": "batch_idx+batch_size*num_gpus]",
    "8*8*256": "2*2*256",
    "[batch_size, 8, 8, 256]": "[batch_size, 2, 2, 256]",
    "    # apply the gradients with our optimizers": """
    before = [gradient for gradient, _ in grads_e + grads_g + grads_d]
    before += [D_loss, G_loss, KL_loss, SSE_loss, LL_loss, d_x_p, d_x]
    reads = tf.control_dependencies(before)
    reads.__enter__()""",
    "    train_D = opt_D.apply_gradients(grads_d, global_step=global_step)": """
    train_D = opt_D.apply_gradients(grads_d, global_step=global_step)
    reads.__exit__(None, None, None)""",
}
"""Tiny sizes. And one run fetches the updates of three optimizers, which race: the tower graph against itself differs
by 6e-05 after four runs. So, on both sides, every update waits until all that is fetched and all gradients are there."""


def run(field):
    import json

    tf = field.tf
    field.stub("matplotlib", "IPython", "tqdm", "h5py", "ipywidgets")
    field.stub("tensorflow.examples", "towermigrate.helpers.mnist_input")
    pretty = _pretty(tf)
    field.module("prettytensor", wrap=pretty, defaults_scope=pretty.defaults)
    field.module("deconv", deconv2d=None)
    with open(PROGRAM, encoding="utf-8") as file:
        notebook = json.load(file)
    faces = field.random.rand(8, 16 * 16 * 3)
    space = {"__name__": "__main__", "faces": faces, "labels": faces[:, :1], "epoch": 0}
    field.watch(4)
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code" or not any(each in text for each in CELLS):
            continue
        for old, new in CHANGES.items():
            text = text.replace(old, new)
        text = "\n".join(line for line in text.split("\n") if not line.startswith(("%", "!")))
        if "total_batch = " in text:
            space["tqdm"] = type("tqdm", (), {"tqdm": staticmethod(lambda values: values)})
            space["plot_network_output"] = lambda: None
        exec(compile(text, PROGRAM, "exec"), space)


def _pretty(tf):
    """The layers of Pretty Tensor that the notebook has, on TF1's `get_variable`."""
    from contextlib import contextmanager

    class Pretty:
        activation = None
        normalized = False

        def __init__(self, tensor):
            self.tensor = tensor

        def _as_graph_element(self):
            return self.tensor

        @staticmethod
        @contextmanager
        def defaults(activation_fn=None, batch_normalize=False, **options):
            before = Pretty.activation, Pretty.normalized
            Pretty.activation, Pretty.normalized = activation_fn, batch_normalize
            try:
                yield
            finally:
                Pretty.activation, Pretty.normalized = before

        def reshape(self, shape):
            return Pretty(tf.reshape(self.tensor, shape))

        def flatten(self):
            return Pretty(tf.reshape(self.tensor, [self.tensor.get_shape().as_list()[0], -1]))

        def _end(self, made, activation_fn):
            channels = made.get_shape().as_list()[-1:]
            bias = tf.get_variable("bias", channels, initializer=tf.zeros_initializer())
            made = made + bias
            if Pretty.normalized:
                mean, variance = tf.nn.moments(made, list(range(len(made.get_shape()) - 1)))
                gamma = tf.get_variable("gamma", channels, initializer=tf.ones_initializer())
                made = gamma * (made - mean) * tf.rsqrt(variance + 0.001)
            activation = Pretty.activation if activation_fn == "default" else activation_fn
            return Pretty(activation(made) if activation else made)

        def _weights(self, shape):
            return tf.get_variable(
                "weights", shape, initializer=tf.truncated_normal_initializer(0, 0.1)
            )

        def fully_connected(self, size, activation_fn="default"):
            with tf.variable_scope(None, "fully_connected"):
                inputs = self.tensor.get_shape().as_list()[-1]
                return self._end(
                    tf.matmul(self.tensor, self._weights([inputs, size])), activation_fn
                )

        def conv2d(self, kernel, depth, stride=1, activation_fn="default"):
            with tf.variable_scope(None, "conv2d"):
                inputs = self.tensor.get_shape().as_list()[-1]
                weights = self._weights([kernel, kernel, inputs, depth])
                strides = [1, stride, stride, 1]
                made = tf.nn.conv2d(self.tensor, weights, strides=strides, padding="SAME")
                return self._end(made, activation_fn)

        def deconv2d(self, kernel, depth, stride=1, activation_fn="default"):
            with tf.variable_scope(None, "deconv2d"):
                count, height, width, inputs = self.tensor.get_shape().as_list()
                weights = self._weights([kernel, kernel, depth, inputs])
                shape = [count, height * stride, width * stride, depth]
                strides = [1, stride, stride, 1]
                made = tf.nn.conv2d_transpose(
                    self.tensor, weights, shape, strides=strides, padding="SAME"
                )
                return self._end(made, activation_fn)

    def operator(name):
        return lambda self, *others: getattr(self.tensor, name)(
            *[getattr(other, "tensor", other) for other in others]
        )

    for name in ("add", "sub", "mul", "truediv"):
        for full in ("__%s__" % name, "__r%s__" % name):
            setattr(Pretty, full, operator(full))
    tf.register_tensor_conversion_function(
        Pretty, lambda value, dtype=None, name=None, as_ref=False: value.tensor
    )
    return Pretty
