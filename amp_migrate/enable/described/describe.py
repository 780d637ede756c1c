"""Writes an FP32 training the way Apex would have had it: the text from which the planner reads where AMP goes.

Nothing of it is shown or kept: the planner turns each of its lines into native code again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.described.trainings import Backward, Training
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module
from amp_migrate.training.optimizers import Optimizer

ALIAS = "apex_amp_stands_for_native"
SCALED = "scaled_loss_for_backward"
IMPORT = f"from apex import amp as {ALIAS}\n"
TRACE = ("apex", ALIAS, SCALED)
"""What no file that is written may hold unless it held it before."""


Enabled = Callable[[Optimizer], str]


def describe(trainings: Iterable[Training], enabled: Enabled, drafts: dict[Module, Draft]) -> None:
    """Write trainings into drafts of their files; `enabled` is the condition of AMP where an optimizer is made.

    Raises `Unwritable`.
    """
    used = set(drafts)
    for training in trainings:
        for function in dict.fromkeys(o.function for o in training.optimizers):
            own = [o for o in training.optimizers if o.function is function]
            used.add(function.module)
            _initialize(own, enabled(own[0]), _draft(drafts, function.module))
        for backward in training.backwards:
            used.add(backward.module)
            _backward(backward, _draft(drafts, backward.module))
    for module in used:
        first = _first_statement(module.tree)
        line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
        _draft(drafts, module).put((line, 0), (line, 0), IMPORT)


def _draft(drafts: dict[Module, Draft], module: Module) -> Draft:
    return drafts.setdefault(module, Draft(module.tree))


def _initialize(own: list[Optimizer], enabled: str, draft: Draft) -> None:
    """Put the line that turns AMP on below the optimizers that one function makes."""
    for optimizer in own:
        _refuse_nameless(optimizer)
    names = list(dict.fromkeys(o.name for o in own if o.name))
    networks = list(dict.fromkeys(text for o in own for text in o.networks))
    arguments = [_listed(networks), _listed(names), 'opt_level="O1"']
    if enabled:
        arguments.append(f"enabled={enabled}")
    anchor = _below_all(own[0].module.tree, [o.statement for o in own])
    if not draft.tree.stands_alone(anchor):
        raise Unwritable(
            own[0].module,
            anchor,
            f"`{names[0]}` is made on a line with other statements, and a GradScaler has to follow it",
            "give the statement a line of its own, then run again",
        )
    draft.below(anchor, f"{ALIAS}.initialize({', '.join(arguments)})")


def _refuse_nameless(optimizer: Optimizer) -> None:
    if optimizer.name is None:
        raise Unwritable(
            optimizer.module,
            optimizer.call,
            "no name or attribute holds the optimizer that is made here, so what steps it is not known",
            "assign the optimizer to a name or an attribute, then run again",
        )
    if not optimizer.networks:
        raise Unwritable(
            optimizer.module,
            optimizer.call,
            f"it is not known which network `{optimizer.name}` trains: none is named where its parameters come from",
            "make the optimizer where the network has a name, as of `model.parameters()`, then run again",
        )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _below_all(tree: Tree, statements: list[ast.stmt]) -> ast.stmt:
    """Return the statement of the innermost common block that holds the last of some statements."""
    for up in (statements[0], *tree.ancestors(statements[0])):
        if not isinstance(up, ast.stmt):
            continue
        block = tree.block(up)
        places = [_index(tree, block, statement) for statement in statements]
        if None not in places:
            return block[max(place for place in places if place is not None)]
    raise ValueError("statements of different functions")


def _index(tree: Tree, block: list[ast.stmt], statement: ast.stmt) -> int | None:
    """Return which statement of a block is or holds another."""
    for up in (statement, *tree.ancestors(statement)):
        if isinstance(up, ast.stmt) and tree.block(up) is block:
            return block.index(up)
    return None


def _backward(backward: Backward, draft: Draft) -> None:
    """Put the block of a scaled loss in place of a backward pass, on the lines that it has."""
    tree, call = draft.tree, backward.call
    statement = tree.statement(call)
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        raise Unwritable(
            backward.module,
            call,
            "this backward pass is part of another statement, and has to run on a scaled loss",
            "give the backward pass a statement of its own, then run again",
        )
    assert isinstance(call.func, ast.Attribute)
    span = tree.span(statement)
    if call.func.value is backward.loss:
        rest = _after(tree, call, call.func)
        run = f"{SCALED}.backward{rest}"
    else:
        rest = _after(tree, call, backward.loss)
        run = f"{ast.unparse(call.func)}({SCALED}{rest}"
    optimizers = _listed(list(backward.names)) if backward.names else "[]"
    loss = tree.segment(backward.loss)
    block = f"with {ALIAS}.scale_loss({loss}, {optimizers}) as {SCALED}: {run}"
    before, behind, end = _apart(draft, statement)
    ahead = tree.lines[span.line - 1][: span.column]
    start = (span.line, len(ahead.rstrip()) if before else span.column)
    draft.put(start, (span.end_line, end), before + block + behind)


def _after(tree: Tree, call: ast.Call, node: ast.expr) -> str:
    """Return the text of a call behind a part of it."""
    start, end = tree.span(node), tree.span(call)
    lines = tree.lines[start.end_line - 1 : end.end_line]
    lines[-1] = lines[-1][: end.end_column]
    lines[0] = lines[0][start.end_column :]
    return "\n".join(lines)


def _apart(draft: Draft, statement: ast.stmt) -> tuple[str, str, int]:
    """Return what puts a statement on lines of its own, before and behind it, and the column where it then ends."""
    tree = draft.tree
    span = tree.span(statement)
    line, last = tree.lines[span.line - 1], tree.lines[span.end_line - 1]
    holder = tree.holder(statement)
    inline = getattr(holder, "lineno", 0) == statement.lineno and not isinstance(holder, ast.Module)
    margin = tree.margin(statement) + (draft.step if inline else "")
    before = f"\n{margin}" if line[: span.column].strip() else ""
    rest = last[span.end_column :]
    if not rest.lstrip().startswith(";"):
        return before, "", span.end_column
    more = rest.lstrip()[1:].lstrip()
    return before, f"\n{margin}" if more else "", len(last) - len(more)


def _first_statement(tree: Tree) -> ast.stmt:
    """Return the first statement of a file behind its docstring and what it takes from the future."""
    for statement in tree.module.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        return statement
    return tree.module.body[-1]
