"""Methods of one class that give another object for each class that inherits them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.project.helpers import Case

TABLES = """
    import torch

    class Net:
        pass

    class Criterion:
        pass

    class Other:
        pass

    class Table:
        KINDS = {}

        %s

    class Nets(Table):
        KINDS = {"net": Net}

    class Criteria(Table):
        KINDS = {"criterion": Criterion}

    class Optimizers(Table):
        KINDS = {"sgd": torch.optim.SGD}

    class Deeper(Nets):
        KINDS = {"other": Other}
    """

BUILDING = {
    "at once": "def build(self, kind):\n        return self.KINDS[kind]()",
    "in steps": "def build(self, kind):\n        found = self.KINDS.get(kind)\n        made = found()\n        return made",
    "in many steps": (
        "def build(self, kind):\n        a0 = self.KINDS[kind]\n"
        + "".join(f"        a{n + 1} = a{n}\n" for n in range(12))
        + "        return a12()"
    ),
    "by a method": (
        "def find(self, kind):\n        return self.KINDS[kind]\n\n"
        "    def build(self, kind):\n        if not kind:\n            return None\n        return self.find(kind)()"
    ),
}


def held(text: str, expression: str) -> set[str]:
    """Return the classes of the objects that the last occurrence of an expression may be."""
    case = Case({"m.py": dedent(text)})
    module = case.project.modules["m.py"]
    count = sum(
        module.tree.segment(n) == expression for n in module.tree.parents if hasattr(n, "ctx")
    )
    values, place = case.project.values, case.at("m.py", expression, count - 1)
    return {cls.name for cls in values.instance_classes(*place)} | set(values.made_by(*place))


@pytest.mark.parametrize("build", BUILDING.values(), ids=BUILDING)
@pytest.mark.parametrize(
    ("receiver", "expected"),
    [
        ("Nets()", {"Net", "Other"}),
        ("Criteria()", {"Criterion"}),
        ("Optimizers()", {"torch.optim.SGD"}),
        ("Deeper()", {"Other"}),
    ],
)
def test_a_table_is_of_the_class_that_binds_it(
    build: str, receiver: str, expected: set[str]
) -> None:
    """What an inherited method takes out of a table is what that of the receiver, or of a class below it, holds."""
    text = dedent(TABLES) % build + f"\nmade = {receiver}.build(kind)\nmade\n"
    assert held(text, "made") == expected


def test_a_method_that_is_kept_remembers_its_object() -> None:
    """A bound method gives what its own object holds, under whatever name it is called."""
    text = dedent(TABLES) % BUILDING["at once"]
    text += "\nbuild, other = Criteria().build, Deeper().build\nmade = build(kind)\nmade\n"
    assert held(text, "made") == {"Criterion"}


def test_a_class_may_be_the_receiver() -> None:
    """A class method takes what the table of the class holds on which it is called."""
    build = "@classmethod\n    def build(cls, kind):\n        return cls.KINDS[kind]()"
    text = dedent(TABLES) % build + "\nmade = Criteria.build(kind)\nmade\n"
    assert held(text, "made") == {"Criterion"}


def test_super_looks_at_the_table_of_the_subclass() -> None:
    """A method that overrides another and calls it works on the table of its own class."""
    text = dedent(TABLES) % BUILDING["at once"]
    text += (
        "\nclass Loud(Criteria):\n    def build(self, kind):\n        return super().build(kind)\n"
    )
    assert held(text + "\nmade = Loud().build(kind)\nmade\n", "made") == {"Criterion"}


def test_what_the_base_adds_may_be_in_every_table() -> None:
    """Which table a method of the base class adds to is not told apart."""
    add = "def add(self, kind):\n        self.KINDS[kind] = Other\n\n    "
    text = dedent(TABLES) % (add + BUILDING["at once"])
    assert held(text + "\nmade = Criteria().build(kind)\nmade\n", "made") == {"Criterion", "Other"}


@pytest.mark.parametrize(
    "store",
    [
        "table = Nets()\ntable.KINDS = {'criterion': Criterion}",
        "Table.KINDS['x'] = Criterion",
        "def add(table):\n    table.KINDS['x'] = Criterion",
    ],
)
def test_a_table_that_objects_replace_is_shared(store: str) -> None:
    """Where an object gets a table of its own, or a known item, all classes that are related have it."""
    text = dedent(TABLES) % BUILDING["at once"]
    text += f"\n{store}\nmade = Nets().build(kind)\nmade\n"
    assert {"Net", "Criterion"} <= held(text, "made")


def test_methods_of_relatives_stay_apart() -> None:
    """A call of a method reaches what the object's class defines or inherits, and what overrides that below it."""
    case = Case(
        {
            "m.py": dedent(
                """
                class Base:
                    def run(self):
                        return self.step()

                    def step(self):
                        pass

                class One(Base):
                    def step(self):
                        pass

                class Two(Base):
                    def step(self):
                        pass

                one, base = One(), Base()
                first = one.step
                first()
                """
            )
        }
    )
    assert case.callees("m.py", "first()") == {"One.step"}
    assert case.callees("m.py", "self.step()") == {"Base.step", "One.step", "Two.step"}


def test_a_builder_is_seen_through() -> None:
    """A call of a method that only builds runs what it builds for that receiver, and nothing else of its tables."""
    text = """
    class Net:
        def __init__(self):
            pass

    class Criterion:
        def __init__(self):
            pass

    class Table:
        KINDS = {}

        def build(self, options):
            options = dict(options)
            return self.KINDS[options.pop("kind")](**options)

    class Nets(Table):
        KINDS = {"net": Net}

    class Criteria(Table):
        KINDS = {"criterion": Criterion}

    Nets().build(options)
    """
    case = Case({"m.py": dedent(text)})
    assert case.callees("m.py", "Nets().build(options)") == {"Net.__init__"}


def test_a_builder_that_does_more_is_run_too() -> None:
    """What a method does beside building stays in the way of the call."""
    text = """
    import torch

    class Net:
        def __init__(self):
            pass

    class Table:
        KINDS = {}

        def build(self, kind):
            torch.manual_seed(1)
            return self.KINDS[kind]()

    class Nets(Table):
        KINDS = {"net": Net}

    Nets().build(kind)
    """
    case = Case({"m.py": dedent(text)})
    assert case.callees("m.py", "Nets().build(kind)") == {"Table.build", "Net.__init__"}


def test_options_with_more_keywords_hold_both() -> None:
    """A dictionary made of another one and keywords has the items of both."""
    text = (
        "options = {'net': a}\nmore = dict(options, optimizer=b)\nmore['net'], more['optimizer']\n"
    )
    case = Case({"m.py": text})
    assert case.same(("m.py", "more['net']"), ("m.py", "a"))
    assert case.same(("m.py", "more['optimizer']"), ("m.py", "b"))
