"""What is done and said about code that uses native AMP already, whether or not Apex is in the project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from amp_migrate.facts.tree import Tree
from amp_migrate.plan import Decision, Edit

_NATIVE = re.compile(r"torch\.(?:cuda\.)?amp\b|from\s+torch(?:\.cuda)?\s+import\s[^\n]*\bamp\b")


def applies(text: str) -> bool:
    """Tell whether a text may use native AMP, as far as a line can show."""
    return "amp" in text and bool(_NATIVE.search(text))


def upgrade(tree: Tree, edits: Sequence[Edit] = (), others: Iterable[Tree] = ()) -> list[Decision]:
    """Decide how a file says `torch.amp` in place of `torch.cuda.amp`.

    `edits` are those already planned for the file, which win. Names that one of the `others` may import
    from it keep their meaning.
    """
    if "cuda" not in tree.text:
        return []
    from amp_migrate.rules.amp401_torch_amp import taken_from, upgrade

    return upgrade(tree, edits, taken_from(tree, others))


def remarks(tree: Tree) -> list[Decision]:
    """Return notes on mistakes in a file's native code; nothing is edited."""
    from amp_migrate.facts.native import Native
    from amp_migrate.rules import modules

    if not applies(tree.text):
        return []
    native = Native(tree)
    found: list[Decision] = []
    for module in modules():
        remark = getattr(module, "remark", None)
        if remark is not None:
            found += remark(native)
    return found
