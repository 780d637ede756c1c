"""Read a checkout with nothing but `ast`: which Apex AMP uses it holds, and how its files fit together.

This shares no code with the codemod, so that a site the codemod overlooks still counts.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_API = {
    "initialize",
    "scale_loss",
    "master_params",
    "state_dict",
    "load_state_dict",
    "disable_casts",
    "half_function",
    "float_function",
    "promote_function",
    "register_half_function",
    "register_float_function",
    "register_promote_function",
    "_amp_state",
}


@dataclass(frozen=True, slots=True)
class Use:
    """One use of Apex AMP: the `kind` is "import" or the name of the API that is used."""

    path: str
    line: int
    kind: str


@dataclass(frozen=True, slots=True)
class Scan:
    """The uses in one checkout, and the files that mention Apex but are no Python 3."""

    uses: tuple[Use, ...]
    unparsed: tuple[str, ...]

    def count(self, kind: str | None = None) -> int:
        """Return the number of uses, of one kind or of all."""
        return sum(kind in (None, use.kind) for use in self.uses)


def code_files(folder: Path) -> Iterator[Path]:
    """Yield the Python files and notebooks of a checkout, by name."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".ipynb") and path.is_file() and not path.is_symlink():
            yield path


def scan(folder: Path) -> Scan:
    """Return the Apex AMP uses of a checkout."""
    uses: list[Use] = []
    unparsed: list[str] = []
    for path in code_files(folder):
        data = path.read_bytes()
        if b"apex" not in data and b"scale_loss" not in data and b"master_params" not in data:
            continue
        name = path.relative_to(folder).as_posix()
        tree = parsed(path, data)
        if tree is None:
            unparsed.append(name)
        else:
            uses += [Use(name, line, kind) for line, kind in _uses(tree)]
    return Scan(tuple(sorted(uses, key=lambda use: (use.path, use.line))), tuple(unparsed))


def parsed(path: Path, data: bytes) -> ast.Module | None:
    """Return the syntax tree of a file; None where it is no Python 3."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(_cells(data) if path.suffix == ".ipynb" else data)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _cells(data: bytes) -> str:
    """Return the code of a notebook; shell and magic lines become `pass`."""
    lines: list[str] = []
    for cell in json.loads(data).get("cells", ()):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or source.startswith("%%"):
            continue
        for line in source.splitlines():
            bare = line.lstrip()
            magic = bare.startswith(("!", "%", "?"))
            lines.append(line[: len(line) - len(bare)] + "pass" if magic else line)
    return "\n".join(lines) + "\n"


def _uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    apex, other = _bindings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and _imports_amp(node):
            yield node.lineno, "import"
        elif isinstance(node, ast.Attribute) and node.attr in _API:
            base = ast.unparse(node.value)
            if base in apex or (base not in other and _amp_by_name(base, node.attr)):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id in apex and node.id in _API:
            yield node.lineno, node.id


def _amp_by_name(base: str, attribute: str) -> bool:
    """Tell whether what is passed around is Apex AMP or wraps it: all there is to go by is its name."""
    return base.split(".")[-1] == "amp" or (
        attribute == "scale_loss" and "amp" in base.split(".")[0]
    )


def _imports_amp(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.startswith("apex.amp") for alias in node.names)
    if node.module == "apex":
        return any(alias.name == "amp" for alias in node.names)
    return (node.module or "").startswith("apex.amp")


def _bindings(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names that stand for Apex AMP (or are of it), and those of another library's amp."""
    apex = {"apex.amp"}
    other = {"torch.amp", "torch.cuda.amp"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("apex.amp"):
                    apex.add(alias.asname or alias.name)
                elif alias.name.startswith("apex") and alias.asname:
                    apex.add(f"{alias.asname}.amp")
                elif alias.name.endswith(".amp"):
                    other.add(alias.asname or alias.name)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name for alias in node.names}
            if _imports_amp(node):
                apex |= names
            elif (node.module or "").split(".")[0] in ("torch", "mxnet"):
                other |= names
    return apex, other - apex
