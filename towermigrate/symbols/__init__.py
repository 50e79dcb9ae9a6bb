"""The symbol pass: TensorFlow 1 names become names that TensorFlow 2 has, with the TensorFlow 1 behaviour."""

from towermigrate.symbols.apply import rewrite_symbols
from towermigrate.symbols.named import with_own_names
from towermigrate.symbols.work import SymbolResult

__all__ = ["SymbolResult", "rewrite_symbols", "with_own_names"]
