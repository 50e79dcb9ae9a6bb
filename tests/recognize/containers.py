"""Random programs on lists and dicts, in code that stays and in code that moves, with draws where they may be missed.

`random.random()` stands where the proof must come: whoever takes a list for empty that is not, or a number for another,
does not look there. `p` and `q` are arguments that nobody knows.
"""

from __future__ import annotations

import random

_KEYS = ("'x'", "'y'")


class Writer:
    """Writes one program; each seed is another."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.budget = 16

    def program(self) -> str:
        out = self.lines.append
        out("import random")
        self.lines += ["G = [1]", "H = {'x': 3}"]
        self.lines += ["def first(l, k=3):", "    l.append(k)", "    return l"]
        self.lines += ["def either(l, o):", "    return l if len(o) > 1 else o"]
        out("def program(p, q):")
        self.names("o", ("[1]", "[]", "{'x': [2]}", "{}", "1", "2"), "    ")
        for _ in range(self.random.randint(0, 3)):
            self.statement("    ", 0, stays=True)
        out("    def moved(p, q):")
        outer = ("list(oa)", "[ob, 4][1:]", "dict(oc)", "{'y': [5]}", "on", "om + 1")
        inner = ("[3]", "list(G)", "{'x': [6]}", "dict(H)", "3", "len(str(p))")
        chosen = tuple(map(self.one, outer, inner))
        self.names("", chosen, "        ")
        self.budget = 16
        for _ in range(self.random.randint(3, 7)):
            self.statement("        ", 0, stays=False)
        out("    return moved(p, q)")
        return "\n".join(self.lines) + "\n"

    def names(self, prefix: str, values: tuple[str, ...], indent: str) -> None:
        """Bind two lists, two dicts and two numbers, which what follows is about."""
        self.a, self.b, self.c, self.d, self.n, self.m = (prefix + name for name in "abcdnm")
        for name, value in zip("abcdnm", values, strict=True):
            self.lines.append(f"{indent}{prefix}{name} = {value}")

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self) -> str:
        return self.one(
            "0", "1", "2", "n", "m", "n + 1", "m - n", f"len({self.list(0)})", "-n", "n * 2"
        )

    def list(self, depth: int = 2) -> str:
        names = self.one(self.a, self.b)
        if depth <= 0 or self.random.random() < 0.3:
            return names
        one, other = self.list(depth - 1), self.list(depth - 1)
        entry, table = self.entry(depth - 1), self.dict(depth - 1)
        return self.one(
            f"[{entry}]", "[]", f"[{entry}, {self.number()}]", f"({one} + {other})", f"({one} if p > 1 else {other})",
            f"list({one})", f"{one}[:1]", f"[*{one}, {entry}]", f"first({one})", f"either({one}, {other})", f"[k for k in {one}]",
            f"[k for k in {one} if k != 1]", f"{table}['x']", f"list({table}.values())", f"list({table})", f"({one} or {other})",
            f"list(reversed({one}))", f"[k for k, _ in {table}.items()]", f"[j for j, _ in enumerate({one})]", f"({one} * 2)",
            f"[k for k, _ in zip({one}, {other})]", f"(lambda v=2: [v, {entry}])()", f"{table}.get('y', {one})", f"[{one}, {other}][0]",
        )  # fmt: skip

    def dict(self, depth: int = 2) -> str:
        if depth <= 0 or self.random.random() < 0.4:
            return self.one(self.c, self.d)
        one, entry = self.dict(depth - 1), self.entry(depth - 1)
        return self.one(
            f"{{'x': {entry}}}", f"{{'x': {self.list(0)}, 'y': {entry}}}", f"dict({one})", f"dict(x={entry})", f"{{**{one}, 'y': {entry}}}",
            f"({one} if q else {self.one(self.c, self.d)})", f"{one}.copy()", f"{{k: {entry} for k in ('x', 'y')}}", f"dict(zip(('x', 'y'), {self.list(0)}))",
            f"{{k: {entry} for k in (1, 0)}}", f"dict([('x', {entry})])",
        )  # fmt: skip

    def entry(self, depth: int = 1) -> str:
        return self.one(self.number(), self.number(), self.list(depth), f"{self.list(0)}[0]", f"{self.dict(0)}['x']")  # fmt: skip

    def test(self) -> str:
        one, table, n, m = self.list(1), self.dict(1), self.n, self.m
        return self.one(
            "p > 1", "q", one, table, f"len({one}) == {self.one('0', '1', '2')}", f"{one}[0] == {self.number()}", f"{table}['x'] == {self.number()}",
            f"{n} == 1", f"{m} != 2", f"1 < {n} < 3", f"3 > {n} > 1", f"'x' in {table}", f"not {one}", f"{one} and {n} == 1", f"len({table}) > 1", f"{n} in (1, 2)",
            f"{m} not in [1, 2]", f"{one} is not None", f"isinstance({self.entry()}, int)", f"p > 1 or {n} == 2", f"{table}.get('y') is None",
            f"min({self.number()}, 2) == 1", f"sum([1, {self.number()}]) == 2", f"'x{{}}'.format({self.number()}) == 'x1'",
        )  # fmt: skip

    def statement(self, indent: str, depth: int, stays: bool) -> None:
        self.budget -= 1
        out = self.lines.append
        a, b = self.one(self.a, self.b), self.list()
        n, m = self.n, self.m
        c, entry, key = self.one(self.c, self.d), self.entry(), self.one(*_KEYS)
        pick = self.random.random() if self.budget > 0 and depth < 3 else self.random.random() * 0.6
        if pick < 0.06:
            out(f"{indent}random.random()")
        elif pick < 0.45:
            out(indent + self.one(
                f"{a}.append({entry})", f"{a}.extend({b})", f"{a}.insert(0, {entry})", f"{a} += {b}", f"{c}[{key}] = {entry}", f"{c}[{key}] = {b}",
                f"{a}[0] = {entry}", f"{a}[:1] = {b}", f"{c}.update({self.dict()})", f"{c}.update(y={entry})", f"{c}['x'].append({entry})",
                f"{c}.setdefault({key}, {entry})", f"{a}.pop()", f"{a}.reverse()", f"{a}.clear()", f"first({a})", f"either({self.a}, {self.b}).append({entry})",
                f"{a}.remove(1)", f"{c}.pop('x', None)", f"{a}.sort(key=str)",
            ))  # fmt: skip
        elif pick < 0.6:
            out(indent + self.one(
                f"{a} = {b}", f"{a} = {b}", f"{c} = {self.dict()}", f"{self.one(self.n, self.m)} = {self.number()}", f"{n}, {m} = {self.number()}, {n}",
                f"{a}, {n} = {b}, 1", f"{n}, *{a} = {b}", f"[{n}] = {b}", f"{self.one(self.n, self.m)} += 1", f"{m} = {entry}",
            ))  # fmt: skip
        elif pick < 0.76:
            out(f"{indent}if {self.test()}:")
            self.block(indent, depth, stays)
            if self.random.random() < 0.4:
                out(f"{indent}else:")
                self.block(indent, depth, stays)
        elif pick < 0.9 or not stays:
            over = self.one(b, b, f"enumerate({b})", self.dict(), f"{self.dict()}.items()", f"range({n} % 4)", "(1, 2)", f"zip({b}, {b})")  # fmt: skip
            out(f"{indent}for {self.one('k', 'k', n, m)} in {over}:")
            self.block(indent, depth, stays)
        elif pick < 0.94:
            out(f"{indent}while len({a}) < {self.one('2', '3')}:")
            self.block(indent, depth, stays)
            out(f"{indent}    {a}.append(7)")
        elif pick < 0.97:
            out(f"{indent}try:")
            self.block(indent, depth, stays)
            out(f"{indent}except Exception:")
            self.block(indent, depth, stays)
        else:
            out(indent + self.one(f"del {a}[:1]", f"(lambda l: l.append(5))({a})", f"list(map({a}.append, [1]))", f"add = {a}.append; add(2)", f"({n} := 4)", f"(lambda l: l.clear())({c})"))  # fmt: skip

    def block(self, indent: str, depth: int, stays: bool) -> None:
        for _ in range(self.random.randint(1, 2)):
            if self.random.random() < 0.5:
                self.lines.append(f"{indent}    random.random()")
            else:
                self.statement(indent + "    ", depth + 1, stays)


def program(seed: int) -> str:
    return Writer(seed).program()
