"""Spells out, file by file, what reaches Apex by another name, a partial object or unpacked arguments."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from amp_migrate.apex.sites import AMP_CALLS, Kind, Site
from amp_migrate.apex.unpacked.entries import entries
from amp_migrate.facts.paths import tail
from amp_migrate.facts.tree import Tree
from amp_migrate.facts.variables import put_in
from amp_migrate.plain.behind import Behind, behind, free
from amp_migrate.plain.calls import Calls, Plain
from amp_migrate.plain.choice import Choices, Chosen, is_chosen
from amp_migrate.plain.held import Holding
from amp_migrate.plain.inline import Inlined, Inlining
from amp_migrate.plain.lambdas import Named, apart, named
from amp_migrate.plain.marks import Idle, idle, mentions_mark, offered
from amp_migrate.plain.returned import Returning, entered
from amp_migrate.plain.unused import Reads, Unused
from amp_migrate.plain.write import (
    Piece,
    Unwritable,
    of_call,
    of_chosen,
    of_inlined,
    of_unused,
    taken_out,
    written,
)
from amp_migrate.project import Module, Project

Use = tuple[str, int, int]
_TAKING = (Kind.INITIALIZE, Kind.SCALE_LOSS, Kind.MASTER_PARAMS, Kind.LOAD_STATE_DICT)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One use of Apex, what it is in plain words, and the reads that go with it; `source` is where Apex is named."""

    use: ast.expr
    source: ast.expr | None
    through: tuple[ast.expr, ...]
    plain: Plain | None = None
    inlined: Inlined | None = None
    chosen: Chosen | None = None


def spelt_out(project: Project, sites: Iterable[Site], without: Collection[Use]) -> dict[str, Tree]:
    """Return the files in which Apex can be spelt out, by path; uses `without` stay as they are."""
    found: dict[str, Tree] = {}
    modules = dict.fromkeys(site.module for site in sites if _is_hidden(project, site))
    modules |= dict.fromkeys(
        m
        for m in project.modules.values()
        if mentions_mark(m.tree) or any(named(project, m)) or any(behind(project, m))
    )
    for module in modules:
        try:
            tree = _File(project, module, without).tree()
        except (Unwritable, SyntaxError):
            continue
        if tree is not None:
            found[module.path] = tree
    return found


def late(project: Project) -> set[Use]:
    """Return the lambdas that can be read as functions, and the clips that can be read behind calls."""
    return {
        (module.path, *module.tree.span(statement)[:2])
        for module in project.modules.values()
        for statement in (
            *(one.statement for one in named(project, module)),
            *(statement for one in behind(project, module) for statement in one.statements),
        )
    }


def _is_hidden(project: Project, site: Site) -> bool:
    """Tell whether a use of Apex is no plain call: a function of amp, or amp itself, as a value, or with stars."""
    if site.kind is Kind.OTHER_AMP:
        return site.name.removeprefix("apex.amp.") in {*AMP_CALLS, "__dict__"}
    if site.kind is Kind.LOSS_SCALE:
        return isinstance(site.module.tree.parent(site.node), ast.Assign | ast.AnnAssign)
    if site.kind is Kind.VALUE:
        return isinstance(
            site.module.tree.parent(site.node),
            ast.Assign | ast.Dict | ast.keyword | ast.Tuple | ast.List | ast.Call,
        )
    if isinstance(site.module.tree.parent(site.node), ast.Return | ast.Lambda):
        return site.kind in _TAKING
    if site.kind is Kind.SCALE_LOSS and (is_chosen(site) or _is_handed_out(site)):
        return True
    return site.kind in _TAKING and _is_unpacked(project, site)


def _is_handed_out(site: Site) -> bool:
    """Tell whether a context manager only hands out what a call gives."""
    node = site.function.node
    return isinstance(node, ast.FunctionDef) and entered(node) is site.call


def _is_unpacked(project: Project, site: Site) -> bool:
    """Tell whether a call unpacks arguments; options of `initialize` that can be read stay where they are."""
    if any(isinstance(a, ast.Starred) for a in site.call.args):
        return True
    mappings = [k.value for k in site.call.keywords if k.arg is None]
    if site.kind is not Kind.INITIALIZE or not site.call.args:
        return bool(mappings)
    return any(entries(project, site.module, m, site.call) is None for m in mappings)


class _File:
    def __init__(self, project: Project, module: Module, without: Collection[Use]) -> None:
        self._project, self._module, self._tree = project, module, module.tree
        self._without = without
        self._holding = Holding(project, module)
        self._calls = Calls(self._holding)
        self._inlining = Inlining(self._holding)
        self._choices = Choices(self._holding)
        self._returning = Returning(self._holding)

    def tree(self) -> Tree | None:
        """Return the file with its uses spelt out; None where there are none that can be."""
        spellings = [s for s in self._spellings() if not self._is_excluded(s.use)]
        reads = Reads(self._holding) if spellings else None
        while reads is not None and spellings:
            gone = {node for s in spellings for node in s.through}
            unused = list(reads.unused(gone))
            values = {part for item in unused for part in ast.walk(item.value)}
            kept = [s for s in spellings if s.source in values or _is_in_place(s)]
            if len(kept) == len(spellings):
                return self._written(spellings, unused, reads)
            spellings = kept
        found = self._idle() or self._lambdas([]) or self._clips([]) or self._imports([])
        alone = bool(found) or bool(self._parted())
        return self._written([], [], Reads(self._holding)) if alone else None

    def _idle(self) -> list[Idle]:
        found = (*idle(self._tree), *offered(self._project, self._module))
        return [test for test in found if not self._is_excluded(test.node)]

    def _lambdas(self, pieces: Collection[Piece]) -> list[Named]:
        found = [
            one for one in named(self._project, self._module) if apart(one, self._module, pieces)
        ]
        return [one for one in found if not self._is_excluded(one.statement)]

    def _clips(self, pieces: Collection[Piece]) -> list[Behind]:
        found = [one for one in behind(self._project, self._module) if free(one, pieces)]
        return [one for one in found if not self._is_excluded(one.statements[0])]

    def _imports(self, unused: Collection[Unused]) -> list[tuple[ast.Assign, str]]:
        """Return the assignments of Apex that stay, each with the import that does the same."""
        gone = {item.value for item in unused}
        found = ((stmt, self._calls.imported(stmt)) for stmt in self._tree.nodes(ast.Assign))
        return [
            (stmt, text)
            for stmt, text in found
            if text is not None and stmt.value not in gone and not self._is_excluded(stmt)
        ]

    def _parted(self) -> list[tuple[ast.expr, list[Piece]]]:
        """Return amp where it is put into an attribute beside other values, each with what puts it there by itself."""
        amps = (
            node
            for node in self._tree.nodes(ast.Name, ast.Attribute)
            if isinstance(node.ctx, ast.Load)
            and isinstance(self._tree.parent(node), ast.Tuple | ast.List)
            and self._project.apex(self._module, node) == "apex.amp"
        )
        found = [(amp, self._tree.statement(amp)) for amp in amps if not self._is_excluded(amp)]
        return [
            (amp, pieces)
            for amp, statement in found
            if isinstance(statement, ast.Assign)
            and any(isinstance(t, ast.Attribute) for t in ast.walk(statement.targets[0]))
            and (pieces := taken_out(self._tree, statement, amp))
        ]

    def _spellings(self) -> Iterable[_Spelling]:
        for call in self._tree.nodes(ast.Call):
            plain = self._calls.plain(call)
            inlined = self._inlining.of(call) if plain is None else None
            if plain is not None:
                yield _Spelling(call, plain.callee, plain.through, plain)
            elif inlined is not None:
                yield _Spelling(call, inlined.returned.func, (call.func,), None, inlined)
        entered = [item.context_expr for item in self._tree.nodes(ast.withitem)]
        calls = (c for c in self._tree.nodes(ast.Call) if tail(c) == "enter_context" and c.args)
        for use in (*entered, *(call.args[0] for call in calls)):
            chosen = self._choices.of(use) or self._returning.of(use)
            if chosen is not None:
                yield _Spelling(chosen.use, chosen.scaling, chosen.through, chosen=chosen)
        scalers = any(self._tree.attributes("loss_scalers"))
        for node in self._tree.nodes(ast.Name, ast.Subscript, ast.Attribute):
            amp = self._project.apex(self._module, node) == "apex.amp"
            if isinstance(node.ctx, ast.Load) and (amp or (scalers and isinstance(node, ast.Name))):
                alias = self._calls.alias(node)
                if alias is not None:
                    yield _Spelling(node, alias.node, alias.through)

    def _is_excluded(self, use: ast.expr | ast.stmt) -> bool:
        return (self._tree.path, *self._tree.span(use)[:2]) in self._without

    def _written(self, spellings: list[_Spelling], unused: list[Unused], reads: Reads) -> Tree:
        pieces: list[Piece] = [of_unused(self._tree, item) for item in unused]
        inside = {part for item in unused for part in ast.walk(item.value)}
        calls: dict[ast.expr | ast.stmt, frozenset[ast.stmt]] = {}
        names = self._other_names(spellings)
        for test in self._idle():
            pieces.append(test.piece)
            calls[test.node] = frozenset([test.node] if isinstance(test.node, ast.stmt) else [])
        for spelling in spellings:
            if spelling.use in inside:
                continue
            if spelling.plain is not None:
                pieces += of_call(self._tree, spelling.plain, self._calls)
            elif spelling.inlined is not None:
                inlined = replace(spelling.inlined, text=_put(names, spelling.inlined.text))
                pieces.append(of_inlined(self._tree, inlined))
            elif spelling.chosen is not None:
                text = spelling.chosen.text
                chosen = replace(spelling.chosen, text=text and _put(names, text))
                pieces += of_chosen(self._tree, chosen)
            elif spelling.source is not None:
                pieces.append(
                    Piece(self._tree.span(spelling.use), self._calls.text(spelling.source))
                )
            keys = {reads.key(node) for node in spelling.through}
            methods = {reads.method(node) for node in spelling.through} - {None}
            calls[spelling.use] = frozenset(
                item.statement
                for item in unused
                if item.statement is not None
                and (item.statement in methods or self._target(item.statement, reads) in keys)
            )
        for one in self._lambdas(pieces):
            pieces.append(one.piece)
            calls[one.statement] = frozenset()
        for clip in self._clips(pieces):
            pieces += clip.pieces
            calls[clip.statements[0]] = frozenset(clip.statements)
        for amp, parts in self._parted():
            pieces += parts
            calls[amp] = frozenset()
        for statement, text in self._imports(unused):
            pieces.append(Piece(self._tree.span(statement), text))
            calls[statement] = frozenset()
        return written(self._tree, pieces, calls)

    def _other_names(self, spellings: list[_Spelling]) -> dict[str, ast.expr]:
        """Return the names that stand for amp itself wherever they are read, each with what it is called from now on."""
        found: dict[str, ast.expr] = {}
        uses: set[ast.AST] = set()
        for one in spellings:
            if isinstance(one.use, ast.Name) and one.source is not None:
                text = self._calls.text(one.source)
                found[one.use.id] = ast.parse(text, mode="eval").body
                uses.add(one.use)
        reads = [n for n in self._tree.nodes(ast.Name) if isinstance(n.ctx, ast.Load)]
        other = {n.id for n in reads if n not in uses}
        return {name: node for name, node in found.items() if name not in other}

    def _target(self, statement: ast.stmt, reads: Reads) -> object:
        if isinstance(statement, ast.FunctionDef):
            return reads.of_function(statement)
        target = statement.targets[0] if isinstance(statement, ast.Assign | ast.Delete) else None
        if isinstance(statement, ast.AnnAssign):
            target = statement.target
        return reads.key(target) if target is not None else None


def _put(names: Mapping[str, ast.expr], text: str) -> str:
    """Return the text of an expression with others for some names; as it is where it has none of them."""
    node = ast.parse(text, mode="eval").body
    used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return ast.unparse(put_in(node, names)) if used & names.keys() else text


def _is_in_place(spelling: _Spelling) -> bool:
    """Tell whether Apex is named nowhere but in the use itself."""
    return spelling.source is None or spelling.source in ast.walk(spelling.use)


def left_as_it_was(
    trees: Mapping[str, Tree], changed: Collection[str], done: Collection[Use]
) -> set[Use]:
    """Return what nothing migrated in the end: lambdas, clips, and in files that change the uses that were spelt out."""
    return {
        (path, *respelt.before)
        for path, tree in trees.items()
        for respelt in tree.respelt
        if (respelt.named or respelt.clips or path in changed)
        and (path, *respelt.place) not in done
    }
