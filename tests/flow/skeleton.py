"""Random functions that are nothing but control flow around numbered events."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FLAGS = ("p", "q", "o.x", 'mode == "a"', 'mode in ("a", "b")', "p is None", "n == 1", "n > 0")

LETTERS = ('"a"', '"b"', '"c"')


@dataclass
class Skeleton:
    """Writes one function `f(p, q, n, mode, o)`; the same seed writes the same text.

    `e(7)` is an event that a tape drives, `b(7)` one that ends loops, `it(7)` something to iterate over, `c(7)`
    a context manager, `w(7)` an event that may rewrite what attributes hold. The numbers are unique.
    """

    random: random.Random
    size: int = 14
    generator: bool = False
    count: int = 0
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the source of the function."""
        self.lines = ["def f(p, q, n, mode, o):", "    d = D()"]
        if self.generator:
            self.statement(f"yield {self.event()}", 1)
        while self.size > 0:
            self.block(1, 0, False, False)
        self.statement(f"return {self.event()}", 1)
        return "\n".join(self.lines) + "\n"

    def number(self) -> int:
        """Return the next number."""
        self.count += 1
        return self.count

    def event(self, name: str = "e") -> str:
        """Return the call of a new event."""
        return f"{name}({self.number()})"

    def statement(self, text: str, depth: int) -> None:
        """Add a line."""
        self.lines.append("    " * depth + text)

    def test(self, depth: int = 0) -> str:
        """Return an expression to be tested."""
        pick = self.random.random()
        if depth > 2 or pick < 0.3:
            return self.event()
        if pick < 0.58:
            return self.random.choice(FLAGS)
        one = self.test(depth + 1)
        if pick < 0.64:
            return f"(not {one})"
        if pick < 0.67:
            return f"(v := {one})"
        if pick < 0.70:
            return f"({self.event()} <= {self.event()} <= {self.event()})"
        other = self.test(depth + 1)
        if pick < 0.82:
            return f"({one} and {other})"
        if pick < 0.94:
            return f"({one} or {other})"
        return f"({one} if {other} else {self.test(depth + 1)})"

    def value(self) -> str:
        """Return an expression to be evaluated."""
        forms = [
            lambda: self.event(),
            lambda: self.event("w"),
            lambda: f"h({self.event()}, *[{self.event()}], k={self.event()})",
            lambda: f"[{self.event()} for _ in {self.event('it')} if {self.test(1)}]",
            lambda: (
                f"{{{self.event()}: {self.event()} for _ in {self.event('it')} for p in {self.event('it')}}}"
            ),
            lambda: f"f'{{{self.event()}}} {{{self.test(1)}}}'",
            lambda: f"({self.event()} + {self.event()}) * {self.event()}",
            lambda: f"d[{self.event()}: {self.event()}]",
            lambda: f"h({self.event()}).a[{self.event()}]",
            lambda: f"(lambda z={self.event()}: {self.event()})",
            lambda: f"({self.event()} for _ in {self.event('it')})",
            lambda: f"{{{self.event()}: {self.event()}, **{{{self.event()}: 1}}}}",
            lambda: f"[{self.test(1)}, {self.test(1)}]",
            lambda: self.test(),
        ]
        if self.generator:
            forms.append(lambda: f"h({self.event()}, (yield {self.event()}), {self.event()})")
        return self.random.choice(forms)()

    def simple(self) -> str:
        """Return a statement that does not branch, but for what is inside its expressions."""
        forms = [
            lambda: self.event(),
            lambda: self.value(),
            lambda: f"x = {self.value()}",
            lambda: f"d[{self.event()}] = {self.event()}",
            lambda: f"d[{self.event()}], h({self.event()}).b = {self.event()}, {self.event()}",
            lambda: f"d[{self.event()}] += {self.event()}",
            lambda: f"d[{self.event()}]: int = {self.event()}",
            lambda: f"del d[{self.event()}], d[{self.event()}]",
            lambda: f"{self.random.choice('pq')} = {self.test()}",
            lambda: (
                f"{self.random.choice('pq')} = {self.random.choice(('True', 'False', 'None', 'p', 'not q'))}"
            ),
            lambda: f"n = {self.random.choice(('0', '1', '2'))}",
            lambda: "n += 1",
            lambda: f"mode = {self.random.choice(LETTERS)}",
            lambda: f"o.x = {self.random.choice(('True', 'False', self.event()))}",
            lambda: self.random.choice(
                ("p, q = q, p", "p = q = not p", "o.x = q = o.x or p", "p = o.x = q = None")
            ),
            lambda: f"d[(p := {self.test()})] = q = p",
            lambda: f"assert {self.test()}, {self.event()}",
            lambda: "pass",
        ]
        return self.random.choice(forms)()

    def block(self, depth: int, loops: int, last: bool, ranged: bool) -> None:
        """Add one to three statements. `last` forbids `continue`, unless the loop around is a `for`."""
        for _ in range(self.random.randint(1, 3)):
            self.size -= 1
            if self.size < 0 or depth > 5:
                self.statement(self.event(), depth)
                return
            if self.random.random() < 0.2 and depth > 1 and self.jump(depth, loops, last, ranged):
                return
            self.any_statement(depth, loops, last, ranged)

    def jump(self, depth: int, loops: int, last: bool, ranged: bool) -> bool:
        """Add a statement that leaves the block."""
        forms = [f"return {self.event()}", f"raise Error({self.event()})", "return"]
        if loops:
            forms += ["break"] * 3
            if ranged or not last:
                forms += ["continue"] * 3
        self.statement(self.random.choice(forms), depth)
        return True

    def any_statement(self, depth: int, loops: int, last: bool, ranged: bool) -> None:
        """Add a statement of any kind."""
        pick = self.random.random()
        inner = (depth + 1, loops, last, ranged)
        if pick < 0.30:
            self.statement(self.simple(), depth)
        elif pick < 0.48:
            self.choice(inner)
        elif pick < 0.64:
            self.loop(inner)
        elif pick < 0.80:
            self.guarded(inner)
        elif pick < 0.90:
            names = ", ".join(
                f"{self.event('c')} as {self.random.choice(('d[' + self.event() + ']', 'y'))}"
                for _ in range(self.random.randint(1, 2))
            )
            self.statement(f"with {names}:", depth)
            self.block(*inner)
        elif pick < 0.96:
            self.matched(inner)
        else:
            self.definition(depth)

    def choice(self, inner: tuple[int, int, bool, bool]) -> None:
        """Add an `if`."""
        depth = inner[0] - 1
        if self.random.random() < 0.25:
            self.asked_twice(inner)
            return
        self.statement(f"if {self.test()}:", depth)
        self.block(*inner)
        for _ in range(self.random.choice((0, 0, 1))):
            self.statement(f"elif {self.test()}:", depth)
            self.block(*inner)
        if self.random.random() < 0.5:
            self.statement("else:", depth)
            self.block(*inner)

    def asked_twice(self, inner: tuple[int, int, bool, bool]) -> None:
        """Add an `if` inside another one of the same flag, after something that may or may not change it."""
        depth = inner[0] - 1
        flag = self.random.choice((*FLAGS, "o.x", "o.x"))
        self.statement(f"if {flag}:", depth)
        self.statement(self.event("w") if self.random.random() < 0.5 else self.simple(), depth + 1)
        self.statement(f"if {flag}:", depth + 1)
        self.block(inner[0] + 1, *inner[1:])
        self.statement("else:", depth + 1)
        self.block(inner[0] + 1, *inner[1:])

    def loop(self, inner: tuple[int, int, bool, bool]) -> None:
        """Add a loop; the first event of every turn is outside of all that could hold back an exception."""
        depth = inner[0] - 1
        pick = self.random.random()
        ranged = pick < 0.6
        if ranged:
            self.statement(f"for _ in {self.event('it')}:", depth)
        elif pick < 0.8:
            self.statement(f"while {self.event()} and {self.test()}:", depth)
        else:
            self.statement("while True:", depth)
            self.statement(f"if {self.event('b')}: break", depth + 1)
        self.block(depth + 1, inner[1] + 1, False, ranged)
        if self.random.random() < 0.4:
            self.statement("else:", depth)
            self.block(*inner)

    def guarded(self, inner: tuple[int, int, bool, bool]) -> None:
        """Add a `try`."""
        depth, loops, _, ranged = inner
        depth -= 1
        self.statement("try:", depth)
        self.block(*inner)
        handlers = self.random.choice((0, 1, 1, 2))
        heads = ["except Error", "except Other as r", f"except h({self.event()}, Error)"]
        for head in self.random.sample(heads, handlers):
            self.statement(f"{head}:", depth)
            self.block(*inner)
        bare = self.random.random() < 0.2
        if bare:
            self.statement("except:", depth)
            self.block(*inner)
        if (handlers or bare) and self.random.random() < 0.4:
            self.statement("else:", depth)
            self.block(*inner)
        if not (handlers or bare) or self.random.random() < 0.5:
            self.statement("finally:", depth)
            self.block(inner[0], loops, True, ranged)

    def matched(self, inner: tuple[int, int, bool, bool]) -> None:
        """Add a `match`."""
        depth = inner[0] - 1
        self.statement(f"match {self.random.choice(('mode', self.event(), 'p', 'n'))}:", depth)
        patterns = ["'a'", "'b' | 'c'", "None", "True", "1", "[x, y]", "int() as n", "str(p)"]
        for pattern in self.random.sample(patterns, self.random.randint(1, 3)):
            guard = f" if {self.test()}" if self.random.random() < 0.3 else ""
            self.statement(f"case {pattern}{guard}:", depth + 1)
            self.block(inner[0] + 1, *inner[1:])
        if self.random.random() < 0.5:
            self.statement(f"case {self.random.choice('_z')}:", depth + 1)
            self.block(inner[0] + 1, *inner[1:])

    def definition(self, depth: int) -> None:
        """Add a function or class that is defined and not used."""
        self.statement(f"@h({self.event()})", depth)
        self.statement(f"@h({self.event()})", depth)
        if self.random.random() < 0.5:
            self.statement(f"def g(a={self.event()}, *, b={self.event()}):", depth)
            self.statement(self.event(), depth + 1)
        else:
            self.statement(f"class K(h({self.event()}, object)):", depth)
            self.statement("pass", depth + 1)


def skeleton(seed: int, size: int = 14) -> str:
    """Return the function of a seed."""
    source = random.Random(seed)
    return Skeleton(source, size, generator=source.random() < 0.15).text()
