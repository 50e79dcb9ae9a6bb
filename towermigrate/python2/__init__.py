"""The pre-pass for files that only Python 2 parses: the same program in Python 3, or a reason why not.

`syntax` lets the fixers of fissix (a maintained lib2to3) change what Python 3 cannot parse. `names`, `lists` and
`division` then change what would parse and mean something else. `remarks` names what only a person can decide,
`keywords` renames what became a keyword. `unbound` says what Python 2 alone has in files that both parse, and
`together` brings over those of them that ran with a file of Python 2.
"""

from towermigrate.python2.port import Ported, Unported, looks_like_python2, port
from towermigrate.python2.together import Together, in_python3, ported_together
from towermigrate.python2.unbound import may_be_python2, python2_names

__all__ = [
    "Ported", "Together", "Unported", "in_python3", "looks_like_python2", "may_be_python2", "port", "ported_together",
    "python2_names",
]  # fmt: skip
