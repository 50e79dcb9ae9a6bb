"""The code that runs the graph: its session, its steps, what is fetched and printed, saved and written."""

from __future__ import annotations

from tests.differential.fitting import FED
from tests.differential.grammar import Choices
from tests.differential.idioms import at
from tests.differential.text import Lines, inside

_QUEUES = ("queue_once", "queue_each")
_OWN_LOOP = ("monitored", "supervisor", "hooks")


def graph_tail(choices: Choices) -> Lines:
    """The last statements of the graph's building: savers and merged summaries, which need all variables."""
    found: Lines = []
    if choices["summaries"] in ("merge_all", "tower"):
        if choices["summaries"] == "merge_all":
            found += [f"tf.summary.scalar('loss', {_scalar(choices)})"]
        found += ["$merged = tf.summary.merge_all()"]
    saver = {
        "end": "tf.train.Saver()",
        "plain": "tf.train.Saver()",
        "latest": "tf.train.Saver()",
        "restore": "tf.train.Saver(tf.global_variables())",
        "list": "tf.train.Saver(tf.global_variables())",
        "keywords": "tf.train.Saver(var_list=tf.trainable_variables(), max_to_keep=2)",
        "dict": "tf.train.Saver({'x/' + v.op.name: v for v in tf.trainable_variables()})",
    }.get(choices["saver"])
    if saver is not None:
        found += [f"$saver = {saver}"]
    return found


def _scalar(choices: Choices) -> str:
    return "$shown[-1]" if choices["report"] == "list" else "$shown"


def _feed(choices: Choices) -> tuple[Lines, str]:
    """Statements that draw a batch, and the argument of a run that feeds it."""
    pairs: list[str] = []
    drawn: Lines = []
    n = "NUM_GPUS"
    if FED(choices):
        size = f"BATCH * {n}"
        if choices["input"] == "same":
            size = "BATCH"
        elif choices["input"] == "uneven":
            size = "8" if choices["towers"] == "2" else "12"
        drawn = [f"bx, by = next_batch({size})"]
        pairs = ["$X: bx", "$Y: by"]
        if choices["input"] == "placeholders":
            drawn = ["feed = {}"] + inside(
                f"for k in range({n}):",
                ["bx, by = next_batch(BATCH)", "feed[$X[k]] = bx", "feed[$Y[k]] = by"],
            )
            pairs = []
    rate = "$lr: 0.1 / (step + 1)" if choices["optimizer"] == "fed_rate" else ""
    if choices["input"] == "placeholders":
        if rate:
            drawn += ["feed[$lr] = 0.1 / (step + 1)"]
        return drawn, "feed_dict=feed"
    if rate:
        pairs.append(rate)
    if not pairs:
        return drawn, ""
    if choices["feed"] == "helper" and FED(choices):
        keys = ", ".join(pair.split(": ")[0] for pair in pairs if "step" not in pair)
        drawn = [
            drawn[0].replace("bx, by = next_batch", f"feed = make_feed({keys}, *next_batch") + ")"
        ]
        return [*drawn, *(["feed[$lr] = 0.1 / (step + 1)"] if rate else [])], "feed_dict=feed"
    if choices["feed"] == "named":
        return [*drawn, f"feed = {{{', '.join(pairs)}}}"], "feed_dict=feed"
    return drawn, f"feed_dict={{{', '.join(pairs)}}}"


def feed_helper(choices: Choices) -> Lines:
    """The module's function that makes the feed, where there is one."""
    if choices["feed"] != "helper" or not FED(choices) or choices["input"] == "placeholders":
        return []
    return [
        "def make_feed(x, y, bx, by):",
        "    feed = {x: bx}",
        "    feed[y] = by",
        "    return feed",
    ]


def _run(fetched: str, feed: str, sess: str = "sess") -> str:
    return f"{sess}.run({fetched}{', ' + feed if feed else ''})"


def _printed(choices: Choices, name: str) -> str:
    if choices["report"] == "list":
        return f"' '.join('%.6f' % one for one in {name})"
    return f"'%.6f' % {name}"


def _train(choices: Choices, feed: str) -> Lines:
    """One step: the train op is run, and the loss printed."""
    op = "$add_op" if choices["train_op"] == "accumulate" else "$train_op"
    given = "" if not feed else ", " + feed
    shown = "loss_value"
    found: Lines
    match choices["fetch"]:
        case "tuple":
            found = [f"_, loss_value = {_run(f'({op}, $shown)', feed)}"]
        case "dict":
            fetched = "{'train': " + op + ", 'loss': $shown}"
            found = [f"values = {_run(fetched, feed)}"]
            shown = "values['loss']"
        case "nested":
            found = [f"_, (loss_value, again) = {_run(f'[{op}, [$shown, $shown]]', feed)}"]
        case "named":
            found = [f"_, loss_value = {_run('fetches', feed)}"]
        case "separate":
            found = [_run(op, feed), f"loss_value = {_run('$shown', feed)}"]
        case "op_run":
            method = (
                "$shown.eval(session=sess" if choices["report"] != "list" else "sess.run($shown"
            )
            found = [f"{op}.run(session=sess{given})", f"loss_value = {method}{given})"]
        case "with_step":
            found = [
                f"_, loss_value, step_value = {_run(f'[{op}, $shown, $global_step]', feed)}",
                "print('global step', step_value)",
            ]
        case _:
            found = [f"_, loss_value = {_run(f'[{op}, $shown]', feed)}"]
    found += [f"print('step', step, 'loss', {_printed(choices, shown)})"]
    if choices["stages"] != "one":
        found += [_run("$second_op", feed)]
    if choices["train_op"] == "accumulate":
        found += inside(
            "if step % 2 == 1:", [_run("$train_op", _rate_only(choices)), "sess.run($zero_op)"]
        )
    return found


def _rate_only(choices: Choices) -> str:
    return "feed_dict={$lr: 0.1}" if choices["optimizer"] == "fed_rate" else ""


def _looks(choices: Choices, feed: str) -> Lines:
    match choices["looking"]:
        case "loss":
            look = [f"print('look', {_printed(choices, _run('$shown', feed))})"]
        case "eval":
            if choices["report"] == "list":
                look = [f"print('look', {_printed(choices, _run('$shown', feed))})"]
            else:
                given = f", {feed}" if feed else ""
                look = [f"print('look', '%.6f' % $shown.eval(session=sess{given}))"]
        case "two_runs":
            look = [f"first, second = {_run('$shown', feed)}, {_run('$shown', feed)}"]
            look += ["print('alike', np.allclose(first, second))"]
        case "output":
            look = [f"print('out', np.round({_run('$out', feed)}, 6).tolist())"]
        case _:
            return []
    return inside("if step % 2 == 0:", look)


def _tests(choices: Choices, feed: str) -> Lines:
    """What is asked of the model that was built once more behind the towers."""
    kind = choices["evaluation"]
    rows = "np.arange(12).reshape(4, 3) % 7"
    if choices["model"] != "embedding":
        rows = f"({rows}) * 0.1"
    match kind:
        case "none":
            return []
        case "two_values":
            run = _run("[$test_best, $test_out]", f"{{$test_x: {rows}}}")
            return [f"best, mean = {run}", "print('test %.6f' % mean, best.tolist())"]
        case "same_inputs":
            run = _run("$test_out", f"feed_dict={{$X: {rows}, $Y: np.ones([4, 1])}}")
        case "with_loss":
            run = _run("[$test_out, $shown]", f"{feed[:-1]}, $test_x: {rows}}}") + "[0]"
        case _:
            run = _run("$test_out", f"feed_dict={{$test_x: {rows}}}")
    return [f"print('test %.6f' % {run})"]


def _step(choices: Choices) -> Lines:
    drawn, feed = _feed(choices)
    found = [*drawn, *_train(choices, feed), *_looks(choices, feed)]
    found += inside("if step % 2 == 0:", evaluated) if (evaluated := _tests(choices, feed)) else []
    match choices["summaries"]:
        case "merge_all" | "tower":
            found += [f"writer.add_summary({_run('$merged', feed)}, step)"]
        case "after_run":
            value = "loss_value[-1]" if choices["report"] == "list" else "loss_value"
            value = "values['loss']" if choices["fetch"] == "dict" else value
            value = (
                "values['loss'][-1]"
                if choices["fetch"] == "dict" and choices["report"] == "list"
                else value
            )
            found += [
                "note = tf.Summary()",
                f"note.value.add(tag='noted', simple_value=float({value}))",
                "writer.add_summary(note, step)",
            ]
    match choices["saver"]:
        case "plain" | "list" | "dict":
            found += inside(
                "if step % 2 == 1:", ["$saver.save(sess, 'ckpt/model', global_step=step)"]
            )
        case "keywords":
            found += [
                "$saver.save(sess, os.path.join('ckpt', 'k.ckpt'), global_step=step, write_meta_graph=False)"
            ]
        case "restore" | "latest":
            found += inside("if step == 1:", ["path = $saver.save(sess, 'ckpt/model')"])
    return [*found, *at(choices, "step", feed)]


def _after_steps(choices: Choices) -> Lines:
    found: Lines = []
    drawn, feed = _feed(choices)
    if choices["saver"] in ("restore", "latest"):
        path = "path" if choices["saver"] == "restore" else "tf.train.latest_checkpoint('ckpt')"
        found += [
            f"$saver.restore(sess, {path})",
            *(["step = 0"] if choices["optimizer"] == "fed_rate" else []),
            *drawn,
            f"print('restored', {_printed(choices, _run('$shown', feed))})",
        ]
    if choices["saver"] == "end":
        found += ["$saver.save(sess, 'ckpt/model')"]
    if choices["summaries"] != "none":
        found += ["writer.close()"]
    found += at(choices, "end", feed)
    return found


def _loop(choices: Choices, body: Lines) -> Lines:
    """The steps of a session that the program counts itself."""
    match choices["loop_over"]:
        case "while":
            return ["step = 0", *inside("while step < STEPS:", [*body, "step += 1"])]
        case "epochs":
            inner = inside("for batch in range(3):", ["step = epoch * 3 + batch", *body])
            return inside("for epoch in range(2):", inner)
        case "break":
            stop = ["if step >= STEPS - 1:", "    break", "step += 1"]
            return ["step = 0", *inside("while True:", [*body, *stop])]
    return inside("for step in range(STEPS):", body)


def run_lines(choices: Choices) -> Lines:
    """All statements from the session's making to its end."""
    config = ["config = tf.ConfigProto(allow_soft_placement=True)"]
    if choices["fetch"] == "named":
        op = "$add_op" if choices["train_op"] == "accumulate" else "$train_op"
        config += [f"fetches = [{op}, $shown]"]
    before: Lines = []
    if choices["input"] in ("dataset_once", "dataset_each", "batches"):
        before += ["sess.run($iterator.initializer)"]
    if choices["summaries"] != "none":
        before += ["writer = tf.summary.FileWriter('logs')"]
    after = [*_after_steps(choices), "print('draws', drawn[0])"]
    if choices["session"] in _OWN_LOOP:
        return [*config, *_managed(choices, before, after)]
    start = ["sess.run(tf.global_variables_initializer())", *before]
    if choices["input"] in _QUEUES:
        start += [
            "coord = tf.train.Coordinator()",
            "threads = tf.train.start_queue_runners(sess=sess, coord=coord)",
        ]
        after = [*after, "coord.request_stop()", "coord.join(threads)"]
    body = [*start, *at(choices, "prerun"), *_loop(choices, _step(choices)), *after]
    if choices["session"] == "with":
        return [*config, *inside("with tf.Session(config=config) as sess:", body)]
    made = "tf.InteractiveSession" if choices["session"] == "interactive" else "tf.Session"
    return [*config, f"sess = {made}(config=config)", *body, "sess.close()"]


def _managed(choices: Choices, before: Lines, after: Lines) -> Lines:
    """The steps of a session that others make, and that stops by itself."""
    body = ["step = -1", *inside("while not sess.should_stop():", ["step += 1", *_step(choices)])]
    if choices["session"] == "supervisor":
        body = [
            "step = -1",
            *inside(
                "while not sv.should_stop():",
                ["step += 1", *inside("if step == STEPS:", ["break"]), *_step(choices)],
            ),
        ]
        return [
            "sv = tf.train.Supervisor(logdir='logs', summary_op=None, global_step=$global_step, save_model_secs=0)",
            *inside("with sv.managed_session(config=config) as sess:", [*before, *body, *after]),
        ]
    before = [
        one.replace("sess.run(", "sess.run_step_fn(lambda step_context: step_context.session.run(")
        + ")"
        if "initializer" in one
        else one
        for one in before
    ]
    hooks = "hooks=[tf.train.StopAtStepHook(last_step=STEPS)]"
    extra: Lines = []
    if choices["session"] == "hooks":
        extra = [
            f"watched = {_scalar(choices)}",
            *inside(
                "class Watch(tf.train.SessionRunHook):",
                [
                    *inside(
                        "def before_run(self, run_context):",
                        ["return tf.train.SessionRunArgs(watched)"],
                    ),
                    "",
                    *inside(
                        "def after_run(self, run_context, run_values):",
                        ["print('watched %.6f' % run_values.results)"],
                    ),
                ],
            ),
            "",
        ]
        hooks = "hooks=[tf.train.StopAtStepHook(last_step=STEPS), Watch()]"
    where = "checkpoint_dir='ckpt', save_checkpoint_steps=2, save_summaries_steps=None, "
    header = f"with tf.train.MonitoredTrainingSession({where}{hooks}, config=config) as sess:"
    return [
        *extra,
        *inside(header, [*before, *body]),
        *[line for line in after if "sess" not in line],
    ]
