"""What a file asks of a module that it imports, which may be the file itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.modules.model import Module

IMPORTERS = frozenset({"import_module", "__import__"})
_CALL = rb"(?:\w+\.)*(?:import_module|__import__)\("
_KEPT = re.compile(rb"\b(\w+)[ \t]*=[^=\n]*?" + _CALL)
_READ_AT_ONCE = re.compile(_CALL + rb"[^\n]*\)[ \t]*\.[ \t]*(\w+)")
_PACKAGE = re.compile(_CALL + rb"\s*f?[\"']([\w.]+)\.(?:[\"'{%]|[\"'][ \t]*[+%])")
_LOOKS_UP = re.compile(rb"\bgetattr\b")


def imports(call: ast.Call) -> str | None:
    """Return the name of the module that a call imports."""
    return string(call.args[0]) if call.args and last_name(call) in IMPORTERS else None


def asked_of(module: Module, dotted: str) -> Iterator[str]:
    """Yield the names that a file reads off a module which it imports, or imports from it."""
    tree = module.tree
    for node in tree.nodes(ast.ImportFrom):
        if node.module == dotted and not node.level:
            yield from (alias.name for alias in node.names)
    named = {
        alias.asname or alias.name
        for node in tree.nodes(ast.Import)
        for alias in node.names
        if alias.name == dotted
    }
    named |= {
        target.id
        for node in tree.nodes(ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
        if isinstance(node.value, ast.Call) and imports(node.value) == dotted
    }
    for attribute in tree.nodes(ast.Attribute):
        if isinstance(attribute.value, ast.Name) and attribute.value.id in named:
            yield attribute.attr


def read_off(data: bytes) -> frozenset[str]:
    """Return the names of what may be read as attributes of such modules: of the variables that hold them, or at once."""
    kept = {re.escape(name) for name in _KEPT.findall(data)}
    found = set(_READ_AT_ONCE.findall(data))
    if kept:
        found |= set(re.findall(rb"\b(?:" + b"|".join(sorted(kept)) + rb")\.(\w+)", data))
    return frozenset(name.decode() for name in found)


def looked_up_in(data: bytes) -> list[str]:
    """Return the packages of which such modules are by the text that their names begin with, where something is looked up by name."""
    if not _LOOKS_UP.search(data):
        return []
    return [name.decode() for name in _PACKAGE.findall(data)]


def defines(names: frozenset[str]) -> re.Pattern[bytes]:
    """Return what finds the definition of one of some names in the text of a file."""
    either = "|".join(re.escape(name) for name in sorted(names)).encode()
    return re.compile(rb"^[ \t]*(?:class|def|async[ \t]+def)[ \t]+(?:" + either + rb")\b", re.M)
