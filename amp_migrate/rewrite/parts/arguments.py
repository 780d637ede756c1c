"""One more argument of a call, other names of its keywords, one more item of a ``with``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from amp_migrate.plan.model import (
    AddArgument,
    AddWithItem,
    DropKeyword,
    DropWithItem,
    RenameKeyword,
)
from amp_migrate.rewrite.blocks.lines import statements
from amp_migrate.rewrite.blocks.snippet import parse_argument, parse_statements
from amp_migrate.rewrite.errors import EditError
from amp_migrate.rewrite.parts import commas
from amp_migrate.rewrite.parts.names import new_names


def add_argument(call: cst.Call, edit: AddArgument) -> cst.Call:
    """Return a call with one more argument."""
    args = [_parenthesized(arg) for arg in call.args]
    if edit.keyword is None:
        new = parse_argument(edit, edit.text)
        at = next((i for i, a in enumerate(args) if a.keyword or a.star == "**"), len(args))
    else:
        new = parse_argument(edit, f"{edit.keyword}={edit.text}")
        at = next((i for i, a in enumerate(args) if a.star == "**"), len(args))
    new = new.with_changes(whitespace_after_arg=commas.NOTHING, comma=cst.MaybeSentinel.DEFAULT)
    opening = call.whitespace_before_args
    between = commas.separator([commas.after_comma(a.comma) for a in args[:-1]], opening)
    if at < len(args):
        return call.with_changes(args=commas.insert(args, at, new, between))
    if not args:
        return call.with_changes(args=[new])
    last = args[-1]
    args[-1] = last.with_changes(whitespace_after_arg=commas.NOTHING)
    args, end = commas.append(args, new, between, last.whitespace_after_arg)
    args[-1] = args[-1].with_changes(whitespace_after_arg=end)
    return call.with_changes(args=args)


def _parenthesized(arg: cst.Arg) -> cst.Arg:
    """Return an argument that may stand beside others: a bare generator expression may not."""
    if isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar:
        value = arg.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return arg.with_changes(value=value)
    return arg


def rename_keywords(call: cst.Call, edits: Sequence[RenameKeyword]) -> cst.Call:
    """Return a call whose keyword arguments have other names."""
    names = new_names([arg.keyword.value for arg in call.args if arg.keyword], edits)
    return call.with_changes(args=[_renamed(arg, names) for arg in call.args])


def drop_keywords(call: cst.Call, edits: Sequence[DropKeyword]) -> cst.Call:
    """Return a call without some of its keyword arguments; what follows the last one stays."""
    if not edits:
        return call
    names = {edit.keyword for edit in edits}
    given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    for edit in edits:
        if edit.keyword not in given:
            raise EditError(edit, f"no keyword argument is named {edit.keyword}")
    args = [a for a in call.args if a.keyword is None or a.keyword.value not in names]
    last = call.args[-1]
    if args and args[-1] is not last:
        args[-1] = args[-1].with_changes(
            comma=last.comma, whitespace_after_arg=last.whitespace_after_arg
        )
    return call.with_changes(args=args)


def _renamed(arg: cst.Arg, names: Mapping[str, str]) -> cst.Arg:
    if arg.keyword is None or arg.keyword.value not in names:
        return arg
    return arg.with_changes(keyword=cst.Name(names[arg.keyword.value]))


def add_with_item(node: cst.With, edit: AddWithItem) -> cst.With:
    """Return a ``with`` statement with one more item, the last."""
    parsed = statements(parse_statements(edit, f"with {edit.text}:\n    pass", "    ", "    "))
    if not isinstance(parsed[0], cst.With) or len(parsed[0].items) != 1:
        raise EditError(edit, "the text is not one item of a with statement")
    opening: commas.Space = commas.NOTHING
    closing: commas.Space = commas.NOTHING
    if isinstance(node.lpar, cst.LeftParen) and isinstance(node.rpar, cst.RightParen):
        opening, closing = node.lpar.whitespace_after, node.rpar.whitespace_before
    spaces = [commas.after_comma(item.comma) for item in node.items[:-1]]
    between = commas.separator(spaces, opening)
    items, end = commas.append(node.items, parsed[0].items[0], between, closing)
    changed = node.with_changes(items=items)
    if isinstance(node.rpar, cst.RightParen):
        return changed.with_changes(rpar=node.rpar.with_changes(whitespace_before=end))
    return changed


def drop_with_item(node: cst.With, edit: DropWithItem) -> cst.With:
    """Return a ``with`` statement without one of its items."""
    if len(node.items) < 2 or edit.place >= len(node.items):
        raise EditError(edit, "the with statement has no other item")
    items = [item for place, item in enumerate(node.items) if place != edit.place]
    if edit.place == len(items):
        items[-1] = items[-1].with_changes(comma=node.items[-1].comma)
    return node.with_changes(items=items)
