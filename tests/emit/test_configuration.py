"""What a session was configured with is told where loop style has no session."""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.loop_programs import Change, program
from towermigrate.rewrite import rewrite_tree

OPEN = "    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:\n"
USED = "    with tf.Session(config=config) as sess:\n"


def told(*changes: Change) -> Sequence[str]:
    (result,) = rewrite_tree(program(*changes)).programs
    assert result.style == "loop"
    return [each.message for each in result.findings if each.rule == "TM315"]


def test_placement_is_no_loss() -> None:
    assert told() == []


def test_options_of_gpus() -> None:
    options = "tf.GPUOptions(visible_device_list='2,3')"
    made = f"    config = tf.ConfigProto(gpu_options={options}, allow_soft_placement=True)\n"
    assert told((OPEN, made + USED)) == ["`visible_device_list='2,3'` of the session is gone"]


def test_options_that_are_set() -> None:
    made = "    config = tf.ConfigProto(allow_soft_placement=True)\n"
    grown = "    config.gpu_options.allow_growth = True\n"
    said = ["`gpu_options.allow_growth = True` of the session is gone"]
    assert told((OPEN, made + grown + USED)) == said
