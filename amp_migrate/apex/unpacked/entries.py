"""What a mapping of options holds where it is unpacked: ``amp.initialize(model, optimizer, **options)``."""

from __future__ import annotations

import ast

from amp_migrate.apex.unpacked.reader import Reader
from amp_migrate.apex.unpacked.writes import SOMETIMES, VARIES, Entries, Unread, at_use, common
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import beside
from amp_migrate.values.written import written


def entries(
    project: Project,
    module: Module,
    mapping: ast.expr,
    use: ast.AST,
    within: frozenset[Function] = frozenset(),
) -> Entries | None:
    """Return what a mapping holds at `use`, values by key; None where not all that writes to it is seen.

    A value is a constant, or an expression that gives it at `use`: what Apex takes by default where no entry is set.
    `within` are the functions whose parameters are followed.
    """
    near = beside(project, module.path)
    files = [m for m in project.modules.values() if m.path in near]
    fixed = written(project.lookup, files, module, mapping)
    if fixed is not None:
        return fixed
    reader = Reader(project, module)
    try:
        given = _handed(reader, mapping, within) if isinstance(mapping, ast.Name) else None
        if given is not None:
            return {key: at_use(mapping, key, value) for key, value in given.items()}
        found = reader.read(mapping, use)
    except Unread:
        return None
    if not isinstance(mapping, ast.Name | ast.Attribute | ast.Subscript):
        varied = any(value in (VARIES, SOMETIMES) for value in found.values())
        return None if varied else found
    if any(not isinstance(found.get(key), ast.Constant | None) for key in reader.late):
        return None
    return {key: at_use(mapping, key, value) for key, value in found.items()}


def _handed(reader: Reader, mapping: ast.Name, within: frozenset[Function]) -> Entries | None:
    """Return what all calls of a function give a parameter that it only looks at; None for anything else."""
    project, module = reader.project, reader.module
    function = project.function_of(module, mapping)
    bound = module.scopes.bound(mapping)
    if len(bound) != 1 or not isinstance(bound[0], ast.arg):
        return None
    own = module.scopes.owner(mapping) is function.node
    if mapping.id in (function.parameters.vararg, function.parameters.kwarg):
        return None
    if not own or function in within or project.escapes(function):
        raise Unread
    reader.look_at(function, mapping.id)
    found: list[Entries | None] = [
        entries(project, g.function.module, g.node, g.site.call, within | {function})
        if g.node is not None
        else None
        for g in project.received(function, mapping.id, itself=True)
    ]
    return common(found)


def stored(project: Project, module: Module, mapping: ast.expr, use: ast.AST) -> Entries:
    """Return what was stored in a mapping up to `use`, as it stands there; nothing where that is not seen, or varies."""
    try:
        return Reader(project, module).read(mapping, use)
    except Unread:
        return {}
