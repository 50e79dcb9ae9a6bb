"""`gpu:`: what programs are given there, as far as that shows without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from towermigrate.verify import VerifyOptions, launch
from towermigrate.verify.children import ChildFailed, Ended
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.launch import Launcher
from towermigrate.verify.probe.recording import TraceWriter


def _started(
    monkeypatch: pytest.MonkeyPatch,
    scratch: Path,
    devices: str,
    refused: tuple[str, ...] = (),
    fails: str = "",
) -> tuple[Mapping[str, str], Sequence[Path], list[str]]:
    """The environment and the folders that a program on these devices gets, and what is told of those it was kept from."""
    found: list[Any] = []

    def child(
        command: list[str],
        tree: Path,
        log: Path,
        environment: Mapping[str, str],
        *rest: Any,
        folders: Sequence[Path],
        **more: Any,
    ) -> Ended:
        TraceWriter(str(tree / "trace")).finish("program")
        found.extend((environment, folders))
        if fails:
            problem = ChildFailed(fails)
            problem.ended = Ended(refused=refused)
            log.write_text("", encoding="utf-8")
            raise problem
        return Ended(refused=refused)

    monkeypatch.setattr(launch, "run_child", child)
    launcher = Launcher(VerifyOptions(scratch), scratch)
    spec = parse_devices(devices)
    launcher.run(["python"], scratch, scratch, {}, spec, "The original")
    return found[0], found[1], list(launcher.kept_out)


def test_programs_on_gpus_round_alike_and_leave_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    monkeypatch.delenv("TF_CUDNN_DETERMINISTIC", raising=False)
    given, folders, _ = _started(monkeypatch, tmp_path, "gpu:2")
    assert given["TF_CUDNN_DETERMINISTIC"] == "1"
    assert given["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert "NVIDIA_TF32_OVERRIDE" not in given, "the user's own setting stays"
    cache = Path(given["CUDA_CACHE_PATH"])
    assert cache.is_relative_to(tmp_path) and cache.is_dir() and cache in folders


def test_programs_elsewhere_are_not_given_what_is_for_gpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, _, _ = _started(monkeypatch, tmp_path, "cpu:2")
    assert not [name for name in given if "CUDNN" in name or "TF32" in name or "CACHE" in name]


def test_names_of_devices_that_the_driver_makes_are_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = ("/dev/char/195:0", str(tmp_path.parent / "log.txt"))
    _, _, told = _started(monkeypatch, tmp_path, "gpu:2", wanted)
    assert told == [wanted[1]]


def test_a_program_that_fails_did_not_fail_of_names_that_the_driver_makes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ChildFailed) as found:
        _started(monkeypatch, tmp_path, "gpu:2", ("/dev/char/195:0",), "The original failed: NaN.")
    assert str(found.value) == "The original failed: NaN."
    users = str(tmp_path.parent / "log.txt")
    with pytest.raises(ChildFailed, match="kept from changing .*log.txt: outside") as found:
        refused = ("/dev/char/195:0", users)
        _started(monkeypatch, tmp_path, "gpu:2", refused, "The original failed: NaN.")
    assert "/dev/char" not in str(found.value)
