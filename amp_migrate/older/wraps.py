"""A call that wraps an optimizer, written as the `amp.initialize` that takes its place."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.facts.paths import path, same
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.older.found import Found, Groups
from amp_migrate.older.sheet import ALONE, Sheet
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module


@dataclass(eq=False)
class Wrap:
    """A call that wraps an optimizer, the statement around it, and what it is given by name."""

    module: Module
    call: ast.Call
    statement: ast.stmt
    given: dict[str, ast.expr]
    name: str = "init_optimizer"

    @property
    def inner(self) -> ast.expr:
        """The optimizer that it wraps."""
        return self.given[self.name]


def named(sheet: Sheet, call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """Return the arguments of a call by the names of their parameters."""
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > len(names):
        unread = True
    else:
        unread = any(k.arg not in names for k in call.keywords)
    if unread:
        raise Unwritable(
            sheet.module,
            call,
            "the arguments of this call cannot be read",
            "write out its arguments, then run again",
        )
    found = dict(zip(names, call.args, strict=False))
    return found | {k.arg: k.value for k in call.keywords if k.arg is not None}


def networks_of(trained: Groups, found: Found, wrap: Wrap) -> list[str]:
    """Return how the function that wraps an optimizer calls its networks. Raises `Unwritable`."""
    for optimizer in found.made_with(wrap.module, wrap.inner):
        if optimizer.function is found.project.function_of(wrap.module, wrap.call):
            if optimizer.networks:
                return list(optimizer.networks)
    names = found.networks_at(wrap.module, wrap.call, trained)
    if not names:
        raise Unwritable(
            wrap.module,
            wrap.call,
            "which network this optimizer trains cannot be read where it is wrapped",
            "wrap the optimizer where the network has a name, then run again",
        )
    return names


def initialized(
    sheet: Sheet, wrap: Wrap, networks: list[str], arguments: str, settings: str = ""
) -> str:
    """Return the statement that stands for one that wraps an optimizer. Raises `Unwritable`."""
    listed = networks[0] if len(networks) == 1 else f"[{', '.join(networks)}]"
    call = f"{ALIAS}.initialize({listed}, {sheet.text(wrap.inner)}, {arguments})"
    statement = wrap.statement
    if not sheet.tree.stands_alone(statement):
        raise Unwritable(
            wrap.module,
            statement,
            "the statement shares its lines with others, and a GradScaler has to take its place",
            ALONE,
        )
    if (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and statement.value is wrap.call
    ):
        target = statement.targets[0]
        if same(target, wrap.inner):
            return call + settings
        if path(target) is not None:
            return f"{listed}, {path(target)} = {call}{settings}"
    inner = path(wrap.inner)
    simple = isinstance(statement, ast.Return | ast.Assign | ast.AnnAssign | ast.Expr)
    if simple and inner is not None and inner not in _written(statement):
        sheet.put(wrap.call, inner)
        return f"{call}{settings}; {sheet.line(statement)}"
    raise Unwritable(
        wrap.module,
        wrap.call,
        "no name or attribute is given the wrapped optimizer",
        "assign it to a name or an attribute, then run again",
    )


def _written(statement: ast.stmt) -> set[str | None]:
    return {path(target) for target in getattr(statement, "targets", [])}
