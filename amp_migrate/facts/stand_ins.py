"""What stands for the parts of an older interface of Apex in a text that is written as today's amp."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path, root
from amp_migrate.facts.tree import Tree

ALIAS = "amp_of_an_older_interface"
NOTHING = "nothing_of_an_older_interface"
SCALED = "scaled_loss_of_an_older_interface"
GROUP = "group_of_an_older_interface"
TRACE = (ALIAS, NOTHING, SCALED, GROUP)
"""What stands for amp, for what goes, for a scaled loss, and for a group of parameters that is clipped; no file that is written may hold them."""


def stands_for_nothing(statement: ast.Expr) -> bool:
    """Tell whether a statement is one that goes."""
    return is_nothing(statement.value)


def is_nothing(node: ast.expr) -> bool:
    """Tell whether an expression stands for one that goes."""
    return isinstance(node, ast.Name) and node.id == NOTHING


def clip_loop(tree: Tree, statement: ast.Expr) -> str | None:
    """Return the loop for which a statement stands that clips each group of parameters; None for any other."""
    made = statement.value
    if not isinstance(made, ast.ListComp) or path(made.generators[0].target) != GROUP:
        return None
    over = made.generators[0]
    loop = f"for {GROUP} in {tree.segment(over.iter)}:\n    {tree.segment(made.elt)}"
    for test in over.ifs:
        loop = f"if {tree.segment(test)}:\n" + "\n".join(f"    {line}" for line in loop.split("\n"))
    taken = {name.id for name in tree.nodes(ast.Name)}
    free = [name for name in ("group", "param_group", "clipped_group") if name not in taken]
    return loop.replace(GROUP, next(iter(free), "group_of_parameters"))


def stands_for_setting(statement: ast.stmt) -> bool:
    """Tell whether a statement sets what today's amp keeps to itself."""
    return isinstance(statement, ast.Assign) and root(statement.targets[0]) == ALIAS
