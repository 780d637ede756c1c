"""A command line of a program, and how it gets one more option."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from amp_migrate.enable.described.draft import Draft
from amp_migrate.facts.paths import arguments_of, path
from amp_migrate.facts.tree import FunctionNode
from amp_migrate.project import Module

HELP = "mixed precision"
NAMES = ("amp", "use_amp", "mixed_precision")
"""The names of an option that switches AMP, in the order of preference."""


@dataclass(eq=False)
class Parser:
    """Where a program reads its options: `node` reads or declares them.

    `kind` is "argparse", "click", "absl", or for the fields of a dataclass "HfArgumentParser" or "tyro".

    `options` are the names that it has already, with ``_`` for ``-``; `mapped` tells that a dictionary holds them.
    """

    kind: str
    module: Module
    node: ast.AST
    options: set[str] = field(default_factory=set)
    mapped: bool = False

    def add(self, draft: Draft, name: str) -> None:
        """Write one more option, which is on by default, into a draft of the file."""
        flag = name.replace("_", "-")
        if self.kind == "argparse":
            self._argparse(draft, flag)
        elif self.kind == "click":
            self._click(draft, flag, name)
        elif isinstance(self.node, ast.ClassDef):
            draft.below(self.node.body[-1], f"{name}: bool = True")
        else:
            assert isinstance(self.node, ast.Call) and isinstance(self.node.func, ast.Attribute)
            flags = path(self.node.func.value)
            statement = self.module.tree.statement(self.node)
            draft.below(statement, f'{flags}.DEFINE_boolean("{name}", True, "{HELP}")')

    def spelt(self, name: str) -> tuple[str, str]:
        """Return how a user writes the option on the command line, and its opposite."""
        flag = name.replace("_", "-")
        written = {
            "absl": (f"--{name}", f"--no{name}"),
            "HfArgumentParser": (f"--{name}", f"--no_{name}"),
        }
        return written.get(self.kind, (f"--{flag}", f"--no-{flag}"))

    def _argparse(self, draft: Draft, flag: str) -> None:
        tree, call = self.module.tree, self.node
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        parser = tree.segment(call.func.value)
        known = _argparse_name(self.module)
        line = (
            f'{parser}.add_argument("--{flag}", action={known or "argparse"}.BooleanOptionalAction, '
            f'default=True, help="{HELP}")'
        )
        statement = tree.statement(call)
        block = tree.block(statement)
        before = [s for s in block[: block.index(statement)] if _adds(s, path(call.func.value))]
        draft.next_to(before[-1] if before else statement, line, behind=bool(before))
        if known is None:
            imports = [n for n in tree.nodes(ast.ImportFrom) if n.module == "argparse"]
            draft.below(imports[0] if imports else tree.module.body[0], "import argparse")

    def _click(self, draft: Draft, flag: str, name: str) -> None:
        node = self.node
        assert isinstance(node, FunctionNode)
        last = node.decorator_list[-1]
        arguments = node.args
        line = f'@click.option("--{flag}/--no-{flag}", default=True, help="{HELP}")'
        draft.under(last, line)
        named = arguments_of(arguments)
        span = self.module.tree.span(named[-1])
        defaults = [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]
        end = max([span[2:], *(self.module.tree.span(d)[2:] for d in defaults)])
        given = "=True" if arguments.defaults and not arguments.kwonlyargs else ""
        draft.put(end, end, f", {name}{given}")


def _adds(statement: ast.stmt, parser: str | None) -> bool:
    """Tell whether a statement gives a parser an option."""
    call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "add_argument"
        and path(call.func.value) == parser
    )


def _argparse_name(module: Module) -> str | None:
    """Return the name by which a file has the module argparse."""
    for node in module.tree.module.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "argparse":
                    return alias.asname or alias.name
    return None
