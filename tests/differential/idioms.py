"""Idioms of Python and TensorFlow 1, each a few statements at certain places of a program: `idiom_tables/`.

A table has entries `[name] needs…`, each followed by `place: statements`; more than one line of statements is indented.
Places: `module` (before the functions), `begin` (where the graph begins), `pre` (before the loop), `tower_begin`,
`tower_loss` (after `loss` is bound), `tower_end` (after `grads` is), `post_loop`, `post_build`, `prerun`, `step` and
`end` (in the session; `{feed}` is what a run needs after its fetches).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.differential.fitting import BODY_IN_FUNCTION, MEAN_LOSS, holds
from tests.differential.grammar import Choices
from tests.differential.text import Lines, lines

_PLACES = (
    "module begin pre tower_begin tower_loss tower_end post_loop post_build prerun step end".split()
)
_HEAD = re.compile(r"\[(\w+)\](.*)")
_PLACE = re.compile(r"(\w+):(.*)")


@dataclass(frozen=True)
class Idiom:
    """The statements by place, and what a program must have for them: keys of `_NEEDS`."""

    needs: tuple[str, ...]
    at: dict[str, str] = field(default_factory=dict)


def _read(path: Path) -> dict[str, Idiom]:
    found: dict[str, Idiom] = {}
    idiom, place = Idiom(()), ""
    for line in path.read_text(encoding="utf-8").split("\n"):
        head, opened = _HEAD.fullmatch(line), _PLACE.fullmatch(line)
        if head:
            idiom = found[head[1]] = Idiom(tuple(head[2].split()))
            assert set(idiom.needs) <= _NEEDS.keys(), line
        elif opened:
            place = opened[1]
            assert place in _PLACES, line
            idiom.at[place] = opened[2].strip()
        else:
            assert not line.strip() or line.startswith("    "), line
            idiom.at[place] = f"{idiom.at.get(place, '')}\n{line[4:]}"
    return found


_LOOPS = ("map_fn", "while_in_tower", "cond_in_tower")
_ADDS_OPS = re.compile(
    r"\btf\.(?!trainable_v|global_variables\b|get_|RunOptions|RunMetadata)|read_value|\.value\(\)"
)


def _adds_no_ops(choices: Choices) -> bool:
    """Whether no idiom adds to the graph once it runs."""
    texts = [
        text
        for name in choices.idioms
        if name != "finalize"
        for place, text in IDIOMS[name].at.items()
        if place in ("prerun", "step", "end")
    ]
    return not any(_ADDS_OPS.search(text) for text in texts)


_NEEDS: Mapping[str, Callable[[Choices], bool]] = {
    "inline": lambda choices: not BODY_IN_FUNCTION(choices),
    "grads": lambda choices: not MEAN_LOSS(choices),
    "index": holds("loop=!zip"),
    "scope": holds("name_scope=as_scope|format"),
    "own_session": holds("session=with|plain|interactive"),
    "with_session": holds("session=with"),
    "one_stage": holds("stages=one"),
    "same_order": holds("input=!dataset_each|queue_each|batches"),
    "step_counter": holds("step=!none"),
    "no_root_reuse": holds("sharing=!outer|root loop=!two_loops"),
    "float": holds("model=!embedding"),
    "value": holds("fetch=!dict"),
    "one_placeholder": holds("input=slice|split|same|uneven"),
    "default_graph": holds("graph=default place=function|main|other_file"),
    "momentum": holds("optimizer=momentum|decay"),
    "loop_body": holds("loop=range|xrange|enumerate|enumerate_zip"),
    "summaries": holds("summaries=merge_all|tower"),
    "no_loops": lambda choices: (
        choices["model"] != "rnn" and not any(one in choices.idioms for one in _LOOPS)
    ),
    "adds_no_ops": _adds_no_ops,
}

IDIOMS: dict[str, Idiom] = {
    name: idiom
    for table in ("python", "tensorflow")
    for name, idiom in _read(Path(__file__).parent / "idiom_tables" / f"{table}.txt").items()
}


def fits(choices: Choices, name: str) -> bool:
    """Whether the idiom can stand in a program of these choices."""
    idiom = IDIOMS[name]
    if choices["session"] in ("monitored", "hooks") and "sess.run" in idiom.at.get("step", ""):
        return False  # such a session may be closed after the train op's run
    if choices["session"] in ("monitored", "hooks", "supervisor") and "prerun" in idiom.at:
        return False
    return all(_NEEDS[need](choices) for need in idiom.needs)


def at(choices: Choices, place: str, feed: str = "") -> Lines:
    """The statements of all chosen idioms at a place."""
    found: Lines = []
    for name in sorted(choices.idioms, key=lambda name: (name == "finalize", name)):
        text = IDIOMS[name].at.get(place)
        if text is not None:
            found += [line.replace("{feed}", ", " + feed if feed else "") for line in lines(text)]
    return found
