"""An interpreter of Python source on symbolic values; what libraries mean is asked of a `Domain`."""

from towermigrate.flow.domain import Call, Domain
from towermigrate.flow.frames import Limits
from towermigrate.flow.interpreter import Interpreter

__all__ = ["Call", "Domain", "Interpreter", "Limits"]
