"""Every block of the helpers' page runs, in the order of the page, and gives what it says."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import numpy as np

import towermigrate.helpers as tm

PAGE = Path(tm.__file__).parent / "README.md"
ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_block_gives_what_it_says() -> None:
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 50
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_every_link_of_the_page_leads_to_a_heading() -> None:
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    }
    assert headings == set(re.findall(r"\]\(#(.*?)\)", TEXT))


def test_the_example_of_the_project_page_trains() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [example] = [b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "strategy(" in b]
    model = runpy.run_path(str(ROOT / "fixtures/transformer_buckets/after/mirror.py"))
    names = {name: model[name] for name in ("tf", "build_model", "padded_cross_entropy")}
    exec(example, names)
    tokens = np.tile(np.arange(1, 9, dtype=np.int64), (8, 1))
    batch = tm.shard_batch(tokens, tokens[:, ::-1])
    before, after = (float(names["train_step"](*batch)) for _ in range(2))
    assert after < before
