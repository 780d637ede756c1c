"""What one file says: paths that are read and written, imports, folders, mentions and places."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.facts.below import every
from amp_migrate.facts.closure import closure
from amp_migrate.facts.constants import string_start
from amp_migrate.facts.imports import Imports, last_name, preferred
from amp_migrate.facts.paths import (
    defs,
    path,
    prefixes,
    root,
    same,
    uses,
    walk,
)
from amp_migrate.facts.search_path import added_folders
from amp_migrate.facts.tree import Tree
from amp_migrate.source.mentions import (
    may_use_apex,
    skipped_lines,
    skips_file,
    uses_apex,
    uses_older,
)

STATEMENTS: dict[str, tuple[str, set[str], set[str]]] = {
    "an assignment": ("a.b = c.d", {"a", "c", "c.d"}, {"a.b"}),
    "an item": ("a[i] = b", {"a", "b", "i"}, {"a"}),
    "a method": ("y = a.b.mean()", {"a", "a.b", "a.b.mean"}, {"y"}),
    "mutated": ("a.b.append(c)", {"a", "a.b", "a.b.append", "c"}, {"a.b"}),
    "an item mutated": ("a['k'].update(c)", {"a", "c"}, {"a"}),
    "added to": ("a += b", {"b"}, {"a"}),
    "deleted": ("del a, b.c, d[0]", {"b", "d"}, {"a", "b.c", "d"}),
    "a walrus": ("f(y := x)", {"f", "x"}, {"y"}),
    "a loop": ("for a, *b in c:\n    pass", {"c"}, {"a", "b"}),
    "a with": ("with a as b, c as d.e:\n    pass", {"a", "c", "d"}, {"b", "d.e"}),
    "an except": ("try:\n    pass\nexcept E as a:\n    pass", {"E"}, {"a"}),
    "a match": ("match a:\n    case [b, *c]:\n        pass", {"a"}, {"b", "c"}),
    "a match of a mapping": ("match a:\n    case {'k': b, **c}:\n        pass", {"a"}, {"b", "c"}),
    "an import": ("import a.b, c as d", set(), {"a", "d"}),
    "an import of a part": ("from a import b as c", set(), {"c"}),
    "a function": ("def f(a):\n    b = a", {"a"}, {"b", "f"}),
    "a class": ("class C(a):\n    b = 1", {"a"}, {"b", "C"}),
    "a function in a test": ("if a:\n    def f(): b = 1", {"a"}, {"f"}),
    "a lambda": ("f = lambda a: (b := a)", {"a"}, {"f"}),
    "nothing": ("pass", set(), set()),
}


@pytest.mark.parametrize(("text", "read", "written"), STATEMENTS.values(), ids=STATEMENTS)
def test_paths_of_statements(text: str, read: set[str], written: set[str]) -> None:
    """What a statement reads has its prefixes; what a function in it writes is its own."""
    (stmt,) = ast.parse(text).body
    assert uses(stmt) == read
    assert defs(stmt) == written


def test_star_import_writes_nothing_known() -> None:
    """No name of it is known."""
    assert defs(ast.parse("from a import *").body[0]) == set()


PATHS: dict[str, tuple[str, str | None, str | None, str]] = {
    "a name": ("a", "a", "a", "a"),
    "attributes": ("a.b.c", "a.b.c", "a", "c"),
    "a call": ("a.b(c)", None, "a", "b"),
    "an item": ("a[0].b", None, "a", "b"),
    "a call of a call": ("f(x)(y).z", None, "f", "z"),
    "a star": ("[*a.b]", None, None, ""),
    "a sum": ("a + b", None, None, ""),
    "a literal": ("'a'.join(b)", None, None, "join"),
}


@pytest.mark.parametrize(("text", "dotted", "base", "last"), PATHS.values(), ids=PATHS)
def test_names_of_expressions(text: str, dotted: str | None, base: str | None, last: str) -> None:
    """The path of names and attributes alone, what stands at the bottom, and the last part."""
    node = ast.parse(text, mode="eval").body
    assert path(node) == dotted
    assert root(node) == base
    assert last_name(node) == last


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("'run_a'", "run_"),
        ("f'run_{mode}'", "run_"),
        ("'run_' + mode", "run_"),
        ("'run_%s' % mode", "run_"),
        ("'run_{}'.format(mode)", "run_"),
        ("f'{mode}_run'", ""),
        ("mode", ""),
        ("5", ""),
        ("f''", ""),
        ("mode + 'run_'", ""),
    ],
)
def test_starts_of_strings(text: str, start: str) -> None:
    """As far as it is constant."""
    assert string_start(ast.parse(text, mode="eval").body)[:4] == start


def test_small_questions() -> None:
    """Prefixes, and expressions spelt alike."""
    assert prefixes("a.b.c") == {"a", "a.b", "a.b.c"}
    one, other, third = (ast.parse(t, mode="eval").body for t in ("a.b( 1)", "a . b(1)", "a.b(2)"))
    assert same(one, other) and not same(one, third)


def test_walks() -> None:
    """All nodes in the order of `ast`, or those of one function alone."""
    text = "def f(a, b=1, *c, d: int = 2, **e) -> g:\n    lambda: h\n    x = {**i, 'k': [j for k in l if m]}\n    class C: y = 1\n    match n:\n        case C(p=q) | {'r': s, **t}: pass\n"
    tree = ast.parse(text)
    marks = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)
    plain = [n for n in ast.walk(tree) if not isinstance(n, marks)]
    assert list(every(tree)) == plain
    inner = {n.id for n in walk(tree.body[0]) if isinstance(n, ast.Name)}
    assert "h" not in inner and "y" not in inner and {"i", "j", "l", "m", "n", "g", "int"} <= inner
    assert not any(isinstance(n, ast.Name) for n in walk(tree))


def test_closure() -> None:
    """Each item once, the first ones first, and rounds end."""
    steps = {"a": ["b", "c"], "b": ["a", "d"], "d": ["d"]}
    assert closure(["a", "a"], lambda item: steps.get(item, ())) == ["a", "b", "c", "d"]
    assert closure([], lambda item: [item]) == []


IMPORTED: dict[str, tuple[str, str, str | None]] = {
    "a module": ("import apex", "apex.amp", "apex.amp"),
    "a part of a module": ("import apex.amp", "apex.amp.x", "apex.amp.x"),
    "by another name": ("import apex.amp as a", "a.x", "apex.amp.x"),
    "from": ("from apex import amp as a", "a", "apex.amp"),
    "relative": ("from . import amp", "amp", "package.sub.amp"),
    "further up": ("from ..other import amp", "amp", "package.other.amp"),
    "too far up": ("from ....other import amp", "amp", "other.amp"),
    "by an alias": ("import apex\na = apex.amp\nb = a", "b.x", "apex.amp.x"),
    "tried, Apex second": ("try:\n    from torch.cuda import amp\nexcept E:\n    from apex import amp", "amp", "apex.amp"),
    "tried, none of Apex": ("try:\n    import a as m\nexcept E:\n    import b as m", "m", "a"),
    "chosen": ("import apex, other\nm = apex.amp if c else other", "m", "apex.amp"),
    "in a tuple": ("import apex\na, b = 1, apex.amp", "b", "apex.amp"),
    "a variable": ("amp = make()", "amp", None),
    "itself": ("a = b\nb = a", "a", None),
    "a call": ("import apex", "apex.f()", None),
    "an item": ("import apex", "apex[0]", None),
    "unbound": ("x = 1", "amp", None),
    "in a function": ("def f():\n    import apex", "apex", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "node", "meaning"), IMPORTED.values(), ids=IMPORTED)
def test_what_imported_names_mean(text: str, node: str, meaning: str | None) -> None:
    """Aliases are followed, Apex is preferred, relative imports are made absolute."""
    tree = Tree("package/sub/m.py", f"{text}\n({node})\n")
    last = tree.module.body[-1]
    assert isinstance(last, ast.Expr)
    assert Imports(tree, "package.sub.m").qualified(last.value) == meaning


def test_relative_imports_of_a_package() -> None:
    """In an ``__init__.py`` one dot is the package itself."""
    tree = Tree("package/__init__.py", "from . import amp\namp\n")
    last = tree.module.body[-1]
    assert isinstance(last, ast.Expr)
    assert Imports(tree, "package", package=True).qualified(last.value) == "package.amp"
    assert Imports(tree, "package").qualified(last.value) == "amp"


def test_preferred_names() -> None:
    """Apex first, but no name that only starts alike."""
    assert preferred(["torch.amp", "apex.amp", "apex"]) == "apex.amp"
    assert preferred(["apexpy.amp", "other"]) == "apexpy.amp"
    assert preferred(["other", "apexpy.amp"]) == "other"
    assert preferred([]) is None


FOLDERS: dict[str, tuple[str, list[str]]] = {
    "a string": ("sys.path.append('lib')", ["lib"]),
    "at the front": ("sys.path.insert(0, '../lib')", ["../lib"]),
    "beside the file": ("sys.path.append(os.path.join(os.path.dirname(__file__), 'lib'))", ["a/b/lib"]),
    "above the file": ("sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))", ["a"]),
    "above it twice": ("sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))", ["."]),
    "by pathlib": ("sys.path.append(str(Path(__file__).resolve().parents[1] / 'lib'))", ["a/lib"]),
    "its parent": ("sys.path.append(str(Path(__file__).parent.parent))", ["a"]),
    "joined": ("sys.path.append(str(Path(__file__).parent.joinpath('x', 'y')))", ["a/b/x/y"]),
    "by a variable": ("here = os.path.dirname(__file__)\nsys.path.append(here + '/lib')", ["a/b/lib"]),
    "several": ("sys.path.extend(['x', 'y'])", ["x", "y"]),
    "the working directory": ("sys.path.append(os.getcwd())", ["."]),
    "computed": ("sys.path.append(find(x))", []),
    "a variable of itself": ("here = here + '/x'\nsys.path.append(here)", []),
    "of another list": ("paths.append('lib')\n# sys.path", []),
    "nothing": ("x = 1", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "folders"), FOLDERS.values(), ids=FOLDERS)
def test_folders_that_a_file_adds(text: str, folders: list[str]) -> None:
    """What is computed of the file's own path, and strings; nothing else."""
    assert added_folders(Tree("a/b/m.py", text + "\n"), "a/b/m.py") == folders


MENTIONS: dict[str, tuple[str, bool, bool, bool]] = {
    "an import": ("from apex import amp", True, True, False),
    "an import of several": ("import os, apex.amp", True, True, False),
    "by a call": ("m = importlib.import_module('apex.amp')", True, True, False),
    "another library": ("import apexpy\nfrom apex_utils import x", False, False, False),
    "a word": ("# uses apex\nx = 'apex'", False, False, False),
    "a scaled loss": ("with amp.scale_loss(loss, o) as s: pass", False, True, False),
    "an older interface": ("from apex.fp16_utils import FP16_Optimizer", True, True, True),
    "the first amp": ("from apex import amp\nh = amp.init()", True, True, True),
    "an older word without Apex": ("FP16_Optimizer(x)", False, False, False),
}


@pytest.mark.parametrize(("text", "apex", "maybe", "older"), MENTIONS.values(), ids=MENTIONS)
def test_texts_that_mention_apex(text: str, apex: bool, maybe: bool, older: bool) -> None:
    """Told before anything is parsed."""
    assert (uses_apex(text), may_use_apex(text), uses_older(text)) == (apex, maybe, older)


def test_comments_that_opt_out() -> None:
    """A whole file, or a line."""
    assert skips_file("x = 1\n# amp-migrate: skip-file\n")
    assert not skips_file("x = 1  # amp-migrate: skip-file\n")
    assert not skips_file("# amp-migrate: skip\n")
    assert skipped_lines("a\nb  # amp-migrate: skip\nc  #amp-migrate:skip why\n") == {2, 3}
    assert skipped_lines("# amp-migrate: skip-file\nx\n") == frozenset()
    assert skipped_lines("x = 'skip'\n") == frozenset()


def test_places_are_in_characters() -> None:
    """Columns count characters, and later lines lose the indentation of their statement."""
    tree = Tree("m.py", "if x:\n    größe = f(ä,\n        b)\n")
    call = next(iter(tree.nodes(ast.Call)))
    assert tuple(tree.span(call)) == (2, 12, 3, 10)
    assert tree.segment(call) == "f(ä,\n    b)"
    name = next(n for n in tree.nodes(ast.Name) if n.id == "b")
    assert tree.segment(call, {name: "c"}) == "f(ä,\n    c)"


def test_blocks_and_holders() -> None:
    """Statements know their list, and functions their class."""
    tree = Tree(
        "m.py",
        "class C:\n    def f(self):\n        try:\n            a\n        except E:\n            b\n        finally:\n            c\n    x = lambda: d\n",
    )
    names = {n.id: n for n in tree.nodes(ast.Name)}
    method = next(iter(tree.nodes(ast.FunctionDef)))
    assert tree.block(tree.statement(names["a"])) is not tree.block(tree.statement(names["c"]))
    assert isinstance(tree.holder(tree.statement(names["b"])), ast.ExceptHandler)
    assert tree.function(names["c"]) is method and tree.function(names["d"]) is None
    assert tree.scope(names["d"]) is tree.module
    assert tree.enclosing(names["a"], ast.Try) is not None
    assert tree.enclosing(names["d"], ast.Try) is None
