"""Adds native AMP to the FP32 trainings of some files: describes them, has them planned and checked, and reads the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from amp_migrate.check.compare import compare
from amp_migrate.check.events.claims import Claim, Claims
from amp_migrate.check.text import check
from amp_migrate.enable.additions import Additions, option, others
from amp_migrate.enable.described.describe import TRACE, describe
from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.flags import Flags
from amp_migrate.enable.described.trainings import Training, Trainings
from amp_migrate.enable.findings import Told, told, without_scaler
from amp_migrate.enable.hazards.hazard import Hazard
from amp_migrate.enable.hazards.parallel import inside
from amp_migrate.enable.without_scale import Kept, without_scale
from amp_migrate.engine import migrate
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.plan.model import Finding, Place, Status
from amp_migrate.project import Module, build
from amp_migrate.protocol.code.program import program_of
from amp_migrate.report import Compared
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from amp_migrate.source.mentions import skips_file


@dataclass(frozen=True)
class Choices:
    """What the user asks for: the type of the casts, the name of the option, or none with `always`."""

    dtype: str = "float16"
    flag: str | None = None
    always: bool = False

    @property
    def scaled(self) -> bool:
        """Whether gradients may underflow, so that losses are scaled."""
        return self.dtype == "float16"


@dataclass(frozen=True)
class Left:
    """Why a training stays in FP32."""

    code: str
    path: str
    line: int
    message: str
    advice: str


@dataclass
class Enabled:
    """What became of the trainings of a project; `texts` are the new texts of the files that change."""

    texts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    trained: list[tuple[Training, Left | None]] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)


def enable(sources: Sequence[Source], choices: Choices, settings: Settings) -> Enabled:
    """Add AMP to the trainings of some files, which are one project; none of them uses Apex."""
    settings = replace(
        settings, select=(), only_fixes=False, respell=False, dtype=choices.dtype, enables=True
    )
    trees = dict(_trees(sources))
    trainings = Trainings(build(trees))
    return _Attempts(sources, trees, trainings, choices, settings).answer()


def _trees(sources: Iterable[Source]) -> Iterable[tuple[str, Tree]]:
    for source in sources:
        if not skips_file(source.text):
            try:
                yield source.path, Tree(source.path, source.text)
            except (SyntaxError, ValueError, RecursionError):
                continue


class _Attempts:
    """Leaves what cannot be done, one reason at a time, until all that remains is."""

    def __init__(
        self,
        sources: Sequence[Source],
        trees: dict[str, Tree],
        trainings: Trainings,
        choices: Choices,
        settings: Settings,
    ) -> None:
        self._sources = {source.path: source for source in sources}
        self._trees = trees
        self._trainings = trainings
        self._choices = choices
        self._settings = settings
        self._left: dict[Training, Left] = {}
        self._additions = Additions(trainings, choices.dtype)

    def answer(self) -> Enabled:
        """Return what becomes of the trainings."""
        wanted = [t for t in self._trainings.every if not t.native]
        while True:
            now = [t for t in wanted if t not in self._left]
            if (made := self._attempt(now)) is not None:
                return made

    def _attempt(self, now: list[Training]) -> Enabled | None:
        """Enable some trainings; None where one more of them has to be left."""
        if not now:
            return self._enabled({}, [], [], now)
        flags = Flags(self._trainings.project, self._choices.flag, self._choices.always)
        if any(self._forbidden(training, flags) for training in now):
            return None
        drafts: dict[Module, Draft] = {}
        added = self._additions.write(now, drafts)
        describe(now, flags.condition, drafts)
        added += [option(parser, name) for parser, name in flags.write(drafts)]
        texts = {module.path: draft.text() for module, draft in drafts.items()}
        described = [
            source.with_text(texts.get(path, source.text)) for path, source in self._sources.items()
        ]
        result = migrate(described, self._settings, notes=False)
        spoken = told(self._trees, texts, result)
        spoken.findings = [*added, *spoken.findings]
        spoken.findings += self._additions.threads(now, spoken.findings)
        if self._refused(now, spoken):
            return None
        after = {
            o.path: o.after if o.after is not None else texts.get(o.path) for o in result.outcomes
        }
        written = {
            path: text
            for path, text in after.items()
            if text is not None and text != self._sources[path].text
        }
        unscaled = written if self._choices.scaled else self._unscaled(now, written, spoken)
        if (
            unscaled is None
            or self._broken(now, unscaled)
            or self._traced(now, unscaled)
            or self._untrue(now, unscaled, spoken)
        ):
            return None
        return self._enabled(unscaled, spoken.findings, spoken.compared, now)

    def _forbidden(self, training: Training, flags: Flags) -> bool:
        """Leave a training that AMP cannot be added to; tell whether it is one."""
        hazard = self._additions.forbids(training)
        why: Hazard | Unwritable | None = hazard
        if hazard is None:
            try:
                describe([training], flags.condition, {})
            except Unwritable as cause:
                why = cause
        if why is not None:
            code = hazard.code if hazard is not None else "AMP590"
            line = why.module.tree.span(why.node).line
            self._left[training] = Left(code, why.module.path, line, why.message, why.advice)
        return why is not None

    def _unscaled(
        self, now: list[Training], written: dict[str, str], spoken: Told
    ) -> dict[str, str] | None:
        """Return the written texts without a GradScaler; None where the switch of AMP has no way to the networks."""
        spelling = Spelling(self._settings.api == "torch.amp", dtype=self._choices.dtype)
        places = self._additions.inside(now)
        try:
            plain = inside(without_scale(self._trees, written), self._trees, places, spelling)
            spoken.findings = without_scaler(spoken.findings, self._choices.dtype)
        except Kept as cause:
            what = "the switch of AMP cannot be brought to where networks run"
            self._leave(now, cause.path, 1, what)
            return None
        return plain

    def _refused(self, now: list[Training], spoken: Told) -> bool:
        """Leave the trainings that the planner leaves; tell whether there are any."""
        if not any(f.status is Status.LEFT for f in spoken.left):
            return False
        causes = {f.place: f for f in spoken.left if f.code.startswith("AMP9")}
        chosen = {t: _cause(t, spoken.left, causes) for t in now}
        if not any(chosen.values()):
            chosen = dict.fromkeys(now, next(iter([*causes.values(), *spoken.left])))
        for training, cause in chosen.items():
            if cause is not None:
                self._left[training] = _left(cause)
        return True

    def _broken(self, now: list[Training], written: Mapping[str, str]) -> bool:
        """Leave the trainings of a file whose new text does not compile, or reads what nothing defines."""
        for path, text in written.items():
            reason = check(self._sources[path].text, text, path)
            if reason is not None:
                self._leave(
                    now, path, 1, f"the rewrite of this file failed its check: {reason}", "AMP595"
                )
                return True
        return False

    def _traced(self, now: list[Training], written: Mapping[str, str]) -> bool:
        """Leave the trainings of a file that still holds what only described them."""
        for path, text in written.items():
            old = self._sources[path].text
            if any(text.count(word) > old.count(word) for word in TRACE):
                self._leave(
                    now,
                    path,
                    1,
                    "the rewrite of this file failed its check: parts of a plan are left in it",
                )
                return True
        return False

    def _untrue(self, now: list[Training], written: Mapping[str, str], spoken: Told) -> bool:
        """Leave the trainings of a function whose events are other ones than in FP32, casts and scale apart."""
        if not written:
            return False
        claims = Claims(
            tuple(
                Claim(f.code, f.path, f.span.line)
                for f in spoken.findings
                if f.status is Status.FIXED or f.code == "AMP508"
            )
        )
        trees = self._trees | {path: Tree(path, text) for path, text in written.items()}
        after = program_of(build(trees))
        for item in compare(self._trainings.program, after, claims).parted:
            *_, last = item.difference.steps
            if not str(last.label.kind).endswith(":"):
                line = last.old.line if last.old else 1
                self._leave(
                    now,
                    item.key[0],
                    line,
                    f"with AMP, `{last.label}` would come at another time than in FP32",
                )
                return True
        return False

    def _leave(
        self, now: list[Training], path: str, line: int, message: str, code: str = "AMP592"
    ) -> None:
        here = [t for t in now if any(module.path == path for module in t.modules)]
        for training in here or now:
            self._left[training] = Left(
                code,
                path,
                line,
                message,
                "write it in a plainer way, then run again, or add AMP by hand",
            )

    def _enabled(
        self,
        written: dict[str, str],
        findings: list[Finding],
        compared: list[Compared],
        now: list[Training],
    ) -> Enabled:
        trained = [
            (t, self._left.get(t)) for t in self._trainings.every if t in now or t in self._left
        ]
        return Enabled(written, [*findings, *others(self._trainings)], trained, compared)


def _places(training: Training) -> set[tuple[str, int]]:
    """Return the lines on which a training was described, by file."""
    made = {
        (o.module.path, line)
        for o in training.optimizers
        for line in range(o.statement.lineno, (o.statement.end_lineno or o.statement.lineno) + 1)
    }
    run = {(b.module.path, b.module.tree.statement(b.call).lineno) for b in training.backwards}
    return made | run


def _cause(
    training: Training, left: list[Finding], causes: Mapping[Place, Finding]
) -> Finding | None:
    """Return why the planner leaves a training; None where it does not."""
    places = _places(training)
    own = [f for f in left if (f.path, f.span.line) in places]
    named = [causes[f.cause] for f in own if f.cause is not None and f.cause in causes]
    return next(iter([*named, *(f for f in own if f.place in causes), *own]), None)


def _left(cause: Finding) -> Left:
    code = {"AMP906": "AMP591", "AMP911": "AMP596"}.get(cause.code, "AMP590")
    if cause.code == "AMP910":
        code = "AMP595"
    elif cause.code == "AMP913":
        code = "AMP592"
    return Left(code, cause.path, cause.span.line, cause.message, cause.advice)
