"""Where the GradScaler lives, and how each function that needs it gets hold of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from amp_migrate.apex.sites import Site
from amp_migrate.availability.asked import Entry
from amp_migrate.availability.handed import Maker
from amp_migrate.plan.cannot import Cannot, OutOfReach, spoken
from amp_migrate.plan.model import AddArgument
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.relatives import family
from amp_migrate.scaler.naming import free_name
from amp_migrate.scaler.reach import in_reach, out_of_reach
from amp_migrate.scaler.reach.missing import may_be_missing, refuse_missing
from amp_migrate.scaler.reach.out_of_reach import Inits
from amp_migrate.scaler.reach.threads import Thread, keeps_apart, parameter
from amp_migrate.scaler.routes import either, of_file, places
from amp_migrate.scaler.routes.callers import Callers
from amp_migrate.scaler.routes.carriers import Carriers
from amp_migrate.scaler.routes.of_other_file import OtherFiles
from amp_migrate.scaler.routes.returning import Returning
from amp_migrate.scaler.routes.without import Beside
from amp_migrate.scaler.runners import Runners


class Home:
    """Finds and records the way of the scaler from where it is made to where it is used."""

    def __init__(
        self,
        project: Project,
        inits: dict[Function, list[Site]],
        needing: set[Function],
        modules: Iterable[Module],
        carriers: Carriers,
        module_level: bool = False,
    ) -> None:
        self.project = project
        self.inits = inits
        self.made = Inits(project, inits)
        self.carriers = carriers
        self.runners = Runners(project, inits)
        self.module_level = module_level
        self.asked: dict[Function, Entry] = {}
        self.makers: dict[Function, Maker] = {}
        self.beside = Beside()
        self._needing = needing
        self.name = free_name(modules)
        self.callers = Callers(self.made, needing)
        self.threads: dict[Function, Thread] = {}
        self.users: dict[Function, list[ast.AST]] = {}
        self.resolved: dict[Function, str] = {}
        self.constructed: set[Class] = set()
        self.constructs = True
        self._constructing: set[Class] = set()
        self._attributes: set[Class] = set()
        if not module_level:
            self._attributes = {cls for f in inits if (cls := self._attribute_class(f))}
        self._attributes |= {empty.owner for empty in carriers.empty}
        self.returning = Returning(self)
        self.elsewhere = OtherFiles(project, inits, self.name, module_level, self.returning.provide)

    def access(self, function: Function, node: ast.AST) -> str:
        """Return the expression by which `function` reaches the scaler at `node`.

        Raises `Cannot` where the calls cannot all be seen.
        """
        text = self.resolved.get(function)
        if text is None:
            with self._all_or_nothing():
                text = self._resolve(function, node)
            self.resolved[function] = text
        refuse_missing(self.project, function, node, text)
        self.users.setdefault(function, []).append(node)
        made = [site.node for site in self.inits.get(function, [])]
        makers = made or self.returning.calls_for(function)
        if makers and text == self.name and not self._is_global(function):
            out_of_reach.refuse_before(self.project, makers, function, node)
        if function in self.makers:
            out_of_reach.refuse_unswitched(self.makers[function], node)
        return text

    def _is_global(self, function: Function) -> bool:
        """Tell whether a function reads the scaler from its file, which has a disabled one from the start."""
        return self.module_level and function.node is not None

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Forget all that is noted on a way that turns out to be none."""
        threads, resolved = dict(self.threads), dict(self.resolved)
        constructed, attributes = set(self.constructed), set(self._attributes)
        users = {f: list(nodes) for f, nodes in self.users.items()}
        returned = self.returning.state()
        try:
            yield
        except Cannot:
            self.threads, self.resolved, self.users = threads, resolved, users
            self.constructed, self._attributes = constructed, attributes
            self.returning.restore(returned)
            raise

    def attribute(self, function: Function) -> str:
        """Return ``self.scaler``, with the name that the method gives its object."""
        parameters = function.parameters.names
        return f"{parameters[0] if parameters else 'self'}.{self.name}"

    @property
    def keepers(self) -> set[Class]:
        """The classes that make the scaler, or are given it, and keep it on their objects."""
        return self._attributes

    def is_attribute(self, function: Function) -> bool:
        """Tell whether the scaler made in `function` becomes an attribute of its object."""
        return function.cls is not None and any(c in self._attributes for c in family(function.cls))

    def reads_own(self, function: Function) -> bool:
        """Tell whether a method reads an attribute that keeps the scaler off its first parameter.

        A class method has the class for it, on which a class method that initializes keeps the scaler alone.
        """
        if function.cls is None or function.is_static:
            return False
        relatives = family(function.cls)
        return not function.is_class or any(f.is_class and f.cls in relatives for f in self.inits)

    def _attribute_class(self, function: Function) -> Class | None:
        """A method that initializes keeps the scaler on `self`, unless nothing else of its class needs it."""
        if function.cls is None or function.is_static or not function.parameters.names:
            return None
        if any(
            places.kept_on_self(site, function.parameters.names[0]) for site in self.inits[function]
        ):
            return function.cls
        relatives = family(function.cls)
        others = (f for f in self._needing if f is not function and f.class_around in relatives)
        return function.cls if any(others) else None

    def _resolve(self, function: Function, node: ast.AST) -> str:
        self.resolved[function] = self.name
        if self.module_level:
            if function in self.carriers.parameters:
                self.callers.refuse_escaping(function, node)
            return of_file.reached(self, function, node, self.take)
        if function in self.carriers.parameters:
            self.callers.refuse_escaping(function, node)
            return self.name
        if function in self.inits:
            return self.attribute(function) if self.is_attribute(function) else self.name
        if function in self.makers:
            return self.name
        if function in self.asked:
            return self._ask(function, self.asked[function])
        if function in self.beside.borrowing:
            return self.take(function, node)
        runner = self.runners.through(function)
        if runner is not None:
            self.runners.used = True
            return f"{runner}.{self.name}"
        if function in self.carriers.paths and self.carriers.stored:
            return f"{self.carriers.paths[function]}.{self.name}"
        if in_reach.stored_beside(self.carriers, function):
            return self.attribute(function)
        if function.parent is not None:
            return self._closure(function, function.parent, node)
        if function.cls is not None and self.is_attribute(function) and self.reads_own(function):
            constructed = any(c in self.constructed for c in family(function.cls))
            if not (constructed and function.name == "__init__"):
                return self.attribute(function)
        if function.module.top in self.inits and in_reach.is_global(function, node):
            return self.name
        imported = self.elsewhere.reached(function, node)
        if imported is not None:
            return imported
        if self._kept_by_sibling(function):
            return self.attribute(function)
        keepers = {relative for cls in self._attributes for relative in family(cls)}
        held = in_reach.held(self.project, keepers - self._constructing, function, node)
        if held is not None and not may_be_missing(self.project, function, node, held):
            return f"{held}.{self.name}"
        if self.returning.provide(function):
            return self.name
        if (
            function.cls is not None
            and self.reads_own(function)
            and in_reach.on_self(self.project, function, node)
            and self._is_constructed(function.cls, node)
        ):
            return self.attribute(function)
        return self._handed(function, node)

    def _handed(self, function: Function, node: ast.AST) -> str:
        """Let a function take the scaler, or where it cannot, read it from an object that it is given: ``runner.scaler``."""
        try:
            with self._all_or_nothing():
                return self.take(function, node)
        except OutOfReach:
            for name, cls in in_reach.given(self.project, function):
                if cls not in self._constructing and self._is_constructed(cls, node):
                    return f"{name}.{self.name}"
            raise

    def _ask(self, function: Function, entry: Entry) -> str:
        """Let the function, or the constructor of its object, take a scaler that those who ask for AMP pass."""
        taker = entry.function
        if taker not in self.threads and taker.node is not None:
            sentence = f"{taker.qualname}() takes the GradScaler as parameter `{self.name}`"
            self.threads[taker] = Thread(taker, sentence, [parameter(taker, self.name, "None")])
        if not entry.keeps or taker.cls is None:
            return self.name
        self.constructed.add(taker.cls)
        self._attributes.add(taker.cls)
        return self.attribute(function)

    def _closure(self, function: Function, parent: Function, node: ast.AST) -> str:
        run = out_of_reach.moments(self.project, self.returning.begins(parent), function)
        texts = [self.access(parent, at) for at in run or [function.node or node]]
        text = texts.pop()
        out_of_reach.refuse_hidden(function, node, text)
        return text

    def _kept_by_sibling(self, function: Function) -> bool:
        """Tell whether another method of the class, the constructor first, gets the scaler and can keep it."""
        if function.cls is None or not self.reads_own(function) or function.name == "__init__":
            return False
        methods = [m for c in function.cls.mro() for m in c.methods.values() if m is not function]
        for method in sorted(methods, key=lambda m: m.name != "__init__"):
            names = method.parameters.names
            if (
                names
                and not method.is_static
                and self.returning.provide(method, f"{names[0]}.{self.name}")
            ):
                self.resolved[method] = self.attribute(method)
                self._attributes.add(method.cls or function.cls)
                return True
        return False

    def _is_constructed(self, cls: Class, node: ast.AST) -> bool:
        """Tell whether the scaler could be handed to the constructor; where it could not, nothing is noted."""
        before = self._constructing
        self._constructing = {*before, *family(cls)}
        try:
            with self._all_or_nothing():
                return self.constructs and self._construct(cls, node)
        except Cannot:
            return False
        finally:
            self._constructing = before

    def _construct(self, cls: Class, node: ast.AST) -> bool:
        """Hand the scaler to the constructor and keep it as an attribute, where every construction is seen."""
        init = cls.method("__init__")
        if init is None or init.node is None or self.project.escapes(init):
            return False
        calls = self.project.callers(init)
        seen = bool(calls) or self.callers.spares(cls)
        if not seen or not all(self.made.made_before(c) for c in calls):
            return False
        self.constructed.add(init.cls or cls)
        self._attributes.add(init.cls or cls)
        self.take(init, node)
        self.threads[init].edits.append((init.module.path, places.kept(init, self.name)))
        return True

    def take(self, function: Function, node: ast.AST) -> str:
        """Let a function take the scaler as a parameter, and return its name. Raises `Cannot` where some call is unseen."""
        if function in self.threads:
            return self.name
        every = self.callers.of(function, node)
        calls = [c for c in every if not self.beside.lacks(c)]
        given = len(calls) == len(every)
        for call in filter(lambda call: self.returning.awaits(call.function), calls):
            reason = f"{spoken(call.function)}, which calls it, has none before"
            raise self.made.unreachable(function, node, reason)
        thread = self.threads[function] = Thread(function, "")
        members = [m for m in self.project.family(function) or [function] if m.node is not None]
        for member in members:
            self.resolved.setdefault(member, self.name)
            thread.edits.append(parameter(member, self.name, given=given))
        by_name = given and any(map(keeps_apart, members))
        for call in calls:
            text = self.beside.lent(call, self.name) or self.access(call.function, call.call)
            span = call.function.module.tree.span(call.call)
            beyond = function.parameters.vararg is not None
            by_place = places.fills_all(call, function) and not beyond and not by_name
            keyword = None if by_place else self.name
            thread.edits.append((call.function.module.path, AddArgument(span, text, keyword)))
        count = len(calls)
        thread.sentence = (
            f"{function.qualname}() takes the GradScaler as parameter `{self.name}` "
            f"({count} call{'s' * (count != 1)} pass{'es' * (count == 1)} it)"
        )
        either.reach(self, function)
        return self.name
