"""What a statement reads and writes, as dotted paths such as ``loss`` or ``self.fake``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.facts.below import children, every

MUTATORS = frozenset(
    {"append", "extend", "insert", "update", "add", "add_", "mul_", "div_", "setdefault", "copy_"}
)
# Functions of Python that look at what they are given, and neither change nor keep it.
LOOKS = frozenset(
    {"bool", "callable", "id", "isinstance", "issubclass", "len", "print", "repr", "str", "type"}
)
_GETTER = "__getattribute__"
YIELDS = (ast.Yield, ast.YieldFrom)
# Expressions that do something, besides calls.
ACTS = (ast.Await, ast.NamedExpr, *YIELDS)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMED = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
)  # fmt: skip


def path(node: ast.AST) -> str | None:
    """Return the dotted path of a name or attribute chain; None for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def tail(call: ast.Call) -> str:
    """Return the last part of the dotted path that a call calls; "" where it calls anything else."""
    func = call.func
    base = bottom(func)
    if not isinstance(base, ast.Name):
        return ""
    return func.attr if isinstance(func, ast.Attribute) else base.id


def all_given(call: ast.Call) -> list[ast.expr]:
    """Return all that a call is given as it is written, by place and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def arguments_of(given: ast.arguments) -> list[ast.arg]:
    """Return the parameters that have names of their own, in order."""
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def all_parameters(given: ast.arguments) -> list[ast.arg]:
    """Return the same with those that collect the rest: ``*args``, ``**kwargs``."""
    return arguments_of(given) + [a for a in (given.vararg, given.kwarg) if a is not None]


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return an argument of a call by its name, or by its position where it has one."""
    named = (keyword.value for keyword in call.keywords if keyword.arg == name)
    place = len(call.args) if position is None else position
    return next(named, next(iter(call.args[place : place + 1]), None))


def called_on(call: ast.Call) -> ast.expr | None:
    """Return what a method is called on, or the file of a function; None where a name alone is called."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def called_alone(stmt: ast.stmt) -> ast.Call | None:
    """Return the call that is all of a statement."""
    called = stmt.value if isinstance(stmt, ast.Expr) else None
    return called if isinstance(called, ast.Call) else None


def spreads(call: ast.Call) -> bool:
    """Tell whether a call unpacks arguments, so that it may give a parameter that it does not name."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def variables(node: ast.AST) -> set[str]:
    """Return the names of the variables that stand in a statement or expression, nested functions included."""
    return {part.id for part in every(node) if isinstance(part, ast.Name)}


def calls_method(node: ast.AST, name: str) -> bool:
    """Tell whether a method of a name is called in a statement or expression, nested functions included."""
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == name
        for n in every(node)
    )


def is_super(node: ast.AST) -> bool:
    """Tell whether an expression is ``super()``."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def calls_anything(node: ast.AST) -> bool:
    """Tell whether a statement or expression calls something itself."""
    return any(isinstance(part, ast.Call) for part in walk(node))


def is_attribute_of(names: Collection[str], node: ast.AST) -> bool:
    """Tell whether an expression is an attribute, at any depth, of one of some variables."""
    base, _, inner = (path(node) or "").partition(".")
    return bool(inner) and base in names


def mentions(node: ast.AST, name: str) -> bool:
    """Tell whether a statement or expression holds a name, nested functions included."""
    return any(isinstance(n, ast.Name) and n.id == name for n in every(node))


def named(node: ast.AST, name: str) -> list[ast.Name]:
    """Return where a name stands in a statement or expression, nested functions included."""
    return [n for n in every(node) if isinstance(n, ast.Name) and n.id == name]


def sets(node: ast.AST, name: str) -> bool:
    """Tell whether a statement or expression binds or deletes a variable, nested functions included."""
    return any(not isinstance(n.ctx, ast.Load) for n in named(node, name))


def last_names(node: ast.AST) -> set[str]:
    """Return what an expression asks for by its last name or key: ``fp16`` of ``args.fp16``, not ``args``."""
    parts = list(every(node))
    asked = {part.value for part in parts if isinstance(part, ast.Attribute | ast.Subscript)}
    found: set[str] = set()
    for part in parts:
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            found.add(str(part.slice.value))
        elif isinstance(part, ast.Name | ast.Attribute) and part not in asked:
            found.add(part.id if isinstance(part, ast.Name) else part.attr)
    return found


def bottom(node: ast.expr) -> ast.expr:
    """Return the expression at the bottom of attributes: ``a[0]`` for ``a[0].b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def outward(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and what it is spelt as a part of."""
    yield node
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        yield node


def base(node: ast.AST) -> ast.AST:
    """Return the expression at the bottom of attributes, subscripts and calls: `a` of ``a.b[0].c()``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def root(node: ast.AST) -> str | None:
    """Return the name at the bottom of attributes, subscripts and calls."""
    found = base(node)
    return found.id if isinstance(found, ast.Name) else None


def is_place(node: ast.expr) -> bool:
    """Tell whether an expression only reads a variable, an attribute or an item of a constant key."""
    *parts, start = outward(node)
    items = (part.slice for part in parts if isinstance(part, ast.Subscript))
    return isinstance(start, ast.Name) and all(isinstance(item, ast.Constant) for item in items)


def prefixes(dotted: str) -> set[str]:
    """Return ``a``, ``a.b`` and ``a.b.c`` for ``a.b.c``."""
    parts = dotted.split(".")
    return {".".join(parts[: i + 1]) for i in range(len(parts))}


def looked_up(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return what ``getattr(x, name)`` takes an attribute of, and the name of that; None for anything else."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    if isinstance(node.func, ast.Attribute):
        return (node.func.value, node.args[0]) if node.func.attr == _GETTER else None
    named = isinstance(node.func, ast.Name) and node.func.id == "getattr"
    return (node.args[0], node.args[1]) if named and len(node.args) > 1 else None


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without entering nested functions, lambdas and classes (their heads are yielded)."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        if here is node or not isinstance(here, _NESTED):
            stack += reversed(children(here))


def uses(node: ast.AST) -> set[str]:
    """Return every path that `node` reads, with its prefixes."""
    found: set[str] = set()
    for part in every(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load):
            dotted = path(part)
            if dotted is not None:
                found |= prefixes(dotted)
    return found


def stored(target: ast.AST) -> set[str]:
    """Return the names that a target binds; not those whose attributes or items it sets."""
    nodes = (n for n in walk(target) if isinstance(n, ast.Name))
    return {n.id for n in nodes if isinstance(n.ctx, ast.Store)}


def defs(node: ast.AST) -> set[str]:
    """Return every path that `node` assigns, augments, binds, deletes or mutates by a known method."""
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            found |= _target(part)
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            found |= _target(part.value)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            if part.func.attr in MUTATORS:
                found |= _target(part.func.value)
        elif not isinstance(part, ast.arg) and (name := bound_name(part)) not in (None, "*"):
            found.add(name)
    return found


def imported_name(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def bound_name(node: ast.AST) -> str | None:
    """Return the name that a node binds or deletes: a variable, parameter, import, definition, handler or pattern."""
    if isinstance(node, ast.Name):
        return None if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.alias):
        return imported_name(node)
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.MatchMapping):
        return node.rest
    return node.name if isinstance(node, _NAMED) else None


def _target(node: ast.expr) -> set[str]:
    """Return the path that is set or mutated; of an entry, or an attribute of one, what holds the entry."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and not path(node)):
        node = node.value
    dotted = path(node)
    return {dotted} if dotted else set()


def same(a: ast.AST, b: ast.AST) -> bool:
    """Tell whether two expressions are spelt alike, whether they are read or set."""
    return a is b or (type(a) is type(b) and ast.unparse(a) == ast.unparse(b))


def acts(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    """Tell whether something in a node does more than to look at values, besides calls, or is of other kinds."""
    return any(isinstance(part, (*ACTS, *kinds)) for part in every(node))


def among_names(test: ast.Compare) -> tuple[ast.expr | None, object]:
    """Return the object among whose names a test looks for a constant one, ``"name" in it.__dict__``, and that name."""
    holder = test.comparators[0]
    if len(test.ops) == 1 and isinstance(test.ops[0], ast.In | ast.NotIn):
        if isinstance(holder, ast.Attribute) and holder.attr == "__dict__":
            if isinstance(test.left, ast.Constant):
                return holder.value, test.left.value
    return None, None


def may_be_apart(one: str, other: str | None) -> bool:
    """Tell whether two paths may lead to what two objects hold: ``a.net`` and ``b.optimizer``, but not those of ``a`` and ``a.b``."""
    holders = [f"{text.rpartition('.')[0]}." for text in (one, other or "")]
    return "." not in holders and not any(holders[k].startswith(holders[1 - k]) for k in (0, 1))
