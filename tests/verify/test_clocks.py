"""Files that are named after the time: one name in each run, and what stands in them is compared."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.verify.test_own_names import PROGRAM
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.probe.clocks import named_by_clock

NOW = 1795807210.4388  # of no run: two processes must name the tests alike
HERE = datetime.fromtimestamp(NOW)
GREENWICH = datetime.utcfromtimestamp(NOW)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"runs/{HERE:%Y%m%d-%H%M%S}/train.log", "runs/<clock>/train.log"),
        (f"runs/{GREENWICH:%Y%m%d-%H%M%S}/train.log", "runs/<clock>/train.log"),
        (f"runs/{HERE:%Y%m%d%H%M}/model.ckpt-1000.index", "runs/<clock>/model.ckpt-1000.index"),
        (f"{HERE:%Y-%m-%d_%H-%M-%S}.csv", "<clock>.csv"),
        (f"{HERE}".replace(" ", "_"), "<clock>"),
        (f"log_{HERE:%m%d_%H%M}.txt", "log_<clock>.txt"),
        (f"log_{HERE:%H%M%S}.txt", "log_<clock>.txt"),
        (f"{HERE:%b%d_%H-%M-%S}_box/x", f"{HERE:%b}<clock>_box/x"),
        (f"{HERE.month}-{HERE.day}-{HERE.hour}-{HERE.minute}/x", "<clock>/x"),
        (f"{int(NOW)}/checkpoint", "<clock>/checkpoint"),
        (f"{NOW:.4f}/checkpoint", "<clock>/checkpoint"),
        (f"{HERE:%Y%m%d}/checkpoint", "<clock>/checkpoint"),
        (f"{int(NOW) - 90000}/checkpoint", f"{int(NOW) - 90000}/checkpoint"),
        ("model.ckpt-8.index", "model.ckpt-8.index"),
        ("weights-100-2000.npy", "weights-100-2000.npy"),
        ("data/2015-03-04.csv", "data/2015-03-04.csv"),
        (f"events.out.tfevents.{int(NOW)}.box", f"events.out.tfevents.{int(NOW)}.box"),
    ],
)
def test_a_name_is_without_the_time_of_the_run(path: str, expected: str) -> None:
    plain, parts = named_by_clock([path], NOW - 5, NOW + 5)

    assert plain == {path: expected}
    assert bool(parts) == (path != expected)


def test_two_folders_of_one_run_stay_two() -> None:
    files = [f"runs/{int(NOW) + more}/{name}" for more in (0, 2) for name in ("a", "b")]
    plain, _ = named_by_clock(files, NOW - 5, NOW + 5)

    assert list(plain.values()) == [
        "runs/<clock>/a", "runs/<clock>/b", "runs/<clock 2>/a", "runs/<clock 2>/b",
    ]  # fmt: skip


DATED = (
    PROGRAM.replace("import numpy", "import os\nimport time\n\nimport numpy")
    .replace("rng = ", "folder = os.path.join('runs', time.strftime('%Y%m%d-%H%M%S'))\nos.makedirs(folder)\nrng = ")
    .replace(
        "        sess.run(train_op, {x: rng.rand(4, 3), y: rng.rand(4, 1)})\n",
        "        sess.run(train_op, {x: rng.rand(4, 3), y: rng.rand(4, 1)})\n"
        "    with open(os.path.join(folder, 'train.log'), 'w') as log:\n        log.write('done 1')\n"
        "    print('logs are in', folder)\n"
        "    tf.train.Saver().save(sess, os.path.join(folder, 'model'))\n",
    )
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (("", ""), None),
        (("done 1", "done 2"), "runs/<clock>/train.log"),
        (("'train.log'", "'other.log'"), "runs/<clock>/other.log"),
        (("os.path.join(folder, 'model')", "os.path.join('runs', 'model')"), "runs/<clock>/checkpoint"),
    ],
)  # fmt: skip
def test_what_stands_in_them_is_compared(
    fault: tuple[str, str], name: str | None, tmp_path: Path
) -> None:
    from towermigrate.rewrite import rewrite_tree

    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    (before / "program.py").write_text(DATED, encoding="utf-8")
    made = rewrite_tree({"program.py": DATED}).texts["program.py"]
    assert fault[0] in made
    (after / "program.py").write_text(made.replace(*fault), encoding="utf-8")
    report = run_verify(VerifyOptions(before, rewritten=after, devices=("cpu:2",), steps=1000))

    said = json.dumps(report.to_json())
    assert (report.error, report.exit_code) == (None, 0 if name is None else 1), said
    assert name is None or name in said
    assert "the files that the program writes" not in said
