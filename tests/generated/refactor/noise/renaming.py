"""Gives what a project defines neutral names, so that nothing can be read off a word."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterator
from random import Random

from generated.refactor.code.identifiers import Edit, Place, Text, Unsure, edited, text
from generated.refactor.code.importing import imports, own_modules
from generated.refactor.noise.methods import methods
from generated.refactor.noise.words import external
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

CATEGORIES = ("locals", "parameters", "attributes", "methods", "definitions", "options")
_STEMS = {
    "locals": ("a", "v", "x", "t", "u"),
    "parameters": ("p", "b", "arg", "q"),
    "attributes": ("m", "slot_", "f_", "attr_"),
    "methods": ("do_", "w", "m_", "call_"),
    "definitions": ("fn_", "d", "thing_", "K"),
    "options": ("flag_", "opt_", "o", "k"),
}
# Words that say something, or the opposite of what is meant: a test of those who read them.
_FLAGS = (
    "dry_run",
    "skip_update",
    "distributed",
    "debug",
    "resume",
    "evaluate",
    "flag_b",
    "use_ema",
    "frozen",
)
_DYNAMIC = re.compile(
    r"\b(?:locals|globals|inspect|setattr|__dict__|asdict|vars)\b|(?<!\.)\b(?:eval|exec)\("
)


class Names:
    """New names by old ones: one for each spelling, none of which occurs in the project."""

    def __init__(self, project: Project, rng: Random) -> None:
        self._taken = set(re.findall(r"\w+", project.text)) | set(dir(builtins)) | external()
        self._rng = rng
        self._count = 0
        self._stems: dict[str, str] = {}
        self.new: dict[str, str] = {}

    def give(self, name: str, category: str) -> None:
        """Choose the name that stands for another from now on."""
        if name in self.new:
            return
        stem = self._stems.setdefault(category, self._rng.choice(_STEMS[category]))
        while True:
            self._count += 1
            new = f"{stem}{self._count}"
            if new not in self._taken:
                break
        self.new[name] = new


def _renaming(categories: Collection[str], share: bool) -> Refactoring:
    only = "every name" if len(categories) > 1 else f"{next(iter(categories))}"

    def apply(project: Project, rng: Random) -> Project | None:
        names = Names(project, rng)
        try:
            texts = {path: text(source) for path, source in project.files.items()}
            edits: dict[str, set[Edit]] = {path: set() for path in texts}
            for category in categories:
                wanted = _spellings(project, texts, category)
                if share:
                    wanted &= set(rng.sample(sorted(wanted), (len(wanted) + 1) // 2))
                for name in sorted(wanted):
                    names.give(name, category)
                for path, place in _places(project, texts, category, wanted):
                    stop = place.start + len(place.name)
                    edits[path].add((place.start, stop, names.new[place.name]))
                if category == "options":
                    for path, edit in _declared(texts, wanted, names):
                        edits[path].add(edit)
        except (Unsure, SyntaxError):
            return None
        return _changed(project, edits)

    return Refactoring(f"{only} {'half ' if share else ''}neutral", "noise", apply)


def _flag(project: Project, rng: Random) -> Project | None:
    """Give what is asked as a condition a word that says something else than it means."""
    try:
        texts = {path: text(source) for path, source in project.files.items()}
        tested = {name for held in texts.values() for name in _tested(held.tree)}
        wanted = {
            c: _spellings(project, texts, c) & tested
            for c in ("locals", "parameters", "attributes", "definitions", "options")
        }
        choices = [(c, name) for c, found in wanted.items() for name in sorted(found)]
        words = [w for w in _FLAGS if not re.search(rf"\b{w}\b", project.text)]
        if not choices or not words:
            return None
        category, name = rng.choice(choices)
        names = Names(project, rng)
        names.new[name] = rng.choice(words)
        edits: dict[str, set[Edit]] = {path: set() for path in texts}
        for path, place in _places(project, texts, category, {name}):
            edits[path].add((place.start, place.start + len(name), names.new[name]))
        if category == "options":
            for path, edit in _declared(texts, {name}, names):
                edits[path].add(edit)
    except (Unsure, SyntaxError):
        return None
    return _changed(project, edits)


def _tested(tree: ast.AST) -> Iterator[str]:
    """Yield the names and attributes that branches ask for their truth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            parts = [n for n in ast.walk(node.test) if not isinstance(n, ast.Call | ast.Compare)]
            yield from (n.id for n in parts if isinstance(n, ast.Name))
            yield from (n.attr for n in parts if isinstance(n, ast.Attribute))


def _changed(project: Project, edits: dict[str, set[Edit]]) -> Project | None:
    if not any(edits.values()):
        return None
    for path, found in edits.items():
        if found:
            project = project.changed(path, edited(project.files[path], found))
    return project


def _spellings(project: Project, texts: dict[str, Text], category: str) -> set[str]:
    """Return the names of a category that can be told from everything else."""
    found = {
        "locals": _locals,
        "parameters": _parameters,
        "attributes": _attributes,
        "methods": _methods,
        "definitions": _definitions,
        "options": _options,
    }[category](project, texts)
    return {n for n in found if not n.startswith("__") and not keyword.iskeyword(n) and n != "_"}


def _locals(project: Project, texts: dict[str, Text]) -> set[str]:
    return {
        name
        for held in texts.values()
        for scope in held.scopes
        if _is_function(scope.node)
        for name in scope.bound - scope.parameters - scope.imported
    }


def _is_function(node: ast.AST) -> bool:
    return not isinstance(node, ast.Module | ast.ClassDef)


def _parameters(project: Project, texts: dict[str, Text]) -> set[str]:
    """Return the parameters that no call may give by name."""
    found: set[str] = set()
    given: set[str] = set()
    strings: set[str] = set()
    spread = False
    for held in texts.values():
        for scope in held.scopes:
            found |= scope.parameters
        given |= {p.name for p in held.places if p.kind == "keyword"}
        for node in ast.walk(held.tree):
            spread = spread or (isinstance(node, ast.keyword) and node.arg is None)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
    return found - given - (strings if spread else set()) - {"self", "cls"}


def _attributes(project: Project, texts: dict[str, Text]) -> set[str]:
    """Return the attributes and methods of the classes of a project that nothing else has."""
    if _DYNAMIC.search(project.text) or "named_" in project.text or _foreign(project, texts):
        return set()
    found: set[str] = set()
    not_own = external() | _strings(texts) | _dests(texts) | _given(texts) | _module_names(texts)
    for held in texts.values():
        for scope in held.scopes:
            if scope.is_class:
                found |= scope.bound
        found |= {
            p.name
            for p in held.places
            if p.kind == "attribute" and not isinstance(p.node.ctx, ast.Load)  # type: ignore[attr-defined]
        }
    return found - not_own


def _methods(project: Project, texts: dict[str, Text]) -> set[str]:
    """Return the methods whose names libraries use as well, but whose calls are all told from theirs."""
    if _DYNAMIC.search(project.text) or "getattr" in project.text or "partial" in project.text:
        return set()
    return set(methods(texts)) - _strings(texts) - _dests(texts)


def _module_names(texts: dict[str, Text]) -> set[str]:
    """Return the names of modules' own scopes: `module.name` is no attribute of an object."""
    return {name for held in texts.values() for name in held.scopes[0].bound}


def _given(texts: dict[str, Text]) -> set[str]:
    return {p.name for held in texts.values() for p in held.places if p.kind == "keyword"}


def _foreign(project: Project, texts: dict[str, Text]) -> bool:
    """Tell whether a project builds on libraries whose attributes are not known here."""
    known = {
        "torch",
        "apex",
        "argparse",
        "copy",
        "os",
        "sys",
        "math",
        "random",
        "time",
        "json",
        "types",
    }
    known |= {
        "functools",
        "collections",
        "contextlib",
        "itertools",
        "logging",
        "typing",
        "pathlib",
        "warnings",
    }
    known |= {"dataclasses", "enum", "abc", "__future__", "numpy", "operator"}
    for path, held in texts.items():
        for found in imports(project, path, held.tree):
            if found.path is None and not getattr(found.node, "level", 0):
                module = getattr(found.node, "module", None) or found.alias.name
                if module.partition(".")[0] not in known and module not in own_modules(project):
                    return True
    return False


def _strings(texts: dict[str, Text]) -> set[str]:
    """Return the words of the strings that may name an attribute: not keys, nor what is printed or documented."""
    harmless: set[int] = set()
    words: set[str] = set()
    for held in texts.values():
        for node in ast.walk(held.tree):
            if isinstance(node, ast.Dict):
                harmless |= {id(key) for key in node.keys}
            elif isinstance(node, ast.Subscript):
                harmless.add(id(node.slice))
            elif isinstance(node, ast.Expr):
                harmless.add(id(node.value))
            elif isinstance(node, ast.Call) and _callee(node) in ("print", "add_argument", "info"):
                harmless |= {id(n) for n in ast.walk(node) if isinstance(n, ast.Constant)}
        for node in ast.walk(held.tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in harmless
            ):
                words |= set(re.findall(r"\w+", node.value))
    return words


def _callee(node: ast.Call) -> str:
    f = node.func
    return f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""


def _dests(texts: dict[str, Text]) -> set[str]:
    """Return the attributes that options of a command line become."""
    return {
        name
        for held in texts.values()
        for call in _option_calls(held)
        for name in (_dest(call), *_explicit(call))
        if name
    }


def _option_calls(held: Text) -> Iterator[ast.Call]:
    for node in ast.walk(held.tree):
        if isinstance(node, ast.Call) and _callee(node) == "add_argument" and node.args:
            yield node


def _dest(call: ast.Call) -> str:
    """Return the attribute that an option becomes."""
    strings = [
        a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
    ]
    long = next((s for s in strings if s.startswith("--")), strings[0] if strings else "")
    return long.lstrip("-").replace("-", "_")


def _explicit(call: ast.Call) -> list[str]:
    return [
        k.value.value
        for k in call.keywords
        if k.arg == "dest" and isinstance(k.value, ast.Constant) and isinstance(k.value.value, str)
    ]


def _definitions(project: Project, texts: dict[str, Text]) -> set[str]:
    """Return the functions, classes and variables of modules, where every import of them is seen."""
    if re.search(r"\b(globals|locals|__qualname__|import_module|__class__|pickle)\b", project.text):
        return set()
    if (
        re.search(r"__name__(?!\s*==)|\b(eval|exec)\(", project.text)
        or "__getattr__" in project.text
    ):
        return set()
    found: set[str] = set()
    outside: set[str] = {"main"} if len(texts) > 1 else set()
    known = own_modules(project)
    for path, held in texts.items():
        module = held.scopes[0]
        found |= module.bound - module.imported
        inside = {
            i.bound for i in imports(project, path, held.tree) if i.path and i.item not in ("", "*")
        }
        outside |= {i.bound for i in imports(project, path, held.tree) if not (i.path and i.item)}
        outside |= {i.item for i in imports(project, path, held.tree) if not i.path}
        outside |= module.imported - inside
        outside |= {name for scope in held.scopes[1:] for name in scope.imported - inside}
    return found - outside - _strings(texts) - {part for name in known for part in name.split(".")}


def _options(project: Project, texts: dict[str, Text]) -> set[str]:
    """Return the options of a command line that only attributes of its result read."""
    if re.search(r"\b(vars|__dict__|getattr|set_defaults|config|Namespace\w*)\b", project.text):
        return set()
    found: set[str] = set()
    for held in texts.values():
        for call in _option_calls(held):
            if not _explicit(call) and call.args[0].value.startswith("--"):  # type: ignore[attr-defined]
                found.add(_dest(call))
    stored = {
        name
        for held in texts.values()
        for scope in held.scopes
        if scope.is_class
        for name in scope.bound
    }
    return found - external() - stored - _module_names(texts) - _keys(texts)


def _keys(texts: dict[str, Text]) -> set[str]:
    return {
        node.slice.value
        for held in texts.values()
        for node in ast.walk(held.tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }


def _places(
    project: Project, texts: dict[str, Text], category: str, names: set[str]
) -> Iterator[tuple[str, Place]]:
    if category == "methods":
        for name, places in methods(texts).items():
            yield from places if name in names else ()
        return
    for path, held in texts.items():
        stars = any(i.path and i.item == "*" for i in imports(project, path, held.tree))
        inside = [i for i in imports(project, path, held.tree) if i.path and not i.item]
        modules = {i.alias.asname or i.alias.name for i in inside}
        for place in held.places:
            if place.name in names and _meant(place, category, stars, modules, held):
                yield path, place


def _meant(place: Place, category: str, stars: bool, modules: set[str], held: Text) -> bool:
    if category in ("attributes", "options"):
        if category == "options":
            return place.kind == "attribute"
        return place.kind == "attribute" or (
            place.scope.is_class
            and place.kind in ("name", "definition")
            and place.name in place.scope.bound
        )
    if place.kind == "keyword":
        return False
    if place.kind == "attribute":
        value = place.node.value  # type: ignore[attr-defined]
        return category == "definitions" and ast.unparse(value) in modules
    home = place.scope.home(place.name)
    if category == "definitions":
        if place.kind == "item" or home is None:
            return place.kind == "item" or stars
        return home is held.scopes[0] or place.name in home.imported
    if home is None or not _is_function(home.node) or place.kind in ("import", "item"):
        return False
    return (place.name in home.parameters) == (category == "parameters")


def _declared(texts: dict[str, Text], names: set[str], held: Names) -> Iterator[tuple[str, Edit]]:
    """Yield the edits that let options store under other names."""
    for path, found in texts.items():
        for call in _option_calls(found):
            if _dest(call) in names:
                stop = found.span(call.args[-1])[1]
                yield path, (stop, stop, f', dest="{held.new[_dest(call)]}"')


REFACTORINGS = (
    *(_renaming((category,), share=False) for category in CATEGORIES),
    _renaming(CATEGORIES, share=False),
    _renaming(CATEGORIES, share=True),
    Refactoring("a flag gets a word that says something else", "noise", _flag),
)
