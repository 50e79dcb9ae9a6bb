"""Random programs: assignments, branches, loops, lists, tables, functions, closures, classes and what they share.

Each name has a kind, so that most programs run to their end: `a` and `n` are numbers, `b` and `p` lists, `c` and `q`
tables, `d` and `o` objects, `e` anything.
"""

from __future__ import annotations

import random

_NAMES = {"int": "an", "list": "bp", "dict": "cq", "object": "do", "any": "e"}
_KINDS = tuple(_NAMES)


class Writer:
    """Writes one program; each seed is another."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.functions: list[tuple[str, str]] = []
        self.loops = 0
        self.budget = 50

    def program(self) -> str:
        self.kind()
        for kind, names in _NAMES.items():
            for name in names:
                self.lines.append(f"{name} = {self.start(kind)}")
        for _ in range(self.random.randint(1, 3)):
            self.function("", 0)
        for _ in range(self.random.randint(6, 14)):
            self.statement("", 0, in_loop=False, returns=None)
        self.lines += [f"show({name})" for names in _NAMES.values() for name in names]
        self.lines += ["show(d.x)", "show(o.y)", "show(d is o)", "show(b is p)"]
        return "\n".join(self.lines) + "\n"

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def start(self, kind: str) -> str:
        return {
            "int": "1",
            "list": "[1, 2]",
            "dict": "{'x': 1}",
            "object": "K(2)",
            "any": "None",
        }[kind]

    def name(self, kind: str) -> str:
        return self.random.choice(_NAMES[kind])

    def test(self) -> str:
        n = self.name("int")
        return self.one(
            "flip()", "flip()", f"{n} == 1", f"{n} > 2", "e is None", "not flip()", self.name("list"),
            f"{self.name('object')} is {self.name('object')}", "'x' in c", f"{n} and flip()", "1 < a < 5",
            "isinstance(d, K)", "e",
        )  # fmt: skip

    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        if depth <= 0 or self.random.random() < 0.25:
            plain = {
                "int": self.one("0", "1", "2", "7"),
                "any": self.one("None", "'t'", "True", "1.0"),
            }
            return self.one(self.name(kind), plain.get(kind, self.name(kind)))
        deep = depth - 1
        i, j = self.value("int", deep), self.value("int", deep)
        b, c, d = self.value("list", deep), self.value("dict", deep), self.value("object", deep)
        e = self.value("any", deep)
        calls = [
            f"{name}({self.value(takes, deep)})"
            for name, takes in self.functions
            if name.startswith(kind)
        ]
        if calls and self.random.random() < 0.4:
            return self.random.choice(calls)
        if kind == "int":
            return self.one(
                f"{i} + {j}", f"{i} - 1", f"len({b})", f"({i} if {self.test()} else {j})", f"sum([{i}, {j}])",
                f"max({i}, {j})", f"len({c})", "-a", f"(lambda v={i}: v)()", f"({i} or {j})", f"int({i})",
                f"sum([k for k in [{i}, 2] if k > 1])", f"({i}) * 2 % 11", f"len(list(zip({b}, {b})))",
            )  # fmt: skip
        if kind == "list":
            return self.one(
                f"[{i}, {e}]", f"[{i}]", "[]", f"({b} + [{i}])", f"[k for k in {b}]", f"[{i} for k in range({self.one('0', '2', 'a % 3')})]",
                f"list({b})", f"[[{i}], {b}]", f"{b}[:1]", f"[*{b}, {i}]", f"({b} if {self.test()} else {b})", f"list({c}.values())",
                f"sorted([{i}, {j}])", f"([{i}] * 2)", f"(lambda v: [v, {i}])({b})", f"list(reversed({b}))", f"[(k, {i}) for k in {b}]",
                f"list(map(lambda v: [v, {i}], {b}))", f"[k for k in list({b}) if {self.test()}]",
                f"[{self.name('list')}.append({i}) for k in list({b})]", f"[{d}.m(k) for k in range(2) if {self.test()}]", f"[opaque({b}) for k in range({self.one('2', 'a')})]", f"list(enumerate({b}))", f"{b}.copy()", "[[] for k in range(2)]",
            )  # fmt: skip
        if kind == "dict":
            return self.one(
                f"{{'x': {i}}}", f"{{'x': {b}, 'y': {e}}}", f"dict({c})", f"dict(x={i}, z={b})", f"{{k: {i} for k in ('x', 'w')}}",
                f"({c} if {self.test()} else {c})", f"{c}.copy()", f"{{**{c}, 'y': {i}}}", f"dict(zip(('x', 'u'), [{i}, {e}]))",
            )  # fmt: skip
        if kind == "object":
            return self.one(
                f"K({i})", f"K({b})", f"L({i})", f"({d} if {self.test()} else {d})", f"{d}.me()", f"[{d}, {d}][0]",
            )  # fmt: skip
        return self.one(
            i, b, c, d, f"({i}, {b})", f"{c}['x']", f"{c}.get('y', {i})", f"{d}.x", f"{d}.y", f"{d}.m({i})", f"{d}.both", "K.shared",
            f"({i}, {e})[{self.one('0', '1', '-1')}]", f"opaque({self.one(i, b, d)})", f"f'{{{self.name(chr(105) + chr(110) + chr(116))}}}-'", f"'{{}}'.format({i})",
            f"{c}.setdefault('v', {b})", f"(next(iter({b}), {i}))", "('ab' + 'c')[1]", f"getattr({d}, 'x')",
        )  # fmt: skip

    def block(self, indent: str, depth: int, in_loop: bool, returns: str | None) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent + "    ", depth + 1, in_loop, returns)

    def statement(self, indent: str, depth: int, in_loop: bool, returns: str | None) -> None:
        self.budget -= 1
        out = self.lines.append
        kind = self.random.choice(_KINDS)
        b, c, d = self.name("list"), self.name("dict"), self.name("object")
        pick = self.random.random()
        if self.budget < 0 or depth > 3:
            pick = min(pick, 0.5)
        if pick < 0.17:
            out(f"{indent}{self.name(kind)} = {self.value(kind)}")
        elif pick < 0.23:
            out(f"{indent}show({self.name(kind)})")
        elif pick < 0.28:
            out(f"{indent}{b}.append({self.value(kind)})")
        elif pick < 0.32:
            out(f"{indent}{c}['{self.one('x', 'y', 'z')}'] = {self.value(kind)}")
        elif pick < 0.35:
            out(f"{indent}{self.name('int')} += {self.value('int', 1)}")
            out(f"{indent}{b} += [{self.value(kind, 1)}]")
        elif pick < 0.38:
            out(f"{indent}{b}, {self.name('int')} = {self.value('list')}, {self.value('int')}")
        elif pick < 0.42:
            out(f"{indent}{d}.{self.one('x', 'y')} = {self.value(kind)}")
        elif pick < 0.44:
            out(f"{indent}opaque({self.one(b, c, d)})")
        elif pick < 0.47:
            out(
                f"{indent}{self.one(f'{c}.update(x={self.value(kind)})', f'{b}.extend({self.value(chr(108) + chr(105) + chr(115) + chr(116))})', f'{b}.insert(0, a)', f'{b}.reverse()', f'K.shared = {self.value(kind)}', f'e = {b}', f'setattr({d}, {chr(39)}y{chr(39)}, a)')}"
            )
        elif pick <= 0.5:
            if in_loop and self.random.random() < 0.6:
                out(f"{indent}{self.one('break', 'continue')}")
            elif returns:
                out(f"{indent}return {self.value(returns)}")
            else:
                out(f"{indent}show({self.value(kind)})")
        elif pick < 0.66:
            out(f"{indent}if {self.test()}:")
            self.block(indent, depth, in_loop, returns)
            if self.random.random() < 0.6:
                out(f"{indent}else:")
                self.block(indent, depth, in_loop, returns)
        elif pick < 0.77:
            over = self.one(
                "range(2)",
                "range(3 if flip() else 1)",
                f"list({b})",
                f"[{self.value('int')}, 4]",
                f"list({c}.items())",
                "range(0)",
            )
            self.loops += 1
            out(f"{indent}for {'e' if self.random.random() < 0.4 else f'k{self.loops}'} in {over}:")
            self.block(indent, depth, True, returns)
            if self.random.random() < 0.2:
                out(f"{indent}else:")
                self.block(indent, depth, in_loop, returns)
        elif pick < 0.81:
            self.loops += 1
            counter = f"k{self.loops}"
            out(f"{indent}{counter} = 0")
            out(f"{indent}while {counter} < {self.one('2', '3', '(3 if flip() else 1)')}:")
            out(f"{indent}    {counter} += 1")
            self.block(indent, depth, True, returns)
        elif pick < 0.86:
            out(f"{indent}try:")
            self.block(indent, depth, in_loop, returns)
            out(f"{indent}    {self.one('a.nothing', 'opaque()', 'show(a)')}")
            out(f"{indent}except Exception:")
            self.block(indent, depth, in_loop, returns)
            if self.random.random() < 0.3:
                out(f"{indent}finally:")
                self.block(indent, depth, False, None)
        elif pick < 0.94 and depth < 2:
            self.function(indent, depth)
        else:
            out(f"{indent}show({self.value(kind)})")

    def function(self, indent: str, depth: int) -> None:
        out = self.lines.append
        gives, takes = self.random.choice(_KINDS), self.random.choice(_KINDS)
        name = f"{gives}_{len(self.lines)}"
        argument = self.name(takes)
        out(f"{indent}def {name}({argument}{self.one('', ', g=[]', ', *g', ', **g', ', *, g=1')}):")
        free = [each for each in "abce" if each != argument]
        if self.random.random() < 0.4 and not indent:
            out(f"{indent}    global {self.random.choice(free)}")
        else:
            # Assigned in the function, so its own throughout.
            for kind, names in _NAMES.items():
                for each in names:
                    if each != argument and self.random.random() < 0.3:
                        out(f"{indent}    {each} = {self.start(kind)}")
        if "g=[]" in self.lines[-1]:
            out(f"{indent}    g.append(1)")
            out(f"{indent}    show(g)")
        self.block(indent, depth, False, gives)
        out(f"{indent}    return {self.value(gives)}")
        if not indent:
            self.functions.append((name, takes))
        else:
            out(f"{indent}show({name}({self.value(takes)}))")

    def kind(self) -> None:
        self.lines += [
            "class K:",
            "    shared = [0]",
            "    y = 5",
            "    def __init__(self, v):",
            "        self.x = v",
            *self.one("", "        self.y = [v]", "        if flip():\n            self.y = 6").splitlines(),
            "    def m(self, v):",
            f"        self.{self.one('x', 'y', 'z')} = {self.one('v', '[v]', 'self.x', 'self.shared')}",
            *self.one("", "        self.shared.append(v)", "        K.shared = [v]").splitlines(),
            f"        return {self.one('v', 'self', 'self.x', 'None')}",
            "    def me(self):",
            "        return self",
            "    @property",
            "    def both(self):",
            f"        {self.one('', 'self.x = 3; ')}return [self.x, self.y]",
            "class L(K):",
            "    def __init__(self, v):",
            "        super().__init__([v])",
            f"        self.{self.one('w', 'x', 'y')} = v",
            *self.one("", "    shared = 9", "    def m(self, v):\n        super().m(v)\n        return self.y").splitlines(),
        ]  # fmt: skip


def program(seed: int) -> str:
    return Writer(seed).program()
