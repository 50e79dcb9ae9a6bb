"""A tower's rows that a function takes, or that are counted out of constants: loop style, and neighbours that must not be."""

from __future__ import annotations

from tests.differential.spellings import asked_of_all, left, taken

ROWS = "x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]"
START = "    tower_grads = []\n"
AVERAGE = "def average_gradients"
HEAD = "DEVICES = ['/gpu:0', '/gpu:1']"
NAMED = ((HEAD, "NUM_GPUS = 2\nBATCH = 4"), ("range(2)", "range(NUM_GPUS)"))
TOWER = """\
                    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]
                    out = net(x)
                    loss = tf.reduce_mean(tf.square(out - y))
"""
LOSS = """\
def tower_loss(X, Y, i):
    x, y = X[i * 2:(i + 1) * 2], Y[i * 2:(i + 1) * 2]
    out = net(x)
    return tf.reduce_mean(tf.square(out - y))


"""
CALLED = (TOWER, "                    loss = tower_loss(X, Y, i)\n")
PART = "def part(whole, i, size):\n    return whole[i * size:(i + 1) * size]\n\n\n"
PARTS = (ROWS, "x, y = part(X, i, 2), part(Y, i, 2)")


def function(text: str) -> tuple[str, str]:
    return (AVERAGE, text + AVERAGE)


def rows(of: str) -> tuple[str, str]:
    return (ROWS, f"x, y = X[{of}], Y[{of}]")


TAKEN = [
    taken("a function", function(PART), PARTS),
    taken("with a default", function(PART.replace("size)", "size=2)", 1)), (ROWS, "x, y = part(X, i), part(Y, i)")),
    taken("with a docstring and names for bounds", function("def part(whole, i, size):\n    \"\"\"The rows of a tower.\"\"\"\n    start = i * size\n    end = start + size\n    return whole[start:end]\n\n\n"), PARTS),
    taken("of both", function("def parts(x, y, i, size):\n    return x[i * size:(i + 1) * size], y[i * size:(i + 1) * size]\n\n\n"), (ROWS, "x, y = parts(X, Y, i, 2)")),
    taken("a lambda", (START, f"{START}    part = lambda whole, i: whole[i * 2:(i + 1) * 2]\n"), (ROWS, "x, y = part(X, i), part(Y, i)")),
    taken("a function of the towers", function(LOSS), CALLED),
    taken("with its size", function(LOSS.replace("i):", "i, n):").replace("* 2", "* n")), (TOWER, "                    loss = tower_loss(X, Y, i, 2)\n")),
    taken("with a size of the module", (HEAD, "PER_TOWER = 2"), function(LOSS.replace("* 2", "* PER_TOWER")), CALLED),
    taken("of other names", function(LOSS.replace("X", "images").replace("Y", "labels").replace("(i + 1)", "(k + 1)").replace("i *", "k *").replace(", i)", ", k)")), CALLED),
    taken("one of two", function(LOSS.replace("X[i * 2:(i + 1) * 2]", "X")), (TOWER, "                    loss = tower_loss(X[i * 2:(i + 1) * 2], Y, i)\n")),
    taken("twice the same rows", function(LOSS.replace("out = net(x)", "out = net(X[i * 2:(i + 1) * 2])")), CALLED),
    taken("counted out of constants", *NAMED, rows("i * BATCH // NUM_GPUS:(i + 1) * BATCH // NUM_GPUS")),
    taken("counted as floats", *NAMED, rows("int(i * BATCH / NUM_GPUS):int((i + 1) * BATCH / NUM_GPUS)")),
    taken("counted the other way round", *NAMED, rows("BATCH * i // NUM_GPUS:BATCH * (i + 1) // NUM_GPUS")),
]  # fmt: skip

LEFT = [
    left("another tower's", "TM227", function(PART.replace("i * size:(i + 1) * size", "(1 - i) * size:(2 - i) * size")), PARTS),
    left("overlapping rows", "TM227", function(PART.replace("(i + 1) * size", "(i + 2) * size")), PARTS),
    left("that does more", "TM227", function(PART.replace("return ", "print(i)\n    return ")), PARTS),
    left("decorated", "TM227", function("def twice(f):\n    return lambda *a: f(*a) * 2.0\n\n\n@twice\n" + PART), PARTS),
    left("a function bound anew", "TM222", function(PART + "part = lambda whole, i, size: whole[(1 - i) * size:(2 - i) * size]\n\n\n"), PARTS),
    left("a function called twice", "TM227", function(LOSS), CALLED, ("    saver = tf", "    with tf.variable_scope(tf.get_variable_scope(), reuse=True):\n        again = tower_loss(X, Y, 0)\n    saver = tf")),
    left("the whole as well", "TM227", function(LOSS.replace("tf.square(out - y))", "tf.square(out - y)) + 0.0 * tf.reduce_sum(X)")), CALLED),
    left("other rows as well", "TM227", function(LOSS.replace("tf.square(out - y))", "tf.square(out - y)) + 0.0 * tf.reduce_sum(X[:1])")), CALLED),
    left("a number bound anew", "TM227", function(LOSS.replace("    x, y", "    i = 1 - i\n    x, y")), CALLED),
    left("a size of the module that is another number in the caller", "TM227", (HEAD, "PER_TOWER = 2"), function(LOSS.replace("* 2", "* PER_TOWER")), CALLED, (START, "    PER_TOWER = 1\n" + START)),
    left("constants that do not divide", "TM227", (HEAD, "NUM_GPUS = 2\nBATCH = 5"), ("range(2)", "range(NUM_GPUS)"), rows("i * BATCH // NUM_GPUS:(i + 1) * BATCH // NUM_GPUS")),
    left("a constant bound anew", "TM227", (HEAD, "NUM_GPUS = 2\nBATCH = 4\nBATCH = 5"), ("range(2)", "range(NUM_GPUS)"), rows("i * BATCH // NUM_GPUS:(i + 1) * BATCH // NUM_GPUS")),
    left("one bound of another", "TM227", *NAMED, rows("i * BATCH // NUM_GPUS:(i + 2) * BATCH // NUM_GPUS")),
]  # fmt: skip

(
    test_it_is_in_loop_style,
    test_its_neighbour_is_not,
    test_all_of_them_do_the_same_rewritten,
    test_no_neighbour_does_anything_else,
) = asked_of_all(TAKEN, LEFT)
