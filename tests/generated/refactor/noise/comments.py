"""Comments, blank lines and docstrings."""

from __future__ import annotations

import ast
from random import Random

from generated.refactor.code.identifiers import Edit, Unsure, text
from generated.refactor.noise.spots import Spot, block, drawn, with_lines
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_REMARKS = (
    "TODO: clean up",
    "see the appendix",
    "amp: unscale_ before clipping?",
    "loss.backward() was here",
    "optimizer.step() comes later",
    "NOTE: keep the order",
    "scaler = torch.cuda.amp.GradScaler()",
    "if args.fp16:",
    "noqa",
    "type: ignore",
)
_DOCSTRINGS = (
    '"""Do one thing."""',
    '"""Return what is asked for.\n{indent}\n{indent}More in the paper.\n{indent}"""',
)


def _commented(project: Project, rng: Random) -> Project | None:
    """Some statements get a comment above, at their end, or an empty line."""
    spots: list[Spot] = []
    for spot in drawn(project, rng):
        spots = [spot] if not spots else [*spots, *([spot] if spot.path == spots[0].path else [])]
        if len(spots) == 4:
            break
    edits: list[Edit] = []
    for spot in spots:
        remark = f"# {rng.choice(_REMARKS)}"
        kind = rng.choice(("above", "end", "blank", "loose"))
        stop = spot.held.span(spot.statement)[1]
        if kind == "end" and spot.held.text[stop : stop + 1] == "\n":
            edits.append((stop, stop, f"  {remark}"))
        elif kind == "blank" and spot.index:
            edits.append((spot.start, spot.start, "\n"))
        else:
            lines = [remark, ""] if kind == "loose" and spot.index else [remark]
            edits.append((spot.start, spot.start, block(spot.indent, *lines)))
    return with_lines(project, spots[0], edits) if spots else None


def _documented(project: Project, rng: Random) -> Project | None:
    """A function, or all of a file, gets a docstring."""
    paths = list(project.files)
    rng.shuffle(paths)
    for path in paths:
        try:
            held = text(project.files[path])
        except (Unsure, SyntaxError):
            continue
        bare = [
            node
            for node in ast.walk(held.tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is None
            and node.body[0].lineno > node.lineno
            and held.text[held.lines[node.body[0].lineno - 1] :][
                : node.body[0].col_offset
            ].isspace()
        ]
        if not bare:
            continue
        some = bare if rng.random() < 0.3 else rng.sample(bare, min(2, len(bare)))
        edits = []
        for node in some:
            first = node.body[0]
            lines = [first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))]
            at = held.lines[min(lines) - 1]
            while held.text[: at - 1].rpartition("\n")[2].lstrip().startswith("#"):
                at = held.text.rfind("\n", 0, at - 1) + 1
            indent = " " * first.col_offset
            string = rng.choice(_DOCSTRINGS).format(indent=indent)
            edits.append((at, at, f"{indent}{string}\n".replace(f"\n{indent}\n", "\n\n")))
        changed = "".join(held.text[s:e] for s, e, _ in edits) == "" and edits
        if changed:
            from generated.refactor.code.identifiers import edited

            return project.changed(path, edited(held.text, edits))
    return None


def _bare(project: Project, rng: Random) -> Project | None:
    """All comments of a file go."""
    import io
    import tokenize

    paths = list(project.files)
    rng.shuffle(paths)
    for path in paths:
        source = project.files[path]
        lines = source.splitlines(keepends=True)
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        comments = [
            t for t in tokens if t.type == tokenize.COMMENT and not t.string.startswith("#!")
        ]
        if not comments:
            continue
        for token in reversed(comments):
            row, column = token.start
            kept = lines[row - 1][:column].rstrip()
            lines[row - 1] = f"{kept}\n" if kept else ""
        return project.changed(path, "".join(lines))
    return None


REFACTORINGS = (
    Refactoring("comments and blank lines", "noise", _commented),
    Refactoring("functions get docstrings", "noise", _documented),
    Refactoring("comments go", "noise", _bare),
)
