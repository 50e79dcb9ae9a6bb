"""Draw programs and compare them: `python -m tests.helpers.differential --seeds 0:2000 --log FILE`.

Each outcome is a line of JSON; once more goes on where it ended. `--show SEED` prints a program and what became of it.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.differential", description=__doc__
    )
    parser.add_argument("--seeds", default="0:100", help="from and to, which is not in it")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--show", type=int, action="append", default=[], help="one seed")
    asked = parser.parse_args()

    import tensorflow as tf

    import towermigrate.helpers  # noqa: F401  (chooses Keras 2 for TF1 layers)

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
    )
    for name in ("tensorflow", "towermigrate", "absl"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from tests.helpers.differential.compare import Outcome, outcome
    from tests.helpers.differential.program import drawn

    for seed in asked.show:
        print(drawn(seed))
        print(outcome(seed))
    if asked.show:
        return 0
    first, _, last = asked.seeds.partition(":")
    done: list[Outcome] = []
    if asked.log is not None and asked.log.exists():
        done = [Outcome(**json.loads(line)) for line in asked.log.read_text().splitlines()]
    known = {each.seed for each in done}
    for seed in range(int(first), int(last)):
        if seed in known:
            continue
        done.append(outcome(seed))
        if asked.log is not None:
            with asked.log.open("a") as log:
                log.write(json.dumps(asdict(done[-1])) + "\n")
        made = done[-1]
        if made.kind in ("wrong", "crash") or (made.kind == "refused" and not made.mistake):
            print(made.kind, made, flush=True)
        if seed % 50 == 49:  # what was traced is not given back
            tf.keras.backend.clear_session()
    counts = collections.Counter((each.kind, bool(each.mistake)) for each in done)
    for (kind, mistaken), count in sorted(counts.items()):
        print(f"{count:6} {kind}{' (with a mistake)' if mistaken else ''}")
    return 1 if any(kind in ("wrong", "crash") for kind, _ in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
