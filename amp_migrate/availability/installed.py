"""Where a program asks whether Apex is installed: flags that an import sets, and functions that tell."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from amp_migrate.apex.sites import is_apex
from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_none, string
from amp_migrate.facts.paths import mentions, path, walk
from amp_migrate.facts.scopes import assigned, assignments, targets_of
from amp_migrate.project import Function, Module, Project

# The extension modules that Apex itself builds.
_KERNELS = {
    "amp_C", "apex_C", "distributed_adam_cuda", "distributed_lamb_cuda", "fast_layer_norm", "fused_adam_cuda",
    "fused_dense_cuda", "fused_layer_norm_cuda", "fused_weight_gradient_mlp_cuda", "mlp_cuda",
    "scaled_masked_softmax_cuda", "scaled_upper_triang_masked_softmax_cuda", "syncbn", "xentropy_cuda",
}  # fmt: skip
_THERE = frozenset(sys.stdlib_module_names) | _KERNELS | {"apex", "torch"}
_LOOKED_FOR = ("apex", "apex.amp")
_AVAILABLE = re.compile(
    r"^_?(is|has|have|with|use)?_?(nvidia_?)?apex(_amp)?(_?(is_)?(available|installed|imported|found|exists?|support(ed)?))?$",
    re.I,
)


def imports_apex(body: list[ast.stmt]) -> bool:
    """Tell whether a statement list imports Apex, at its own level or in a nested `if`."""
    return any(
        (isinstance(n, ast.Import) and any(is_apex(a.name) for a in n.names))
        or (isinstance(n, ast.ImportFrom) and n.level == 0 and is_apex(n.module or ""))
        for stmt in body
        for n in every(stmt)
    )


def _imports_more(body: list[ast.stmt]) -> bool:
    """Tell whether a statement list imports what may be missing where Apex is there: not Apex, torch or Python's own."""
    for node in (part for stmt in body for part in every(stmt)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if any(name.partition(".")[0] not in _THERE for name in names):
            return True
    return False


def flags(module: Module) -> set[str]:
    """Return the names that a `try: import apex` sets to True, or its handler to False; of nothing else that may be missing."""
    found: set[str] = set()
    for node in module.tree.nodes(ast.Try):
        if imports_apex(node.body) and not _imports_more(node.body):
            found |= _assigned(node.body + node.orelse, True)
            for handler in node.handlers:
                found |= _assigned(handler.body, False)
    found = {name for name in found if _only_flag(module, name)}
    return found | {name for name in _looked_up(module) if name not in found}


def lacks(module: Module) -> set[str]:
    """Return the names that a `try: import apex` sets to False, and its handlers to True: ``NO_APEX``."""
    found: set[str] = set()
    for node in module.tree.nodes(ast.Try):
        if imports_apex(node.body) and not _imports_more(node.body):
            there = _assigned(node.body + node.orelse, False)
            handled = [_assigned(handler.body, True) for handler in node.handlers]
            inner = set(ast.walk(node))
            found |= {
                name
                for name in there.intersection(*handled)
                if inner.issuperset(module.scopes.bindings(module.tree.module, name))
            }
    return found


def reasons(module: Module) -> set[str]:
    """Return the variables of a module that are None, or hold what an import of Apex raised: ``except ImportError as why``."""
    top, found = module.tree.module, set[str]()
    said = list(_says_why(module))
    for node in said:
        bound = module.scopes.bindings(top, node.id)
        if module.scopes.owner(node) is top and all(
            other in said or is_none(assigned(module.tree, other)) for other in bound
        ):
            found.add(node.id)
    return found


def _says_why(module: Module) -> Iterator[ast.Name]:
    """Yield the names that a handler of a failed import of Apex, and of nothing else, sets from what it caught."""
    for node in module.tree.nodes(ast.Try):
        imports = [s for s in node.body if isinstance(s, ast.Import | ast.ImportFrom)]
        alone = bool(imports) and all(imports_apex([stmt]) for stmt in imports)
        for handler in node.handlers if alone else ():
            for part in (p for stmt in handler.body for p in walk(stmt)):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    value = assigned(module.tree, part)
                    if value is not None and handler.name and mentions(value, handler.name):
                        yield part


def _looked_up(module: Module) -> Iterator[str]:
    """Yield the variables of a module that only hold whether Apex was found: ``HAVE = find_spec("apex") is not None``."""
    for node in module.tree.module.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = targets_of(node)
        if len(targets) == 1 and looks(node.value):
            target = targets[0]
            if isinstance(target, ast.Name):
                if len(module.scopes.bindings(module.tree.module, target.id)) == 1:
                    yield target.id


def _assigned(body: list[ast.stmt], value: bool) -> set[str]:
    return {
        target.id
        for stmt in body
        if isinstance(stmt, ast.Assign | ast.AnnAssign)
        and isinstance(stmt.value, ast.Constant)
        and stmt.value.value is value
        for target in targets_of(stmt)
        if isinstance(target, ast.Name)
    }


def _only_flag(module: Module, name: str) -> bool:
    """A name that is ever set to something else than a constant bool is no availability flag."""
    for node in assignments(module.tree):
        if node.value is None:
            continue
        if any(isinstance(t, ast.Name) and t.id == name for t in targets_of(node)):
            if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool)):
                return False
            if not node.value.value and not isinstance(
                module.tree.parent(node), ast.ExceptHandler | ast.Module
            ):
                return False
    return True


def imported_flags(project: Project, module: Module) -> set[str]:
    """Return the names by which a module imports such flags, by star imports too."""
    named = {
        alias.asname or alias.name
        for node in module.tree.nodes(ast.ImportFrom)
        for alias in node.names
        if _flag_elsewhere(project, node, alias.name)
    }
    starred = {
        name
        for other in (project.lookup.starred_from(module) if module.scopes.stars else ())
        for name in flags(other)
    }
    return named | (starred - set(module.scopes.names(module.tree.module)))


def _flag_elsewhere(project: Project, node: ast.ImportFrom, name: str) -> bool:
    """Tell whether an imported name is an availability flag: as it is set, or by its name if that is out of sight."""
    tail = (node.module or "").rpartition(".")[2]
    setting = [
        module
        for module in project.by_last_name.get(tail, ())
        if module.scopes.bindings(module.tree.module, name)
    ]
    if not setting:
        return bool(_AVAILABLE.match(name))
    return any(name in flags(module) or _told(module, name) for module in setting)


def _told(module: Module, name: str) -> bool:
    """Tell whether a name of a module holds what tells whether Apex is installed."""
    for binding in module.scopes.bindings(module.tree.module, name):
        if binding in module.functions:
            return tells_installed(module.functions[binding])
        value = assigned(module.tree, binding)
        if value is None or not _asks(module, value):
            return False
    return True


def tells_installed(function: Function) -> bool:
    """Tell whether a function returns whether Apex is installed, and nothing else."""
    returns = [node for node in function.own_nodes if isinstance(node, ast.Return)]
    return bool(returns) and all(
        node.value is not None
        and (_asks(function.module, node.value) or _by_import(function, node, node.value))
        for node in returns
    )


def _asks(module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is a flag, or looks for Apex where modules are found."""
    if isinstance(node, ast.Name):
        return node.id in flags(module)
    return looks(node)


def is_imported(node: ast.expr) -> bool | None:
    """Tell whether ``"apex" in sys.modules`` is asked, or its opposite; None for another expression."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    asks = string(node.left) in _LOOKED_FOR and path(node.comparators[0]) == "sys.modules"
    op = node.ops[0]
    return isinstance(op, ast.In) if asks and isinstance(op, ast.In | ast.NotIn) else None


def is_bound(module: Module, node: ast.expr) -> bool | None:
    """Tell whether ``"amp" in globals()`` is asked of what only an import of Apex binds, or its opposite; None for others."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    asks = _names_import(module, node.comparators[0], node.left)
    op = node.ops[0]
    return isinstance(op, ast.In) if asks and isinstance(op, ast.In | ast.NotIn) else None


def gets(module: Module, node: ast.expr) -> bool:
    """Tell whether ``globals().get("amp")`` gives what only an import of Apex binds, or None."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    named = node.func.attr == "get" and len(node.args) == 1
    return named and _names_import(module, node.func.value, node.args[0])


def _names_import(module: Module, held: ast.expr, key: ast.expr) -> bool:
    """Tell whether a key of the names of a file is one that only an import of Apex binds, or None in its place."""
    name, top = string(key), module.tree.module
    if name is None or not _is_namespace(module, held):
        return False
    bindings = module.scopes.bindings(top, name)
    imports = [module.tree.parent(b) for b in bindings if isinstance(b, ast.alias)]
    found = [i for i in imports if isinstance(i, ast.Import | ast.ImportFrom) and imports_apex([i])]
    others = [b for b in bindings if not isinstance(b, ast.alias)]
    only = len(found) == len(imports) and all(is_none(assigned(module.tree, b)) for b in others)
    return bool(found) and only


def _is_namespace(module: Module, node: ast.expr) -> bool:
    """Tell whether an expression gives the names of the file: ``globals()``, and ``dir()`` and the like outside of functions."""
    if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, ast.Name):
        return False
    here = module.scopes.owner(node.func) is None and module.tree.function(node) is None
    return node.func.id == "globals" or (here and node.func.id in ("dir", "locals", "vars"))


def looks(node: ast.expr) -> bool:
    """Tell whether an expression looks for Apex where modules are found, and gives a bool."""
    if is_imported(node):
        return True
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.IsNot):
        node = node.left
    elif not (isinstance(node, ast.Call) and path(node.func) == "bool" and node.args):
        return False
    else:
        node = node.args[0]
    return isinstance(node, ast.Call) and looks_up(path(node.func), node)


def looks_up(name: str | None, call: ast.Call) -> bool:
    """Tell whether a call of something by a name looks for Apex where modules are found."""
    first = call.args[0] if call.args else None
    asks = first is not None and string(first) in _LOOKED_FOR
    return asks and (name or "").rpartition(".")[2] in ("find_spec", "find_loader")


def _by_import(function: Function, node: ast.Return, value: ast.expr) -> bool:
    """Tell whether a function returns True behind an import of Apex, and False where that failed."""
    if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return False
    tries = [n for n in function.own_nodes if isinstance(n, ast.Try) and imports_apex(n.body)]
    if len(tries) != 1:
        return False
    blocks = tries[0].body if not value.value else [s for h in tries[0].handlers for s in h.body]
    return not any(n is node for stmt in blocks for n in walk(stmt))
