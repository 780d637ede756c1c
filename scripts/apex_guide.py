"""Write docs/apex-to-native.md: every public name of Apex, and what the tool makes of it.

The names and the programs stand in apex_names.toml; what becomes of them is found by migrating them, so the page says
what the tool does. Run without arguments after a rule has changed; ``--check`` only says whether the page is current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from amp_migrate import Finding, Settings, Status, migrate_source  # noqa: E402
from amp_migrate.rules import rules  # noqa: E402
from amp_migrate.rules.base import Rule, Safety  # noqa: E402
from amp_migrate.settings import parse_toml  # noqa: E402

PAGE = ROOT / "docs" / "apex-to-native.md"
NAMES = ROOT / "scripts" / "apex_names.toml"
HEAD = """\
# From Apex to native AMP

What every public name of NVIDIA Apex becomes, and which rule of `amp-migrate` does it. This page is generated: names and
programs were given to the tool, and it shows what came out (`python scripts/apex_guide.py`).

*Rewritten* rules that are faithful keep the training as it was, bit for bit where both sides run the same kernels.
*With `--unsafe`*: rewritten on request, as the results agree to rounding alone. *Stays*: the name still exists in Apex, works
beside native AMP, and a note names its counterpart. *By hand*: the place is left as it is, and a finding says what to do. `amp-migrate explain CODE`
says more about a rule. The last column leads to a program of the tests in which the name is used, before and after.

The new names are written as `torch.cuda.amp.autocast()` and `torch.cuda.amp.GradScaler()`, which every torch since 1.6 has;
torch 2.4 calls them `torch.amp.autocast("cuda")` and `torch.amp.GradScaler("cuda")`, and `--api torch.amp` writes that.
"""
CASTS = """\
## Where the casts differ

Apex O1 and autocast run nearly every operator in the same dtype. These differ, which `amp-migrate verify` lists where it
meets them:

| operator | Apex O1 | autocast |
|---|---|---|
| `F.binary_cross_entropy`, `nn.BCELoss` | fp32 | raises: kept outside, with `.float()` (AMP115) |
| `F.gelu`, `torch.std`, `torch.var` | fp32 | fp16 |
| `F.cross_entropy` of fp16 logits, from torch 1.10 on | fp32 | fp32, of log-probabilities that are rounded to fp16 on CUDA |
| `F.grid_sample` | fp32 | the widest of its inputs |
| `F.ctc_loss` | fp32 | as its input |
| `Tensor.softmax`, `torch.softmax`, `torch.layer_norm` (not by `F.`) | fp16 | fp32 |
| `log1p`, `logsumexp`, `torch.cdist`, `torch.linalg.norm`, `F.huber_loss` | fp16 | fp32 |
| `torch.einsum`, `torch.linalg.multi_dot`, `F.scaled_dot_product_attention` | as its inputs | fp16, but for what Apex left in fp32 (AMP123) |
| fp16 tensor times an fp32 tensor without dimensions | fp32 | fp16, as a note says where both are certain (AMP123) |
| `x += y`, `x` in fp16 and `y` in fp32 | `x` becomes fp32 | stays fp16, in place |
| `x.cpu()` of an fp16 tensor | fp32 | fp16 |
| fp64 inputs | cast down | stay fp64 |
"""
IMPORTS = "AMP101"
CUT = "# the recipe\n"
SETUP = f"""\
import argparse
import apex
import torch
from apex import amp
args = argparse.ArgumentParser().parse_args()
model, netG, netD = torch.nn.Linear(4, 2).cuda(), torch.nn.Linear(2, 4).cuda(), torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optG, optD = torch.optim.Adam(netG.parameters()), torch.optim.Adam(netD.parameters())
criterion = torch.nn.CrossEntropyLoss()
loader, validation, steps, correct = [], [], 4, 0
def adversarial(outputs, real):
    return torch.nn.functional.softplus(-outputs if real else outputs).mean()
{CUT}"""


def page() -> str:
    """Return the page as it must be."""
    document = parse_toml(NAMES.read_bytes(), str(NAMES))
    known = {rule.code: rule for rule in rules()}
    parts: list[str] = [HEAD, "## Recipes\n"]
    parts += [_recipe(recipe) for recipe in document["recipe"]]
    for number, part in enumerate(document["part"]):
        parts.append(_part(part, known))
        if number == 0:
            parts += [_arguments(one) for one in document["arguments"]]
    return "\n".join([*parts, CASTS])


def _recipe(recipe: dict[str, Any]) -> str:
    before = recipe["before"].strip()
    result = migrate_source(f"{SETUP}{before}\n", settings=_settings())
    if result.counts.left:
        raise SystemExit(f"the recipe {recipe['title']!r} is left: {result.findings}")
    after = result.text.partition(CUT)[2].strip()
    return (
        f"### {recipe['title']}\n\n{recipe['about']}\n\n"
        f"```python\n# Apex\n{before}\n```\n\n```python\n# native\n{after}\n```\n"
    )


def _arguments(part: dict[str, Any]) -> str:
    rows = "\n".join(f"| `{name}` | {text} |" for name, text in part["names"])
    return f"### Arguments of {part['of']}\n\n| argument | becomes |\n|---|---|\n{rows}\n"


def _part(part: dict[str, Any], known: dict[str, Rule]) -> str:
    gone = f" Removed from Apex on {part['gone']}." if part.get("gone") else ""
    rows = "\n".join(_row(entry, known) for entry in part["names"])
    return (
        f"## {part['title']}\n\n{part['intro'].strip()}{gone}\n\n"
        f"| Apex | becomes | rule | | tried by |\n|---|---|---|---|---|\n{rows}\n"
    )


def _row(entry: dict[str, Any], known: dict[str, Rule]) -> str:
    if "rule" in entry:
        code, how = entry["rule"], _safety(known[entry["rule"]])
        return _cells(entry, entry["text"], code, how)
    found, text = _answer(entry)
    how = _outcome(found, entry)
    return _cells(entry, entry.get("text", text), found.code, how)


def _cells(entry: dict[str, Any], text: str, code: str, how: str) -> str:
    shown = entry["name"].removeprefix("apex.").replace("LARC.LARC", "LARC")
    tried = entry.get("fixture", "")
    link = f"[{tried}](../fixtures/{tried})" if tried else ""
    return f"| `{shown}` | {text.replace('|', chr(92) + '|')} | {code} | {how} | {link} |"


def _safety(rule: Rule) -> str:
    return "by hand" if rule.safety is Safety.REPORT else f"rewritten, {rule.safety.value}"


def _use(entry: dict[str, Any]) -> str:
    module, _, name = entry["name"].rpartition(".")
    if "use" in entry:
        use = str(entry["use"])
        return use if "import apex" in use or "from apex" in use else f"import apex.amp\n{use}"
    return f"thing = object()\nfrom {module} import {name}\nmade = {name}(thing)"


def _used(entry: dict[str, Any], settings: Settings) -> Any:
    return migrate_source(_use(entry) + "\n", settings=settings)


def _answer(entry: dict[str, Any]) -> tuple[Finding, str]:
    """Return the finding about a use, and what stands in its place or what to do."""
    result = _used(entry, _settings())
    first = _told(result.findings, entry)
    if first.status is Status.MIGRATED:
        return first, _line(result.text, entry)
    return first, _sentence(first.advice or "keep it, as torch has none")


def _told(findings: Iterable[Finding], entry: dict[str, Any]) -> Finding:
    """Return what the tool says about a use, its import aside: what is left before what is done."""
    order = (Status.LEFT, Status.MIGRATED, Status.NOTE)
    found = [item for item in findings if item.status in order]
    about = [item for item in found if item.code != IMPORTS] or found
    if not about:
        raise SystemExit(f"nothing is said about {entry['name']}")
    return min(about, key=lambda item: order.index(item.status))


def _outcome(found: Finding, entry: dict[str, Any]) -> str:
    if found.status is Status.MIGRATED:
        return "rewritten, faithful"
    if found.status is Status.LEFT:
        return "by hand"
    unsafe = _used(entry, Settings(api="torch.cuda.amp", unsafe=True)).findings
    if _told(unsafe, entry).status is Status.MIGRATED:
        return "stays; with `--unsafe` rewritten"
    return "stays"


def _line(text: str, entry: dict[str, Any]) -> str:
    """Return the statement that stands in place of the last one of a use, on one line."""
    lines = text.rstrip("\n").split("\n")
    starts = [n for n, line in enumerate(lines) if line.startswith(("made = ", "with "))]
    start = starts[-1] if starts else len(lines)
    joined = " ".join(line.strip() for line in lines[start:])
    shown = (
        joined.replace("( ", "(").replace(", )", ")").removeprefix("made = ").removesuffix(": pass")
    )
    return f"`{shown}`"


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _settings() -> Settings:
    return Settings(api="torch.cuda.amp")


def names() -> Iterator[str]:
    """Yield every name of the page."""
    for part in parse_toml(NAMES.read_bytes(), str(NAMES))["part"]:
        yield from (entry["name"] for entry in part["names"])


def main() -> int:
    """Write the page, or with --check tell whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    checks = parser.parse_args().check
    text = page()
    if checks:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
