"""What written code reads in a program that does not have it: a flag of another program, a GradScaler it is not given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.check.events.labels import called, text_of
from amp_migrate.check.events.sides import Key, Side, changed, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import every
from amp_migrate.facts.closure import Gathered
from amp_migrate.facts.constants import is_false, is_none
from amp_migrate.facts.paths import all_given, path, spreads, tail, walk
from amp_migrate.project import Function
from amp_migrate.training.contexts import is_off
from amp_migrate.training.flags.subcommands import may_lack
from amp_migrate.training.origins.behind import may_be_bare

_FLAG = "reads a flag that a program of this helper does not have:"
_LACKED = "reads an option that a subcommand of this program does not have:"
_ASKS = ast.If | ast.IfExp | ast.BoolOp | ast.While | ast.Compare | ast.UnaryOp
_BARE = "is read where nothing may have wrapped it:"
_GIVEN = "is used, although a call does not pass it:"
_ALONE = "is a GradScaler of this call alone, beside the one that trains:"


class Lacking:
    """Holds what the new text reads against what the programs that come there have."""

    def __init__(self, old: Side, new: Side) -> None:
        self._old = old
        self._new = new

    def flags(self, programs: Iterable[Function]) -> Iterator[tuple[Key, Difference]]:
        """Yield the attributes of options that programs come to now, without an option of that name."""
        introduced: dict[Function, list[ast.Attribute]] = {}

        def own(function: Function) -> int:
            nodes = list(self._introduced(function))
            if not nodes:
                return 0
            introduced[function] = nodes
            return 1 << len(introduced) - 1

        yield from self._of_subcommands()
        ran = Gathered(self._new.onward, own)
        for program in programs:
            bits = [ran.of(function) for function in self._new.functions.get(key(program), ())]
            flags = self._flags(program) if any(bits) else frozenset[str]()
            for place, (function, nodes) in enumerate(introduced.items() if flags else ()):
                if any(some >> place & 1 for some in bits):
                    for node in nodes:
                        if node.attr not in flags:
                            yield differs(function, node, f"`{text_of(node)}` {_FLAG}")

    def _of_subcommands(self) -> Iterator[tuple[Key, Difference]]:
        """Yield the options that decide casts now where a subcommand may come that has none of that name."""
        for name in changed(self._old, self._new):
            had = self._old.functions.get(name, ())
            for function in self._new.functions[name] if had else ():
                for node in self._introduced(function):
                    if any(may_lack(self._old.project, old, node) for old in had):
                        yield differs(function, node, f"`{text_of(node)}` {_LACKED}")

    def wrappers(self) -> Iterator[tuple[Key, Difference]]:
        """Yield what decides casts now and goes through the ``module`` of what only some branches wrap."""
        for name in changed(self._old, self._new):
            for function in self._new.functions[name]:
                parts = (part for k in _deciding(function) for part in every(k.value))
                for part in parts:
                    if isinstance(part, ast.Attribute) and part.attr == "module":
                        if may_be_bare(self._new.project, function.module, part, part):
                            yield differs(function, part, f"`{text_of(part)}` {_BARE}")

    def _introduced(self, function: Function) -> Iterator[ast.Attribute]:
        """Yield the options that decide casts in a function of the new text and did not stand in the old one."""
        had = (
            self._old.names(key(function)) if key(function) in self._old.functions else frozenset()
        )
        own = function.receivers
        for keyword in _deciding(function):
            for part in every(keyword.value):
                if isinstance(part, ast.Attribute) and path(part.value) is not None:
                    called = function.module.tree.call_of(part) is not None
                    held = isinstance(part.value, ast.Name) and part.value.id in own
                    if not called and not held and text_of(part) not in had:
                        yield part

    def _flags(self, program: Function) -> frozenset[str]:
        """Return the words that a program may know options by; nothing where it parses none."""
        found: set[str] = set()
        parses = False
        functions = self._old.reached([program])
        scopes: set[ast.AST] = {f.scope for f in functions}
        for module in {f.module for f in functions}:
            scopes |= {module.tree.module, *module.tree.nodes(ast.ClassDef)}
        for scope in scopes:
            for node in walk(scope):
                if isinstance(node, ast.Call) and tail(node) == "add_argument":
                    parses = True
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value.lstrip("-").replace("-", "_"))
                elif isinstance(node, ast.Attribute):
                    found.add(node.attr)
                elif isinstance(node, ast.Name):
                    found.add(node.id)
                elif isinstance(node, ast.keyword) and node.arg is not None:
                    found.add(node.arg)
        return frozenset(found) if parses else frozenset()

    def parameters(self) -> Iterator[tuple[Key, Difference]]:
        """Yield the uses of new parameters that are None where a call does not pass them, and GradScalers of one call alone."""
        for name in changed(self._old, self._new):
            for function in self._new.functions[name]:
                for parameter in self._brought(function, name):
                    given = list(self._given(function, parameter))
                    use = _unguarded(function, parameter)
                    if use is not None and any(node is None or is_none(node) for _, node in given):
                        yield differs(function, use, f"`{text_of(use)}` {_GIVEN}")
                    for caller, node in given:
                        if isinstance(node, ast.Call) and self._is_another(caller, node):
                            yield differs(caller, node, f"`{ast.unparse(node)}` {_ALONE}")

    def _brought(self, function: Function, name: Key) -> list[str]:
        """Return the parameters of a function that only the new text has."""
        known = {p for f in self._old.functions[name] for p in f.parameters.names}
        return [p for p in function.parameters.names if p not in known]

    def _given(
        self, function: Function, parameter: str
    ) -> Iterator[tuple[Function, ast.expr | None]]:
        """Yield what calls of a function give a parameter, with the functions they stand in: None for nothing."""
        project, default = self._new.project, function.parameters.defaults.get(parameter)
        for site in project.calls_of(function):
            node = project.arguments(site, function).get(parameter)
            if node is not None or (is_none(default) and not spreads(site.call)):
                yield site.function, node

    def _is_another(self, caller: Function, call: ast.Call) -> bool:
        """Tell whether a call makes a GradScaler beside another one of its function, but for one off where AMP was given as off."""
        objects = self._new.program.training.objects
        made = {node for _, node in objects.made_scalers}
        if call not in made or len(made & set(caller.calls)) < 2:
            return False
        up = caller.module.tree.user(call)
        name = called(up.func) if isinstance(up, ast.Call) and is_off(call) else None
        return not any(
            called(old.func) == name and self._may_be_off(old)
            for function in self._old.functions.get(key(caller), ())
            for old in function.calls
        )

    def _may_be_off(self, call: ast.Call) -> bool:
        """Tell whether a call of the old text gives None or False, or leaves it to a default."""
        project = self._old.project
        given = all_given(call)
        for callee in project.callees(call):
            taken = project.given(call, callee)
            given += [d for name, d in callee.parameters.defaults.items() if name not in taken]
        return any(is_none(node) or is_false(node) for node in given)


def _deciding(function: Function) -> Iterator[ast.keyword]:
    """Yield what calls of a function are given as ``enabled``."""
    for node in function.own_nodes if function.node is None else function.all_nodes:
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg == "enabled":
                yield keyword


def _unguarded(function: Function, parameter: str) -> ast.Attribute | None:
    """Return a use of a parameter in a function that takes it as it comes: it neither asks for it nor sets it."""
    tree = function.module.tree
    use: ast.Attribute | None = None
    for node in function.all_nodes:
        if not isinstance(node, ast.Name) or node.id != parameter:
            continue
        up = tree.parent(node)
        if isinstance(node.ctx, ast.Store) or isinstance(up, _ASKS):
            return None
        if isinstance(up, ast.Attribute) and use is None:
            use = up
    return use
