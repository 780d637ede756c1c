"""Containers of several objects of one class, told apart by what made each object."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.project.helpers import Case

REGISTRY = """
    import copy
    import functools

    class Table:
        def __init__(self, name):
            self.name = name
            self._items = {}

        def register(self, key=None, item=None):
            def keep(thing):
                self._put(key or thing.__name__, thing)
                return thing

            return keep if item is None else keep(item)

        def _put(self, key, thing):
            if key in self._items:
                raise KeyError(self.name)
            self._items[key] = thing

        def get(self, key):
            found = self._items.get(key)
            if found is None:
                raise KeyError(f"{key}: {sorted(self._items)}")
            return found

        def build(self, key, *args):
            return self.get(key)(*args)

    NETS = Table("nets")
    PARTS = Table("parts")

    @NETS.register()
    class Net:
        pass

    class Wide:
        pass

    NETS.register("wide", Wide)

    @PARTS.register("part")
    class Part:
        pass

    class Extra:
        pass
    """


def made(text: str, expression: str = "NETS.get(name)()") -> set[str]:
    """Return the classes of the objects that an expression behind a text may be."""
    case = Case({"m.py": dedent(text) + f"\nmade = {expression}\n"})
    values = case.project.values
    return {cls.name for cls in values.instance_classes(*case.at("m.py", "made"))}


@pytest.mark.parametrize("way", ["get(name)()", "build(name)"])
def test_each_object_gives_what_was_put_into_it(way: str) -> None:
    """What is registered with one object is not what another one of its class gives."""
    assert made(REGISTRY, f"NETS.{way}") == {"Net", "Wide"}
    assert made(REGISTRY, f"PARTS.{way}") == {"Part"}


SHAPES = {
    "decorator without call": (
        "def register(self, thing):\n        self._items[thing.__name__] = thing\n        return thing",
        "@NETS.register\nclass Net: pass\n\n@PARTS.register\nclass Part: pass",
    ),
    "plain call": (
        "def register(self, thing):\n        self._items[thing.__name__] = thing",
        "class Net: pass\n\nclass Part: pass\n\nNETS.register(Net)\nPARTS.register(thing=Part)",
    ),
    "setdefault": (
        "def register(self, thing):\n        return self._items.setdefault(thing.__name__, thing)",
        "@NETS.register\nclass Net: pass\n\n@PARTS.register\nclass Part: pass",
    ),
    "method of another name for it": (
        "def add(self, thing):\n        self._items[thing.__name__] = thing\n        return thing\n\n"
        "    def register(self, thing):\n        return self.add(thing)",
        "@NETS.register\nclass Net: pass\n\n@PARTS.add\nclass Part: pass",
    ),
    "read as a property": (
        "def register(self, thing):\n        self._items[thing.__name__] = thing\n        return thing\n\n"
        "    @property\n    def items(self):\n        return self._items",
        "@NETS.register\nclass Net: pass\n\n@PARTS.register\nclass Part: pass\n\nprint(len(NETS.items))",
    ),
    "a variable of the method": (
        "def register(self, thing):\n        items = self._items\n        items[thing.__name__] = thing\n        return thing",
        "@NETS.register\nclass Net: pass\n\n@PARTS.register\nclass Part: pass",
    ),
}


def table(register: str, rest: str) -> str:
    """Return a class with a way to register, two objects of it, and what is done with these."""
    return (
        "import collections\nimport copy\n\nclass Table:\n    def __init__(self, items=None):\n        self._items = {}\n\n"
        f"    {register}\n\n    def get(self, key):\n        return self._items[key]\n\n"
        f"NETS = Table()\nPARTS = Table()\n\nclass Extra: pass\n\n{rest}\n"
    )


@pytest.mark.parametrize(("register", "rest"), SHAPES.values(), ids=SHAPES)
def test_whatever_the_method_looks_like(register: str, rest: str) -> None:
    """What counts is which object a parameter is put into."""
    assert made(table(register, rest)) == {"Net"}
    assert made(table(register, rest), "PARTS.get(name)()") == {"Part"}


def test_an_object_may_be_imported() -> None:
    """Other files, packages that pass it on, and other names of it reach the same object."""
    files = {
        "tables/__init__.py": "from .table import NETS, PARTS as _PARTS\nPARTS = _PARTS\n",
        "tables/table.py": table(*SHAPES["plain call"]).split("class Net")[0],
        "net.py": "import tables.table as t\n\n@t.NETS.register\nclass Net: pass\n",
        "part.py": "from tables import PARTS as kept\n\n@kept.register\nclass Part: pass\n",
        "main.py": "import net, part\nfrom tables import NETS\nmade = NETS.get(name)()\nmade\n",
    }
    case = Case(files)
    found = case.project.values.instance_classes(*case.at("main.py", "made"))
    assert [cls.name for cls in found] == ["Net"]


ALL = {
    "an object out of a list": "for one in (NETS, PARTS):\n    one.register('x')(Extra)",
    "a parameter": "def fill(one):\n    one.register('x')(Extra)\n\nfill(PARTS)",
    "one of two": "either = NETS if big else PARTS\neither.register('x', Extra)",
    "a name that is bound twice": "other = PARTS\nother = NETS\nother.register('x', Extra)",
    "an object that is made in place": "Table('x').register('x', Extra)",
    "an attribute": "class Box:\n    def __init__(self, one):\n        self.one = one\n\nBox(NETS).one.register('x', Extra)",
    "a method that is kept": "keep = PARTS.register\nkeep('x', Extra)",
    "arguments that are unpacked": "args = ('x', Extra)\nNETS.register(*args)",
    "partial": "functools.partial(NETS.register, 'x')(Extra)",
}


@pytest.mark.parametrize("more", ALL.values(), ids=ALL)
def test_what_may_be_put_into_any_is_in_all(more: str) -> None:
    """Where it is not seen on which object a method is called, what it is given counts for each."""
    text = dedent(REGISTRY)
    assert "Extra" in made(f"{text}\n{more}\n", "NETS.get(name)()")


PLAIN = SHAPES["plain call"]
TOGETHER = {
    "one container for all": table(*PLAIN).replace(
        "    def __init__(self, items=None):\n        self._items = {}\n", "    _items = {}\n"
    ),
    "a container that is given": table(*PLAIN).replace(
        "        self._items = {}", "        self._items = items"
    ),
    "a container of the file": "SHARED = {}\n"
    + table(*PLAIN).replace("        self._items = {}", "        self._items = SHARED"),
    "one object for all calls": table(*PLAIN).replace(
        "class Table:", "class Single(type):\n    pass\n\nclass Table(metaclass=Single):"
    ),
    "a decorated class": table(*PLAIN).replace("class Table:", "@single\nclass Table:"),
    "objects made by __new__": table(*PLAIN).replace(
        "    def get", "    def __new__(cls):\n        return ONE\n\n    def get"
    ),
    "one object under two names": table(*PLAIN).replace("PARTS = Table()", "PARTS = NETS"),
    "a name that is bound again": table(*PLAIN) + "PARTS = NETS\n",
    "a name that a function binds": table(*PLAIN)
    + "def swap():\n    global NETS\n    NETS = PARTS\n",
    "a container that is put elsewhere": table(*PLAIN) + "NETS._items = PARTS._items\n",
    "attributes of all objects at once": table(
        PLAIN[0] + "\n\n    def share(self, other):\n        self.__dict__ = other.__dict__",
        PLAIN[1],
    ),
    "a class of a library": table(*PLAIN).replace("class Table:", "class Table(Kept):"),
    "a container that is handed on": table(
        PLAIN[0] + "\n\n    def merge(self, other):\n        other.update(self._items)", PLAIN[1]
    ),
    "a method that gives it": table(
        PLAIN[0] + "\n\n    def all(self):\n        return self._items", PLAIN[1]
    ),
    "a name that is looked up": table(*PLAIN) + "getattr(NETS, '_items').update(x)\n",
}


@pytest.mark.parametrize("text", TOGETHER.values(), ids=TOGETHER)
def test_what_may_be_one_container_is_one(text: str) -> None:
    """Where a container may be that of another object, too, what any of them holds counts."""
    assert made(text) >= {"Net", "Part"}


OUTSIDE = {
    "a store through another name": "def put(table):\n    table._items['x'] = Extra\n\nput(NETS)",
    "a store through its own name": "NETS._items['x'] = Extra",
    "a property that is written": "NETS.items['x'] = Extra",
    "an update": "NETS._items.update(x=Extra)",
}


@pytest.mark.parametrize("more", OUTSIDE.values(), ids=OUTSIDE)
def test_a_container_that_others_fill_is_that_of_the_class(more: str) -> None:
    """What is stored past the methods of the class leaves it as it was read before: one container for all objects."""
    text = table(*SHAPES["read as a property"]) + f"{more}\n"
    assert made(text) >= {"Net", "Part"}


CALLED = """
    class Made: pass

    class Maker:
        def __call__(self, x):
            return Made()

    def make(x):
        return Made()

    NETS.register("made", Maker())
    NETS.register("lambda", lambda x: Made())
    """


def test_an_item_may_be_any_object_that_can_be_called() -> None:
    """What a method gives that calls an item is what calling that gives, also where its class says so."""
    text = dedent(REGISTRY) + dedent(CALLED)
    assert made(text, "NETS.build(name, x)") >= {"Net", "Wide", "Made"}


def test_a_method_that_a_subclass_overrides_is_that_of_the_object() -> None:
    """A method that calls another one of its object gives what that gives in each class."""
    text = dedent(REGISTRY) + (
        "\nclass Lists(Table):\n    def get(self, key):\n        return Extra\n\nLISTS = Lists('lists')\n"
    )
    assert "Extra" in made(text, "LISTS.build(name)")
