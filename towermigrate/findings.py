"""The rules: what a finding means, why it matters and what to do, each with an example."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from towermigrate.rule import Rule, Severity
from towermigrate.symbol_rules import SYMBOL_RULES


@dataclass(frozen=True)
class Finding:
    """One place where a rule applies. `line` counts from 1, `column` from 0 in characters.

    `cell` is that of a notebook, counted from 1 over all its cells; `line` then counts in the cell.
    """

    rule: str
    path: str
    line: int
    column: int
    message: str
    cell: int | None = None

    @property
    def severity(self) -> Severity:
        return RULES[self.rule].severity


def with_places(message: str, path: str, place: Callable[[int], str]) -> str:
    """A message whose places in a file are told in another way, by their lines.

    Example:
        >>> with_places("as at b.py:3 and a/b.py:3", "b.py", lambda line: f"line {line + 1}")
        'as at line 4 and a/b.py:3'
    """
    return re.sub(rf"(?<![\w./-]){re.escape(path)}:(\d+)", lambda m: place(int(m[1])), message)


RULES: dict[str, Rule] = {}


def _rule(id: str, title: str, severity: Severity, why: str, advice: str, example: str) -> None:
    RULES[id] = Rule(id, title, severity, why, advice, example)


_rule(
    "TM201", "The tower loop has a form that is not understood", "error",
    "A rewrite must know that each pass of the loop is one tower, numbered from 0.",
    "Write the loop as `for i in range(num_gpus):` or `for i, device in enumerate(devices):`, directly in the "
    "function that builds the graph.",
    "for device, part in zip(devices, parts):\n    with tf.device(device):\n        ...",
)  # fmt: skip
_rule(
    "TM202", "No gradients are computed per tower", "error",
    "The stage is `compute_gradients` (or `tf.gradients` of variables) in every tower, appended to one list, or `minimize` "
    "or `compute_gradients` of the plain mean of the towers' losses. Other ways (a sum, a mean with a penalty, a second "
    "loop) are session style.",
    "Call `grads = opt.compute_gradients(loss)` in the loop and append `grads` to a list.",
    "losses.append(loss)\n...\ntrain_op = opt.minimize(tf.add_n(losses))  # a sum, not a mean",
)  # fmt: skip
_rule(
    "TM203", "The averaging is not understood", "error",
    "A sum, a weighted mean or a mean over some towers trains differently from a mean, so only a function "
    "that is plainly the mean over the towers is replaced.",
    "Use the classic `average_gradients(tower_grads)`: zip, stack, `tf.reduce_mean(…, 0)`, first tower's "
    "variable.",
    "grad = tf.add_n(grads)  # a sum, not a mean",
)  # fmt: skip
_rule(
    "TM204", "The averaged gradients are not applied in an understood way", "error",
    "Every stage ends in one `apply_gradients` of its own averaged gradients by its own optimizer.",
    "Bind the average and the update to names: `grads = average_gradients(tower_grads)`, "
    "`train_op = opt.apply_gradients(grads)`.",
    "opt.apply_gradients(clip(average_gradients(tower_grads)))",
)  # fmt: skip
_rule(
    "TM205", "Graph and session are in different places", "error",
    "The loop style turns `sess.run` into calls of step functions that must see the towers. A function, of another file "
    "too, that builds the graph and returns names at its end, and functions that are given these or the session, are read "
    "as one with their caller, where each is called by one statement; so are the methods of the one object of a plain class, "
    "and functions that are handed one dict of the graph's values. Otherwise session style keeps all where they are.",
    "For loop style, return the graph's values by their names from a function that is called once, make one object of the "
    "class and use it for its attributes and methods only, or move the training loop into the function that builds the towers.",
    "trainers = [Trainer(rate) for rate in rates]\n\nfor trainer in trainers:\n    trainer.train()  # sess.run(self.train_op)",
)  # fmt: skip
_rule(
    "TM206", "A tower or step changes what was made outside of it", "error",
    "What stands in the towers, and what builds the graph behind them, is traced several times for one program. A list, "
    "dict, counter or attribute from outside would be filled or changed several times over.",
    "Return the value from the tower and collect it after the loop; make lists in the statement that fills them.",
    "capped = []\nfor grad, var in grads:\n    capped.append((tf.clip_by_norm(grad, 1.0), var))",
)  # fmt: skip
_rule(
    "TM207", "Batch-norm updates are not those of one tower", "error",
    "Which tower's UPDATE_OPS run decides the moving averages of the trained model. A step can make those of the last or "
    "of the first tower; session style keeps the ones that the program runs.",
    "Read them by the tower's name scope, behind its layers, and let only the update wait for them: "
    "`updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)`.",
    "update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)",
)  # fmt: skip
_rule(
    "TM208", "How the towers get their input is not understood", "error",
    "What each tower is fed decides what is trained.",
    "Use a slice `x[i * n:(i + 1) * n]` of a placeholder, `tf.split(x, num_gpus)[i]`, `queue.dequeue()`, "
    "`iterator.get_next()`, read the whole placeholder in every tower, or make a pipeline for each tower, first thing in it, that "
    "makes no variable and has nothing to do with the rest of the graph.",
    "x = reader.read(files[i])",
)  # fmt: skip
_rule(
    "TM209", "A `sess.run` is not understood", "error",
    "Every fetch must be a name bound before, every feed a placeholder of the same function.",
    "Bind what is fetched to names and write the feed_dict in the call.",
    "sess.run(model.outputs[0], feed_dict=make_feed())",
)  # fmt: skip
_rule(
    "TM210", "A value of the graph is used outside `sess.run`", "error",
    "After the rewrite there is no graph: the value exists only inside a step.",
    "Fetch the value with `sess.run`, or compute what is needed from variables.",
    "print(loss.graph)",
)  # fmt: skip
_rule(
    "TM211", "A statement of the tower loop is not understood", "error",
    "Everything in the loop either stays in the tower or belongs to the machinery that goes.",
    "Move the statement out of the loop, or into the function that builds a tower.",
    "if use_clip:\n    tower_grads.append(clip(opt.compute_gradients(loss)))",
)  # fmt: skip
_rule(
    "TM212", "The graph is run by a framework", "error",
    "Supervisor, MonitoredTrainingSession and Estimator run hooks between steps that have no place in a "
    "plain loop. Session style keeps the first two with their hooks; Estimators are refused (TM255).",
    "For loop style, run the graph with a plain `tf.Session`.",
    "with tf.train.MonitoredTrainingSession() as sess:\n    sess.run(train_op)",
)  # fmt: skip
_rule(
    "TM213", "The rewritten program did not pass its own check", "error",
    "Every output is parsed again and must read only names that it binds. One that does not is not written.",
    "This is a limit of towermigrate. Please report the program's form.",
    "NameError in waiting: `batch_queue` is read after it was taken away",
)  # fmt: skip
_rule(
    "TM214", "The towers are not copies of each other", "error",
    "Data parallel training runs the same function on every replica. Towers that play different roles are "
    "another program.",
    "For loop style, give each role its own step.",
    "if i == 0:\n    loss = critic_loss(x)\nelse:\n    loss = penalty(x)",
)  # fmt: skip
_rule(
    "TM217", "A tensor is made once and shared by the towers", "error",
    "Made before the loop, the tensor has one value a run for all towers. Made in every tower, a random one "
    "would differ.",
    "Make it in the tower if every tower may have its own, or feed it.",
    "noise = tf.random_normal([batch, 100])\nfor i in range(num_gpus):\n    loss = tower(noise)",
)  # fmt: skip
_rule(
    "TM218", "The towers do not share their variables", "error",
    "Without reuse every tower has variables of its own, and only the first tower's are updated. Replicas "
    "share: the rewrite would train something else.",
    "Share the variables: `tf.get_variable_scope().reuse_variables()`, `reuse=i > 0` or `tf.AUTO_REUSE`, and no "
    "tower index in a variable's or scope's name.",
    "for i in range(n):\n    with tf.device('/gpu:%d' % i):\n        w = tf.Variable(0.0)",
)  # fmt: skip
_rule(
    "TM219", "A tower reads a collection without a scope", "error",
    "All towers of a TF1 graph share its collections: the second tower also sees what the first put there. "
    "A replica sees its own only. Of sums (`tf.add_n`) the rewrite keeps what the towers before add, of nothing else.",
    "Read the collection with the tower's name scope: `tf.get_collection('losses', scope)`.",
    "loss = tf.reduce_max(tf.stack(tf.get_collection('losses')))",
)  # fmt: skip
_rule(
    "TM220", "A tower has an effect of its own", "error",
    "TF1 runs an assignment only when something fetched needs it; a traced step runs it always, and once per "
    "replica.",
    "Return the value and assign it after the towers.",
    "update = tf.assign(state, new_state)",
)  # fmt: skip
_rule(
    "TM221", "Loop style was not to be, or not beside another program", "error",
    "A process is eager, as loop style is, or runs graphs in sessions: programs that it may run together have one "
    "style, and a file is converted to loop style only with one tower loop in it.",
    "Put the programs into files of their own that no script imports together, or take session style.",
    "towermigrate rewrite --style session",
)  # fmt: skip
_rule(
    "TM222", "A call or value is not known to be pure", "error",
    "The steps of loop style are traced, so the Python of a tower runs several times, and only what has no effect "
    "and means the same in TF2 may move there. This call or value could not be shown to be so.",
    "Nothing: session style runs the tower's Python once, as TF1 did. For loop style call functions of the "
    "program or of TensorFlow's plain layers, losses and mathematics.",
    "loss = my_library.tower_loss(x)  # whatever it does",
)  # fmt: skip
_rule(
    "TM223", "Python that ran once would run at every trace", "error",
    "A `print`, a `try` or a `while` in a tower ran once for each tower while TF1 built the graph. In a step it would "
    "run about twice as often, later, and in another order; an `assert` behind the towers would not run.",
    "Move it out of the towers, or keep session style.",
    "for i in range(num_gpus):\n    loss = tower_loss(x)\n    print('built tower', i)",
)  # fmt: skip
_rule(
    "TM224", "A value is changed between building and running", "error",
    "TF1 read Python values when it built the graph. A step reads them when it is traced, at its first run and "
    "for every new shape, so nothing may change them after the graph was built.",
    "Give the changed value a name of its own, or keep session style.",
    "FLAGS.dropout = 1.0  # after the towers were built with 0.5\nsess.run(train_op)",
)  # fmt: skip
_rule(
    "TM225", "A run may not need the inputs that a step draws", "error",
    "One `sess.run` drew from a queue or an iterator only what its fetches needed, of the towers that they "
    "reached. A step draws one batch for every tower. If the fetches need less, the data is dealt out otherwise.",
    "Fetch the train op in the same run, or keep session style.",
    "accuracy = sess.run(accuracy_of_the_first_tower)  # draws one tower's batch",
)  # fmt: skip
_rule(
    "TM226", "Tensors or variables are compared or looked up", "error",
    "`==`, `!=` and `in` compared tensors and variables by identity in TF1. In TF2 they compare values, element by "
    "element, and neither can be the key of a dict.",
    "Compare names (`v.op.name`), use `is`, or keep session style.",
    "decayed = [v for v in tf.trainable_variables() if v != bias]",
)  # fmt: skip
_rule(
    "TM227", "The tower's index is used as a value, or its name twice", "error",
    "In loop style a tower's index is there for numbers that tensors are computed with. What is as long, runs as often "
    "or is called as the index says is another thing in each replica. A name that an inner function, comprehension or "
    "loop binds again is another thing of the same spelling.",
    "Use the index for devices, name scopes, `reuse=`, inputs and factors only, or keep session style.",
    "for i in range(num_gpus):\n    loss = tower_loss(x[:i + 1])",
)  # fmt: skip
_rule(
    "TM228", "A static shape decides what is built", "error",
    "A step is traced with the shapes of its first batch. It knows sizes that were None in TF1's graph, so code that "
    "asks whether a size is known takes another branch.",
    "Use `tf.shape(x)[0]`, or keep session style.",
    "batch = x.get_shape()[0].value\nif batch is None:\n    batch = tf.shape(x)[0]",
)  # fmt: skip
_rule(
    "TM229", "A name is not what it is spelled", "error",
    "The file binds `tf`, `zip` or another well-known name to something of its own, imports everything from a "
    "module, or replaces a function of a library. Or an import may mean one file of the tree or another, by the folder "
    "of the script that runs. What a statement does is then not what it says.",
    "Give your own functions other names, write `from .utils import …` in a package, or keep session style.",
    "tf.nn.relu = lambda x: tf.maximum(x, 0.01 * x)",
)  # fmt: skip
_rule(
    "TM230", "A list of variables is read before all of them are made", "error",
    "`tf.trainable_variables()` gives what is there by then: in the first tower less than in the others. A step "
    "makes its list when all variables exist.",
    "Read the list behind the last layer of the tower, or keep session style.",
    "decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])\nlogits = tf.layers.dense(x, 10)",
)  # fmt: skip
_rule(
    "TM231", "A run, saver or writer is asked for more than a plain loop has", "error",
    "`sess.run` gave back the structure that it was asked for (tuples, dicts, lists in lists), which loop style makes only "
    "where a statement of its own binds it, and savers and writers have arguments that the helpers of loop style do not "
    "take. A summary's tag gets a number in TF1 where something else of the graph has its name (`loss_1`).",
    "Bind what a run gives to a name, or fetch a plain list and take it apart, save with `global_step` only, give summaries tags that nothing else is "
    "called by, or keep session style.",
    "report(sess.run({'loss': loss, 'step': global_step}))",
)  # fmt: skip
_rule(
    "TM232", "Random numbers are fixed by a seed", "error",
    "TF1 derives the seed of an operation from its place in the whole graph and keeps one state for it. Steps "
    "are graphs of their own, so they draw other numbers. (Initializers that have a seed of their own are no reason: "
    "towers' variables start from its first numbers.)",
    "Leave the seed away if the numbers need not repeat, or keep session style.",
    "tf.set_random_seed(1)\n...\nx = tf.nn.dropout(x, 0.5)",
)  # fmt: skip
_rule(
    "TM233", "One run makes several updates", "error",
    "Two train ops fetched together have no order: the gradients of one may see the variables before or after the "
    "other. A step would fix an order.",
    "Fetch them in runs of their own, or keep session style.",
    "sess.run([d_train_op, g_train_op])",
)  # fmt: skip
_rule(
    "TM234", "The graph grows between runs", "error",
    "Statements that build the graph stand behind the first `sess.run`. Steps are complete before the first of "
    "them runs.",
    "Build the whole graph first, or keep session style.",
    "sess.run(train_op)\naccuracy = tf.reduce_mean(hits)",
)  # fmt: skip
_rule(
    "TM235", "The program may run more than once in a process", "error",
    "Each graph of TF1 began anew: its global step, its names, its seeds. Loop style is eager: a second training that has no "
    "graph of its own, another number of towers, or draws by seeds of its own, would not do what it did.",
    "Let the function make its graph (`tf.reset_default_graph()`), run each training in a process of its own, or keep session style.",
    "for rate in (0.1, 0.01):\n    train(rate)",
)  # fmt: skip
_rule(
    "TM236", "TensorFlow 2 is switched off", "error",
    "`disable_v2_behavior()` and its kin hold for a whole process. Loop style is TensorFlow 2: it takes such a call "
    "away where it is a statement of the program's own file, and nothing else of the tree rests on it. What asks which of "
    "the two it is (`tf.executing_eagerly()`) would get another answer.",
    "Call it in the scripts that need it, not in a file that others import, or keep session style.",
    "import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()",
)  # fmt: skip
_rule(
    "TM251", "The towers play different roles", "error",
    "One tower computes another loss than the next (a critic here, its penalty there), in branches of one loop or in loops of "
    "one graph that each go over devices of their own: that is no data parallelism, and replicas that each hold all "
    "variables gain nothing. Loops that share devices from the first on are not meant, nor those over a part of the devices "
    "that another loop of the same function goes over as a whole: they convert.",
    "Give every tower the whole loss of its share of the batch, or keep the program as a tower graph: "
    "`--refused symbols` takes its names to TensorFlow 2.",
    "for i in range(2):\n    if i == 0:\n        cost = critic_loss(x)\n    else:\n        cost = penalty(x)",
)  # fmt: skip
_rule(
    "TM252", "Every tower has variables of its own", "error",
    "Towers whose variables are named by their index share nothing: what keeps them equal, if anything does, is the "
    "program's own exchange of gradients or values. Mirrored variables would be copies of copies. The same holds of names "
    "that go by what need not be the same each time: a counter, a random number, how many operations the graph has.",
    "Share the variables (`reuse_variables()`, `reuse=i > 0`, `tf.AUTO_REUSE`), with names that do not depend on the "
    "tower, or keep the program as a tower graph with `--refused symbols`.",
    "with tf.variable_scope('tower_%d' % i):\n    loss = tower_loss(x)",
)  # fmt: skip
_rule(
    "TM253", "Gradients are exchanged by nccl by hand", "error",
    "The all-reduce that the program writes out is what the strategy does itself; `tf.contrib.nccl` is not in "
    "TensorFlow 2.",
    "Average the gradients with `average_gradients(tower_grads)` instead of `nccl.all_sum`, then rewrite.",
    "grads = nccl.all_sum(tower_grads)",
)  # fmt: skip
_rule(
    "TM254", "The program runs on parameter servers", "error",
    "Variables that live on other processes are not mirrored on this one's devices.",
    "Take the towers apart from the cluster: one process with its GPUs converts; several workers are "
    "`tf.distribute.MultiWorkerMirroredStrategy`, which loop style can use.",
    "server = tf.train.Server(cluster, job_name='worker')",
)  # fmt: skip
_rule(
    "TM255", "The towers are built for an Estimator", "error",
    "The Estimator makes the graph and the session, and it is not in TensorFlow 2.16 and later.",
    "Build the model in a function of your own and train it with a session or a Keras loop, then rewrite.",
    "return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
)  # fmt: skip
_rule(
    "TM256", "The loop builds no training", "error",
    "Nothing in reach of this loop computes gradients: copies of a model that only predicts need no strategy, and what "
    "Keras trains is copied by `fit` itself.",
    "Nothing need be done where it predicts: `--refused symbols` takes its names to TensorFlow 2. A Keras model needs no "
    "copies: make and compile it in `with tf.distribute.MirroredStrategy().scope():`.",
    "for i in range(num_gpus):\n    with tf.device('/gpu:%d' % i):\n        outputs.append(model(x[i]))",
)  # fmt: skip
_rule(
    "TM257", "The loop cannot be edited where it stands", "error",
    "Session style changes the loop's head in place; here that would not give the program that was meant.",
    "Write the loop as a plain `for i in range(num_gpus):`.",
    "async for i in numbers():\n    ...",
)  # fmt: skip
_rule(
    "TM258", "The program runs eagerly", "error",
    "There is no graph and no session to keep: the program was written for TensorFlow 2, or for the eager mode of "
    "TensorFlow 1.",
    "Use `tf.distribute` with the helpers by hand: `strategy.run` with `tm.tower_gradients` and `apply_gradients`.",
    "with tf.GradientTape() as tape:\n    loss = model(x)",
)  # fmt: skip
_rule(
    "TM259", "TensorFlow's names come through another module", "error",
    "A module that says `from tensorflow import *` hands on what TensorFlow 1 called so. TensorFlow 2 gives it other names, "
    "and which of them are the module's own no rewrite of one file can settle.",
    "Say `import tensorflow as tf` where TensorFlow's names are used, and import the module under a name of its own.",
    "import layers as tf  # whose __init__.py says `from tensorflow import *`",
)  # fmt: skip
_rule(
    "TM260", "The program asks what a variable is made of", "error",
    "A variable of TensorFlow 1 is an operation `VariableV2`, which `w/read` reads, and an object `RefVariable`. In both styles variables are "
    "resources that are mirrored on every device, so that such a question has another answer, and what it decides goes "
    "another way.",
    "Tell variables apart by name, shape or collection, which stay: `v.name`, `v in tf.trainable_variables()`. Run `w:0` in place "
    "of `w/read:0`.",
    "grads = [(g * 2 if v.op.type == 'VariableV2' else g, v) for g, v in grads]",
)  # fmt: skip
_rule(
    "TM261", "A loop is given a variable that is assigned beside it", "error",
    "The gradients of a `tf.while_loop` are made from values that it kept. Of a reference variable of TensorFlow 1 it kept the "
    "memory: gradients that come after an assignment were made from the new value. Mirrored variables are resources, of which it "
    "keeps the value that it was given, so the gradients would be others.",
    "Say that no gradient is wanted (`tf.stop_gradient` around what the loop makes of the variable), or make the variable a resource "
    "(`use_resource=True`) and train anew.",
    "u = tf.get_variable('u', [1, 8], trainable=False)\n_, moved = tf.while_loop(more, power_iteration, (0, u))\nwith tf.control_dependencies([u.assign(moved)]):\n    weight = w / norm(moved)",
)  # fmt: skip
_rule(
    "TM290", "towermigrate failed on this program", "error",
    "An error of our own came up while this one program was worked on; it stays as it is, all others went on.",
    "Please report it with the text of the message.",
    "KeyError: 'i' (body.py:120)",
)  # fmt: skip
_rule(
    "TM301", "The value read is the last tower's", "info",
    "A name bound in the loop and fetched after it is the last tower's value, not the mean. The rewrite keeps "
    "that: `tm.last_tower`.",
    "Use `tm.mean_over_towers` if the mean is what you want to see.",
    "_, loss_value = sess.run([train_op, loss])",
)  # fmt: skip
_rule(
    "TM302", "The moving average and the update had no fixed order", "warning",
    "Both hang on one `tf.group` with no dependency: TensorFlow may run either first. Measured, the average came "
    "first in 10 of 10 steps; the rewrite fixes that order.",
    "Nothing, or move the average behind the update if you mean that.",
    "train_op = tf.group(apply_gradient_op, variables_averages_op)",
)  # fmt: skip
_rule(
    "TM303", "None gradients crash the original", "warning",
    "The averaging calls `tf.expand_dims(None)` for a variable that a loss does not reach. The rewrite gives "
    "zeros inside the stage's variable list, so the variable gets slots and does not move from zero "
    "gradients alone.",
    "Give the stage a `var_list`, or write `none=\"skip\"` to leave such variables out.",
    "grads = opt.compute_gradients(loss)  # (None, <variable>) for some",
)  # fmt: skip
_rule(
    "TM304", "The graph is no longer written to the event file", "info",
    "`FileWriter(logdir, sess.graph)` also wrote the session's graph; there is none any more.",
    "Use `tf.summary.trace_on` and `trace_export` around a step to see its graph in TensorBoard.",
    "writer = tf.summary.FileWriter(logdir, sess.graph)",
)  # fmt: skip
_rule(
    "TM305", "Comments went with the statements they stood at", "info",
    "Statements of the tower machinery are gone, and the comments on them; each is listed here.",
    "Put back what you want to keep; `towermigrate undo` restores the files.",
    "# Start the queue runners.\ntf.train.start_queue_runners(sess=sess)",
)  # fmt: skip
_rule(
    "TM306", "Every tower gets the same batch", "info",
    "The towers read one tensor, so more towers do not mean more data a step. The rewrite keeps that.",
    "Use `tm.per_tower_batches` if each tower should get a batch of its own: that changes training.",
    "images, labels = distorted_inputs()\nfor i in range(num_gpus):\n    loss = tower_loss(images, labels)",
)  # fmt: skip
_rule(
    "TM307",
    "A device pin went",
    "info",
    "`with tf.device('/cpu:0')` in a function that the towers call kept the shared variables on the CPU. The "
    "strategy places variables itself, on every replica. Other programs that call the function now place "
    "its values as TensorFlow does by default; the values are the same.",
    "Nothing, or keep a copy of the function for the other programs.",
    "with tf.device('/cpu:0'):\n    var = tf.get_variable(name, shape)",
)
_rule(
    "TM308", "The original cannot run on TensorFlow 1.15 as it is", "info",
    "`reuse_variables()` without an outer `tf.variable_scope(tf.get_variable_scope())` also makes the optimizer's "
    "slots look for existing variables, and fails.",
    "Nothing for the rewrite; `verify` needs an original that runs.",
    "for i in range(n):\n    ...\n    tf.get_variable_scope().reuse_variables()",
)  # fmt: skip
_rule(
    "TM309", "Two updates in one `sess.run` had no fixed order", "warning",
    "Neither update waited for the other, so the gradients of one could see the variables before or after the "
    "other. The rewrite computes all gradients first and then updates in the order of the source.",
    "Nothing, or fetch the updates in two runs if you mean one after the other.",
    "sess.run([d_train_op, g_train_op])",
)  # fmt: skip
_rule(
    "TM310", "The program is in session style", "info",
    "Graph and session stay as they were, on variables that are mirrored on every tower's device: "
    "`tm.mirror_variables(…)` stands where the graph begins, before the first variable. Where the text does not show that none "
    "is made earlier, the finding says so: then none is mirrored, and the towers share them as they did. What keeps the program from "
    "loop style (eager, ready for TPUs and several workers) is listed with it.",
    "Nothing need be done. Look at what is listed if loop style is wanted.",
    "tm.mirror_variables(num_gpus)\nfor i in tm.towers(range(num_gpus)):\n    ...",
)  # fmt: skip
_rule(
    "TM311", "The number of towers is not known where the graph begins", "info",
    "`tm.mirror_variables()` without a number takes every GPU that is visible, or one CPU. Numbers come out the same: "
    "two towers may share a replica, and a replica may have no tower. A call with the number, "
    "before the first variable of the graph, settles it.",
    "Write the number into the call where it is known, or set TOWERMIGRATE_DEVICES (`gpu:0,1`, `cpu:4`).",
    "tm.mirror_variables()",
)  # fmt: skip
_rule(
    "TM312", "A refused program's names were changed", "info",
    "Another program of the file was converted, so the file goes to TensorFlow 2 as a whole. The refused one has the "
    "names that TensorFlow 2 has for what it used; its towers build the graph that they built.",
    "Nothing, if it may run on TensorFlow 2 so. To leave it as it was, name the other one: "
    "`towermigrate rewrite train.py:main`.",
    "def ablation():\n    for i in range(num_gpus):\n        with tf.variable_scope('tower_%d' % i):\n            ...",
)  # fmt: skip
_rule(
    "TM313", "A part of the graph that no run fetches is gone", "info",
    "TensorFlow 1 built it and never ran it. Loop style has no graph to put it into.",
    "Nothing. If it was meant to be seen, fetch it in the original: a summary is written only by a run that fetches it.",
    "for gradient, variable in grads:\n    tf.summary.histogram(variable.op.name, gradient)",
)  # fmt: skip
_rule(
    "TM314", "A checkpoint is no longer split by device", "info",
    "`sharded=True` wrote the variables of each device to files of their own. The towers' variables have a copy on every "
    "device now, and are written once; a checkpoint holds the same, and is read the same.",
    "Nothing.",
    "saver = tf.train.Saver(tf.global_variables(), sharded=True)",
)  # fmt: skip
_rule(
    "TM315", "What the session was configured with is gone", "warning",
    "`ConfigProto` and `GPUOptions` chose devices, memory and threads of a session, of which there is none any more. A strategy "
    "takes the first GPUs that are visible.",
    "Say it to TensorFlow 2: `CUDA_VISIBLE_DEVICES=2,3` or `TOWERMIGRATE_DEVICES=gpu:2,3` for devices, "
    "`tf.config.experimental.set_memory_growth` for memory, `tf.config.threading` for threads.",
    "config = tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list='2,3'))",
)  # fmt: skip
_rule(
    "TM316", "Updates of batch norm's moving averages that had no order have one now", "warning",
    "`tf.get_collection(tf.GraphKeys.UPDATE_OPS)` without a scope has the updates of every tower. TensorFlow 1 makes them side "
    "by side: each may go on from what another one left or from what it was before, so that two runs of the program may differ. "
    "In loop style they are made from the last tower to the first, each from what the one before it left. That is one of the "
    "results that there were, on a CPU the most frequent one (18 to 25 of 25 runs of small programs in TensorFlow 1.15). "
    "Training reads none of it; an evaluation does.",
    'Nothing. If only one tower\'s updates were meant, say `batch_norm="last"` to `TowerVariables`, or ask for them in the '
    "original: `tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)` with the name scope of that tower.",
    "update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n"
    "with tf.control_dependencies(update_ops):\n"
    "    train_op = optimizer.apply_gradients(average_gradients(tower_grads))",
)  # fmt: skip
_rule(
    "TM317", "A loop beside the towers keeps its devices", "info",
    "It enters a device for each of its values, as towers do, but computes no gradients and makes neither variables nor layers, "
    "so it is taken for no tower and stays as it is. What it builds is the same; the devices are those that are written, where "
    "towers go to the devices of their replicas (`TOWERMIGRATE_DEVICES`, fewer GPUs than towers, CPUs).",
    "Nothing, where the devices that are written are there. Else write `for i in tm.towers(range(n)):` here too, and take the "
    "device out, or allow soft placement.",
    "for i in range(len(images)):\n    with tf.device('/gpu:%d' % i):\n        half.append(tf.cast(images[i], tf.float16))",
)  # fmt: skip
_rule(
    "TM401", "A replica's mean loss is applied without dividing it by the replicas", "warning",
    "`apply_gradients` sums the gradients over the replicas. The mean over each replica's own examples then gives "
    "N times the gradient of one device. Adam and other optimizers that divide by the gradient's size hide it; "
    "clipping, SGD and weight decay do not.",
    "Give `tf.nn.compute_average_loss(per_example)` or `tm.global_batch_loss(per_example)` to the gradient, or "
    "divide the loss by `strategy.num_replicas_in_sync`. A learning rate that was tuned with the factor N in it "
    "must be multiplied by N.",
    "loss = tf.reduce_mean(per_example)\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
    "# right:\n"
    "loss = tf.nn.compute_average_loss(per_example)\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))",
)  # fmt: skip
_rule(
    "TM402", "A loss is divided by one replica's count of tokens", "warning",
    "Replicas have different numbers of real tokens. Dividing by its own number, each replica weighs its tokens "
    "differently, so the gradient is not that of the whole batch, also when the loss is divided by the number of "
    "replicas; when it is not, it is about N times too large as well.",
    "Use `tm.token_normalized_loss(losses, mask)`, or divide by the sum over all replicas: "
    "`tf.distribute.get_replica_context().all_reduce('SUM', tf.reduce_sum(mask))`.",
    "loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
    "# right:\n"
    "loss = tm.token_normalized_loss(losses, mask)\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))",
)  # fmt: skip
_rule(
    "TM403", "Shares of a loss are averaged over the replicas", "warning",
    "Every replica's loss is its share of the global one: the shares add up to it. Their mean is the loss divided "
    "by N. The training is right, the reported number is not.",
    "Use `tf.distribute.ReduceOp.SUM`.",
    "shares = strategy.run(train_step, args=(batch,))\n"
    "loss = strategy.reduce(tf.distribute.ReduceOp.MEAN, shares, axis=None)\n"
    "# right:\n"
    "shares = strategy.run(train_step, args=(batch,))\n"
    "loss = strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None)",
)  # fmt: skip
_rule(
    "TM404", "A gradient is taken for variables that are not trained", "warning",
    "`model.variables` has batch-norm statistics and other variables that a tape does not watch: their gradients "
    "are None. Keras 3 optimizers refuse them, and lists that are zipped with `trainable_variables` are shifted: "
    "gradients go to the wrong variables.",
    "Use `model.trainable_variables`, in both places.",
    "grads = tape.gradient(loss, model.variables)\n"
    "# right:\n"
    "grads = tape.gradient(loss, model.trainable_variables)",
)  # fmt: skip
_rule(
    "TM405", "A Mean metric is given a share of the loss", "warning",
    "`tf.keras.metrics.Mean` divides by the number of values it was given on all replicas. Shares are already "
    "divided, so it says the loss divided by N.",
    "Give it the per-example losses, or use `tm.loss_metric()`, which knows shares; "
    "`loss * strategy.num_replicas_in_sync` is right too.",
    "loss = tf.nn.compute_average_loss(per_example)\n"
    "train_loss.update_state(loss)\n"
    "# right:\n"
    "loss = tf.nn.compute_average_loss(per_example)\n"
    "train_loss.update_state(per_example)",
)  # fmt: skip
_rule(
    "TM406", "`Strategy.run` is called by an old name", "warning",
    "`experimental_run_v2` is `run` since TensorFlow 2.2 and is gone from later releases; `experimental_run`, "
    "which takes an iterator, is deprecated.",
    "Call `strategy.run`.",
    "strategy.experimental_run_v2(train_step, args=(batch,))\n"
    "# right:\n"
    "strategy.run(train_step, args=(batch,))",
)  # fmt: skip
_rule(
    "TM407", "Gradients are applied in the cross-replica context", "warning",
    "Inside `strategy.scope()`, but outside a function given to `strategy.run`, there is no replica whose gradients "
    "could be summed: optimizers raise an error.",
    "Compute and apply the gradients in one function, and give it to `strategy.run`.",
    "with strategy.scope():\n"
    "    optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
    "# right:\n"
    "def apply():\n"
    "    optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
    "with strategy.scope():\n"
    "    strategy.run(apply)",
)  # fmt: skip
_rule(
    "TM408", "A regulariser is added by every replica", "warning",
    "The losses of the replicas add up. The part over the examples was scaled for that, the regulariser was not: it "
    "counts N times, and the more replicas there are, the stronger is the decay.",
    "Add `tf.nn.scale_regularization_loss(tf.add_n(model.losses))` or `tm.regularization_loss(model.losses)`.",
    "loss = tf.nn.compute_average_loss(per_example)\n"
    "loss += tf.add_n(model.losses)\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
    "# right:\n"
    "loss = tf.nn.compute_average_loss(per_example)\n"
    "loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))",
)  # fmt: skip
_rule(
    "TM409", "A share of the loss is divided by the replicas again", "warning",
    "`tf.nn.compute_average_loss`, `tf.nn.scale_regularization_loss` and the helpers that return shares have "
    "divided by the global batch or the number of replicas already. Divided again, training runs at 1/N of the "
    "gradient, which Adam hides.",
    "Leave the second division out.",
    "loss = tf.nn.compute_average_loss(per_example) / strategy.num_replicas_in_sync\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))\n"
    "# right:\n"
    "loss = tf.nn.compute_average_loss(per_example)\n"
    "grads = tape.gradient(loss, model.trainable_variables)\n"
    "optimizer.apply_gradients(zip(grads, model.trainable_variables))",
)  # fmt: skip
_rule(
    "TM410", "A Keras loss reduces its result by itself in a replica", "warning",
    "Without `reduction=`, legacy Keras (`tf_keras`, TensorFlow before 2.16) raises an error in a replica. Keras 3 "
    "divides by this replica's batch and by the number of replicas, which is right only where all replicas "
    "have equally many examples, and must not be divided again.",
    "Make it with `reduction='none'` and give its result to `tf.nn.compute_average_loss` or "
    "`tm.global_batch_loss`.",
    "cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)\n"
    "loss = cross_entropy(labels, logits)\n"
    "# right:\n"
    "cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction='none')\n"
    "loss = tf.nn.compute_average_loss(cross_entropy(labels, logits))",
)  # fmt: skip


# The rules of the symbol pass.
RULES.update({rule.id: rule for rule in SYMBOL_RULES})
