"""The special methods of Python that code of a program's own may hide behind: an operator, a comparison, a text."""

from __future__ import annotations

_ARITHMETIC = (
    "add sub mul truediv floordiv div mod pow matmul and or xor lshift rshift divmod".split()
)

VALUES = frozenset(
    [f"__{side}{name}__" for name in _ARITHMETIC for side in ("", "r", "i")]
    + [f"__{name}__" for name in "lt le gt ge eq ne hash neg pos abs invert".split()]
    + [f"__{name}__" for name in "float int index complex round trunc floor ceil fspath".split()]
    + ["__array__", "__array_ufunc__", "__array_function__", "__array_interface__"]
    + ["__array_priority__", "__tf_tensor__", "__cmp__", "__long__", "__coerce__"]
)
"""What an object is asked that is used as a number."""
TEXTS = frozenset(["__str__", "__repr__", "__format__", "__unicode__"])
"""What an object is asked that is written into a text."""
PARTS = frozenset(["__getitem__", "__missing__"])
"""What an object is asked for a part of it."""
CONTAINERS = PARTS | {"__len__", "__iter__", "__next__", "__contains__", "__reversed__"}
"""What an object is asked that is used as a list or a table."""
ALL = VALUES | TEXTS | CONTAINERS

_OF_BUILTINS = {
    "len": frozenset(["__len__"]),
    "str": TEXTS,
    "repr": TEXTS,
    "format": TEXTS,
    "bool": frozenset(["__bool__", "__nonzero__", "__len__"]),
    **dict.fromkeys(
        ("isinstance", "type", "id", "callable", "hasattr", "getattr"), frozenset[str]()
    ),
}


def asked_by(function: str) -> frozenset[str]:
    """What a function of Python or of a library may ask of an object that it is given."""
    name = function.removeprefix("builtins.")
    if name != function:
        return _OF_BUILTINS.get(name, VALUES | CONTAINERS)
    if function.startswith("tf."):
        return VALUES
    return VALUES | {"__call__"}
