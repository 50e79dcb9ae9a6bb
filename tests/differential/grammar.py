"""The choices of which a generated program is made, and how they are drawn.

A program is a set of choices: one option of each feature, and some idioms (`idioms.py`). The first option of a
feature is the plain one: a program of plain options only is the classic tower program.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
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
    "place": (
        "function",
        "module",
        "main",
        "class",
        "other_file",
        "guard",
        "closure",
        "star_import",
    ),
    "returns": ("tuple", "dict", "object"),
    "handed": ("alike", "renamed", "keywords", "clash", "session", "step"),
    "graph": ("default", "graph", "cpu", "graph_cpu"),
    "device": ("percent", "format", "spec", "variable", "function", "none", "own", "plus"),
    "name_scope": ("as_scope", "plain", "none", "format"),
    "sharing": ("outer", "reuse_i", "auto", "flag", "prebuilt", "template", "root", "reuse_none"),
    "tower_fn": ("inline", "function", "method", "object", "object_built", "object_before"),
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
        "lstm",
        "slim",
        "own_scope",
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
    "optimizer": (
        "sgd",
        "momentum",
        "adam",
        "decay",
        "fed_rate",
        "rmsprop",
        "in_loop",
        "adagrad",
        "own",
    ),
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
    "evaluation": (
        "none",
        "same_graph",
        "early",
        "switched",
        "auto",
        "two_values",
        "same_inputs",
        "own_variable",
        "with_loss",
    ),
    "repeat": ("once", "twice"),
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


# The options that at least about a tenth of the field's programs have.
COMMON: dict[str, tuple[str, ...]] = {
    "towers": ("3",),
    "imports": ("future",),
    "count": ("flags", "settings", "len_devices"),
    "loop": ("xrange", "enumerate", "two_loops"),
    "place": ("module", "main", "class", "other_file"),
    "graph": ("graph", "cpu", "graph_cpu"),
    "device": ("format", "variable", "function"),
    "name_scope": ("plain", "none", "format"),
    "sharing": ("reuse_i", "auto", "flag"),
    "tower_fn": ("function", "method", "object", "object_built"),
    "input": ("split", "placeholders", "same", "queue_once", "dataset_once"),
    "model": ("two_layer", "layers", "cpu_variables", "batch_norm", "loop_layers", "slim"),
    "loss": ("l2_trainable", "collection", "losses_module", "regularizer", "penalty"),
    "gradients": ("var_list", "minimize_mean", "compute_mean", "tf_gradients"),
    "averaging": ("stack", "add_n", "none_dropped"),
    "after": ("clip_global", "histograms"),
    "train_op": ("ema", "group", "update_ops"),
    "stages": ("two", "gan"),
    "optimizer": ("momentum", "adam", "decay", "rmsprop"),
    "step": ("none", "variable", "get_variable"),
    "report": ("mean", "list", "first"),
    "session": ("plain",),
    "run_place": ("function",),
    "fetch": ("with_step", "separate"),
    "feed": ("named",),
    "saver": ("none", "plain", "list", "latest"),
    "summaries": ("merge_all", "after_run"),
    "looking": ("loss",),
    "evaluation": ("same_graph", "early", "switched", "auto", "two_values", "same_inputs"),
    "loop_over": ("while", "epochs"),
}


def draw(seed: int, idioms: Mapping[str, object]) -> Choices:
    """The choices of a seed: a few common forms in most programs, a few of any in some, many in some."""
    chance = random.Random(f"towers {seed}")
    options = {name: some[0] for name, some in FEATURES.items()}
    kind = chance.choice(("common", "common", "common", "mixed", "strange"))
    if kind == "strange":
        strangeness = chance.choice((0.2, 0.4, 0.6))
        odd = [name for name in FEATURES if name != "handed" and chance.random() < strangeness]
        count = chance.randint(2, 12)
    else:
        features = COMMON if kind == "common" else FEATURES
        drawn = sorted({*features} - {"handed"})
        odd = chance.sample(drawn, chance.randint(1, 4 if kind == "common" else 8))
        count = int(chance.random() < 0.2) if kind == "common" else chance.randint(0, 3)
    for name in odd:
        options[name] = chance.choice(COMMON[name] if kind == "common" else FEATURES[name][1:])
    some = tuple(sorted(chance.sample(sorted(idioms), count)))
    options["handed"] = chance.choice(
        FEATURES["handed"]
    )  # last: all others stay as they were drawn
    return Choices(options, some)
