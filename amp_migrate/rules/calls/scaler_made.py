"""The statement that makes the GradScaler of an initialize."""

from __future__ import annotations

import ast
import itertools
import textwrap

from amp_migrate.apex.options import Options
from amp_migrate.apex.sites import Site
from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import defs, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.condition import either, names, negate
from amp_migrate.placement.making.creation import Creation
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Insert
from amp_migrate.project import Class
from amp_migrate.project.order import inside
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context
from amp_migrate.rules.calls.chosen_scale import choice, refuse_taking
from amp_migrate.rules.calls.initialized import passed
from amp_migrate.rules.rest.found.calls import WIDTH, indentation

_UNIT = "    "
# float32 rounds the product back to the scale; GradScaler wants a factor below 1.
_STAYS = ("growth_interval=2**31 - 1", "backoff_factor=1 - 2**-30")


def scaler_made(context: Context, site: Site, creation: Creation, target: str) -> str:
    """Return the statement, or two ways to make the scaler where the loss scale is chosen at run time."""
    options = context.unit.options[site]
    enabled = _enabled(creation) if options.scaling else ["enabled=False"]
    scale = ["init_scale=" + options.init_scale] if options.init_scale is not None else []
    if options.growth_interval is not None:
        scale.append("growth_interval=" + options.growth_interval)
    if _stays(context, options):
        scale += _STAYS  # no `update` can keep it
    dynamic = f"{target} = {context.spelling.scaler([*scale, *enabled])}"
    column = _column(site.module.tree, creation.top)
    chosen = options.chosen_scale
    if chosen is None or creation.scales.value is False:
        return _fitted(dynamic, column, site)
    dynamic = textwrap.indent(_fitted(dynamic, column + len(_UNIT), site), _UNIT)
    return _at_run_time(context, chosen, creation, target, dynamic, enabled)


def may_stay(context: Context) -> bool:
    """Tell whether some GradScaler is made with a scale that its own settings keep as it is."""
    made = ((context.unit.options[site], made) for site, made in context.creations.items())
    return any(
        _stays(context, options)
        or (options.chosen_scale is not None and made.scales.value is not False)
        for options, made in made
    )


def _stays(context: Context, options: Options) -> bool:
    return options.stays or (options.pinned is not None and not updates_alike(context))


def updates_alike(context: Context) -> bool:
    """Tell whether what updates the scaler can keep the scale, or its bounds, of every initialize."""
    options = [context.unit.options[site] for site in context.creations]
    return len({(o.pinned, o.minimum, o.maximum) for o in options}) <= 1


def loses_bounds(context: Context) -> bool:
    """Tell whether the scale of some initialize has bounds that no update can keep."""
    options = [context.unit.options[site] for site in context.creations]
    return not updates_alike(context) and any(o.minimum or o.maximum for o in options)


def keeps_bounds(context: Context, options: Options) -> bool:
    """Tell whether updates keep bounds of the scale of an initialize."""
    return bool(options.minimum or options.maximum) and not loses_bounds(context)


def class_attribute(context: Context, cls: Class) -> Insert:
    """Return the edit that gives a class a disabled scaler, for its objects that make none."""
    text = f"{context.unit.home.name} = {context.spelling.scaler(['enabled=False'])}"
    body = behind_docstring(cls.node) or cls.node.body
    simple = [*itertools.takewhile(lambda s: isinstance(s, ast.Assign | ast.AnnAssign), body)]
    return Insert(cls.module.tree.span([body[0], *simple][-1]), text, after=bool(simple))


def has_slots(cls: Class) -> bool:
    """Tell whether the body of a class or of a base assigns to ``__slots__``, which no attribute of the class may be among."""
    names = (n for base in cls.mro() for stmt in base.node.body for n in ast.walk(stmt))
    return any(isinstance(n, ast.Name) and n.id == "__slots__" for n in names)


def first_call(made: str) -> str:
    """Return on one line the call that makes the scaler, the first where two ways are open."""
    lines = [line.strip() for line in made.splitlines()]
    start = next(i for i, line in enumerate(lines) if "GradScaler(" in line)
    if not lines[start].endswith("("):
        return lines[start]
    given = lines[start + 1 : lines.index(")", start)]
    return f"{lines[start]}{' '.join(given).rstrip(',')})"


def _enabled(creation: Creation) -> list[str]:
    if creation.scales.value is None:
        return [f"enabled={creation.scales.text}"]
    return [] if creation.scales.value else ["enabled=False"]


def _column(tree: Tree, stmt: ast.stmt) -> int:
    """Return the column where a statement is seen to begin, in a file of tabs as in one of spaces."""
    span = tree.span(stmt)
    return len(tree.lines[span.line - 1][: span.column].expandtabs(len(_UNIT)))


def _fitted(text: str, column: int, site: Site) -> str:
    """Return an assignment of a call, its arguments on lines of their own where one line would be too long."""
    if "\n" in text or column + len(text) <= WIDTH:
        return text
    stmt = ast.parse(text).body[0]
    if not (isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call)):
        return text
    call, unit = stmt.value, indentation(site.module.tree)
    head = _between(text, 0, call.func.end_col_offset)
    lines = [f"{head}("]
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    for node in given:
        written = _between(text, node.col_offset, node.end_col_offset)
        value = node.value if isinstance(node, ast.keyword) else node
        if column + len(_UNIT) + len(written) >= WIDTH and isinstance(value, ast.BoolOp):
            written = _term_by_term(text, value, node.col_offset, unit)
        lines.append(f"{unit}{written},")
    return "\n".join([*lines, ")"])


def _term_by_term(text: str, value: ast.BoolOp, start: int, unit: str) -> str:
    """Return an argument with the operators of its condition at the beginning of lines."""
    operator = "and" if isinstance(value.op, ast.And) else "or"
    pieces = []
    for left, right in itertools.pairwise(value.values):
        end = left.end_col_offset or 0
        gap = _between(text, end, right.col_offset)
        cut = end + len(gap[: gap.index(operator)].encode())
        pieces.append(_between(text, start, cut).rstrip())
        start = cut
    pieces.append(_between(text, start, value.end_col_offset))
    return f"\n{unit}".join(pieces)


def _between(text: str, start: int, end: int | None) -> str:
    """Return the text between two columns as ast counts them, in bytes."""
    return text.encode()[start:end].decode()


def _at_run_time(
    context: Context,
    chosen: ast.expr,
    creation: Creation,
    target: str,
    dynamic: str,
    enabled: list[str],
) -> str:
    site = creation.site
    refuse_taking(context, chosen, site)
    test, scale, number = choice(context, chosen, site)
    if any(isinstance(part, ast.Subscript | ast.Call) for part in walk(chosen)):
        test = either([negate(passed(creation)), test])  # without AMP it may not be there
    value = scale if number else f"float({scale})"
    arguments = [f"init_scale={value}", *_STAYS, *enabled]
    head, _, device = context.spelling.scaler([])[:-1].partition("(")
    given = [device] if device else []
    static = [f"{target} = {head}(", *(f"{_UNIT}{a}," for a in [*given, *arguments]), ")"]
    if test.value is False:
        return "\n".join(static)
    lines = [f"if {test.text}:", dynamic, "else:  # a static scale stays as it is"]
    return "\n".join([*lines, *(_UNIT + line for line in static)])


def made_after(context: Context, site: Site, creation: Creation) -> bool:
    """Tell whether the scaler is made after the guard, whose body sets what the condition reads."""
    text = creation.scales.text
    tree = site.module.tree
    uses = context.unit.home.users.get(site.function, [])
    if any(inside(tree, use, creation.top) for use in uses):
        _refuse_unset(context, site, creation)
        return False
    if creation.scales.value is not None or not text:
        return False
    _refuse_reset(context, site, creation, names(text))
    return bool(names(text) & defs(creation.top))


def _refuse_unset(context: Context, site: Site, creation: Creation) -> None:
    """Refuse a scaler in front of a guard in which its condition is only made, as what the guard holds needs it."""
    inner = [c for holder, c in creation.within if holder is not creation.top]
    asked = [c.text for c in (*inner, context.unit.options[site].casts) if c.text]
    read = {name for text in asked for name in names(text)}
    for stmt in walk(creation.top):
        if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign):
            made = sorted(defs(stmt) & read) if stmt is not site.statement else []
            if made and runs_before(context.unit.project, site.function, stmt, site.node):
                raise Cannot(
                    "AMP901",
                    site.module,
                    stmt,
                    f"`{made[0]}` says whether the GradScaler is on, and the GradScaler is needed in every branch around this",
                    f"set `{made[0]}` before the test around amp.initialize, then run again",
                )


def _refuse_reset(context: Context, site: Site, creation: Creation, read: set[str]) -> None:
    """Refuse a condition that reads what the guard assigns anew, or deletes, behind the initialize."""
    for stmt in walk(creation.top):
        if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            reset = sorted(defs(stmt) & read) if stmt is not site.statement else []
            if reset and runs_before(context.unit.project, site.function, site.node, stmt):
                raise Cannot(
                    "AMP901",
                    site.module,
                    stmt,
                    f"`{reset[0]}` says whether the GradScaler is on, and is another one from here on",
                    f"leave `{reset[0]}` as it is behind amp.initialize, then run again",
                )
