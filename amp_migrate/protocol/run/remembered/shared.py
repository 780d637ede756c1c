"""The names that a path remembers: what tests read on which events hang."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from amp_migrate.facts.below import every, names_in
from amp_migrate.facts.paths import looked_up, path
from amp_migrate.flow.assumption import NOTHING, Known, Value
from amp_migrate.flow.cfg.subject import DECIDES, asked_by
from amp_migrate.flow.changes import parts
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Term, is_len
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.project.reach import set_later
from amp_migrate.protocol.calls import keywords
from amp_migrate.protocol.calls.standing import standing_of
from amp_migrate.protocol.code.course import Course
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Kind

_TELLING = frozenset({Known(1), Known(None)})
_DECIDED = (Kind.UNSCALE, Kind.STEP, Kind.ZERO_GRAD)
_OF_EVENTS = ("scaled(", "optimizer(", "reach(", "trained(", "runs(", "off(")
_ABOUT_OBJECTS = ("type(", *_OF_EVENTS)
Constants = Callable[[ast.Call, Function], Iterable[tuple[str, Value]]]
"""Gives the parameters of a function that a call gives a constant for, and those constants."""


def shared(program: Program, course: Course, fewest: int, constants: Constants) -> frozenset[str]:
    """Return the last parts of the names that `fewest` tests read, and of parameters that calls differ in and one reads.

    A test reads them, or a call of the method of a name: ``getattr(hook, name)()``, or what is given for another one that
    a test reads.
    """
    counts: Counter[str] = Counter()
    for function in program.relevant:
        for node in function.all_nodes:
            if isinstance(node, DECIDES) and course.trains(function, node):
                for test in asked_by(node):
                    counts.update(names_read(course.answers.spelt(test)))
                    counts.update(_counted(test))
            elif isinstance(node, ast.Call) and (name := naming(node)) is not None:
                counts[name] += 1
            elif isinstance(node, ast.withitem):
                choice = program.decides(function, node.context_expr)
                counts.update(
                    () if choice is None else names_read(course.answers.spelt(choice.asked))
                )
    asked = {*counts}
    for name, test in standing_of(program).behind(asked):
        counts.update((name, *names_read(test)))
    for function in program.relevant if asked else ():
        for node in function.all_calls:
            given = unscaled(program, function, node)
            counts.update(asked.intersection(names_read(given) if given is not None else ()))
    kept = [found for found in _kept(program) if counts[found[1]]]
    for _, item, name in kept:
        counts[name] += counts[item]
    several = {text for text, n in counts.items() if n >= fewest}
    rest = counts.keys() - several
    known = several | _stated(program, rest, constants) | keywords.stated(program, rest)
    known |= keywords.spelt(program, known)
    return frozenset(known.union(*({held, item} for held, item, name in kept if name in known)))


def unscaled(program: Program, function: Function, node: ast.AST) -> ast.expr | None:
    """Return the optimizer that a call of ``unscale_`` names by a variable."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or path(node.args[0]) is None:
        return None
    events = program.events(function, node)
    return node.args[0] if any(event.kind is Kind.UNSCALE for event in events) else None


def _counted(test: ast.expr) -> set[str]:
    """Return the names of what a test asks the length of, which a loop over it asks again."""
    lengths = (node for node in every(test) if isinstance(node, ast.Call) and is_len(node))
    return {name for node in lengths for name in names_read(node.args[0])}


@once
def deciding(program: Program) -> frozenset[str]:
    """Return the spellings of what tests ask on which it hangs whether gradients are cleared, unscaled or stepped on."""
    leading = program.leading(lambda event: event.kind in _DECIDED)

    def decides(function: Function, node: ast.If | ast.Match) -> bool:
        events = program.training.of(function)
        return any(
            any(event.kind in _DECIDED for event in events.get(part, ()))
            or (isinstance(part, ast.Call) and not leading.isdisjoint(program.callees(part)))
            for part in every(node)
        )

    return frozenset(
        fact.term.text
        for function in leading
        for node in function.own_nodes
        if isinstance(node, ast.If | ast.Match) and decides(function, node)
        for test in asked_by(node)
        for part in every(test)
        if isinstance(part, ast.expr)
        for truth in (True, False)
        for fact in (refine(NOTHING, part, truth) or NOTHING).facts
    )


def chooses(program: Program, term: Term) -> bool:
    """Tell whether what is known of a term says which optimizer or loss an event is of, or which backward pass an object runs."""
    if term.text.startswith(_OF_EVENTS):
        return True
    asked = [o.attribute for o in term.operands if o.aspect is Aspect.PATH]
    return bool(asked) and _choosing(program).issuperset(asked)


@once
def _choosing(program: Program) -> frozenset[str]:
    """Return the attributes that constructors alone store, and that say which of several backward passes an object runs."""
    found: set[str] = set()
    for function, events in program.training.by_function.items():
        for node, held in events.items():
            if any(event.kind is Kind.BACKWARD for event in held):
                tests = (up.test for up, _ in function.module.tree.sides(node))
                found.update(
                    n.attr for t in tests for n in every(t) if isinstance(n, ast.Attribute)
                )
    return frozenset(found - set_later(program.project))


def _kept(program: Program) -> Iterator[tuple[str, str, str]]:
    """Yield the variables that hold collections, with the last parts of what is in them and of the names that this is."""
    for function in program.relevant:
        for node in function.own_nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    for part, item in parts(target, node.value):
                        if isinstance(target, ast.Name) and (named := path(item)) is not None:
                            yield target.id, last(ast.unparse(part)), last(named)


def _stated(program: Program, names: set[str], constants: Constants) -> set[str]:
    """Return which of some names are parameters that calls give several constants for, as `backward=False` does, or None, or what they count by where that is 1."""
    found: dict[tuple[Function, str], set[Value]] = {}
    for function in program.relevant if names else ():
        asked = names.intersection(function.parameters.names)
        for site in program.project.callers(function) if asked else ():
            for name, value in constants(site.call, function):
                if name in asked:
                    found.setdefault((function, name), set()).add(value)
    return {name for (_, name), values in found.items() if len(values) > 1 or values & _TELLING}


def about_objects(term: Term) -> bool:
    """Tell whether a term says which objects there are."""
    return term.text.startswith(_ABOUT_OBJECTS)


def is_of_one(term: Term) -> bool:
    """Tell whether a term says something of an object, or of one variable."""
    return about_objects(term) or term.text.isidentifier()


def is_about(names: frozenset[str], term: Term) -> bool:
    """Tell whether a term says something of objects, or of what has one of some names, by whatever path."""
    texts = {o.text for o in term.operands if o.aspect is not Aspect.CONTENT}
    whole = (text for text in texts if not any(other.startswith(f"{text}.") for other in texts))
    return about_objects(term) or all(last(text) in names for text in whole)


def naming(call: ast.Call) -> str | None:
    """Return the variable that names the method of a call: ``getattr(hook, name)()``."""
    found = looked_up(call.func)
    return found[1].id if found is not None and isinstance(found[1], ast.Name) else None


def may_be_named(function: Function, name: str) -> bool:
    """Tell whether a function may be what a name of its class or module stands for: it is called so, or has a second name."""
    if function.name == name or function.node is None:
        return True
    scopes = function.module.scopes
    outer = scopes.scope_of(function.node)
    return any(not isinstance(b, ast.FunctionDef) for b in scopes.bindings(outer, name))


def last(text: str) -> str:
    """Return the last part of a path."""
    return re.split(r"[.\[]", text)[-1]


def names_read(test: ast.expr) -> set[str]:
    """Return the last parts of the names that a test reads."""
    items = (node for node in every(test) if isinstance(node, ast.Subscript))
    return names_in(test).union(last(ast.unparse(node)) for node in items)
