"""Everything that a relation leads to, and what all of that has."""

from __future__ import annotations

import random

from amp_migrate.facts.closure import Gathered, closure


def test_bits_are_those_of_all_that_an_item_leads_to() -> None:
    chance = random.Random(0)
    for size in range(1, 30):
        items = range(size)
        onward = {n: chance.choices(items, k=chance.randrange(4)) for n in items}
        gathered = Gathered(onward.__getitem__, lambda n: 1 << n)
        for start in chance.sample(items, size):
            assert gathered.of(start) == sum(1 << n for n in closure([start], onward.__getitem__))


def test_what_an_item_leads_to_is_asked_once() -> None:
    asked: list[int] = []

    def onward(item: int) -> list[int]:
        asked.append(item)
        return [(item + 1) % 5, item // 2]

    gathered = Gathered(onward, lambda n: 1 << n)
    assert {gathered.of(n) for n in range(5)} == {0b11111}
    assert sorted(asked) == [0, 1, 2, 3, 4]
