"""The symbol pass: TensorFlow 1 names become names that TensorFlow 2 has, with the TensorFlow 1 behaviour."""

import towermigrate.findings  # noqa: F401  (first: it merges the rules of this package)
from towermigrate.symbols.apply import SymbolResult, rewrite_symbols

__all__ = ["SymbolResult", "rewrite_symbols"]
