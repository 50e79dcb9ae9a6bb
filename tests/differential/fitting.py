"""Which choices fit each other: every set of choices is changed until it is a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.differential.grammar import FEATURES, Choices

_Condition = Callable[[Choices], bool]


def holds(text: str) -> _Condition:
    """Whether features have one of some options: `loop=zip|map device=!none +name`.

    `!` is any option but these, `+` an idiom.
    """
    wanted: list[tuple[str, frozenset[str], bool]] = []
    idioms = frozenset(word[1:] for word in text.split() if word.startswith("+"))
    for word in text.split():
        if word.startswith("+"):
            continue
        name, _, some = word.partition("=")
        options = frozenset(some.removeprefix("!").split("|"))
        assert options <= set(FEATURES[name]), word
        wanted.append((name, options, not some.startswith("!")))
    return lambda choices: (
        idioms <= set(choices.idioms)
        and all((choices[name] in some) == yes for name, some, yes in wanted)
    )


BODY_IN_FUNCTION = holds("loop=comprehension|helper|map")
"""Each tower's body is the body of a function, which returns its loss and gradients."""

FED = holds("input=slice|split|placeholders|same|uneven")
"""The batches come through placeholders."""

MEAN_LOSS = holds("gradients=minimize_mean|compute_mean")
"""The towers' losses are averaged, not their gradients."""

# Where the condition holds, a feature gets an option.
_RULES = """
# Variables that some towers do not reach.
+unused_head stages=!one -> stages=one
+unused_head gradients=!compute|var_list -> gradients=compute
+unused_head averaging=!none_dropped|none_zeros -> averaging=none_dropped
+unused_head after=!nothing|histograms|clip_global -> after=nothing
+unused_head train_op=accumulate -> train_op=plain
+unused_head sharing=root -> sharing=outer
+first_only_head stages=!one -> stages=one
+first_only_head gradients=!compute|var_list -> gradients=compute
+first_only_head averaging=!none_dropped|none_zeros -> averaging=none_dropped
+first_only_head after=!nothing|histograms|clip_global -> after=nothing
+first_only_head train_op=accumulate -> train_op=plain
+first_only_head sharing=root -> sharing=outer

# The towers' inputs come with the devices.
loop=zip|enumerate_zip|helper input=slice|same|dataset_each|queue_each|constant -> input=split
loop=devices device=!variable|own -> device=variable
loop=enumerate_zip|enumerate|helper|generator device=none -> device=percent
loop=zip -> device=variable
loop=zip -> name_scope=none
loop=zip sharing=reuse_i|reuse_none -> sharing=outer
loop=zip report=first -> report=last
loop=zip loss=collection|collection_text|total_loss|reuse_guard -> loss=mean_square
loop=zip model=batch_norm -> model=linear
loop=zip train_op=update_ops -> train_op=plain

# A function's body binds no names of the function around it.
loop=comprehension|helper|map sharing=flag -> sharing=outer
loop=comprehension|helper|map report=first -> report=last
loop=comprehension|helper|map|two_loops optimizer=in_loop -> optimizer=sgd
loop=comprehension|helper|map summaries=tower -> summaries=none
loop=two_loops gradients=minimize_mean|compute_mean|tower_clip|own_lists -> gradients=compute
loop=helper|comprehension|map gradients=own_lists -> gradients=compute
optimizer=in_loop gradients=minimize_mean|compute_mean|tf_gradients -> optimizer=sgd

# Several stages have one form.
stages=!one loop=two_loops|helper|comprehension|map -> loop=range
stages=!one gradients=!compute|var_list|tower_clip -> gradients=compute
stages=!one train_op=accumulate -> train_op=plain
stages=!one optimizer=in_loop -> optimizer=sgd
stages=!one model=batch_norm|embedding|rnn -> model=linear
stages=!one tower_fn=!inline -> tower_fn=inline
stages=!one sharing=template|prebuilt|root -> sharing=outer
stages=!one averaging=none_passed|none_zeros|none_dropped|not_reset -> averaging=classic
stages=!one session=monitored|supervisor|hooks -> session=with

# Under reference variables `tf.gradients` races with the update, unless all gradients are waited for.
gradients=tf_gradients after=!clip_global|finite -> after=clip_global
gradients=tf_gradients model=embedding -> model=linear

# What needs the tower's name scope.
name_scope=none|plain loss=collection|total_loss|reuse_guard -> name_scope=as_scope
name_scope=none|format loss=collection_text -> name_scope=as_scope
tower_fn=!inline loss=collection_text -> tower_fn=inline
loop=helper loss=collection|collection_text|total_loss|reuse_guard -> loss=mean_square

# Which sharing can be.
loop=helper sharing=!outer -> sharing=outer
sharing=template tower_fn=!inline -> tower_fn=inline
sharing=template|prebuilt gradients=tf_gradients -> sharing=outer
sharing=root evaluation=!none -> evaluation=none
sharing=root optimizer=momentum|adam|rmsprop|adagrad|in_loop|decay -> optimizer=sgd
sharing=root train_op=ema|accumulate -> train_op=plain
sharing=root step=get_or_create -> step=variable
sharing=root session=monitored|supervisor|hooks -> session=with
sharing=prebuilt input=dataset_each|queue_each -> sharing=outer
sharing=prebuilt|template loss=reuse_guard -> sharing=outer
sharing=template model=embedding|batch_norm -> sharing=outer
sharing=prebuilt model=batch_norm|dropout -> sharing=outer
sharing=prebuilt loss=losses_module|total_loss -> sharing=outer

# Threads would decide which tower gets which batch.
input=dataset_each|queue_each|batches report=!mean -> report=mean
input=dataset_each|queue_each|batches looking=loss|eval|output -> looking=none
input=dataset_each|queue_each|batches averaging=weighted|last_only|average_of_two -> averaging=classic
input=dataset_each|queue_each|batches summaries=!none -> summaries=none
input=dataset_each|queue_each|batches model=dropout|batch_norm -> model=linear

# A loss that the update does not wait for.
averaging=average_of_two -> towers=2
averaging=last_only report=!last -> report=last
averaging=last_only summaries=tower -> summaries=none

# Batch norm's updates; those of all towers race.
model=batch_norm loop=comprehension|helper|map|two_loops -> loop=range
loop=helper|zip train_op=update_ops -> train_op=plain
model=batch_norm -> train_op=update_ops
model=batch_norm updates=all -> updates=last
train_op=!update_ops -> updates=all
loop=comprehension|helper|map|two_loops updates=!all -> updates=all
name_scope=none|plain updates=!all -> name_scope=as_scope

# What stands for itself.
model=slim imports=compat -> imports=tf
model=lstm|rnn loss=penalty -> loss=mean_square
model=slim sharing=template -> sharing=outer
stages=!one model=lstm -> model=linear
sharing=root optimizer=own -> optimizer=sgd
gradients=minimize_mean optimizer=own -> optimizer=sgd
stages=gan evaluation=!none -> evaluation=none
input=constant evaluation=!none -> evaluation=none
evaluation=same_inputs|with_loss input=!slice|split|same -> evaluation=same_graph
evaluation=with_loss feed=!inline -> evaluation=two_values
place=module|guard repeat=twice -> repeat=once
repeat=twice -> graph=graph
repeat=twice place=main|other_file|class|star_import -> place=function
repeat=twice run_place=other_file -> run_place=same
# Event files are named by the second: two trainings in one second overwrite each other's.
repeat=twice summaries=!none -> summaries=none
place=star_import run_place=!same -> run_place=same
place=star_import count=argument -> count=constant
session=monitored|supervisor|hooks evaluation=!none -> evaluation=none
session=monitored|supervisor|hooks repeat=twice -> repeat=once
input=queue_once|queue_each session=!with -> session=with
input=queue_once|queue_each summaries=merge_all|tower -> summaries=after_run
input=constant looking=two_runs -> looking=loss
input=uneven -> towers=2
model=embedding gradients=minimize_mean|compute_mean after=!nothing|clip_global -> after=nothing
model=embedding input=queue_once|queue_each -> input=split
model=rnn|embedding loss=penalty -> loss=mean_square
model=embedding gradients=tower_clip -> gradients=compute
averaging=not_reset|last_only model=!linear -> averaging=classic
gradients=minimize_mean|compute_mean -> averaging=classic
gradients=minimize_mean after=!nothing -> after=nothing
gradients=minimize_mean train_op=accumulate -> train_op=plain
session=monitored|supervisor|hooks step=!get_or_create -> step=get_or_create
session=monitored|supervisor|hooks fetch=op_run -> fetch=list
session=monitored|supervisor|hooks looking=eval -> looking=loss
session=monitored|hooks looking=loss|two_runs|output -> looking=none
session=monitored|hooks fetch=separate -> fetch=list
session=monitored|supervisor|hooks saver=!none -> saver=none
session=monitored|hooks|supervisor summaries=!none -> summaries=none
session=monitored|supervisor|hooks train_op=accumulate -> train_op=plain
input=constant train_op=accumulate -> train_op=plain
fetch=with_step step=none -> step=get_or_create
optimizer=decay step=none -> step=get_or_create
place=module|guard run_place=other_file -> run_place=same
place=guard run_place=function -> run_place=same
place=module graph=graph|graph_cpu -> graph=default
count=argument place=module|guard -> count=constant
tower_fn=method place=!class -> tower_fn=function
feed=helper place=module|guard -> feed=inline
fetch=op_run run_place=other_file -> fetch=separate
returns=!tuple handed=!alike -> handed=alike
place=module|guard|class|closure|star_import handed=!alike -> handed=alike
run_place=other_file handed=!alike -> handed=alike
run_place=same place=!other_file handed=renamed|keywords|clash -> handed=alike
place=other_file handed=session|step -> handed=alike
session=!with handed=session|step -> handed=alike
"""


def _rules() -> list[tuple[_Condition, str, str]]:
    found = []
    for line in _RULES.strip().split("\n"):
        if line and not line.startswith("#"):
            condition, _, then = line.partition(" -> ")
            feature, _, option = then.partition("=")
            assert option in FEATURES[feature], line
            found.append((holds(condition), feature, option))
    return found


_FITTING = _rules()


def settle(choices: Choices, fits: Callable[[Choices, str], bool]) -> Choices:
    """The choices, changed where two do not fit.

    Args:
        fits: whether an idiom fits the features.
    """
    for _ in range(20):
        changed = False
        for condition, feature, option in _FITTING:
            if choices[feature] != option and condition(choices):
                choices, changed = choices.with_option(feature, option), True
        if not changed:
            kept = tuple(one for one in choices.idioms if fits(choices, one))
            return replace(choices, idioms=kept)
    raise AssertionError(f"rules go in circles: {choices}")
