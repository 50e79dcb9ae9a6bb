"""The rows of the conformance table: every helper, used as a program uses it, with exact numbers.

Tower i is fed numbers made of i + 1, so that no tower's part looks like another's, and results are
small dyadic fractions: float32 holds them exactly, whatever the order of summation.
"""

from tests.helpers.conformance_rows import (
    gan,
    gradients,
    inputs,
    losses,
    optimizers,
    results,
    session,
    variables,
)

CASES = [
    *inputs.ROWS,
    *results.ROWS,
    *gradients.ROWS,
    *optimizers.ROWS,
    *losses.ROWS,
    *gan.ROWS,
    *variables.ROWS,
    *session.ROWS,
]
