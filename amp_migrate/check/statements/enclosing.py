"""Whether what stays of a text runs in the same blocks: contexts that are nothing of AMP, and those of `try`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs, key, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.statements.alike import Alike
from amp_migrate.check.statements.parts import STATEMENTS
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.beliefs import CASTS_AT_MOST

_ENTERED = "runs in other blocks than before,"
_WITH = ast.With | ast.AsyncWith

_Around = frozenset[str]
_OfAmp = Callable[[Function, ast.expr], bool]


@dataclass(frozen=True)
class _Found:
    """Something that happens in a function, and the blocks around it."""

    function: Function
    node: ast.expr | ast.stmt
    around: _Around


def enclosed(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the statements and backward passes of the new text that stand in blocks in which their like did not."""
    alike = Alike(old, new)
    others = frozenset(changed(old, new))
    others |= old.functions.keys() ^ new.functions.keys()
    of_apex = partial(_is_of_amp, old, others, alike.mentions_apex)
    of_native = partial(_is_of_amp, new, others, alike.mentions_native)
    for before, after, introduced in staying(old, new, claims):
        imports = frozenset(_handled(t) for f in before for t in _tries(f) if _is_import(t))
        had = _found(old, before, frozenset(), of_apex, imports)
        has = _found(new, after, introduced, of_native, imports)
        for what in had.keys() & has.keys():
            if any(
                claims.speak_of(Place(f.function.module.path, f.node.lineno)) for f in had[what]
            ):
                continue
            ones, now = ({f.around for f in side[what]} for side in (had, has))
            if ones != now:
                far = next((f for f in has[what] if f.around not in ones), has[what][0])
                blocks = sorted(frozenset().union(*(ones ^ now)))
                yield differs(far.function, far.node, f"`{what}` {_ENTERED} `{', '.join(blocks)}`:")


def _found(
    side: Side,
    functions: Sequence[Function],
    introduced: frozenset[str],
    of_amp: _OfAmp,
    imports: frozenset[str],
) -> dict[str, list[_Found]]:
    """Return what happens in some functions, by its text or label, with the blocks around each; not those of `imports`."""
    found: dict[str, list[_Found]] = {}
    for function in functions:
        simple = [n for n in function.own_nodes if isinstance(n, STATEMENTS)]
        told: list[tuple[str, ast.expr | ast.stmt]] = [
            (ast.unparse(n), n) for n in simple if not _happens(side, function, n)
        ]
        events = side.of_kind(function, Does.BACKWARD, introduced=introduced)
        told += [(str(label), call) for call, label in events]
        for what, node in told:
            around = frozenset(_around(function, node, partial(of_amp, function), imports))
            found.setdefault(what, []).append(_Found(function, node, around))
    return found


def _around(
    function: Function, node: ast.AST, of_amp: Callable[[ast.expr], bool], imports: frozenset[str]
) -> Iterator[str]:
    """Yield the blocks around a node of a function: what they enter, catch, or do in the end."""
    child = node
    for up in function.module.tree.ancestors(node):
        if up is function.scope:
            return
        if isinstance(up, _WITH) and child in up.body:
            for item in up.items:
                given = item.context_expr
                if not of_amp(given):
                    yield ast.unparse(given)
        elif isinstance(up, ast.Try) and not (_is_import(up) or _handled(up) in imports):
            yield from _tried(up, child)
        child = up


def _tried(block: ast.Try, child: ast.AST) -> Iterator[str]:
    if child in block.finalbody:
        yield "finally"
    elif block.finalbody:
        yield "try ... finally"
    if child in block.body:
        for handler in block.handlers:
            yield f"try ... except {ast.unparse(handler.type) if handler.type else ''}"
    if isinstance(child, ast.ExceptHandler):
        yield f"except {ast.unparse(child.type) if child.type else ''}"


def _tries(function: Function) -> Iterator[ast.Try]:
    return (node for node in function.own_nodes if isinstance(node, ast.Try))


def _handled(block: ast.Try) -> str:
    """Return the exceptions that a block handles, which tell it in another text where no import is left in it."""
    return "\n".join(ast.unparse(h.type) if h.type else "" for h in block.handlers)


def _is_import(block: ast.Try) -> bool:
    """Tell whether a block asks whether something is installed."""
    return any(isinstance(s, ast.Import | ast.ImportFrom) for s in block.body)


def _happens(side: Side, function: Function, stmt: ast.stmt) -> bool:
    """Tell whether a statement is an event, which is compared as such."""
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    return isinstance(call, ast.Call) and side.labels.of_call(function, call) is not None


def _is_of_amp(
    side: Side, others: frozenset[Key], of_amp: _OfAmp, function: Function, node: ast.expr
) -> bool:
    """Tell whether a context has to do with AMP, or is one of the project's that is written anew; or does nothing."""
    called = node.func if isinstance(node, ast.Call) else node
    if of_amp(function, node) or side.project.external(function.module, called) in CASTS_AT_MOST:
        return True
    if not isinstance(node, ast.Call):
        return False
    run = list(side.project.callees(node))
    for cls in side.project.constructed(node):
        run += [method for base in cls.mro() for method in base.methods.values()]
    return any(key(f) in others for f in run)
