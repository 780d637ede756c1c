"""Other names for Apex and PyTorch: what they are imported as, or bound to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random

from generated.refactor.code.identifiers import Edit, Place, Text, edited
from generated.refactor.code.importing import imports
from generated.refactor.code.names import fresh
from generated.refactor.noise.helpers import texts
from generated.refactor.noise.spots import Spot, below_imports, block, spots
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_FUNCTIONS = ("initialize", "scale_loss", "master_params", "state_dict", "load_state_dict")
_SHORT = {
    "clip_grad_norm_": "cgn",
    "CrossEntropyLoss": "CE",
    "no_grad": "frozen",
    "SGD": "Descent",
    "Linear": "Dense",
    "StepLR": "Schedule",
    "DataParallel": "DP",
}
_PLAIN = (
    "no_grad",
    "save",
    "load",
    "manual_seed",
    "device",
    "set_grad_enabled",
    "enable_grad",
    "Tensor",
)


def _amp_import(held: Text) -> tuple[ast.stmt, ast.alias, str] | None:
    """Return the one import of `apex.amp` that a file has, at the level of the module, and what it binds."""
    found = [
        (node, alias)
        for node in ast.walk(held.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if ("apex" in (getattr(node, "module", None) or alias.name).partition(".")[0])
    ]
    if len(found) != 1:
        return None
    node, alias = found[0]
    bound = alias.asname or alias.name
    whole = isinstance(node, ast.Import) and alias.name == "apex.amp" and alias.asname
    taken = isinstance(node, ast.ImportFrom) and node.module == "apex" and alias.name == "amp"
    if len(node.names) > 1 or not (whole or taken) or bound not in held.scopes[0].imported:
        return None
    # An import may stand above `global amp`, and an assignment may not.
    declared = bound in held.scopes[0].elsewhere
    if declared or any(bound in s.bound for s in held.scopes[1:]):
        return None
    return node, alias, bound


def _uses(held: Text, name: str) -> list[Place]:
    """Return where a name of the module is used, its definition and imports left out."""
    module = held.scopes[0]
    return [
        p
        for p in held.places
        if p.name == name and p.kind in ("name", "declared") and p.scope.home(name) is module
    ]


def _exported(project: Project, path: str, name: str) -> bool:
    """Tell whether another file takes a name out of a file."""
    for other, held in texts(project, Random(0)):
        for found in imports(project, other, held.tree):
            if found.path == path and other != path and found.item in ("", "*", name):
                return True
    return False


def _imported_as(project: Project, rng: Random) -> Project | None:
    """Apex is imported under another name: whole, as a module, or by `amp = apex.amp`."""
    for path, held in texts(project, rng):
        found = _amp_import(held)
        if found is None or _exported(project, path, found[2]):
            continue
        node, _, bound = found
        uses = _uses(held, bound)
        start, stop = held.span(node)
        indent = " " * node.col_offset
        alone = all(_object_of(held, p) for p in uses)
        forms = [
            "as",
            "module",
            *(["whole", "assigned"] if "apex" not in held.scopes[0].bound else []),
        ]
        form = rng.choice(forms if alone else ["as", "module", "assigned"])
        new = fresh(project, rng, ("A", "mixed", "apex_amp", "precision", "half"))
        statement = {
            "as": f"from apex import amp as {new}",
            "module": f"import apex.amp as {new}",
            "whole": rng.choice(("import apex", "import apex.amp")),
            "assigned": f"import apex\n{indent}{new} = apex.amp",
        }[form]
        if form == "assigned" and "apex" in held.scopes[0].bound:
            continue
        spelt = "apex.amp" if form == "whole" else new
        edits: list[Edit] = [(start, stop, statement)]
        edits += [(p.start, p.start + len(bound), spelt) for p in uses]
        if form == "whole" and statement == "import apex":
            edits[0] = (start, stop, "import apex.amp")
        return project.changed(path, edited(held.text, edits))
    return None


def _object_of(held: Text, place: Place) -> bool:
    """Tell whether a name is only asked for an attribute, by which nothing tells it from `apex.amp`."""
    return held.text[place.start + len(place.name) :].startswith(".")


def _functions(held: Text, bound: str) -> dict[str, list[tuple[int, int]]]:
    """Return where the functions of `amp` are named, by function."""
    found: dict[str, list[tuple[int, int]]] = {}
    for node in ast.walk(held.tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == bound
        ):
            if node.attr in _FUNCTIONS:
                found.setdefault(node.attr, []).append(held.span(node))
    return found


def _function_alias(project: Project, rng: Random) -> Project | None:
    """A function of `amp` gets a name of its own: imported, or bound below the import."""
    for path, held in texts(project, rng):
        found = _amp_import(held)
        if found is None:
            continue
        node, _, bound = found
        named = _functions(held, bound)
        if any(p.kind == "declared" for p in _uses(held, bound)):
            continue
        if not named or any(
            isinstance(n, ast.JoinedStr) and bound in ast.unparse(n) for n in ast.walk(held.tree)
        ):
            continue
        attribute = rng.choice(sorted(named))
        new = fresh(project, rng, ("s", "scaled_by", "prepare", "fn_2", f"amp_{attribute}"))
        if rng.random() < 0.4 and _free(held, attribute):
            new = attribute
        indent = " " * node.col_offset
        stop = held.span(node)[1]
        if "#" in held.text[stop : held.text.find("\n", stop)]:
            continue
        name = attribute if new == attribute else f"{attribute} as {new}"
        imported = f"from apex.amp import {name}"
        only = len(_uses(held, bound)) == len(named[attribute]) and not _exported(
            project, path, bound
        )
        edits: list[Edit] = [(a, b, new) for a, b in named[attribute]]
        if only:
            edits.append((*held.span(node), imported))
        else:
            line = imported if rng.random() < 0.5 else f"{new} = {bound}.{attribute}"
            edits.append((stop, stop, f"\n{indent}{line}"))
        return project.changed(path, edited(held.text, edits))
    return None


def _free(held: Text, name: str) -> bool:
    """Tell whether a file has a name for nothing yet."""
    return not any(p.name == name and p.kind not in ("attribute", "keyword") for p in held.places)


def _local_alias(project: Project, rng: Random) -> Project | None:
    """A function of `amp` gets a local name just before the statement that calls it."""
    for path, held in texts(project, rng):
        found = _amp_import(held)
        if found is None:
            continue
        bound = found[2]
        places: list[tuple[Spot, str, tuple[int, int]]] = []
        for spot in spots(project, path):
            statement = spot.statement
            heads: list[ast.AST] = [statement]
            if isinstance(statement, ast.With):
                heads = [item.context_expr for item in statement.items]
            elif not isinstance(statement, ast.Expr | ast.Assign):
                continue
            for head in heads:
                for node in ast.walk(head):
                    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
                        f"{bound}."
                    ):
                        if isinstance(node.func, ast.Attribute) and node.func.attr in _FUNCTIONS:
                            places.append((spot, node.func.attr, held.span(node.func)))
        if not places:
            continue
        spot, attribute, span = rng.choice(places)
        new = fresh(project, rng, ("call", f"amp_{attribute}", "apply_it", "fn_3", "scope"))
        line = block(spot.indent, f"{new} = {bound}.{attribute}")
        return project.changed(
            path, edited(held.text, [(spot.start, spot.start, line), (*span, new)])
        )
    return None


def _torch_alias(project: Project, rng: Random) -> Project | None:
    """A class or function of PyTorch is imported or bound under a name of its own."""
    for path, held in texts(project, rng):
        chains = list(_chains(held))
        if not chains:
            continue
        full = rng.choice(sorted({c for c, _, _ in chains}))
        clip = [c for c, _, _ in chains if "clip" in c]
        if clip and rng.random() < 0.4:
            full = clip[0]
        spans = [(a, b) for c, _, (a, b) in chains if c == full]
        roots = [root for c, root, _ in chains if c == full]
        prefix, _, last = full.rpartition(".")
        if any(len(_uses(held, r)) == roots.count(r) for r in set(roots)):
            continue  # nothing else would use the import
        new = fresh(project, rng, (_SHORT.get(last, last.lower().strip("_") + "_fn"), "t_1"))
        if rng.random() < 0.5 and _free(held, last):
            new = last
        line = f"from {prefix} import {last}" + ("" if new == last else f" as {new}")
        at = below_imports(held)
        return project.changed(
            path, edited(held.text, [(at, at, f"{line}\n"), *((a, b, new) for a, b in spans)])
        )
    return None


def _chains(held: Text) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield what a file names of PyTorch by a path, its root and where; not what casts are patched into."""
    roots = {}
    for node in held.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "torch":
                    roots[alias.asname or "torch"] = alias.name if alias.asname else "torch"
    hidden = {
        id(n) for s in ast.walk(held.tree) if isinstance(s, ast.JoinedStr) for n in ast.walk(s)
    }
    module = held.scopes[0]
    for place in held.places:
        if (
            place.kind != "name"
            or place.name not in roots
            or place.scope.home(place.name) is not module
        ):
            continue
        if id(place.node) in hidden:
            continue
        chain = _chain_at(held, place)
        full = ".".join([roots[place.name], *chain])
        stop = place.start + len(".".join([place.name, *chain]))
        if chain and _unpatched(full) and held.text[place.start : stop].endswith(chain[-1]):
            yield full, place.name, (place.start, stop)


def _chain_at(held: Text, place: Place) -> list[str]:
    rest = held.text[place.start + len(place.name) :]
    chain: list[str] = []
    while rest.startswith("."):
        word = ""
        for letter in rest[1:]:
            if not (letter.isalnum() or letter == "_"):
                break
            word += letter
        chain.append(word)
        rest = rest[1 + len(word) :]
    return chain


def _unpatched(full: str) -> bool:
    parts = full.split(".")
    if len(parts) == 2:
        return parts[1] in _PLAIN
    if parts[1] == "nn":
        return (len(parts) == 3 and parts[2][0].isupper()) or (
            parts[2] == "utils" and len(parts) == 4
        )
    return parts[1] in ("optim", "utils") and parts[-1][0].isupper()


REFACTORINGS = (
    Refactoring("Apex under another name", "noise", _imported_as),
    Refactoring("a function of Apex under another name", "noise", _function_alias),
    Refactoring("a function of Apex under a local name", "noise", _local_alias),
    Refactoring("PyTorch under another name", "noise", _torch_alias),
)
