"""Run an original tower program and its rewritten form side by side, and compare the training.

    report = run_verify(VerifyOptions(Path("src"), devices=("cpu:1", "cpu:4")))
    print_report(report, Console())
    sys.exit(report.exit_code)

In a test, `assert_equivalent("src")` says it in one line.

This process never imports TensorFlow: both programs run in child processes of their own.

Names are loaded when they are asked for: the children import parts of this package too, and need none of these.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towermigrate.verify.asserting import NotEquivalent, NotVerified, assert_equivalent
    from towermigrate.verify.devices import DeviceSpec, looks_like_devices, parse_devices
    from towermigrate.verify.options import VerifyOptions, check_options
    from towermigrate.verify.report import DeviceReport, Reference, VerifyReport, print_report
    from towermigrate.verify.run import run_verify

_MODULES = {
    "NotEquivalent": "asserting",
    "NotVerified": "asserting",
    "assert_equivalent": "asserting",
    "DeviceSpec": "devices",
    "looks_like_devices": "devices",
    "parse_devices": "devices",
    "VerifyOptions": "options",
    "check_options": "options",
    "DeviceReport": "report",
    "Reference": "report",
    "VerifyReport": "report",
    "print_report": "report",
    "run_verify": "run",
}

__all__ = [
    "DeviceReport",
    "DeviceSpec",
    "NotEquivalent",
    "NotVerified",
    "Reference",
    "VerifyOptions",
    "VerifyReport",
    "assert_equivalent",
    "check_options",
    "looks_like_devices",
    "parse_devices",
    "print_report",
    "run_verify",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
