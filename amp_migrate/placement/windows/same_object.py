"""What methods of one object know of each other's tests: they ask attributes that it was made with."""

from __future__ import annotations

import ast

from amp_migrate.flow import refine
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.terms import Aspect, Operand, Term
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.reach import set_later


def known_of_object(project: Project, function: Function, node: ast.AST) -> Assumption:
    """Return what the tests around a node of a method say of attributes of its object that constructors alone set."""
    receiver = function.receiver
    if function.cls is None or receiver is None:
        return NOTHING
    later, found = set_later(project), NOTHING

    def stays(operand: Operand) -> bool:
        if operand.aspect is Aspect.BINDING:
            return operand.text == receiver
        own = operand.text == f"{receiver}.{operand.attribute}"
        return operand.aspect is Aspect.PATH and own and operand.attribute not in later

    def lasts(term: Term) -> bool:
        return all(map(stays, term.operands))

    for test, truth in function.module.tree.sides(node):
        found = refine(found, test.test, truth) or found
    return found.only(lasts)


def on_same_object(site: CallSite, method: Function) -> bool:
    """Tell whether a call in a method runs another one on the object of the first, by the same name."""
    func, receiver = site.call.func, site.function.receiver
    called = isinstance(func, ast.Attribute) and site.function.is_receiver(func.value)
    return called and receiver is not None and method.receiver == receiver
