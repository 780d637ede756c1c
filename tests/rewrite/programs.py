"""Random programs whose every statement and comment has a name of its own."""

from __future__ import annotations

from random import Random


class Writer:
    """Writes the lines of one program; `indent` is its unit of indentation."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.indent = random.choice(["    ", "  ", "\t"])
        self.lines: list[str] = []
        self._count = 0

    def program(self) -> str:
        """Return a program of a few statements."""
        self.block("", 0)
        if self.random.random() < 0.3:
            self.line("", self.comment())
        return "\n".join(self.lines) + self.random.choice(["", "\n"])

    def name(self, letter: str = "v") -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def comment(self) -> str:
        return f"# {self.name('c')}"

    def line(self, margin: str, text: str) -> None:
        self.lines.append(margin + text)

    def maybe_comment(self) -> str:
        return f"  {self.comment()}" if self.random.random() < 0.3 else ""

    def block(self, margin: str, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.above(margin)
            self.statement(margin, depth)
        if self.random.random() < 0.2:
            self.line(margin, self.comment())

    def above(self, margin: str) -> None:
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            self.lines.append("")
        if self.random.random() < 0.3:
            self.line(margin, self.comment())

    def statement(self, margin: str, depth: int) -> None:
        kinds = [self.simple, self.simple, self.several, self.long]
        if depth < 3:
            kinds += [self.conditional, self.loop, self.trial, self.function, self.context]
        self.random.choice(kinds)(margin, depth)

    def simple(self, margin: str, depth: int) -> None:
        self.line(margin, f"{self.name()} = {self.name()}(1){self.maybe_comment()}")

    def several(self, margin: str, depth: int) -> None:
        end = self.random.choice(["", ";"])
        self.line(margin, f"{self.name()}(); {self.name()}(){end}{self.maybe_comment()}")

    def long(self, margin: str, depth: int) -> None:
        first = self.name()
        self.random.choice([self._call, self._continued, self._string])(margin, first)

    def _call(self, margin: str, first: str) -> None:
        self.line(margin, f"{first} = {self.name()}({self.maybe_comment()}")
        self.line(margin, f"    {self.name()},{self.maybe_comment()}")
        self.line(margin, f"){self.maybe_comment()}")

    def _continued(self, margin: str, first: str) -> None:
        self.line(margin, f"{first} = {self.name()} + \\")
        self.line(margin, f"    {self.name()}{self.maybe_comment()}")

    def _string(self, margin: str, first: str) -> None:
        self.line(margin, f'{first} = """{self.name()}')
        self.line("", f'  {self.name()}"""{self.maybe_comment()}')

    def suite(self, margin: str, head: str, depth: int) -> None:
        if self.random.random() < 0.2:
            self.line(margin, f"{head} {self.name()}(){self.maybe_comment()}")
        else:
            self.line(margin, head + self.maybe_comment())
            self.block(margin + self.indent, depth + 1)

    def clause(self, margin: str, head: str, depth: int) -> None:
        if self.random.random() < 0.2:
            self.line(margin, self.comment())
        self.suite(margin, head, depth)

    def conditional(self, margin: str, depth: int) -> None:
        self.suite(margin, f"if {self.name()}:", depth)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            self.clause(margin, f"elif {self.name()}:", depth)
        if self.random.random() < 0.5:
            self.clause(margin, "else:", depth)

    def loop(self, margin: str, depth: int) -> None:
        self.suite(margin, f"for {self.name()} in {self.name()}:", depth)
        if self.random.random() < 0.2:
            self.clause(margin, "else:", depth)

    def trial(self, margin: str, depth: int) -> None:
        self.suite(margin, "try:", depth)
        caught = self.random.random() < 0.7
        if caught:
            self.clause(margin, f"except {self.name()}:", depth)
            if self.random.random() < 0.3:
                self.clause(margin, "else:", depth)
        if not caught or self.random.random() < 0.3:
            self.clause(margin, "finally:", depth)

    def function(self, margin: str, depth: int) -> None:
        if self.random.random() < 0.3:
            self.line(margin, f"@{self.name()}{self.maybe_comment()}")
        self.suite(margin, f"def {self.name()}({self.name()}):", depth)

    def context(self, margin: str, depth: int) -> None:
        self.suite(margin, f"with {self.name()}:", depth)
