"""The edits of one file by the node they are about, checked against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from amp_migrate.plan.model import (
    AddArgument,
    AddDecorator,
    AddImport,
    AddImportedName,
    AddParameter,
    AddWithItem,
    Drop,
    DropBlock,
    DropImportedName,
    DropKeyword,
    DropWithItem,
    Edit,
    Hoist,
    Insert,
    Move,
    RenameKeyword,
    RenameParameter,
    Replace,
    ReplaceExpression,
    Wrap,
)
from amp_migrate.rewrite.errors import EditError, place
from amp_migrate.rewrite.locate import Places, StatementNode, locate
from amp_migrate.rewrite.parts.imports import Import, added_names, dropped_names, imported_names
from amp_migrate.rewrite.parts.names import Rename
from amp_migrate.source.span import Span

Arrival = Insert | Move
Change = Replace | Drop | Hoist
Addition = AddDecorator | AddParameter | AddWithItem | DropWithItem | DropBlock
WithElse = cst.If | cst.For | cst.While | cst.Try | cst.TryStar
Larger = Drop | Hoist | DropBlock
NewText = Replace | ReplaceExpression
Removal = Drop | DropImportedName | DropBlock


@dataclass
class Index:
    """What is to be done to which node.

    `changes` says what a statement becomes, `leaving` that it goes elsewhere, `before` and `after`
    what comes to stand beside it, `top` and `bottom` what moves into its body. `emptied` are the
    imports that lose every name, `skipped` the branches that go as a whole, `keywords` and
    `parameters` get other names, or go.
    """

    places: Places
    edits: list[Edit]
    changes: dict[cst.CSTNode, Change] = field(default_factory=dict)
    leaving: dict[cst.CSTNode, Move] = field(default_factory=dict)
    before: dict[cst.CSTNode, list[Arrival]] = field(default_factory=dict)
    after: dict[cst.CSTNode, list[Arrival]] = field(default_factory=dict)
    top: dict[cst.CSTNode, list[Move]] = field(default_factory=dict)
    bottom: dict[cst.CSTNode, list[Move]] = field(default_factory=dict)
    wraps: dict[cst.CSTNode, list[Wrap]] = field(default_factory=dict)
    additions: dict[cst.CSTNode, list[Addition]] = field(default_factory=dict)
    imported: dict[cst.CSTNode, list[DropImportedName | AddImportedName]] = field(
        default_factory=dict
    )
    expressions: dict[cst.CSTNode, ReplaceExpression] = field(default_factory=dict)
    arguments: dict[cst.CSTNode, list[AddArgument]] = field(default_factory=dict)
    keywords: dict[cst.CSTNode, list[RenameKeyword | DropKeyword]] = field(default_factory=dict)
    parameters: dict[cst.CSTNode, list[RenameParameter]] = field(default_factory=dict)
    imports: list[AddImport] = field(default_factory=list)
    wrap_ends: set[cst.CSTNode] = field(default_factory=set)
    emptied: set[cst.CSTNode] = field(default_factory=set)
    skipped: set[cst.CSTNode] = field(default_factory=set)
    done: set[Edit] = field(default_factory=set)

    def statement(self, edit: Edit, span: Span) -> StatementNode:
        """Return the statement at a span; raise `EditError` where there is none."""
        node = self.places.statements.get(span)
        if node is None:
            raise EditError(edit, f"no statement stands at {span.line}:{span.column}")
        return node

    def expression(self, edit: Edit, span: Span) -> cst.BaseExpression:
        """Return the expression at a span; raise `EditError` where there is none."""
        node = self.places.expressions.get(span)
        if node is None:
            raise EditError(edit, f"no expression stands at {span.line}:{span.column}")
        return node

    def mark(self, edit: Edit) -> None:
        """Note that an edit is applied."""
        if edit in self.done:
            raise EditError(edit, "it would be applied twice")
        self.done.add(edit)

    def is_edited(self, statement: cst.CSTNode) -> bool:
        """Tell whether the place of a statement in its block changes."""
        places = (self.changes, self.leaving, self.before, self.after, self.wraps, self.emptied)
        return statement in self.wrap_ends or any(statement in edits for edits in places)

    def is_gone(self, statement: cst.CSTNode) -> bool:
        """Tell whether a statement is removed for good."""
        return statement in self.emptied or isinstance(self.changes.get(statement), Drop)

    def is_replaced(self, node: cst.CSTNode) -> bool:
        """Tell whether nothing inside a node is rewritten."""
        return node in self.changes or node in self.expressions or node in self.skipped

    def check_done(self) -> None:
        """Raise `EditError` for an edit that found no place.

        A removal or a new name needs none where a larger removal took its place away.
        """
        for edit in self.edits:
            if edit in self.done:
                continue
            span = place(edit)
            if span is not None and self._goes_along(edit, span):
                continue
            where = "" if span is None else ": another edit takes its place, or its block differs"
            raise EditError(edit, f"it was not applied{where}")

    def _goes_along(self, edit: Edit, span: Span) -> bool:
        """Tell whether an edit loses nothing by going with its place; a new text may lack a name."""
        applied = [e for e in self.edits if e in self.done]
        if not any(isinstance(e, Larger) and e.span.contains(span) for e in applied):
            return False
        rewritten = any(isinstance(e, NewText) and e.span.contains(span) for e in applied)
        return isinstance(edit, Removal) or (isinstance(edit, Rename) and not rewritten)


def build_index(module: cst.Module, text: str, edits: Iterable[Edit]) -> Index:
    """Find the node of every edit, each edit once; raise `EditError` for one that finds none."""
    unique = list(dict.fromkeys(edits))
    statements = [span for edit in unique for span in _statement_spans(edit)]
    expressions = [e.span for e in unique if isinstance(e, ReplaceExpression)]
    expressions += [
        e.call for e in unique if isinstance(e, (AddArgument, DropKeyword, RenameKeyword))
    ]
    index = Index(locate(module, text, statements, expressions), unique)
    for edit in unique:
        _enter(index, edit)
    for node, removals in index.imported.items():
        names, added = dropped_names(node, removals), added_names(node, removals)
        if isinstance(node, Import) and not added and names >= set(imported_names(node)):
            index.emptied.add(node)
    return index


def _statement_spans(edit: Edit) -> Sequence[Span]:
    match edit:
        case ReplaceExpression() | AddArgument() | DropKeyword() | RenameKeyword() | AddImport():
            return ()
        case Wrap():
            return (edit.first, edit.last)
        case Move():
            return (edit.span, edit.anchor)
        case AddDecorator() | AddParameter() | RenameParameter():
            return (edit.function,)
        case _:
            return (edit.span,)


def _enter(index: Index, edit: Edit) -> None:
    match edit:
        case Replace() | Drop() | Hoist():
            _enter_change(index, edit)
        case Insert():
            beside = index.after if edit.after else index.before
            beside.setdefault(index.statement(edit, edit.span), []).append(edit)
        case Move():
            _enter_move(index, edit)
        case Wrap():
            first = index.statement(edit, edit.first)
            index.wrap_ends.add(index.statement(edit, edit.last))
            wraps = index.wraps.setdefault(first, [])
            if any(wrap.last == edit.last for wrap in wraps):
                raise EditError(edit, "another wrap covers the same statements")
            wraps.append(edit)
        case AddDecorator() | AddParameter():
            index.additions.setdefault(index.statement(edit, edit.function), []).append(edit)
        case RenameParameter():
            index.parameters.setdefault(index.statement(edit, edit.function), []).append(edit)
        case DropBlock():
            _enter_drop_block(index, edit)
        case AddWithItem() | DropWithItem():
            index.additions.setdefault(index.statement(edit, edit.span), []).append(edit)
        case DropImportedName() | AddImportedName():
            index.imported.setdefault(index.statement(edit, edit.span), []).append(edit)
        case ReplaceExpression():
            node = index.expression(edit, edit.span)
            if node in index.expressions:
                raise EditError(edit, "another edit replaces that expression")
            index.expressions[node] = edit
        case AddArgument():
            index.arguments.setdefault(index.expression(edit, edit.call), []).append(edit)
        case RenameKeyword() | DropKeyword():
            index.keywords.setdefault(index.expression(edit, edit.call), []).append(edit)
        case AddImport():
            index.imports.append(edit)


def _enter_change(index: Index, edit: Change) -> None:
    node = index.statement(edit, edit.span)
    if node in index.changes or (isinstance(edit, Drop) and node in index.leaving):
        raise EditError(edit, "another edit says what becomes of that statement")
    index.changes[node] = edit


def _enter_drop_block(index: Index, edit: DropBlock) -> None:
    node = index.statement(edit, edit.span)
    if not isinstance(node, WithElse) or node.orelse is None:
        raise EditError(edit, "the statement has no else")
    if edit.block == "body" and not isinstance(node, cst.If):
        raise EditError(edit, "the statement is no if")
    index.skipped.add(node.body if edit.block == "body" else node.orelse)
    index.additions.setdefault(node, []).append(edit)


def _enter_move(index: Index, edit: Move) -> None:
    node = index.statement(edit, edit.span)
    if edit.span.contains(edit.anchor):
        raise EditError(edit, "a statement cannot move into itself")
    if node in index.leaving or isinstance(index.changes.get(node), Drop):
        raise EditError(edit, "another edit says what becomes of that statement")
    index.leaving[node] = edit
    anchor = index.statement(edit, edit.anchor)
    if edit.inside is not None:
        inside = index.top if edit.inside == "start" else index.bottom
        inside.setdefault(anchor, []).append(edit)
    else:
        beside = index.after if edit.after else index.before
        beside.setdefault(anchor, []).append(edit)
