"""Placeholders in a list, one for each tower, and the dicts that feed each tower its own value.

`feed_dict=dict([*zip(X, xs), *zip(Y, ys), (rate, 0.1)])` feeds the placeholders of the lists `X` and `Y` what the lists `xs`
and `ys` hold.
"""

from __future__ import annotations

import libcst as cst

from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import code, elements, reads, walk


def placeholder_of_each(file: SourceFile, value: cst.CSTNode, count: str) -> cst.Call | None:
    """The call in `[tf.placeholder(…) for _ in range(count)]`, all of whose placeholders are alike."""
    if not isinstance(value, cst.ListComp) or not isinstance(value.elt, cst.Call) or not count:
        return None
    each, made = value.for_in, value.elt
    if each.ifs or each.inner_for_in is not None or each.asynchronous is not None:
        return None
    if code(each.iter) not in (f"range({count})", f"xrange({count})") or not isinstance(
        each.target, cst.Name
    ):
        return None
    if file.tf(made.func) != "tf.placeholder":
        return None
    named = [arg for arg in made.args if arg.keyword is not None and arg.keyword.value == "name"]
    rest = [arg for arg in made.args if arg not in named]
    if len(rest) > 2 or any(each.target.value in reads(arg) for arg in rest):
        return None
    return made


def fed_of(feed: cst.CSTNode) -> list[tuple[cst.BaseExpression, cst.BaseExpression, bool]] | None:
    """What a dict of feeds feeds: each key with its value, and whether both are lists; None where it is of no known form."""
    if isinstance(feed, cst.Dict):
        found: list[tuple[cst.BaseExpression, cst.BaseExpression, bool]] = []
        for item in feed.elements:
            if not isinstance(item, cst.DictElement):
                return None
            found.append((item.key, item.value, False))
        return found
    if not isinstance(feed, cst.Call) or code(feed.func) != "dict" or len(feed.args) != 1:
        return None
    (given,) = feed.args
    if given.keyword is not None or given.star:
        return None
    lists = _zipped(given.value)
    if lists is not None:
        return [(*lists, True)]
    if not isinstance(given.value, cst.List):
        return None
    found = []
    for element in given.value.elements:
        pair = elements(element.value)
        lists = _zipped(element.value)
        if isinstance(element, cst.StarredElement) and lists is not None:
            found.append((*lists, True))
        elif isinstance(element, cst.Element) and pair is not None and len(pair) == 2:
            found.append((pair[0], pair[1], False))
        else:
            return None
    return found


def _zipped(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The two lists of `zip(X, xs)`, by name, or the second by a display."""
    if not isinstance(node, cst.Call) or code(node.func) != "zip" or len(node.args) != 2:
        return None
    values = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if len(values) != 2 or not isinstance(values[0], cst.Name):
        return None
    if not isinstance(values[1], cst.Name | cst.List):
        return None
    return values[0], values[1]


def used_otherwise(
    scope: cst.CSTNode, loop: cst.For, index: str | None, name: str
) -> cst.Name | None:
    """Where a list of placeholders is read for something else than a tower's own, or than to feed it.

    Args:
        scope: the function, or the module, that makes the list.
        loop: the tower loop.
        index: the name of the tower's number.
        name: that of the list.
    """
    allowed: set[int] = set()
    for node in walk(loop):
        if isinstance(node, cst.Subscript) and code(node) == f"{name}[{index}]":
            allowed.add(id(node.value))
    for node in walk(scope):
        if isinstance(node, cst.Call):
            lists = _zipped(node)
            if lists is not None:
                allowed.add(id(lists[0]))
    bound = 0
    for node in walk(scope):
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Name):
            if node.target.value == name and not bound:
                bound = 1
                allowed.add(id(node.target))
    found = (n for n in walk(scope) if isinstance(n, cst.Name) and n.value == name)
    return next((each for each in found if id(each) not in allowed), None)
