"""What a path knows of the class of an object on which a method is called."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.flow.assumption import NOTHING, Assumption, Known
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.terms import Aspect, Operand, Term
from amp_migrate.project import Class, Function


def of_class(receiver: ast.expr, cls: Class, known: Assumption) -> Assumption | None:
    """Return what is known where the object of a method call is of a class; None where it is of another."""
    term = _class_of(receiver)
    if term is None:
        return known
    value = Known(f"{cls.module.path}:{cls.qualname}")
    stated = known.get(term)
    if stated is not None:
        return known if stated == value else None
    return known.with_fact(term, value)


def stored(point: Point, known: Assumption, left: Assumption) -> Assumption:
    """Return what is known behind a point that puts an object into a variable: of what class it is, as it was before by its path.

    `left` is what else is known there.
    """
    if point.kind is not Kind.STORE or not isinstance(point.node, ast.Name) or point.value is None:
        return left
    term, own = _class_of(point.value), _class_of(point.node)
    stated = None if term is None else known.get(term)
    return left if stated is None or own is None else left.with_fact(own, stated)


def is_of_another(call: ast.Call, callee: Function, learnt: Assumption, before: Assumption) -> bool:
    """Tell whether a method came to an end with an object of another class than it was called on.

    `learnt` is what it learnt, by the names of its caller, and `before` what the caller knows that the call does not change.
    """
    if not isinstance(call.func, ast.Attribute) or callee.receiver is None:
        return False
    term = _class_of(call.func.value)
    found, stated = (None, None) if term is None else (learnt.get(term), before.get(term))
    bound = callee.module.scopes.bindings(callee.scope, callee.receiver)
    return None not in (found, stated) and found != stated and len(bound) == 1


def of_receiver(function: Function, known: Assumption) -> Assumption:
    """Return what is known of the class of the object that a method runs for."""
    if function.receiver is None:
        return NOTHING
    own = _class_of(ast.Name(function.receiver, ast.Load()))
    return known.only(lambda term: term == own)


def _class_of(receiver: ast.expr) -> Term | None:
    text = path(receiver)
    return None if text is None else Term(f"type({text})", frozenset({_operand(text)}))


def _operand(text: str) -> Operand:
    inner = text.rpartition(".")[2]
    return Operand(text, Aspect.PATH, inner) if "." in text else Operand(text, Aspect.BINDING)
