"""Gives a condition a name: a variable beside its test or above its loop, a function, a method, a property."""

from __future__ import annotations

import builtins
from random import Random

import libcst as cst

from generated.refactor.code.blocks import parsed
from generated.refactor.code.names import bound, declared, read
from generated.refactor.control.places import (
    Place,
    loads,
    only,
    somewhere,
    unchanging,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_FLAGS = (
    *("due", "ready", "skip_update", "dry_run", "do_step", "flag", "boundary", "now", "debug"),
    *("should_run", "enabled", "is_last", "ok", "cond", "warm", "hit", "verbose", "update"),
)
_ASKS = (
    *("is_due", "should_run", "check", "wants_update", "dry", "skipping", "enabled_now"),
    *("test", "allowed", "at_boundary", "decide", "active", "in_debug"),
)


def _variable(place: Place, rng: Random) -> Project | None:
    """Assign a test, or the operand that it begins with, just before it."""
    node = place.statement
    if not isinstance(node, cst.If) or isinstance(node.test, cst.Name):
        return None
    test = node.test
    if isinstance(test, cst.BooleanOperation) and rng.random() < 0.4:
        while isinstance(test, cst.BooleanOperation):
            test = test.left
        if isinstance(test, cst.Name):
            return None
    name = place.name(rng, *_FLAGS)
    value = place.source(test.with_changes(lpar=(), rpar=()) if len(test.lpar) == 1 else test)
    if "\n" in value or "(yield" in value:
        value = place.source(test)
    new = _asking(node, test, cst.Name(name))
    first = parsed(f"{place.lead()}{name} = {value}\n", place.module)
    return place.exchanged([*first, new.with_changes(leading_lines=())])


def _asking(
    node: cst.If | cst.While, old: cst.BaseExpression, new: cst.BaseExpression
) -> cst.If | cst.While:
    space = cst.SimpleWhitespace(" ")
    if old is node.test:
        word = "whitespace_before_test" if isinstance(node, cst.If) else "whitespace_after_while"
        return node.with_changes(test=new, **{word: space})
    test = node.test.deep_replace(old, new)
    assert isinstance(test, cst.BaseExpression)
    return node.with_changes(test=test)


def _above_loop(place: Place, rng: Random) -> Project | None:
    """Assign a test that the loop does not change, once above the loop; every test of the same text asks it."""
    node = place.statement
    if not isinstance(node, cst.For | cst.While) or place.at_class_level:
        return None
    tests = _Tests(place)
    node.visit(tests)
    every = [text for text in tests.texts if unchanging(place, text, [node])]
    if not every:
        return None
    text = rng.choice(every)
    name = place.name(rng, *_FLAGS)
    new = node.with_changes(leading_lines=()).visit(_Renaming(place, text, name))
    first = parsed(f"{place.lead()}{name} = {text}\n", place.module)
    assert isinstance(new, cst.BaseStatement)
    return place.exchanged([*first, new])


class _Tests(cst.CSTVisitor):
    """Collects the texts of tests within a loop that are more than a name."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.texts: list[str] = []

    def visit_If(self, node: cst.If) -> None:
        if not isinstance(node.test, cst.Name):
            self.texts.append(self.place.source(node.test))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False


class _Renaming(cst.CSTTransformer):
    def __init__(self, place: Place, text: str, name: str) -> None:
        self.place, self.text, self.name = place, text, name

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        if self.place.source(original_node.test) == self.text:
            changed = _asking(updated_node, updated_node.test, cst.Name(self.name))
            assert isinstance(changed, cst.If)
            return changed
        return updated_node


def _arms(node: cst.If | cst.While) -> list[cst.If | cst.While]:
    """Return a statement and the `elif` of it."""
    found = [node]
    while isinstance(found[-1].orelse, cst.If):
        found.append(found[-1].orelse)
    return found


def _locals(place: Place) -> set[str]:
    """Return the names that the functions around a place bind."""
    found: set[str] = set()
    for node in place.block.inside:
        if isinstance(node, cst.FunctionDef):
            p = node.params
            every = [*p.posonly_params, *p.params, *p.kwonly_params]
            every += [s for s in (p.star_arg, p.star_kwarg) if isinstance(s, cst.Param)]
            found |= {each.name.value for each in every}
            found |= bound(node.body) - declared(node.body)
    return found


def _function(place: Place, rng: Random) -> Project | None:
    """Ask a test of a function of the module, defined above the statement of the module that asks."""
    node = place.statement
    if not isinstance(node, cst.If | cst.While) or place.at_class_level:
        return None
    drawn = rng.choice(_arms(node))
    text = place.source(drawn.test)
    if isinstance(drawn.test, cst.Name) or ":=" in text or "await" in text or "super()" in text:
        return None
    own = sorted(read(drawn.test) & (_locals(place) or _data(place)))
    name = place.name(rng, *_ASKS)
    helper = f"\n\ndef {name}({', '.join(own)}):\n{place.indented(f'return {text}')}\n\n\n"
    return _with_helper(place, drawn, f"{name}({', '.join(own)})", helper)


def _data(place: Place) -> set[str]:
    """Return the names that the module binds to no function, class or import."""
    given: set[str] = set(dir(builtins))
    for node in place.module.body:
        line = isinstance(node, cst.SimpleStatementLine) and "import" in place.source(node)
        if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Try) or line:
            given |= bound(node)
    return bound(place.module) - given


def _with_helper(place: Place, old: cst.If | cst.While, call: str, helper: str) -> Project | None:
    top = place.block.inside[0] if place.block.inside else place.statement
    index = next(k for k, node in enumerate(place.module.body) if node is top)
    module = place.module.with_deep_changes(old, test=_asking_call(old, call))
    assert isinstance(module, cst.Module)
    after = module.body[index]
    lead = place.lead(after) if isinstance(after, cst.BaseStatement) else ""
    space = helper if lead.startswith("\n\n") else helper.rstrip("\n") + "\n\n\n"
    lines = [x for x in getattr(after, "leading_lines", ()) if x.comment]
    new = parsed(space, place.module)
    rest = [after.with_changes(leading_lines=[*_empty(2), *lines]), *module.body[index + 1 :]]
    changed = module.with_changes(body=[*module.body[:index], *new, *rest])
    return place.project.changed(place.path, changed)


def _empty(count: int) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(indent=False) for _ in range(count)]


def _asking_call(old: cst.If | cst.While, call: str) -> cst.BaseExpression:
    return cst.parse_expression(call if not old.test.lpar else f"({call})")


def _of_class(place: Place, rng: Random) -> Project | None:
    """Ask a test of a property of the object, or of a method where it looks at local names."""
    node, klass, function = place.statement, place.block.klass, place.block.function
    if not isinstance(node, cst.If | cst.While) or klass is None or function is None:
        return None
    first = function.params.params[0].name.value if function.params.params else ""
    drawn = rng.choice(_arms(node))
    text = place.source(drawn.test)
    if first != "self" or "self" not in read(drawn.test) or ":=" in text or "super()" in text:
        return None
    own = sorted((read(drawn.test) & _locals(place)) - {"self"})
    name = place.name(rng, *_ASKS)
    ask = "self." + name
    head = f"def {name}({', '.join(['self', *own])}):\n"
    if own or rng.random() < 0.4:
        ask += f"({', '.join(own)})"
    else:
        head = f"@property\n{head}"
    method = parsed(f"\n{head}{place.indented(f'return {text}')}\n", place.module)
    body = klass.body
    if not isinstance(body, cst.IndentedBlock):
        return None
    at = next(k for k, each in enumerate(body.body) if each is function)
    other = function.with_deep_changes(drawn, test=_asking_call(drawn, ask))
    new = body.with_changes(body=[*body.body[:at], other, *method, *body.body[at + 1 :]])
    module = place.module.with_deep_changes(klass, body=new)
    assert isinstance(module, cst.Module)
    return place.project.changed(place.path, module)


def _renamed(place: Place, rng: Random) -> Project | None:
    """Give another name to a variable of a function that a test asks."""
    node, function = place.statement, place.block.function
    if not isinstance(node, cst.If | cst.While) or function is None:
        return None
    params = _Parameters()
    function.visit(params)
    names = read(node.test) & bound(function.body)
    names -= params.names | declared(function.body)
    if not names:
        return None
    old = rng.choice(sorted(names))
    if f"'{old}" in place.source(function) or f'"{old}' in place.source(function):
        return None
    outer = [n for n in place.block.inside if isinstance(n, cst.FunctionDef)]
    if any(old in declared(f.body) for f in outer):
        return None
    new = function.visit(_Other(old, place.name(rng, *_FLAGS)))
    module = place.module.deep_replace(function, new)  # type: ignore[arg-type]
    assert isinstance(module, cst.Module)
    return place.project.changed(place.path, module)


class _Parameters(cst.CSTVisitor):
    """Collects the names of parameters, those of functions within too, and names that inner functions bind."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._depth = 0

    def visit_Param(self, node: cst.Param) -> None:
        self.names.add(node.name.value)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if self._depth:
            self.names |= bound(node.body) | declared(node.body)
        self._depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._depth -= 1

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.names |= bound(node.body)


class _Other(cst.CSTTransformer):
    """Renames a variable, but no attribute and no keyword of a call."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        if updated_node.value == self.old:
            return updated_node.with_changes(value=self.new)
        return updated_node

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


def _inlined(place: Place, rng: Random) -> Project | None:
    """Put the value of a variable that only the next statement asks into its test."""
    small = only(place.statement)
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not place.rest:
        return None
    target, node = small.targets[0].target, place.rest[0]
    if not isinstance(target, cst.Name) or not isinstance(node, cst.If):
        return None
    name, value = target.value, place.source(small.value)
    inner = _first(node.test)
    text = place.source(node.test)
    if not isinstance(inner, cst.Name) or inner.value != name or place.block.function is None:
        return None
    if "\n" in value or "#" in place.bare() or loads(text)[name] != 1 or _yields(value):
        return None
    walrus = loads(place.source(place.scope))[name] != 1
    new = cst.parse_expression(f"({name} := {value})" if walrus else f"({value})")
    if not walrus and (inner is node.test or isinstance(small.value, cst.Call | cst.Attribute)):
        new = new.with_changes(lpar=(), rpar=())
    test = new if inner is node.test else node.test.deep_replace(inner, new)
    lines = [*place.statement.leading_lines, *node.leading_lines]  # type: ignore[attr-defined]
    return place.exchanged([node.with_changes(test=test, leading_lines=lines)], 2)


def _first(test: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a test evaluates first, beside the function of a call."""
    while True:
        if isinstance(test, cst.BooleanOperation | cst.BinaryOperation | cst.Comparison):
            test = test.left
        elif isinstance(test, cst.UnaryOperation):
            test = test.expression
        elif isinstance(test, cst.Call) and test.args and not test.args[0].star:
            method = isinstance(test.func, cst.Attribute | cst.Name)
            test = test.args[0].value if method else test.func
        elif isinstance(test, cst.Attribute):
            test = test.value
        elif isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute):
            test = test.func.value
        else:
            return test


def _yields(value: str) -> bool:
    return any(word in value for word in ("yield", "await", ":="))


REFACTORINGS = tuple(
    Refactoring(name, "control", somewhere(change, *kinds))
    for name, change, kinds in (
        ("a condition becomes a variable", _variable, (cst.If,)),
        ("a condition becomes a variable above the loop", _above_loop, (cst.For, cst.While)),
        ("a condition becomes a function", _function, (cst.If, cst.While)),
        ("a condition becomes a property or a method", _of_class, (cst.If, cst.While)),
        ("the variable of a condition is renamed", _renamed, (cst.If, cst.While)),
        ("an assignment goes into the test after it", _inlined, (cst.SimpleStatementLine,)),
    )
)
