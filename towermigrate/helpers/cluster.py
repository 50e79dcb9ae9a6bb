"""The cluster that TF_CONFIG names, and this process's part in it."""

import json
import os
from dataclasses import dataclass
from typing import Any, NoReturn

VARIABLE = "TF_CONFIG"

_EXPECTED = (
    '{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}, the same '
    'cluster in every process and each its own task; one worker may be a "chief", and an '
    '"evaluator" may stand beside them'
)
_ROLES = ("chief", "worker", "evaluator")


@dataclass(frozen=True)
class Cluster:
    """Who trains (chief and workers, `trainers` of them) and what this process is."""

    trainers: int
    task_type: str
    task_index: int


def cluster_from_environment() -> Cluster | None:
    """The cluster of TF_CONFIG, or None where it names no more than one training process.

    Raises:
      ValueError: TF_CONFIG is not what TensorFlow's multi-worker strategies can use, and why.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        _refuse(f"is not JSON ({error})")
    if not isinstance(config, dict) or not isinstance(config.get("cluster", {}), dict):
        _refuse("is no object with a cluster")
    jobs: dict[str, Any] = config.get("cluster", {})
    if "ps" in jobs:
        _refuse(
            "names parameter servers (ps), but towers share their variables by all-reduce and "
            "need none"
        )
    for job, addresses in jobs.items():
        if job not in _ROLES:
            _refuse(f"has a job {job!r} that is none of {', '.join(_ROLES)}")
        if not isinstance(addresses, list) or not all(map(_is_address, addresses)):
            _refuse(f'gives {job} {addresses!r} instead of a list of "host:port"')
    for job in ("chief", "evaluator"):
        if len(jobs.get(job, [])) > 1:
            _refuse(f"names {len(jobs[job])} {job}s; there is at most one")
    trainers = len(jobs.get("chief", [])) + len(jobs.get("worker", []))
    if trainers < 2:
        return None
    return Cluster(trainers, *_task(config.get("task"), jobs))


def _task(task: Any, jobs: dict[str, Any]) -> tuple[str, int]:
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        _refuse("does not say which task this process is")
    role, index = task["type"], task["index"]
    # TensorFlow lets an evaluator be no member of the cluster.
    if role not in jobs and role != "evaluator":
        _refuse(f"says this process is a {role!r}, but the cluster has {', '.join(jobs)}")
    count = len(jobs.get(role, [None]))
    if not str(index).isdecimal() or int(index) >= count:
        _refuse(f"says this process is {role} {index}, but {role}s 0 to {count - 1} are there")
    return role, int(index)


def _is_address(address: Any) -> bool:
    return isinstance(address, str) and address.rpartition(":")[2].isdecimal()


def _refuse(why: str) -> NoReturn:
    raise ValueError(
        f"{VARIABLE} {why}: {os.environ[VARIABLE]}. Expected {_EXPECTED}; unset it to train in "
        "this process alone."
    )
