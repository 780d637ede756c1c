"""The page of a migration holds everything, and nothing from outside."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, amp_migrate

from amp_migrate import migrate_project
from amp_migrate.output.html.highlight import marked, pieces
from amp_migrate.output.html.page import render
from amp_migrate.output.html.places import Addresses
from amp_migrate.output.html.sides import Row, differing, stretches

PURE_FP16 = (
    "import nets\nfrom apex import amp\n\nmodel, optimizer = nets.made()\n"
    'model, optimizer = amp.initialize(model, optimizer, opt_level="O3")\n'
    "loss = model(nets.batch())\n"
    "with amp.scale_loss(loss, optimizer) as scaled_loss:\n    scaled_loss.backward()\n"
    "optimizer.step()\n"
)
MISTAKEN = APEX_PROGRAM.replace(
    "    optimizer.step()\n",
    "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n",
)
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The tags, anchors, links and text of a page; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.anchors += [named["id"]] if "id" in named else []
        self.links += [named["href"]] if "href" in named else []
        if tag not in VOID and not (
            tag == "th" and self.open[-1:] == ["tr"] and "thead" in self.open
        ):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("tr", "thead") and self.open[-1] != tag:
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a program that migrates, one with a mistake, one that is left, and a file of Python 2."""
    folder = tmp_path / "team"
    (folder / "tools").mkdir(parents=True)
    for name, text in (
        ("train.py", APEX_PROGRAM),
        ("mistaken.py", MISTAKEN),
        ("tools/pure.py", PURE_FP16),
        ("tools/old.py", 'from apex import amp\nprint "<old>"\n'),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


def page(folder: Path) -> str:
    """Return the page of a folder."""
    return render(migrate_project(folder).report, folder, ["team"])


def test_every_link_leads_somewhere(team: Path) -> None:
    """Anchors are there once, and what links point at is on the page."""
    shown = Page(page(team))

    assert shown.open == []
    assert len(shown.anchors) == len(set(shown.anchors))
    assert {link.removeprefix("#") for link in shown.links} <= set(shown.anchors)
    assert len(shown.links) > 20


def test_nothing_runs_and_nothing_is_loaded(team: Path) -> None:
    """The page has no script and no address of anything else."""
    text = page(team)

    assert not Page(text).tags & {"script", "link", "img", "iframe", "object"}
    assert re.findall(r"(?:src=|url\(|@import|href=\"(?!#))", text) == []


def test_everything_that_was_decided_is_said(team: Path) -> None:
    """Every finding with its advice, the tally, the files that could not be read and both sides of the code."""
    report = migrate_project(team.resolve()).report
    words = " ".join(Page(render(report, team, ["team"])).words.split())

    for item in report.findings:
        for text in Addresses(report, team).said(item):
            assert " ".join(text.replace("`", "").split()) in words
    assert "because of line 5" in words
    for name in ("migrated", "fixed", "left"):
        assert f"{getattr(report.counts, name)} {name}" in words
    assert f"tools/old.py {report.problems[0].reason}" in words
    assert "with amp.scale_loss(loss, optimizer) as scaled_loss:" in words
    assert "scaler.scale(loss).backward()" in words
    assert str(team.parent) not in words


def test_a_cause_is_told_once_with_what_it_keeps(team: Path) -> None:
    """A program that is left is one entry: its reason, and links to its other places."""
    text = page(team)
    wanted = re.search(r'<section id="to-do">.*?</section>', text, re.S)

    assert wanted is not None
    entries = re.findall(r'<li class="left">', wanted.group())
    assert len(entries) == 2  # the program and the file of Python 2
    assert "keeps 2 other places as they are" in wanted.group()


def test_a_change_far_from_its_reason_refers_to_it(tmp_path: Path) -> None:
    """A call that passes the scaler says for which function, with a link to what is said there."""
    before = Path(__file__).parent.parent.parent / "fixtures/project/main_engine_checkpoint/before"
    shutil.copytree(before, tmp_path / "main")
    text = page(tmp_path / "main")
    main = text[text.index("<h3>main.py</h3>") :]

    assert re.search(r'AMP109</a> with <a href="#file\d+-\d+">engine.py:\d+</a>: ', main)
    assert {link.removeprefix("#") for link in Page(text).links} <= set(Page(text).anchors)


def test_the_page_is_the_same_twice(team: Path) -> None:
    """No time, no order of a set: two pages can be compared."""
    assert page(team) == page(team)


def test_code_is_shown_as_it_stands(team: Path) -> None:
    """What looks like markup in code is text on the page."""
    (team / "train.py").write_text(
        APEX_PROGRAM.replace("é", "</td><script>&amp;"), encoding="utf-8"
    )
    shown = Page(page(team))

    assert "script" not in shown.tags
    assert "</td><script>&amp;" in shown.words


def test_a_hundred_files_are_quick(team: Path) -> None:
    """A page of a hundred changed files takes seconds, and grows by what is shown, not by the length of the files."""
    whole = APEX_PROGRAM + "".join(f"value_{n} = [{n}, 'text', None]\n" for n in range(200))
    (team / "train.py").write_text(whole, encoding="utf-8")
    report = migrate_project(team / "train.py").report
    change, path = report.changes[0], report.changes[0].path
    names = [f"{path}{number}.py" for number in range(100)]
    report.sources = {name: replace(change.source, path=name) for name in names}
    report.changes = [change._replace(source=report.sources[name]) for name in names]
    report.findings = [replace(item, path=name) for name in names for item in report.findings]
    started = time.process_time()
    text = render(report, team, ["team"])

    assert time.process_time() - started < 20
    assert text.count('class="file"') == 100
    assert len(text) < 100 * (30_000 + len(whole))


def test_the_command_writes_the_page_alone(team: Path) -> None:
    """The page is written, the code is not, and the exit code is that of --diff."""
    (team / "tools" / "old.py").unlink()
    done = amp_migrate("report", "team", "-o", "out.html")

    assert (done.exit_code, "wrote out.html" in done.stderr) == (0, True)
    assert Path("out.html").read_text(encoding="utf-8") == page(team)
    assert (team / "train.py").read_text(encoding="utf-8") == APEX_PROGRAM
    assert amp_migrate("report", "team", "-o", "nowhere/out.html").exit_code == 2


def test_options_of_the_migration_hold(team: Path) -> None:
    """The page shows what the same options would write."""
    amp_migrate("report", "team", "--api", "torch.amp")

    assert "torch.amp.GradScaler" in Page(Path("migration.html").read_text(encoding="utf-8")).words


def test_files_outside_of_python_are_shown_as_they_are(tmp_path: Path) -> None:
    """What installs Apex is named with its line, and not coloured as Python."""
    (tmp_path / "train.py").write_text(APEX_PROGRAM, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text(
        "torch>=1.6\napex>=0.1  # for fp16\n", encoding="utf-8"
    )
    text = page(tmp_path)
    shown = text[text.index("<h3>requirements.txt</h3>") : text.index("<h3>train.py</h3>")]

    assert "apex&gt;=0.1  # for fp16" in shown and "AMP309" in shown and "<i " not in shown


def test_a_folder_without_apex_has_a_page(tmp_path: Path) -> None:
    """Nothing found is said in words."""
    (tmp_path / "plain.py").write_text("print(1)\n", encoding="utf-8")

    assert "No Apex AMP code was found." in Page(page(tmp_path)).words


def test_lines_that_moved_stand_beside_each_other() -> None:
    """A line that is only indented anew is no change of its own."""
    old = ["a()", "loss = f(x)", "b()"]
    new = ["a()", "with c():", "    loss = f(x)", "b()"]

    assert [row for part in stretches(old, new, ()) for row in part.rows] == [
        Row(0, 0, "same"),
        Row(None, 1, "changed"),
        Row(1, 2, "moved"),
        Row(2, 3, "same"),
    ]


def test_changed_lines_stand_beside_what_they_were() -> None:
    """Where one side has more lines, the others go where they have something in common."""
    old = ["first()", "", "def save(model, name):", "last()"]
    new = ["first()", "def save(model, name, scaler):", "last()"]
    rows = [row for part in stretches(old, new, ()) for row in part.rows]

    assert rows[1:3] == [Row(1, None, "changed"), Row(2, 1, "changed")]
    assert [row.new for part in stretches(new, old, ()) for row in part.rows] == [0, 1, 2, 3]


def test_far_lines_are_folded_and_all_are_there() -> None:
    """Between two places far apart the lines are folded; in order, every line of both sides is on the page."""
    old = [f"line {number}" for number in range(40)]
    new = [line if line != "line 2" else "new" for line in old]
    parts = stretches(old, new, {30})

    assert [(part.shown, len(part.rows)) for part in parts] == [
        (True, 6),
        (False, 21),
        (True, 7),
        (False, 6),
    ]
    assert [row.old for part in parts for row in part.rows] == list(range(40))
    assert [row.new for part in parts for row in part.rows] == list(range(40))


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("optimizer.step()", "scaler.step(optimizer)", None),
        ("def f(a, b):", "def f(a, b, scaler):", ("", ", scaler")),
        ('    "amp": 1,', '    "scaler": 1,', ("amp", "scaler")),
        ("x = 1", "y = 2", None),
    ],
)
def test_the_words_that_differ_are_marked(one: str, other: str, wanted: object) -> None:
    """Marks begin and end between words; lines with little in common have none."""
    found = differing(one, other)
    marks = found and (one[slice(*found[0])], other[slice(*found[1])])

    assert marks == wanted


def test_colours_keep_the_text() -> None:
    """Without its tags a coloured line is the line, with and without a mark, whatever kind of token it has."""
    text = (
        "@deco.rated\nclass A(B):  # a <note>\n"
        '    x = f"{a + 1:>{width}} & {b!r}" """\n  two\nlines"""\n'
        "    def f(self): return None if 0x1F else r'\\d'\n"
    )
    found = pieces(text)
    for line, part in zip(text.split("\n"), found, strict=True):
        for changed in (None, (2, 5)):
            for start in (0, 4):
                assert "".join(_texts(marked(line, part, changed, start))) == line[start:]

    kinds = {
        line[p.start : p.end]: p.kind
        for line, ps in zip(text.split("\n"), found, strict=True)
        for p in ps
    }
    assert (kinds["class"], kinds["A"], kinds["rated"], kinds["# a <note>"]) == ("k", "f", "d", "c")
    assert (kinds['lines"""'], kinds["None"], kinds["self"]) == ("s", "n", "b")
    assert pieces("def (:\n  'open") == [[], []]


def _texts(html: str) -> list[str]:
    shown = Page(html)
    return [shown.words]
