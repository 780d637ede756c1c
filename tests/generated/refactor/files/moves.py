"""Definitions go to another file: a new module or package, or one that there is."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from random import Random

from generated.refactor.code.identifiers import Edit, Text, Unsure, edited, text
from generated.refactor.code.importing import absolute, dotted, imports
from generated.refactor.files.restyle import STYLES, restyled, taken
from generated.refactor.noise.spots import MATTERS, below_imports
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

Definition = ast.FunctionDef | ast.ClassDef
_BY_NAME = re.compile(
    r"\bsys\.modules\b|\b(globals|vars)\(\)"
)  # what the file defines is asked for
_STEMS = ("helpers", "core", "parts", "steps", "common", "routines", "lib")


@dataclass(frozen=True)
class Group:
    """Definitions of a file that can leave it: all that they need goes along, or is imported."""

    path: str
    held: Text
    names: frozenset[str]

    @property
    def nodes(self) -> list[ast.stmt]:
        """The statements, in order."""
        return [s for s in self.held.tree.body if _defined(s) & self.names]


def _defined(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign) and all(
        isinstance(t, ast.Name) for t in statement.targets
    ):
        if _constant(statement.value):
            return {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return set()


def _constant(value: ast.expr) -> bool:
    inside = ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.Set | ast.UnaryOp | ast.BinOp
    return all(
        isinstance(n, inside | ast.operator | ast.unaryop | ast.expr_context)
        for n in ast.walk(value)
    )


def group(project: Project, path: str, seeds: Iterable[str]) -> Group | None:
    """Return the definitions of these names with what they need from the same file; None where one must stay."""
    held = text(project.files[path])
    if _BY_NAME.search(held.text):
        return None
    module = held.scopes[0]
    homes = {name: s for s in held.tree.body for name in _defined(s)}
    stores = [n.id for s in held.tree.body for n in ast.walk(s) if _stores(n)]  # type: ignore[attr-defined]
    waiting, found = list(seeds), set[str]()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        home = homes.get(name)
        once = isinstance(home, ast.Assign) and stores.count(name) == 1
        if home is None or name == "main" or not (isinstance(home, Definition) or once):
            return None
        if sum(name in _defined(s) for s in held.tree.body) > 1 or name in module.imported:
            return None
        if any(isinstance(n, ast.Global) or _tells(n) for n in ast.walk(home)):
            return None
        found.add(name)
        start, stop = held.span(home)
        start = min([start, *(held.span(d)[0] for d in getattr(home, "decorator_list", []))])
        for place in held.places:
            if start <= place.start < stop and place.kind == "name":
                owner = place.scope.home(place.name)
                if owner is module and place.name not in module.imported:
                    waiting.append(place.name)
                elif owner is None and place.name not in dir(builtins):
                    return None  # a star brings it
    return Group(path, held, frozenset(found))


def _stores(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _tells(node: ast.AST) -> bool:
    """Tell whether code asks where it stands."""
    return isinstance(node, ast.Name) and node.id in (
        "__name__",
        "__file__",
        "globals",
        "eval",
        "exec",
    )


def moved(project: Project, held: Group, to: str, spelt: str, rng: Random) -> Project | None:
    """Return the project with a group in the file `to`, which others import as `spelt`.

    The file may be there already. Files that took the names from the old place take them from the new one.
    """
    if _relative(held) and PurePosixPath(to).parent != PurePosixPath(held.path).parent:
        return None
    if not _importable(project, held, to):
        return None
    names = held.names
    spans = [_whole(held.held, node) for node in held.nodes]
    body = "\n\n\n".join(held.held.text[a:b].strip("\n") for a, b in spans)
    needed = _read(held.held, spans) & held.held.scopes[0].imported
    brought = [s for s in held.held.tree.body if _binds(s) & needed]
    if needed - set().union(set(), *map(_binds, brought)):
        return None
    if any(_own(held.held, s) for s in brought):
        return None
    header = [_narrow(held.held, s, needed) for s in brought]
    files = dict(project.files)
    there = _joined(project, to, header, body, names)
    if there is None:
        return None
    files[to] = there
    rest = edited(held.held.text, [(a, b, "") for a, b in spans])
    rest = _without_idle(project, held, _tidy(rest), needed)
    if rest is None:
        return None
    left = text(rest)
    uses = {p.name for p in left.places if p.kind in ("name", "declared")} & names
    importers = [path for path in project.files if path != held.path]
    for path in importers:
        if path == to:
            continue
        changed = _retaken(project, path, held.path, names, spelt)
        if changed is None:
            return None
        files[path] = changed
    if uses:
        at = below_imports(left)
        line = f"from {spelt} import {', '.join(sorted(uses))}\n"
        rest = edited(rest, [(at, at, line)])
    files[held.path] = rest
    changed = _without_empty(replace(project, files=files), held.path)
    return changed if _runs_as_before(project, changed, held.path, to) else None


def _runs_as_before(before: Project, after: Project, old: str, to: str) -> bool:
    """Tell whether the new file imports itself on no way, and no file is left out that did something."""
    if to in _reached(after, _imported(after, to)):
        return False
    lost = _reached(before, [before.entry]) - _reached(after, [after.entry])
    return lost <= {old} and not (lost and _acts(before, old))


def _acts(project: Project, path: str) -> bool:
    """Tell whether a file does more than to define, or imports a module for what that does."""
    held = text(project.files[path])
    if any(not (_binds(s) or _defined(s) or _doc(s)) for s in held.tree.body):
        return True
    used = {p.name for p in held.places if p.kind in ("name", "declared")}
    return any(i.path and i.bound not in used for i in imports(project, path, held.tree))


def _imported(project: Project, path: str) -> list[str]:
    return [i.path for i in imports(project, path, text(project.files[path]).tree) if i.path]


def _reached(project: Project, starts: Iterable[str]) -> set[str]:
    """Return files with all that they import."""
    seen, waiting = set[str](), list(starts)
    while waiting:
        path = waiting.pop()
        if path not in seen and path in project.files:
            seen.add(path)
            waiting += _imported(project, path)
    return seen


def _without_empty(project: Project, path: str) -> Project:
    """Return the project without a file that has nothing left but imports, if nothing imports it."""
    if path == project.entry or path.endswith("__init__.py"):
        return project
    if any(not _binds(s) and not _doc(s) for s in text(project.files[path]).tree.body):
        return project
    for other, source in project.files.items():
        if any(i.path == path for i in imports(project, other, text(source).tree)):
            return project
    return replace(project, files={k: v for k, v in project.files.items() if k != path})


def _relative(held: Group) -> bool:
    return any(isinstance(s, ast.ImportFrom) and s.level for s in held.held.tree.body)


def _importable(project: Project, held: Group, to: str) -> bool:
    """Tell whether nobody takes a name as an attribute, by a star or inside a function, nor the new file the old one."""
    for path in project.files:
        reader = text(project.files[path])
        for i in imports(project, path, reader.tree):
            if (
                i.path == held.path
                and path != held.path
                and (i.item in ("", "*") or i.node not in reader.tree.body)
            ):
                return False
    return held.path not in _reached(project, [to])


def _whole(held: Text, node: ast.stmt) -> tuple[int, int]:
    """Return the span of a definition with the comments and decorators above it, and the empty lines below."""
    lines = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]
    line = min(lines) - 1
    rows = held.text.split("\n")
    while line and rows[line - 1].startswith("#"):
        line -= 1
    stop = node.end_lineno or 0
    while stop < len(rows) - 1 and not rows[stop].strip():
        stop += 1
    return held.lines[line], held.lines[stop] if stop < len(held.lines) else len(held.text)


def _read(held: Text, spans: Sequence[tuple[int, int]]) -> set[str]:
    module = held.scopes[0]
    return {
        p.name
        for p in held.places
        if p.kind in ("name", "declared")
        and p.scope.home(p.name) is module
        and any(a <= p.start < b for a, b in spans)
    }


def _own(held: Text, statement: ast.stmt) -> set[str]:
    """Return the names of the module that the guard of an import reads, besides what it binds itself."""
    loads = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and not _stores(n))
    return ({n.id for n in loads} & held.scopes[0].bound) - _binds(statement)


def _binds(statement: ast.stmt) -> set[str]:
    """Return what an import binds, with the guard around it."""
    if isinstance(statement, ast.Try | ast.If):
        if not _guards(statement):
            return set()
        inside = [n for n in ast.walk(statement) if isinstance(n, ast.Import | ast.ImportFrom)]
        stored = {n.id for n in ast.walk(statement) if _stores(n)}  # type: ignore[attr-defined]
        return stored | set().union(*map(_binds, inside)) if inside else set()
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).partition(".")[0] for a in statement.names}
    return set()


def _guards(statement: ast.Try | ast.If) -> bool:
    """Tell whether a compound statement is there for imports alone."""
    simple = ast.Import | ast.ImportFrom | ast.Assign | ast.Raise | ast.Pass | ast.Expr
    inner = [n for n in ast.walk(statement) if isinstance(n, ast.stmt) and n is not statement]
    return all(isinstance(n, simple) for n in inner) and "__name__" not in ast.unparse(statement)


def _narrow(held: Text, statement: ast.stmt, needed: set[str]) -> str:
    """Return an import with only the names that are needed."""
    if isinstance(statement, ast.Import | ast.ImportFrom) and len(statement.names) > 1:
        kept = [a for a in statement.names if (a.asname or a.name).partition(".")[0] in needed]
        return ast.unparse(type(statement)(**{**vars(statement), "names": kept}))
    return held.source(statement)


def _joined(
    project: Project, to: str, header: list[str], body: str, names: frozenset[str]
) -> str | None:
    """Return the text of the new file, or of one that gets more."""
    if to not in project.files or not project.files[to].strip():
        return "\n".join(header) + ("\n\n\n" if header else "") + body + "\n"
    held = text(project.files[to])
    bound = held.scopes[0].bound
    lines = {ast.unparse(s) for s in held.tree.body}
    missing = [h for h in header if ast.unparse(ast.parse(h).body[0]) not in lines]
    new = set().union(set(), *(_binds(ast.parse(h).body[0]) for h in missing))
    if (names | new) & bound or any(n in p.name for p in held.places for n in names if n == p.name):
        return None
    if any(
        isinstance(s, ast.If | ast.For | ast.With | ast.Expr) and not _doc(s)
        for s in held.tree.body
    ):
        return None
    at = below_imports(held)
    above = "".join(f"{h}\n" for h in missing)
    return (
        edited(held.text.rstrip("\n") + "\n", [(at, at, above)] if above else []) + f"\n\n{body}\n"
    )


def _doc(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tidy(source: str) -> str:
    return re.sub(r"\n{4,}", "\n\n\n", source).rstrip("\n") + "\n"


def _without_idle(project: Project, held: Group, rest: str, needed: set[str]) -> str | None:
    """Return what stays without the imports that only the group used."""
    left = text(rest)
    used = {p.name for p in left.places if p.kind in ("name", "declared")}
    for path in project.files:
        for i in imports(project, path, text(project.files[path]).tree):
            if i.path == held.path:
                used.add(i.item)
    edits: list[Edit] = []
    for statement in left.tree.body:
        bound = _binds(statement)
        if not bound & needed or isinstance(statement, ast.If):
            continue
        kept = bound & used
        if isinstance(statement, ast.Try):
            # its own assignments are uses of no one
            reads = {
                p.name for p in left.places if p.name in bound and _asked(left, statement, p.start)
            }
            if not reads:
                edits.append((*_row(left, statement), ""))
        elif not kept:
            edits.append((*_row(left, statement), ""))
        elif kept != bound and isinstance(statement, ast.Import | ast.ImportFrom):
            edits.append((*left.span(statement), _narrow(left, statement, kept)))
    return edited(rest, edits)


def _asked(left: Text, statement: ast.stmt, start: int) -> bool:
    a, b = left.span(statement)
    return not a <= start < b


def _row(held: Text, node: ast.stmt) -> tuple[int, int]:
    stop = node.end_lineno or 0
    return held.lines[node.lineno - 1], held.lines[stop] if stop < len(held.lines) else len(
        held.text
    )


def _retaken(
    project: Project, path: str, old: str, names: frozenset[str], spelt: str
) -> str | None:
    """Return a file that takes some names from the new place."""
    held = text(project.files[path])
    edits: list[Edit] = []
    for node in held.tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        here = {i.alias: i for i in imports(project, path, node) if i.path == old}
        leaving = [a for a in node.names if a in here and a.name in names]
        if not leaving:
            continue
        module = _from_root(spelt, old) if spelt.startswith(".") else spelt
        lines = [f"from {module} import {', '.join(map(ast.unparse, leaving))}"]
        staying = [a for a in node.names if a not in leaving]
        if staying:
            lines.insert(0, ast.unparse(ast.ImportFrom(node.module, staying, node.level)))
        edits.append((*held.span(node), "\n".join(lines)))
    return edited(held.text, edits)


def _from_root(spelt: str, old: str) -> str:
    return absolute(ast.parse(f"from {spelt} import x").body[0], old)  # type: ignore[arg-type]


def _new_module(project: Project, rng: Random) -> Project | None:
    """Definitions of a file move to a new module beside it, or into a new package."""
    for held in _drawn(project, rng):
        to, spelt, more = _place(project, held, rng, rng.choice(("beside", "beside", "package")))
        changed = moved(replace(project, files={**project.files, **more}), held, to, spelt, rng)
        if changed is not None:
            return _maybe_restyled(changed, to, rng)
    return None


def _drawn(project: Project, rng: Random, whole: bool = False) -> list[Group]:
    """Return groups that can move, in random order; those of the training are more likely."""
    found: list[tuple[float, Group]] = []
    try:
        paths = [p for p in project.files if not p.endswith("__init__.py")]
        for path in paths:
            held = text(project.files[path])
            definitions = [
                s for s in held.tree.body if isinstance(s, Definition) and s.name != "main"
            ]
            for node in definitions:
                weight = 2.0 if MATTERS.search(held.source(node)) else 1.0
                found.append((rng.random() ** (1 / weight), node.name, path))  # type: ignore[arg-type]
        found.sort(reverse=True)
        groups = []
        for _, name, path in found[:6]:  # type: ignore[misc]
            others = [
                s.name for s in text(project.files[path]).tree.body if isinstance(s, Definition)
            ]
            more = [n for n in others if n != "main" and rng.random() < 0.3]
            held_group = group(project, path, [name, *more]) or group(project, path, [name])
            if held_group is not None:
                groups.append(held_group)
        return groups
    except (Unsure, SyntaxError):
        return []


def _place(
    project: Project, held: Group, rng: Random, kind: str
) -> tuple[str, str, dict[str, str]]:
    """Return a new path, how the old file spells it, and further files."""
    folder = PurePosixPath(held.path).parent
    taken_names = {PurePosixPath(p).stem for p in project.files} | {
        PurePosixPath(p).parts[0] for p in project.files
    }
    words = set(re.findall(r"\w+", project.text))
    stems = [s for s in _STEMS if s not in taken_names | words] or [f"part_{len(project.files)}"]
    stem = rng.choice(stems)
    beside_entry = str(folder) == str(PurePosixPath(project.entry).parent)
    if kind == "package" and beside_entry:
        package = next(
            s
            for s in ("library", "toolkit", "src_code", "pack_3", "pack_4", "pack_5")
            if s not in taken_names | words
        )
        more = {str(folder / package / "__init__.py"): ""}
        return str(folder / package / f"{stem}.py"), f"{package}.{stem}", more
    if beside_entry:
        return str(folder / f"{stem}.py"), stem, {}
    return (
        str(folder / f"{stem}.py"),
        f".{stem}"
        if rng.random() < 0.5 and _has_init(project, folder)
        else (f"{dotted(str(folder / stem))}"),
        {},
    )


def _has_init(project: Project, folder: PurePosixPath) -> bool:
    return str(folder / "__init__.py") in project.files


def _maybe_restyled(project: Project, to: str, rng: Random) -> Project:
    """Let the import of a new file have any style."""
    if rng.random() < 0.5:
        return project
    try:
        for place in taken(project):
            if place.source == to and rng.random() < 0.7:
                changed = restyled(project, place, rng.choice(STYLES), rng)
                if changed is not None:
                    return changed
    except (Unsure, SyntaxError):
        return project
    return project


_KINDS = {
    "models": r"nn\.Module|def forward",
    "data": r"Dataset|DataLoader|torch\.rand",
    "engine": r"backward|scale_loss|\.step\(|no_grad",
    "utils": r".",
}


def by_kind(project: Project, rng: Random) -> Project | None:
    """A file becomes several: models, data, training, and the rest."""
    paths = [p for p in project.files if not p.endswith("__init__.py")]
    rng.shuffle(paths)
    for path in paths:
        changed = project
        count = 0
        for kind, pattern in _KINDS.items():
            if path not in changed.files:
                break
            if kind == "utils" and rng.random() < 0.5:
                continue
            try:
                held = text(changed.files[path])
                seeds = [
                    s.name
                    for s in held.tree.body
                    if isinstance(s, Definition)
                    and s.name != "main"
                    and re.search(pattern, held.source(s))
                ]
                found = group(changed, path, seeds) if seeds else None
                if seeds and found is None:
                    loose = [name for name in seeds if group(changed, path, [name])]
                    found = group(changed, path, loose) if loose else None
                if found is None:
                    continue
                folder = PurePosixPath(path).parent
                stem = next(
                    s
                    for s in (
                        kind,
                        f"{kind}_part",
                        f"{kind}_2",
                        f"{kind}_3",
                        f"{kind}_{rng.random()}",
                    )
                    if str(folder / f"{s}.py") not in changed.files
                    and str(folder / s / "__init__.py") not in changed.files
                    and not re.search(rf"\b{s}\b", re.sub(r"[\"'#].*", "", changed.text))
                )
                beside_entry = str(folder) == str(PurePosixPath(project.entry).parent)
                spelt = stem if beside_entry else dotted(str(folder / stem))
                after = moved(changed, found, str(folder / f"{stem}.py"), spelt, rng)
            except (Unsure, SyntaxError):
                continue
            if after is not None:
                changed, count = _maybe_restyled(after, str(folder / f"{stem}.py"), rng), count + 1
        if count:
            return changed
    return None


def _to_another(project: Project, rng: Random) -> Project | None:
    """Definitions move from one file to another that there is."""
    for held in _drawn(project, rng):
        others = [
            p
            for p in project.files
            if p not in (held.path, project.entry) and not p.endswith("__init__.py")
        ]
        rng.shuffle(others)
        for to in others:
            folder = str(PurePosixPath(to).parent)
            beside = folder == str(PurePosixPath(project.entry).parent)
            if not beside and not _has_init(project, PurePosixPath(folder)):
                continue
            spelt = PurePosixPath(to).stem if beside else dotted(to)
            try:
                changed = moved(project, held, to, spelt, rng)
            except (Unsure, SyntaxError):
                continue
            if changed is not None:
                return changed
    return None


REFACTORINGS = (
    Refactoring("definitions move to a new module", "files", _new_module),
    Refactoring("a file becomes several", "files", by_kind),
    Refactoring("definitions move to another module", "files", _to_another),
)
