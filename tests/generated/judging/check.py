"""Puts a program through the codemod and compares its training before and after."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass

from pyflakes import api, reporter

from amp_migrate.engine import migrate, unstable
from amp_migrate.outcome import Result
from amp_migrate.output.formats.diff import patch
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from generated.judging.execute import Record, Run, Side, records
from generated.judging.outside import lost
from generated.written.program import Program

SETTINGS = Settings(api="torch.cuda.amp")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a program: "migrated", "left" (with `why`, a code) or "failed" (with the reason)."""

    outcome: str
    why: str = ""
    after: dict[str, bytes] | None = None


def check(program: Program) -> Verdict:
    """Migrate a program, check the text that results, and compare what both train."""
    return checked([program])[0]


def checked(programs: list[Program]) -> list[Verdict]:
    """Check several programs, which train in one process."""
    verdicts = [_migrated(program) for program in programs]
    pairs = zip(programs, verdicts, strict=True)
    training = [(p, v) for p, v in pairs if v.outcome == "migrated"]
    sides = records([(p.twin or p.files, v.after or {}, _run(p)) for p, v in training])
    for (program, verdict), (reference, native) in zip(training, sides, strict=bool(training)):
        difference = _difference(program, reference, native)
        if difference:
            verdicts[verdicts.index(verdict)] = Verdict("failed", difference, verdict.after)
    return verdicts


def _migrated(program: Program) -> Verdict:
    try:
        return _rewritten(program)
    except Exception as error:  # the codemod must not raise, whatever it is
        return Verdict("failed", f"raised {type(error).__name__}: {error}")


def _rewritten(program: Program) -> Verdict:
    sources = [Source.from_bytes(name, data) for name, data in program.files.items()]
    result = migrate(sources, SETTINGS)
    after = {
        o.path: o.before.data if o.after is None else o.before.encode(o.after)
        for o in result.outcomes
    }
    left = [f for f in result.plan.findings() if f.status is Status.LEFT]
    flaw = _flaw(program, result, after)
    if flaw:
        return Verdict("failed", flaw, after)
    if left:
        if after != program.files:
            return Verdict("failed", f"{left[0].code} left, but files changed", after)
        cause = min(left, key=lambda f: (f.code == "AMP101", "since its unit" in f.message))
        return Verdict("left", f"{cause.code}: {cause.message}", after)
    return Verdict("migrated", "", after)


def _run(program: Program) -> Run:
    modes = ("logic", "casts") if program.casts else ("logic",)
    return Run(program.entry, program.runs, program.overflow, modes)


def _flaw(program: Program, result: Result, after: dict[str, bytes]) -> str:
    """Return what is wrong with the text of the migration."""
    failed = [o.failed for o in result.outcomes if o.failed]
    tally = result.tally
    if failed:
        return f"not migrated: {failed[0]}"
    if tally.found != tally.migrated + tally.fixed + tally.left or not tally.found:
        return f"the tally does not add up: {tally}"
    left = tally.left > 0
    for name, before in program.files.items():
        new = after[name]
        compile(new, name, "exec", dont_inherit=True)
        if new == before:
            continue
        flaws = _flaws(name, new) - _flaws(name, before)
        if flaws:
            return f"new in {name}: {sorted(flaws)[0]}"
        if not left and _mentions_apex(program, new):
            return f"Apex is still in {name}"
        reason = _bytes(before, new)
        if reason:
            return f"{name}: {reason}"
        if _applied(before, patch(name, before, new)) != new:
            return f"the diff of {name} does not give what is written"
    for outcome in result.outcomes:
        if outcome.after is not None:
            line = lost(outcome.before.text, outcome.after, result.plan.edits(outcome.path))
            if line:
                return f"{outcome.path}: no edit names the line {line.strip()!r}, and it is gone"
    again = unstable(result, SETTINGS)
    return f"a second run changes {again[0]}" if again else ""


def _flaws(name: str, data: bytes) -> Counter[str]:
    stream = io.StringIO()
    api.check(
        data.decode("latin-1").lstrip("\u00ef\u00bb\u00bf"), name, reporter.Reporter(stream, stream)
    )
    texts = (line.partition(" ")[2] for line in stream.getvalue().splitlines())
    return Counter(re.sub(r" on line \d+", "", text) for text in texts)


def _mentions_apex(program: Program, data: bytes) -> bool:
    switch = "apex" if program.features["words"] == "third" else ""
    text = re.sub(rb"#.*|\"[^\"\n]*\"", b"", data).decode("latin-1")
    if switch:
        text = re.sub(r"\b(args|opt)\.apex\b|\bapex\b(?=,|\))", "", text)
    return bool(
        re.search(
            r"\bapex\b|APEX_AVAILABLE|\bamp\.(initialize|scale_loss|master_params|_amp)", text
        )
    )


def _bytes(before: bytes, after: bytes) -> str:
    """Return what changed although no edit asks for it: line ends, marks, indentation, comments."""
    if before.startswith(b"\xef\xbb\xbf") != after.startswith(b"\xef\xbb\xbf"):
        return "the byte-order mark changed"
    if (b"\r\n" in before) and after.replace(b"\r\n", b"").count(b"\n"):
        return "line ends changed"
    if b"\r\n" not in before and b"\r" in after:
        return "line ends changed"
    if before.endswith(b"\n") != after.endswith(b"\n"):
        return "the last line end changed"
    if (b"\n\t" in before) and re.search(rb"^ +\w", after, re.MULTILINE):
        return "tabs became spaces"
    lost = Counter(_comments(before)) - Counter(_comments(after))
    return f"the comment {sorted(lost)[0]!r} is lost" if lost else ""


def _comments(data: bytes) -> list[bytes]:
    """Return the comments on lines that do not speak of Apex."""
    found = []
    for line in data.splitlines():
        code, mark, comment = line.partition(b"# ")
        if mark and not re.search(rb"amp|apex|scaled|backward\(", code + comment):
            if not re.search(
                rb"clip_grad|penalty|mixed.precision|zero_grad|APEX|opt_level", code + comment
            ):
                found.append(comment)
    return found


def _applied(before: bytes, diff: bytes) -> bytes:
    """Apply a unified diff of one file."""
    old = before.split(b"\n")
    result: list[bytes] = []
    place = 0
    lines = diff.split(b"\n")
    begun = False
    for k, line in enumerate(lines):
        head = re.match(rb"@@ -(\d+)(?:,(\d+))? ", line)
        if head:
            start = int(head[1]) - (head[2] != b"0")
            result += old[place:start]
            place, begun = start, True
        elif not begun or line.startswith(b"\\") or k == len(lines) - 1:
            continue
        else:
            if line[:1] in (b" ", b"-"):
                place += 1
            if line[:1] in (b" ", b"+"):
                result.append(line[1:])
    return _closed(result + old[place:], diff, before)


def _closed(lines: list[bytes], diff: bytes, before: bytes) -> bytes:
    text = b"\n".join(lines)
    if not before.endswith(b"\n") or b"\n\\ No newline" not in diff:
        return text
    return text.rstrip(b"\n")


def _difference(program: Program, reference: Side, native: Side) -> str:
    modes = _run(program).modes
    for mode in modes:
        ended = _ended(reference.get(mode, [("ended", "a crash")]))
        if ended:
            return f"generator: the Apex program ends with {ended}"
        if not any(event[0] == "step" for event in reference[mode]):
            return "generator: the Apex program never steps"
    for mode in modes:
        pair = reference[mode], native.get(mode, [("ended", "a crash")])
        if mode == "casts" and not program.scales and any(map(_overflowed, pair)):
            continue  # Apex lowers the scale at every backward, GradScaler at every step
        difference = first_difference(*(_compared(program, side) for side in pair))
        if difference:
            return f"{mode}: {difference}"
    return ""


def _ended(record: Record) -> str:
    return next((str(event[1]) for event in record if event[0] == "ended" and event[1]), "")


def _compared(program: Program, record: Record) -> Record:
    passed_over = ("overflowed",) if program.scales else ("overflowed", "scale")
    return [event for event in record if event[0] not in passed_over]


def _overflowed(record: Record) -> bool:
    """Tell whether gradients overflowed by themselves."""
    return any(event[0] == "overflowed" for event in record)


def first_difference(before: Record, after: Record) -> str:
    """Return the first event in which two records differ; an exception is named first."""
    ended = _ended(after)
    if ended:
        return f"the migrated program ends with {ended}"
    for left, right in zip(before, after, strict=False):
        if left != right:
            return f"{left} became {right}"
    return "" if len(before) == len(after) else f"{len(before)} events became {len(after)}"
