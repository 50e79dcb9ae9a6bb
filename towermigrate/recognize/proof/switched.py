"""What switches TensorFlow 2 off in the process of a program: a step would be no step there."""

from __future__ import annotations

from towermigrate.recognize.proof.collected import files_beside
from towermigrate.recognize.proof.towers import TowerProof
from towermigrate.recognize.switched import switches_in


def check_switches(proof: TowerProof) -> None:
    """Report every call that switches TensorFlow 2's behaviour off in what may run in a process with the program."""
    files = files_beside(proof.codes, proof.code.path) or proof.codes.closure(proof.code.path)
    for code in files:
        for node in switches_in(code.tree):
            proof.always(
                "TM236", code, node,
                f"`{code.said(node)}` switches off what loop style is made of",
            )  # fmt: skip
