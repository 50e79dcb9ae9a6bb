"""Run an original tower program and its rewritten form side by side, and compare the training.

    report = run_verify(VerifyOptions(Path("src"), devices=("cpu:1", "cpu:4")))
    print_report(report, Console())
    sys.exit(report.exit_code)

In a test, `assert_equivalent("src")` says it in one line.

This process never imports TensorFlow: both programs run in child processes of their own.
"""

from towermigrate.verify.asserting import NotEquivalent, NotVerified, assert_equivalent
from towermigrate.verify.devices import DeviceSpec, looks_like_devices, parse_devices
from towermigrate.verify.options import VerifyOptions, check_options
from towermigrate.verify.report import DeviceReport, Reference, VerifyReport, print_report
from towermigrate.verify.run import run_verify

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
