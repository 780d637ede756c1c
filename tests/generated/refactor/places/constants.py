"""Moves literals out of the code: module constants, class attributes, a dict, a module of settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from random import Random

from generated.refactor.code.calls import words
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, imported, sources
from generated.refactor.places.containers import outermost
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_AROUND = ast.JoinedStr | ast.Subscript | ast.UnaryOp | ast.Dict | ast.arguments | ast.MatchValue


def _literals(src: Source) -> list[ast.Constant]:
    """Return the numbers and words that could be constants."""
    found = []
    for node in ast.walk(src.tree):
        if not isinstance(node, ast.Constant) or isinstance(node.value, bool | bytes | None):
            continue
        around = src.parents[node]
        if isinstance(around, _AROUND | ast.Expr | ast.FormattedValue) or _annotation(src, node):
            continue
        if isinstance(node.value, str) and not _setting(src, around):
            continue
        here = src.statement(node)
        if src.inside(node, ast.ClassDef) and not src.inside(node, *Function.__args__):
            continue
        if isinstance(here, ast.Assign) and here.value is node and here in src.tree.body:
            continue
        found.append(node)
    return found


def _annotation(src: Source, node: ast.AST) -> bool:
    while not isinstance(node, ast.stmt):
        above = src.parents[node]
        if getattr(above, "annotation", None) is node or getattr(above, "returns", None) is node:
            return True
        if isinstance(above, Function | ast.ClassDef | ast.Import | ast.ImportFrom):
            return True
        node = above
    return False


def _setting(src: Source, around: ast.AST) -> bool:
    return isinstance(around, ast.keyword) and src.code(around).startswith(
        ("opt_level", "loss_scale")
    )


def _word(src: Source, node: ast.Constant) -> str:
    around = src.parents[node]
    if isinstance(around, ast.keyword) and around.arg and around.arg not in ("default", "type"):
        return around.arg
    if isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mod):
        return "interval"
    return "amount" if isinstance(node.value, float) else "count"


def _places(project: Project) -> list[tuple[float, tuple[str, Source, list[ast.Constant]]]]:
    found = []
    for path, src in sources(project).items():
        for node in _literals(src):
            heavy = re.search(r"initialize|clip_|scale_loss|%", src.code(src.statement(node))[:200])
            light = "add_argument" in src.code(src.statement(node))[:200]
            weight = 40.0 if heavy else 0.3 if light else 1.0
            found.append((weight, (path, src, [node])))
    return found


def _named(
    project: Project, rng: Random, src: Source, nodes: list[ast.Constant], upper: bool
) -> dict[ast.Constant, str]:
    taken = {w.lower() for w in words(project)} if upper else set()
    found: dict[ast.Constant, str] = {}
    for node in nodes:
        stem = _word(src, node)
        every = (stem.upper() if upper else stem, *(f"{stem}_{k}" for k in range(2, 99)))
        used = set(found.values()) | (words(project) if upper else taken)
        found[node] = next(
            n.upper() if upper else n for n in every if (n.upper() if upper else n) not in used
        )
    return found


def _apply(how: str) -> Callable[[Project, Random], Project | None]:
    def apply(project: Project, rng: Random) -> Project | None:
        every = _places(project)

        def one(place: tuple[str, Source, list[ast.Constant]]) -> Project | None:
            path, src, nodes = place
            if how in ("class", "dict", "module"):
                rest = [(w, n[0]) for w, (p, _, n) in every if p == path and n[0] is not nodes[0]]
                nodes = [*nodes, *list(drawn(rng, rest))[: rng.choice([0, 0, 1, 2])]]
            return _CHANGES[how](project, rng, path, src, nodes)

        return first(drawn(rng, every), one)

    return apply


def _spelled(src: Source, found: dict[ast.Constant, str], pattern: str) -> list[Edit]:
    return [Edit(*src.span(node), pattern.format(name)) for node, name in found.items()]


def _headed(
    project: Project, path: str, src: Source, header: str, edits: list[Edit]
) -> Project | None:
    at = src.top()
    lead = "\n" if at and not src.text[:at].endswith("\n\n") else ""
    tail = "" if src.text[at:].startswith("\n") else "\n"
    text = src.edited([Edit(at, at, lead + header + tail), *edits])
    return None if text is None else project.changed(path, text)


def _to_module(
    project: Project, rng: Random, path: str, src: Source, nodes: list[ast.Constant]
) -> Project | None:
    found = _named(project, rng, src, nodes, upper=True)
    header = "".join(f"{name} = {src.code(node)}\n" for node, name in found.items())
    return _headed(project, path, src, header, _spelled(src, found, "{}"))


def _to_class(
    project: Project, rng: Random, path: str, src: Source, nodes: list[ast.Constant]
) -> Project | None:
    found = _named(project, rng, src, nodes, upper=rng.random() < 0.7)
    kind = fresh(project, rng, ("Config", "Settings", "Options", "Hparams"))
    rows = "".join(f"{src.unit}{name} = {src.code(node)}\n" for node, name in found.items())
    edits = _spelled(src, found, kind + ".{}")
    return _headed(project, path, src, f"\nclass {kind}:\n{rows}", edits)


def _to_dict(
    project: Project, rng: Random, path: str, src: Source, nodes: list[ast.Constant]
) -> Project | None:
    found = _named(project, rng, src, nodes, upper=False)
    kind = fresh(project, rng, ("CONFIG", "SETTINGS", "HPARAMS", "cfg"))
    rows = ", ".join(f'"{name}": {src.code(node)}' for node, name in found.items())
    edits = _spelled(src, found, kind + '["{}"]')
    return _headed(project, path, src, f"{kind} = {{{rows}}}\n", edits)


def _to_own_class(
    project: Project, rng: Random, path: str, src: Source, nodes: list[ast.Constant]
) -> Project | None:
    """Make the literal of a method an attribute of its class."""
    function = src.inside(nodes[0], *Function.__args__, ast.Lambda)
    if not isinstance(function, Function) or function.decorator_list or not function.args.args:
        return None
    klass = src.parents[function]
    if not isinstance(klass, ast.ClassDef) or function.name in ("__new__", "__init_subclass__"):
        return None
    if klass.decorator_list or klass.keywords or "__slots__" in project.text:
        return None
    own = function.args.args[0].arg
    if own != "self" or outermost(src, klass) is not klass or "Enum" in src.text:
        return None
    if isinstance(nodes[0].value, str | int | float) and any(
        nodes[0] is d for d in ast.walk(function.args)
    ):
        return None
    found = _named(project, rng, src, nodes, upper=rng.random() < 0.7)
    if set(found.values()) & words(project):
        return None
    head = klass.body[0]
    rest = klass.body[1:] if ast.get_docstring(klass) is not None else klass.body
    if not rest or not src.alone([head]) or head.lineno == klass.lineno:
        return None
    indent = src.indent(head)
    at = src.above(rest[0])
    rows = "".join(f"{indent}{name} = {src.code(node)}\n" for node, name in found.items())
    edits = [*_spelled(src, found, f"{own}.{{}}"), Edit(at, at, rows + "\n")]
    text = src.edited(edits)
    return None if text is None else project.changed(path, text)


def _to_settings(
    project: Project, rng: Random, path: str, src: Source, nodes: list[ast.Constant]
) -> Project | None:
    """Put constants into a new file beside the script."""
    found = _named(project, rng, src, nodes, upper=True)
    stem = fresh(project, rng, ("settings", "config", "constants", "hparams"))
    folder = project.entry.rpartition("/")[0]
    where = f"{folder}/{stem}.py" if folder else f"{stem}.py"
    if where in project.files:
        return None
    rows = "".join(f"{name} = {src.code(node)}\n" for node, name in found.items())
    whole = rng.random() < 0.5
    names = ", ".join(found.values())
    need = f"import {stem}" if whole else f"from {stem} import {names}"
    text = src.edited(
        [*_spelled(src, found, f"{stem}.{{}}" if whole else "{}"), *imported(src, need)]
    )
    return None if text is None else project.changed(path, text).changed(where, rows)


_CHANGES = {
    "module": _to_module,
    "class": _to_class,
    "dict": _to_dict,
    "own": _to_own_class,
    "settings": _to_settings,
}

REFACTORINGS = (
    Refactoring("literals become module constants", "places", _apply("module")),
    Refactoring("literals become attributes of a config class", "places", _apply("class")),
    Refactoring("literals move into a dict of settings", "places", _apply("dict")),
    Refactoring("literals become attributes of their class", "places", _apply("own")),
    Refactoring("literals move into a module of settings", "places", _apply("settings")),
)
