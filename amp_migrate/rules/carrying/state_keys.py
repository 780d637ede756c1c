"""Under which keys checkpoints hold Apex's state, and whether all who save and load can be renamed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import path, root
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import run_around
from amp_migrate.training.beliefs import CHECKPOINT_NAME

_SETTINGS = ("json", "yaml", "toml", "tomllib", "np", "numpy")


@dataclass(frozen=True, slots=True)
class StateKeys:
    """The strings to rename: by the site that they serve, and those that other functions read by.

    `kept`: where someone saves or loads in a way that cannot be followed, every key stays as it is.
    """

    own: dict[Site, list[ast.Constant]]
    others: list[tuple[Module, ast.Constant]]
    kept: bool


_APEX_WORD = re.compile(r"(apex_amp|amp|apex)_|_(apex_amp|amp|apex)")


def state_keys(project: Project, sites: list[Site]) -> StateKeys:
    """Find the keys of the sites that save and load the state."""
    own = {site: _keys(site) for site in sites}
    taken = {node for found in own.values() for node in found}
    names = {str(node.value) for node in taken}
    names |= {keyword for site in sites if (keyword := keyword_of(site)[0])}
    others = [
        (module, node)
        for module, node in project.nodes(ast.Constant)
        if node not in taken and node.value in names and _in_checkpoint(project, module, node)
    ]
    beside = run_around(project, *(site.function for site in sites)) if others else set()
    others = [(m, node) for m, node in others if project.function_of(m, node) in beside]
    unseen = {site.kind for site in sites if _unseen(site)}
    kept = Kind.STATE_DICT in unseen or (Kind.LOAD_STATE_DICT in unseen and not others)
    return StateKeys(own, others, kept)


def native_key(text: str) -> str:
    """Return the string literal of a checkpoint key with `amp` (or `apex`) in it spelt `scaler`, or left out beside that."""
    if "scaler" in text:
        shorter = _APEX_WORD.sub("", text)
        text = shorter if "scaler" in shorter else text
    return text.replace("apex_amp", "scaler").replace("amp", "scaler").replace("apex", "scaler")


def keyword_of(site: Site) -> tuple[str, ast.Call | None]:
    """Return the keyword that names the state in ``dict(amp=amp.state_dict())``, with its call."""
    parents = site.module.tree.parents
    up = parents.get(site.node)
    while isinstance(up, ast.IfExp):
        up = parents.get(up)
    if not isinstance(up, ast.keyword) or up.arg is None or not _of_apex(up.arg):
        return "", None
    call = parents[up]
    made = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "dict"
    return (up.arg, call) if made and isinstance(call, ast.Call) else ("", None)


def _of_apex(name: object) -> bool:
    return isinstance(name, str) and ("amp" in name or "apex" in name)


def _unseen(site: Site) -> bool:
    """Tell whether the state goes to, or comes from, where no key can be seen."""
    return _key(site)[0] is None and not keyword_of(site)[0]


def _key(site: Site) -> tuple[ast.Constant | None, str | None]:
    if site.kind is Kind.STATE_DICT:
        return _saved_under(site.module.tree.parents, site.node)
    return _loaded_from(site.call)


def _keys(site: Site) -> list[ast.Constant]:
    """Return the string constants that name the state in its checkpoint, all over the function."""
    key, owner = _key(site)
    if key is None or not _of_apex(key.value):
        return []
    found = [key]
    parents = site.module.tree.parents
    for node in site.function.all_nodes if owner is not None else ():
        if isinstance(node, ast.Constant) and node.value == key.value:
            if any(root(expr) == owner for expr in _owners(parents, node)):
                found.append(node)
    return list(dict.fromkeys(found))


def _saved_under(
    parents: dict[ast.AST, ast.AST], node: ast.AST
) -> tuple[ast.Constant | None, str | None]:
    up = parents.get(node)
    while isinstance(up, ast.IfExp):
        node, up = up, parents.get(up)
    if isinstance(up, ast.Dict):
        for key, value in zip(up.keys, up.values, strict=True):
            if value is node and isinstance(key, ast.Constant):
                return key, None
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        target = up.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            return target.slice, root(target)
    return None, None


def _loaded_from(call: ast.Call) -> tuple[ast.Constant | None, str | None]:
    argument = call.args[0] if call.args else None
    if isinstance(argument, ast.Subscript) and isinstance(argument.slice, ast.Constant):
        return argument.slice, root(argument)
    if (
        isinstance(argument, ast.Call)
        and argument.args
        and isinstance(argument.args[0], ast.Constant)
    ):
        return argument.args[0], root(argument)
    return None, None


def _owners(parents: dict[ast.AST, ast.AST], node: ast.Constant) -> Iterator[ast.expr]:
    """Yield the mappings in which a string is looked up as a key, and those that are made with it."""
    up = parents.get(node)
    if isinstance(up, ast.Dict) and node in up.keys:
        made = parents.get(up)
        yield from made.targets if isinstance(made, ast.Assign) else ()
    if isinstance(up, ast.Subscript):
        yield up.value
    elif isinstance(up, ast.Compare):
        for other in up.comparators:
            yield other.func.value if _keys_call(other) else other  # type: ignore[attr-defined]
    elif isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute):
        if up.func.attr in ("get", "pop"):
            yield up.func.value


def _keys_call(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "keys"
    )


def _in_checkpoint(project: Project, module: Module, node: ast.Constant) -> bool:
    """Tell whether a string is looked up in what a function loaded, or calls a checkpoint."""
    function = project.function_of(module, node)
    return any(_is_checkpoint(function, owner) for owner in _owners(module.tree.parents, node))


def _is_checkpoint(function: Function, owner: ast.expr) -> bool:
    if _loads(owner):
        return True
    dotted = path(owner)
    if dotted is None:
        return False
    if CHECKPOINT_NAME.search(dotted.rpartition(".")[2]):
        return True
    return any(
        isinstance(part, ast.Assign)
        and _loads(part.value)
        and any(path(target) == dotted for target in part.targets)
        for part in function.own_nodes
    )


def _loads(node: ast.expr) -> bool:
    dotted = path(node.func) if isinstance(node, ast.Call) else None
    return (
        dotted is not None
        and "load" in dotted.rpartition(".")[2]
        and dotted.partition(".")[0] not in _SETTINGS
    )
