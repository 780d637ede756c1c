"""A small Apex program, the command line as a user runs it, and a stand-in for the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from click.testing import CliRunner, Result

from amp_migrate.commands.cli import main
from amp_migrate.outcome import Phase, Phases
from amp_migrate.plan.model import Finding, Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from amp_migrate.source.span import Span

APEX_PROGRAM = """\
import torch
from apex import amp

# é is no ASCII
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for step in range(10):
    loss = model(torch.randn(8, 4).cuda()).sum()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
NATIVE_PROGRAM = """\
import torch

# é is no ASCII
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for step in range(10):
    with torch.cuda.amp.autocast():
        loss = model(torch.randn(8, 4).cuda()).sum()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def amp_migrate(*arguments: str, stdin: bytes = b"") -> Result:
    """Run the command line as a user would."""
    return CliRunner().invoke(main, list(arguments), input=stdin, prog_name="amp-migrate")


Put = Callable[..., Path]


@dataclass
class FakeEngine:
    """Migrates ``old()`` to ``new()`` line by line; other words of a line make other findings."""

    settings: Settings | None = None
    unstable: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    units: list[list[str]] = field(default_factory=list)
    crash: bool = False

    statuses = (
        ("old()", "AMP101", Status.MIGRATED),
        ("mistake()", "AMP201", Status.FIXED),
        ("stays()", "AMP901", Status.LEFT),
        ("remark()", "AMP102", Status.NOTE),
    )

    def migrate(
        self,
        sources: list[Source],
        settings: Settings,
        begins: Phases = lambda *_: None,
        **_: object,
    ) -> SimpleNamespace:
        self.settings = settings
        begins(Phase.AGAIN, len(sources))
        if self.crash:
            raise KeyError("a fault")
        findings = [finding for source in sources for finding in self._findings(source)]
        count = {status: sum(item.status is status for item in findings) for status in Status}
        parts = [count[status] for status in (Status.MIGRATED, Status.FIXED, Status.LEFT)]
        migrated, fixed, left = parts
        return SimpleNamespace(
            outcomes=[self._outcome(source) for source in sources],
            plan=SimpleNamespace(findings=lambda: findings, decisions=[]),
            compared=[],
            unstable=self.unstable,
            tally=SimpleNamespace(found=sum(parts), migrated=migrated, fixed=fixed, left=left),
            units=[
                SimpleNamespace(files=files, describe=partial(dict, files=files, roles=[]))
                for files in self.units
            ],
        )

    def _findings(self, source: Source) -> Iterator[Finding]:
        for number, line in enumerate(source.text.split("\n"), 1):
            for word, code, status in self.statuses:
                if word in line:
                    at = line.index(word)
                    span = Span(number, at, number, at + len(word))
                    yield Finding(
                        source.path, span, code, status, f"about {word}", "do this\nor that"
                    )

    def _outcome(self, source: Source) -> SimpleNamespace:
        after = source.text.replace("old()", "first()\nnew()").replace("mistake()", "better()")
        failed = self.failed.get(source.path)
        return SimpleNamespace(
            path=source.path,
            before=source,
            after=None if after == source.text or failed else after,
            failed=failed,
            doubted=None,
        )
