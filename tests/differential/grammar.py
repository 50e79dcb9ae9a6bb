"""The choices of which a generated program is made, and how they are drawn and made to fit each other.

A program is a set of choices: one option of each feature, and some idioms (`idioms.py`). The first option of a
feature is the plain one: a program of plain options only is the classic tower program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

FEATURES: dict[str, tuple[str, ...]] = {
    "towers": ("2", "3"),
    "imports": ("tf", "compat", "future"),
    "count": ("constant", "flags", "len_devices", "settings", "argument"),
    "loop": (
        "range",
        "xrange",
        "enumerate",
        "devices",
        "zip",
        "enumerate_zip",
        "comprehension",
        "generator",
        "two_loops",
        "helper",
        "while",
        "map",
    ),
    "nest": ("none", "if", "with", "try", "for"),
    "place": ("function", "module", "main", "class", "other_file", "guard", "closure"),
    "returns": ("tuple", "dict", "object"),
    "graph": ("default", "graph", "cpu", "graph_cpu"),
    "device": ("percent", "format", "spec", "variable", "function", "none", "own", "plus"),
    "name_scope": ("as_scope", "plain", "none", "format"),
    "sharing": ("outer", "reuse_i", "auto", "flag", "prebuilt", "template", "root", "reuse_none"),
    "tower_fn": ("inline", "function", "method"),
    "input": (
        "slice",
        "split",
        "placeholders",
        "same",
        "dataset_once",
        "dataset_each",
        "queue_once",
        "queue_each",
        "batches",
        "uneven",
        "constant",
    ),
    "model": (
        "linear",
        "two_layer",
        "layers",
        "cpu_variables",
        "batch_norm",
        "embedding",
        "rnn",
        "dropout",
        "loop_layers",
    ),
    "loss": (
        "mean_square",
        "losses_module",
        "l2_trainable",
        "collection",
        "collection_text",
        "regularizer",
        "reuse_guard",
        "total_loss",
        "penalty",
        "sum_over_batch",
    ),
    "gradients": (
        "compute",
        "var_list",
        "tf_gradients",
        "minimize_mean",
        "compute_mean",
        "tower_clip",
        "var_list_name",
        "own_lists",
    ),
    "averaging": (
        "classic",
        "stack",
        "add_n",
        "reduce_list",
        "none_dropped",
        "none_passed",
        "none_zeros",
        "sum",
        "weighted",
        "last_only",
        "inline",
        "not_reset",
        "average_of_two",
    ),
    "after": (
        "nothing",
        "clip_global",
        "clip_each",
        "histograms",
        "multipliers",
        "loss_scale",
        "finite",
    ),
    "train_op": ("plain", "group", "ema", "update_ops", "accumulate", "noop_group"),
    "stages": ("one", "two", "gan"),
    "optimizer": ("sgd", "momentum", "adam", "decay", "fed_rate", "rmsprop", "in_loop", "adagrad"),
    "step": ("get_or_create", "none", "variable", "get_variable"),
    "updates": ("all", "first", "last"),
    "report": ("last", "mean", "list", "first"),
    "session": ("with", "plain", "interactive", "monitored", "supervisor", "hooks"),
    "run_place": ("same", "function", "other_file"),
    "fetch": ("list", "tuple", "dict", "nested", "named", "separate", "op_run", "with_step"),
    "feed": ("inline", "named", "helper"),
    "saver": ("end", "none", "plain", "list", "keywords", "dict", "restore", "latest"),
    "summaries": ("none", "merge_all", "tower", "after_run"),
    "looking": ("none", "loss", "eval", "two_runs", "output"),
    "loop_over": ("range", "while", "epochs", "break"),
}


@dataclass(frozen=True)
class Choices:
    """One option of each feature, and the idioms. `str` shows what is not plain."""

    options: Mapping[str, str]
    idioms: tuple[str, ...] = ()

    def __getitem__(self, feature: str) -> str:
        return self.options[feature]

    def with_option(self, feature: str, option: str) -> Choices:
        return replace(self, options={**self.options, feature: option})

    @property
    def odd(self) -> dict[str, str]:
        """The features whose option is not the plain one."""
        return {name: one for name, one in self.options.items() if one != FEATURES[name][0]}

    def __str__(self) -> str:
        shown = [f"{name}={one}" for name, one in self.odd.items()]
        return " ".join([*shown, *(f"+{idiom}" for idiom in self.idioms)]) or "plain"

    @classmethod
    def parse(cls, text: str) -> Choices:
        """What `str` wrote."""
        options = {name: some[0] for name, some in FEATURES.items()}
        idioms = []
        for word in text.split():
            if word.startswith("+"):
                idioms.append(word[1:])
            elif word != "plain":
                name, _, option = word.partition("=")
                if option not in FEATURES[name]:
                    raise ValueError(f"{word}: no such option")
                options[name] = option
        return cls(options, tuple(idioms))


def draw(seed: int, idioms: Mapping[str, object]) -> Choices:
    """The choices of a seed. Some programs are nearly plain, some strange in all respects."""
    chance = random.Random(f"towers {seed}")
    strangeness = chance.choice((0.04, 0.1, 0.1, 0.2, 0.2, 0.35, 0.6))
    options = {}
    for name, some in FEATURES.items():
        options[name] = chance.choice(some[1:]) if chance.random() < strangeness else some[0]
    names = sorted(idioms)
    wanted = tuple(sorted(name for name in names if chance.random() < strangeness / 5))
    return Choices(options, wanted)


_Condition = Callable[[Choices], bool]


def _is(**features: str) -> _Condition:
    """Whether each feature has one of these options, separated by spaces."""
    wanted = {name: frozenset(some.split()) for name, some in features.items()}
    for name, some in wanted.items():
        assert some <= set(FEATURES[name]), (name, some)
    return lambda choices: all(choices[name] in some for name, some in wanted.items())


BODY_IN_FUNCTION = _is(loop="comprehension helper map")
"""Each tower's body is the body of a function, which returns its loss and gradients."""

FED = _is(input="slice split placeholders same uneven")
"""The batches come through placeholders."""

MEAN_LOSS = _is(gradients="minimize_mean compute_mean")
"""The towers' losses are averaged, not their gradients."""

# Where the condition holds, the feature gets the option, unless it has one of those beside it.
_FITTING: tuple[tuple[_Condition, str, str], ...] = (
    # The towers' inputs come with the devices.
    (
        _is(loop="zip enumerate_zip helper", input="slice same dataset_each queue_each constant"),
        "input",
        "split",
    ),
    (_is(loop="devices", device="percent format spec plus none function"), "device", "variable"),
    (_is(loop="zip enumerate_zip enumerate helper generator", device="none"), "device", "percent"),
    (_is(loop="zip", device="percent format spec function own plus none"), "device", "variable"),
    (_is(loop="zip"), "name_scope", "none"),
    (
        _is(loop="zip", loss="collection collection_text total_loss reuse_guard"),
        "loss",
        "mean_square",
    ),
    (_is(loop="zip", model="batch_norm"), "model", "linear"),
    (_is(loop="zip", train_op="update_ops"), "train_op", "plain"),
    (_is(loop="zip", sharing="reuse_i reuse_none"), "sharing", "outer"),
    (_is(loop="zip", report="first"), "report", "last"),
    # A function's body binds no names of the function around it.
    (_is(loop="comprehension helper map", sharing="flag"), "sharing", "outer"),
    (_is(loop="comprehension helper map", report="first"), "report", "last"),
    (_is(loop="comprehension helper map two_loops", optimizer="in_loop"), "optimizer", "sgd"),
    (_is(loop="comprehension helper map two_loops", updates="first last"), "updates", "all"),
    (_is(loop="comprehension helper map", summaries="tower"), "summaries", "none"),
    (
        _is(loop="two_loops", gradients="minimize_mean compute_mean tower_clip own_lists"),
        "gradients",
        "compute",
    ),
    (_is(loop="helper comprehension map", gradients="own_lists"), "gradients", "compute"),
    (
        _is(optimizer="in_loop", gradients="minimize_mean compute_mean tf_gradients"),
        "optimizer",
        "sgd",
    ),
    # Several stages have one form.
    (_is(stages="two gan", loop="two_loops helper comprehension map"), "loop", "range"),
    (
        _is(
            stages="two gan",
            gradients="minimize_mean compute_mean tf_gradients var_list_name own_lists",
        ),
        "gradients",
        "compute",
    ),
    (_is(stages="two gan", train_op="accumulate"), "train_op", "plain"),
    (_is(stages="two gan", optimizer="in_loop"), "optimizer", "sgd"),
    (_is(stages="two gan", model="batch_norm embedding rnn"), "model", "linear"),
    (_is(stages="two gan", tower_fn="function method"), "tower_fn", "inline"),
    (_is(stages="two gan", sharing="template prebuilt"), "sharing", "outer"),
    (
        _is(stages="two gan", averaging="none_passed none_zeros none_dropped"),
        "averaging",
        "classic",
    ),
    (_is(stages="two gan", session="monitored supervisor hooks"), "session", "with"),
    # Under reference variables `tf.gradients` races with the update, unless all gradients are waited for.
    (
        _is(gradients="tf_gradients", after="nothing clip_each histograms multipliers loss_scale"),
        "after",
        "clip_global",
    ),
    (_is(gradients="tf_gradients", model="embedding"), "model", "linear"),
    # What needs a scope.
    (
        _is(name_scope="none plain", loss="collection total_loss reuse_guard"),
        "name_scope",
        "as_scope",
    ),
    (_is(name_scope="none", loss="collection_text"), "name_scope", "as_scope"),
    (_is(name_scope="format", loss="collection_text"), "name_scope", "as_scope"),
    (_is(name_scope="none plain", updates="first last"), "name_scope", "as_scope"),
    (
        _is(loop="helper", loss="collection collection_text total_loss reuse_guard"),
        "loss",
        "mean_square",
    ),
    (
        _is(loop="helper", sharing="reuse_i reuse_none auto flag prebuilt root template"),
        "sharing",
        "outer",
    ),
    (_is(sharing="template", tower_fn="function method"), "tower_fn", "inline"),
    (_is(sharing="template prebuilt", gradients="tf_gradients"), "sharing", "outer"),
    (_is(tower_fn="function method", loss="collection_text"), "tower_fn", "inline"),
    # Adam's slots are made outside of the root's reused scope, or not at all.
    (_is(sharing="root", optimizer="momentum adam rmsprop adagrad in_loop"), "optimizer", "sgd"),
    (_is(sharing="root", train_op="ema accumulate"), "train_op", "plain"),
    (_is(sharing="root", stages="two gan"), "sharing", "outer"),
    (_is(sharing="root", step="get_or_create"), "step", "variable"),
    (_is(sharing="root", session="monitored supervisor hooks"), "session", "with"),
    (_is(sharing="prebuilt", input="dataset_each queue_each"), "sharing", "outer"),
    (_is(sharing="prebuilt template", loss="reuse_guard"), "sharing", "outer"),
    (_is(sharing="template", model="embedding batch_norm"), "sharing", "outer"),
    (_is(sharing="prebuilt", model="batch_norm dropout"), "sharing", "outer"),
    (_is(sharing="prebuilt", loss="losses_module total_loss"), "sharing", "outer"),
    # What the original's threads would decide: which tower gets which batch, or the order of updates.
    (_is(input="dataset_each queue_each", report="last first list"), "report", "mean"),
    # A loss that the update does not wait for.
    (_is(averaging="average_of_two"), "towers", "2"),
    (_is(averaging="last_only", report="mean list first"), "report", "last"),
    (_is(averaging="last_only", summaries="tower"), "summaries", "none"),
    (_is(input="dataset_each queue_each", looking="loss eval output"), "looking", "none"),
    (
        _is(input="dataset_each queue_each", averaging="weighted last_only average_of_two"),
        "averaging",
        "classic",
    ),
    (
        _is(input="dataset_each queue_each", summaries="merge_all tower after_run"),
        "summaries",
        "none",
    ),
    (_is(input="dataset_each queue_each", model="dropout batch_norm"), "model", "linear"),
    (_is(model="batch_norm", updates="all"), "updates", "last"),
    (_is(model="batch_norm", loop="comprehension helper map two_loops"), "loop", "range"),
    (
        _is(model="batch_norm", train_op="plain group ema accumulate noop_group"),
        "train_op",
        "update_ops",
    ),
    (_is(model="batch_norm", name_scope="none plain"), "name_scope", "as_scope"),
    (_is(train_op="update_ops", loop="helper"), "loop", "range"),
    # What stands for itself.
    (_is(input="queue_once queue_each", session="with plain interactive"), "session", "with"),
    (_is(input="constant", looking="two_runs"), "looking", "loss"),
    (_is(input="uneven", towers="3"), "towers", "2"),
    (
        _is(
            model="embedding",
            gradients="minimize_mean compute_mean",
            after="clip_each histograms multipliers loss_scale finite",
        ),
        "after",
        "nothing",
    ),
    (_is(model="embedding", input="queue_once queue_each"), "input", "split"),
    (_is(model="rnn embedding", loss="penalty"), "loss", "mean_square"),
    (_is(model="embedding", gradients="tower_clip"), "gradients", "compute"),
    (
        _is(
            averaging="not_reset last_only",
            model="two_layer layers cpu_variables batch_norm embedding rnn dropout loop_layers",
        ),
        "averaging",
        "classic",
    ),
    (_is(stages="two gan", averaging="not_reset"), "averaging", "classic"),
    (_is(averaging="not_reset"), "model", "linear"),
    (_is(gradients="minimize_mean compute_mean"), "averaging", "classic"),
    (
        _is(gradients="minimize_mean", after="clip_global clip_each histograms multipliers finite"),
        "after",
        "nothing",
    ),
    (_is(gradients="minimize_mean", train_op="accumulate"), "train_op", "plain"),
    (
        _is(session="monitored supervisor hooks", step="none variable get_variable"),
        "step",
        "get_or_create",
    ),
    (_is(session="monitored supervisor hooks", fetch="op_run"), "fetch", "list"),
    (_is(session="monitored supervisor hooks", looking="eval"), "looking", "loss"),
    (_is(session="monitored hooks", looking="loss two_runs output"), "looking", "none"),
    (_is(session="monitored hooks", fetch="separate"), "fetch", "list"),
    (
        _is(
            session="monitored supervisor hooks",
            saver="end plain list keywords dict restore latest",
        ),
        "saver",
        "none",
    ),
    (
        _is(session="monitored hooks supervisor", summaries="merge_all tower after_run"),
        "summaries",
        "none",
    ),
    (_is(session="monitored supervisor hooks", train_op="accumulate"), "train_op", "plain"),
    (_is(input="constant", train_op="accumulate"), "train_op", "plain"),
    (_is(fetch="with_step", step="none"), "step", "get_or_create"),
    (_is(optimizer="decay", step="none"), "step", "get_or_create"),
    (_is(place="module guard", run_place="other_file"), "run_place", "same"),
    (_is(place="guard", run_place="function"), "run_place", "same"),
    (_is(place="module", graph="graph graph_cpu"), "graph", "default"),
    (_is(count="argument", place="module guard"), "count", "constant"),
    (
        _is(tower_fn="method", place="function module main other_file guard closure"),
        "tower_fn",
        "function",
    ),
    (_is(feed="helper", place="module guard"), "feed", "inline"),
    (_is(fetch="op_run", run_place="other_file"), "fetch", "separate"),
)


def settle(choices: Choices, fits: Callable[[Choices, str], bool]) -> Choices:
    """The choices, changed where two do not fit: every set of choices becomes a program.

    Args:
        fits: whether an idiom fits the features.
    """
    for _ in range(10):
        before = choices
        for condition, feature, option in _FITTING:
            if choices[feature] != option and condition(choices):
                choices = choices.with_option(feature, option)
        if choices == before:
            break
    else:
        raise AssertionError(f"no choices that fit each other: {choices}")
    return replace(choices, idioms=tuple(one for one in choices.idioms if fits(choices, one)))
