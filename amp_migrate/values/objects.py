"""What is known of an object: its class, what made it, or which function it is."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.modules.lookup import Meaning
from amp_migrate.modules.model import Class, Function, Module


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a project class; `exact` when it is made by that very class, not a subclass."""

    cls: Class
    exact: bool


@dataclass(frozen=True, slots=True)
class Made:
    """What a call outside the project returned, by the dotted name of the callee."""

    name: str

    @property
    def is_optimizer(self) -> bool:
        """Whether a package of optimizers made it: ``torch.optim``, ``apex.optimizers``, ``timm.optim``."""
        return "optim" in self.name


@dataclass(frozen=True, slots=True)
class Bound:
    """A method taken from an object, of a class or one of its subclasses: its first parameter is given."""

    function: Function
    receiver: Class


@dataclass(frozen=True, slots=True)
class MadeAt:
    """The object that one call of a class makes, or each of those that it makes."""

    cls: Class
    call: ast.Call


Receiver = Class | MadeAt
"""What is known of the object that a method is called on: its class or the highest one, or what made it."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A ``functools.partial`` object, and how many positional parameters it has given."""

    function: Function
    taken: int


@dataclass(frozen=True, slots=True)
class Written:
    """A function that is written as an expression."""

    module: Module
    node: ast.Lambda


@dataclass(frozen=True, slots=True)
class Held:
    """A ``functools.partial`` object, by the call that made it: it keeps what it runs, and what that is given first."""

    module: Module
    call: ast.Call


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an object that a library made, or may have made: read here, to be called elsewhere."""

    module: Module
    node: ast.Attribute


Fact = Meaning | Instance | Made | Bound | Partial | Written | Held | Method
