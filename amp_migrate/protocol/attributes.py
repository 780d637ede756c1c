"""Attributes that hold a GradScaler, and that a constructor may leave unset."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.facts.below import names_in
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import is_super, last_names
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.modules.bases import GIVE_NOTHING
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.order import key
from amp_migrate.project.reach import where_set
from amp_migrate.project.relatives import runs
from amp_migrate.protocol.code.program import Program

_MAKING = ("__init__", "__post_init__")


def unset_attributes(program: Program) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the first read of every attribute for a GradScaler that some path of its constructor does not set.

    What the constructor calls may set it, too.
    """
    for module in program.project.modules.values():
        for cls in module.classes.values():
            making = _making(program, cls)
            stores: dict[str, list[Point]] = {}
            for method in making:
                for attr, point in _stores(program, method):
                    stores.setdefault(attr, []).append(point)
            for attr, mine in stores.items():
                if _set_elsewhere(program, cls, attr, making) or _is_set(program, cls, attr):
                    continue
                tests = {name for p in mine for name in tests_above(module, p.node)}
                found = _read(cls, attr, tests)
                if found is not None:
                    yield module, found


def never_set(program: Program) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the first read of every attribute for a GradScaler that objects of a class lack: relatives of it alone set that."""
    project, stored = program.project, _stored(program)
    made = dict.fromkeys(_made(project)) if stored else {}
    for attr, classes in stored.items():
        others = [node.value for _, node in where_set(project, attr)]
        if not all(project.holder(n).is_receiver(n) for n in others):
            continue
        kin = {base for cls in classes for base in cls.mro()}
        for cls in made:
            if classes.isdisjoint(cls.mro()) and not kin.isdisjoint(cls.mro()):
                found = None if _has(cls, attr) else _first_read(cls, attr)
                if found is not None:
                    yield found


def _made(project: Project) -> Iterator[Class]:
    """Yield the classes of which calls make objects, but for what methods of a class make of the class they are called on."""
    for call, targets in project.calls.reached.items():
        classes = [target.cls for target in targets if target.cls is not None]
        where = project.holder(call) if classes else None
        if where is not None and isinstance(call, ast.Call):
            yield from () if where.is_class and where.is_receiver(call.func) else classes


def _has(cls: Class, attr: str) -> bool:
    """Tell whether objects of a class have an attribute by its body or that of a base, or may by a base out of sight."""
    if not GIVE_NOTHING.issuperset(cls.externals()):
        return True
    statements = (s for base in cls.mro() for s in base.node.body)
    if any(isinstance(s, ast.Assign | ast.AnnAssign) and attr in names_in(s) for s in statements):
        return True
    return any(attr in base.methods or "__getattr__" in base.methods for base in cls.mro())


def _first_read(cls: Class, attr: str) -> tuple[Module, ast.Attribute] | None:
    """Return the first read of an attribute of its object by a method of a class, under no test."""
    for owner in cls.mro():
        read = [
            node
            for method in owner.methods.values()
            if method.node is not None and runs(cls, method)
            for node in ast.walk(method.node)
            if isinstance(node, ast.Attribute) and node.attr == attr
            if isinstance(node.ctx, ast.Load) and method.is_receiver(node.value)
            if not tests_above(owner.module, node)
        ]
        if read:
            return owner.module, min(read, key=key)
    return None


def _stored(program: Program) -> dict[str, set[Class]]:
    """Return the classes whose methods set attributes of their objects to GradScalers, by attribute."""
    stored: dict[str, set[Class]] = {}
    for function in program.project.functions():
        if function.cls is not None:
            for attr, _ in _stores(program, function):
                stored.setdefault(attr, set()).add(function.cls)
    return stored


def read_early(program: Program) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the attributes for a GradScaler that a constructor, or a method that it calls, reads before any way sets them."""
    told: set[ast.AST] = set()
    for attr, classes in _stored(program).items():
        for cls in dict.fromkeys(c for s in classes for c in (s, *s.subclasses())):
            init = cls.method("__init__")
            below = classes & set(
                cls.subclasses()
            )  # they may set it before they run the constructor
            if init is None or below or _is_offered(cls, attr):
                continue
            found = _Early(program, cls, attr).read(init, frozenset())
            if found is not None and found[1] not in told:
                told.add(found[1])
                yield found


def _is_offered(cls: Class, attr: str) -> bool:
    """Tell whether objects of a class have an attribute before their constructor sets it, or may have."""
    family = {*cls.mro(), *cls.subclasses()}
    bodies = (statement for one in family for statement in one.node.body)
    assigned = (s for s in bodies if isinstance(s, ast.Assign | ast.AnnAssign))
    methods = any(attr in c.methods or "__getattr__" in c.methods for c in family)
    return methods or any(attr in names_in(s) for s in assigned)


class _Early:
    """Follows an attribute of the object that a constructor of a class makes."""

    def __init__(self, program: Program, cls: Class, attr: str) -> None:
        self._program = program
        self._cls = cls
        self._attr = attr

    def read(
        self, method: Function, above: frozenset[Function]
    ) -> tuple[Module, ast.Attribute] | None:
        """Return the first read in a method, or in what it calls, on a way that does not set the attribute before."""
        if method in above:
            return None
        above |= {method}
        graph = self._program.graph(method)
        sets = [p for p in graph.points if self._sets(method, p, above)]
        tests = {name for p in sets for name in tests_above(method.module, p.node)}
        order = graph.order(exceptions=False)
        for point in graph.points:
            found = self._read_at(method, point, above)
            if found is not None and not tests & tests_above(method.module, point.node):
                if not order.must_pass(graph.entry, point, sets):
                    return found
        return None

    def _read_at(
        self, method: Function, point: Point, above: frozenset[Function]
    ) -> tuple[Module, ast.Attribute] | None:
        node = point.node
        if (
            point.kind is Kind.LOAD
            and isinstance(node, ast.Attribute)
            and self._is_own(method, node)
        ):
            return method.module, node
        found = (self.read(callee, above) for callee in self._own_calls(method, point))
        return next((read for read in found if read is not None), None)

    def _is_own(self, method: Function, node: ast.Attribute) -> bool:
        return node.attr == self._attr and method.is_receiver(node.value)

    def _own_calls(self, method: Function, point: Point) -> list[Function]:
        """Return the methods of the same object that a point runs."""
        call = point.node
        if point.kind is not Kind.CALL or not isinstance(call, ast.Call):
            return []
        if not isinstance(call.func, ast.Attribute):
            return []
        if is_super(call.func.value):
            return self._program.project.callees(call)
        own = self._cls.method(call.func.attr) if method.is_receiver(call.func.value) else None
        return [own] if own is not None else []

    def _sets(self, method: Function, point: Point, above: frozenset[Function]) -> bool:
        """Tell whether a point sets the attribute, or runs a method that does on each of its ways."""
        if point.kind is Kind.STORE and isinstance(point.node, ast.Attribute):
            return self._is_own(method, point.node)
        callees = [f for f in self._own_calls(method, point) if f not in above]
        return bool(callees) and all(self._always_sets(f, above) for f in callees)

    def _always_sets(self, method: Function, above: frozenset[Function]) -> bool:
        above |= {method}
        graph = self._program.graph(method)
        sets = [p for p in graph.points if self._sets(method, p, above)]
        return graph.order(exceptions=False).must_pass(graph.entry, graph.exit, sets)


def _constructors(cls: Class) -> list[Function]:
    """Return what runs whenever an object of a class is made, a dataclass's second half included."""
    return [cls.methods[name] for name in _MAKING if name in cls.methods]


def _making(program: Program, cls: Class) -> list[Function]:
    """Return the constructors of a class, and the methods of it that these call."""

    def called(function: Function) -> list[Function]:
        calls = function.calls
        return [f for call in calls for f in program.project.callees(call) if f.cls is cls]

    return list(closure(_constructors(cls), called))


def _stores(program: Program, method: Function) -> Iterator[tuple[str, Point]]:
    """Yield where a method sets an attribute of its object to a GradScaler."""
    objects = program.training.objects
    for point in program.graph(method).points:
        if (
            point.kind is Kind.STORE
            and isinstance(point.node, ast.Attribute)
            and method.is_receiver(point.node.value)
            and objects.scaler(method.module, point.node) is not None
        ):
            yield point.node.attr, point


def _is_set(program: Program, cls: Class, attr: str) -> bool:
    """Tell whether a constructor sets an attribute on each of its paths."""
    return any(_sets(program, init, attr, frozenset()) for init in _constructors(cls))


def _sets(program: Program, method: Function, attr: str, above: frozenset[Function]) -> bool:
    """Tell whether a method sets an attribute on each of its paths, or runs one that does."""
    if method in above:
        return False
    above |= {method}
    graph = program.graph(method)
    points = [point for name, point in _stores(program, method) if name == attr]
    for point in graph.points:
        callees = program.project.callees(point.node) if isinstance(point.node, ast.Call) else []
        if callees and all(f.cls is method.cls and _sets(program, f, attr, above) for f in callees):
            points.append(point)
    return graph.order(exceptions=False).must_pass(graph.entry, graph.exit, points)


def tests_above(module: Module, node: ast.AST) -> set[str]:
    """Return what the tests ask for under which a node stands in its function, by its last names."""
    found: set[str] = set()
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp | ast.While):
            found |= last_names(up.test)
        elif isinstance(up, ast.BoolOp):
            found |= last_names(up)
        elif isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
    return found


def _set_elsewhere(program: Program, cls: Class, attr: str, making: Collection[Function]) -> bool:
    """Tell whether anything but its constructor and what that calls may give objects of a class an attribute."""
    family = {*cls.mro(), *cls.subclasses()}
    if any(attr in c.methods for c in family):
        return True
    for one in family:
        for statement in one.node.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and attr in names_in(statement):
                return True
    for module, node in where_set(program.project, attr):
        function = program.project.function_of(module, node)
        others = function.cls is not None and function.cls not in family
        if function not in making and not (others and function.is_receiver(node.value)):
            return True
    return False


def _read(cls: Class, attr: str, tests: set[str]) -> ast.Attribute | None:
    """Return a read of an attribute by a method that no test shields which the constructor asks as well."""
    module = cls.module
    found = [
        node
        for method in cls.methods.values()
        for node in (ast.walk(method.node) if method.node is not None else ())
        if isinstance(node, ast.Attribute) and node.attr == attr and isinstance(node.ctx, ast.Load)
        if method.is_receiver(node.value)
        if not tests & tests_above(module, node)
    ]
    return min(found, key=key, default=None)
