"""Refactorings of the control flow: what they make of small programs, and that they break none."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from textwrap import dedent

import pytest

from generated.refactor.bases import base, names
from generated.refactor.judging.migrated import messages
from generated.refactor.project import Project
from generated.refactor.refactoring import catalogue

BASES = Random("bases of these tests").sample(names(), 8)
NAMES = sorted(name for name, r in catalogue().items() if r.family == "control")


def made(name: str, text: str, draws: int) -> Iterator[str]:
    """Yield what a refactoring makes of a program, by one random number after the other."""
    project = Project({"train.py": dedent(text).lstrip("\n")}, "train.py")
    for seed in range(draws):
        changed = catalogue()[name].apply(project, Random(seed))
        if changed is not None:
            yield changed.files["train.py"]


# (refactoring, before, one of what it may become; names that are drawn are those of some seed)
EXAMPLES = (
    (
        "a last if becomes a guard",
        """
        for k, loss in enumerate(losses):
            loss.backward()
            # update
            if (k + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        for k, loss in enumerate(losses):
            loss.backward()
            # update
            if (k + 1) % 4 != 0:
                continue
            optimizer.step()
            optimizer.zero_grad()
        """,
    ),
    (
        "a last if becomes a guard",
        """
        def update(fp16):
            if fp16:
                clip()
            else:
                other()
        """,
        """
        def update(fp16):
            if fp16:
                clip()
                return
            other()
        """,
    ),
    (
        "a last if becomes a guard",
        """
        def norm(fp16):
            if fp16:
                value = clip()
            else:
                value = other()
            return value
        """,
        """
        def norm(fp16):
            if fp16:
                value = clip()
                return value
            value = other()
            return value
        """,
    ),
    (
        "a guard becomes an if around the rest",
        """
        for loss in losses:
            if not finite(loss):
                print("skipped")
                continue
            loss.backward()
            step()
        """,
        """
        for loss in losses:
            if not finite(loss):
                print("skipped")
            else:
                loss.backward()
                step()
        """,
    ),
    (
        "a guard becomes an if around the rest",
        """
        def backward(loss):
            if loss is None:
                return
            loss.backward()
        """,
        """
        def backward(loss):
            if loss is not None:
                loss.backward()
        """,
    ),
    (
        "de Morgan's law in a test",
        """
        if fp16 and k % 4 == 0 or last:
            step()
        """,
        """
        if (not (not fp16 or k % 4 != 0)) or last:
            step()
        """,
    ),
    (
        "de Morgan's law in a test",
        """
        while not (done or k > 4 and late):
            step()
        """,
        """
        while not done and not (k > 4 and late):
            step()
        """,
    ),
    (
        "the arms of an if are swapped",
        """
        if fp16:
            scaled()  # by apex
        else:
            # plain
            loss.backward()
        """,
        """
        if not fp16:
            # plain
            loss.backward()
        else:
            scaled()  # by apex
        """,
    ),
    (
        "ifs are merged, split, nested or chained",
        """
        if fp16 and (k % 4 == 0 or last):
            step()
        """,
        """
        if fp16:
            if k % 4 == 0 or last:
                step()
        """,
    ),
    (
        "ifs are merged, split, nested or chained",
        """
        if fp16:
            if due or last:
                step()
        """,
        """
        if fp16 and (due or last):
            step()
        """,
    ),
    (
        "ifs are merged, split, nested or chained",
        """
        if a:
            one()
        elif b:
            two()
        else:
            three()
        """,
        """
        if a:
            one()
        else:
            if b:
                two()
            else:
                three()
        """,
    ),
    (
        "ifs are merged, split, nested or chained",
        """
        if a:
            one()
            step()
        else:
            step()
        """,
        """
        if a:
            one()
        step()
        """,
    ),
    (
        "what follows an if goes into its arms",
        """
        if fp16:
            scaled()
        step()
        print(1)
        """,
        """
        if fp16:
            scaled()
            step()
        else:
            step()
        print(1)
        """,
    ),
    (
        "an if becomes two of the same test",
        """
        if k % 4 == 0:
            step()
            zero()
        """,
        """
        this_time = k % 4 == 0
        if this_time:
            step()
        if this_time:
            zero()
        """,
    ),
    (
        "an if stands in one line",
        """
        if due:
            step()
        """,
        """
        if due: step()
        """,
    ),
    (
        "an if becomes one around its loop",
        """
        for x in loader:
            loss = model(x)
            # backward
            if args.fp16:
                scaled(loss)
            else:
                loss.backward()
        """,
        """
        if args.fp16:
            for x in loader:
                loss = model(x)
                # backward
                scaled(loss)
        else:
            for x in loader:
                loss = model(x)
                # backward
                loss.backward()
        """,
    ),
    (
        "a condition becomes a variable",
        """
        # update
        if (k + 1) % 4 == 0 and ready:
            step()
        """,
        """
        # update
        skip_update = (k + 1) % 4 == 0
        if skip_update and ready:
            step()
        """,
    ),
    (
        "a condition becomes a variable above the loop",
        """
        for k in range(3):
            if args.fp16 and k:
                one()
            if args.accum > 1:
                two()
        """,
        """
        dry_run = args.accum > 1
        for k in range(3):
            if args.fp16 and k:
                one()
            if dry_run:
                two()
        """,
    ),
    (
        "a condition becomes a function",
        """
        import torch


        def train(args, losses):
            for k, loss in enumerate(losses):
                if (k + 1) % args.accum == 0:
                    step()
        """,
        """
        import torch


        def is_due(args, k):
            return (k + 1) % args.accum == 0


        def train(args, losses):
            for k, loss in enumerate(losses):
                if is_due(args, k):
                    step()
        """,
    ),
    (
        "a condition becomes a property or a method",
        """
        class Trainer:
            def train(self):
                if self.args.fp16:
                    step()
        """,
        """
        class Trainer:
            def train(self):
                if self.active:
                    step()

            @property
            def active(self):
                return self.args.fp16
        """,
    ),
    (
        "the variable of a condition is renamed",
        """
        def train(k):
            due = k % 4 == 0
            if due:
                step(due=due)
        """,
        """
        def train(k):
            dry_run = k % 4 == 0
            if dry_run:
                step(due=dry_run)
        """,
    ),
    (
        "an assignment goes into the test after it",
        """
        def train(k):
            due = k % 4 == 0
            if not due:
                step()
        """,
        """
        def train(k):
            if not (k % 4 == 0):
                step()
        """,
    ),
    (
        "an assignment goes into the test after it",
        """
        def train(x):
            loss = model(x)
            if not torch.isfinite(loss):
                return
            loss.backward()
        """,
        """
        def train(x):
            if not torch.isfinite((loss := model(x))):
                return
            loss.backward()
        """,
    ),
    (
        "a conditional expression becomes an if",
        """
        model = initialize(model, opt_level="O1" if args.fp16 else "O0")
        """,
        """
        if args.fp16:
            level = "O1"
        else:
            level = "O0"
        model = initialize(model, opt_level=level)
        """,
    ),
    (
        "an if becomes a conditional expression",
        """
        def loss_of(loss, accum):
            if accum > 1:
                loss = loss / accum
            return loss
        """,
        """
        def loss_of(loss, accum):
            loss = loss / accum if accum > 1 else loss
            return loss
        """,
    ),
    (
        "a for asks an iterator for the next item",
        """
        for x, y in loader:
            train(x, y)
        """,
        """
        batches = iter(loader)
        while True:
            try:
                x, y = next(batches)
            except StopIteration:
                break
            train(x, y)
        """,
    ),
    (
        "a for over a range becomes a while",
        """
        def train(epochs):
            for _ in range(epochs):
                step()
        """,
        """
        def train(epochs):
            turn = 0
            while turn < epochs:
                step()
                turn += 1
        """,
    ),
    (
        "enumerate becomes a counter",
        """
        def train(loader):
            for i, (x, y) in enumerate(loader):
                print(i, x, y)
        """,
        """
        def train(loader):
            i = 0
            for x, y in loader:
                print(i, x, y)
                i += 1
        """,
    ),
    (
        "enumerate becomes a counter",
        """
        def train(loader):
            for i, x in enumerate(loader, 1):
                if x:
                    continue
                print(i)
        """,
        """
        def train(loader):
            i = 1 - 1
            for x in loader:
                i += 1
                if x:
                    continue
                print(i)
        """,
    ),
    (
        "the test of a while becomes a break",
        """
        while k < 4:
            k += 1
        """,
        """
        while True:
            if not (k < 4):
                break
            k += 1
        """,
    ),
    (
        "what follows a loop becomes its else",
        """
        for loss in losses:
            loss.backward()
        step()
        """,
        """
        for loss in losses:
            loss.backward()
        else:
            step()
        """,
    ),
    (
        "the end of a loop moves to the head of the next pass",
        """
        for x in loader:
            loss = model(x)
            loss.backward()
            clip(model)
            optimizer.step()
        """,
        """
        pending = False
        for x in loader:
            if pending:
                clip(model)
                optimizer.step()
            loss = model(x)
            loss.backward()
            pending = True
        if pending:
            clip(model)
            optimizer.step()
        """,
    ),
    (
        "the end of a loop moves to the head of the next pass",
        """
        for i, x in enumerate(loader):
            model(x).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
        """,
        """
        pending = False
        for i, x in enumerate(loader):
            if pending:
                optimizer.step()
            model(x).backward()
            pending = (i + 1) % 4 == 0
        if pending:
            optimizer.step()
        """,
    ),
    (
        "the end of a window is counted in a variable",
        """
        for i, x in enumerate(loader):
            model(x).backward()
            if (i + 1) % accum == 0:
                optimizer.step()
        """,
        """
        left = accum
        for i, x in enumerate(loader):
            model(x).backward()
            left -= 1
            if left == 0:
                left = accum
                optimizer.step()
        """,
    ),
    (
        "the end of a window is counted in a variable",
        """
        for i, x in enumerate(loader):
            backward(x, delay=(i + 1) % accum != 0)
            if (i + 1) % accum == 0 or i + 1 == len(loader):
                optimizer.step()
        """,
        """
        micro = 0
        for i, x in enumerate(loader):
            micro = micro % accum + 1
            backward(x, delay=(i + 1) % accum != 0)
            if micro == accum or i + 1 == len(loader):
                optimizer.step()
        """,
    ),
    (
        "an accumulation loops over windows",
        """
        def train(loader):
            for i, (x, y) in enumerate(loader):
                backward(x, y)
                if (i + 1) % accum == 0 or (i + 1) == len(loader):
                    optimizer.step()
        """,
        """
        import itertools
        def train(loader):
            it = iter(loader)
            while True:
                seen = 0
                for x, y in itertools.islice(it, accum):
                    backward(x, y)
                    seen += 1
                if seen == 0:
                    break
                optimizer.step()
        """,
    ),
    (
        "a loop over epochs and its batches become one",
        """
        for epoch in range(epochs):
            model.train()
            for x in loader:
                step(x)
            print(epoch)
        """,
        """
        stream = None
        for global_step in range(epochs * len(loader)):
            epoch, within = divmod(global_step, len(loader))
            if within == 0:
                model.train()
                stream = iter(loader)
            x = next(stream)
            step(x)
            if within == len(loader) - 1:
                print(epoch)
        """,
    ),
    (
        "a loop over epochs becomes a recursion",
        """
        def train(epochs):
            total = 0
            for epoch in range(epochs):
                total += step(epoch)
            print(total)
        """,
        """
        def train(epochs):
            total = 0

            def go(epoch):
                nonlocal total
                if epoch >= epochs:
                    return
                total += step(epoch)
                go(epoch + 1)

            go(0)
            print(total)
        """,
    ),
    (
        "statements go into a try",
        """
        step()
        """,
        """
        try:
            step()
        except KeyboardInterrupt:
            print("interrupted")
            raise
        """,
    ),
    (
        "statements go into a try with a finally",
        """
        step()
        zero()
        """,
        """
        try:
            step()
        finally:
            zero()
        """,
    ),
    (
        "statements go into a context that does nothing",
        """
        import contextlib

        step()
        """,
        """
        import contextlib

        with contextlib.nullcontext():
            step()
        """,
    ),
    (
        "statements go into a context with gradients",
        """
        import torch


        def train(loss):
            loss.backward()
        """,
        """
        import torch


        def train(loss):
            with torch.enable_grad():
                loss.backward()
        """,
    ),
    (
        "a with is split or merged",
        """
        with scale_loss(loss, optimizer) as scaled, no_sync():
            scaled.backward()
        """,
        """
        with scale_loss(loss, optimizer) as scaled:
            with no_sync():
                scaled.backward()
        """,
    ),
    (
        "a with enters a stack",
        """
        import contextlib

        with scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        """,
        """
        import contextlib

        with contextlib.ExitStack() as exits:
            scaled = exits.enter_context(scale_loss(loss, optimizer))
            scaled.backward()
        """,
    ),
    (
        "an if becomes a match",
        """
        if level == "O0":
            one()
        elif level == "O1":
            two()
        else:
            three()
        """,
        """
        match level:
            case "O0":
                one()
            case "O1":
                two()
            case _:
                three()
        """,
    ),
    (
        "an if becomes a match",
        """
        if (i + 1) % accum != 0:
            one()
        """,
        """
        match (i + 1) % accum:
            case 0:
                pass
            case _:
                one()
        """,
    ),
    (
        "a loop is tested at the end of a pass",
        """
        step = 0
        # train
        while step < 10:
            update()
            step += 1
        """,
        """
        step = 0
        # train
        while True:
            update()
            step += 1
            if step >= 10:
                break
        """,
    ),
    (
        "a loop is tested at the end of a pass",
        """
        def train(args):
            for epoch in range(1, EPOCHS + 1):
                update(epoch)


        EPOCHS = 3
        """,
        """
        def train(args):
            epoch = 1
            while True:
                update(epoch)
                epoch += 1
                if epoch == EPOCHS + 1:
                    break


        EPOCHS = 3
        """,
    ),
    (
        "a loop is tested at the end of a pass",
        """
        parser.add_argument("--max-epochs", type=int, default=2)
        args = parser.parse_args()
        for _ in range(args.max_epochs):
            update()
        """,
        """
        parser.add_argument("--max-epochs", type=int, default=2)
        args = parser.parse_args()
        done = 0
        while True:
            update()
            done += 1
            if done >= args.max_epochs:
                break
        """,
    ),
)


@pytest.mark.parametrize(("name", "before", "after"), EXAMPLES)
def test_example(name: str, before: str, after: str) -> None:
    """A refactoring makes the program expected, among those that it may make."""
    assert dedent(after).lstrip("\n") in made(name, before, draws=600)


# (refactoring, a program that it must leave alone, as it would do something else)
NO_PLACE = (
    ("a last if becomes a guard", "for x in y:\n    if x:\n        step()\n    z = 1\n"),
    ("a last if becomes a guard", "for x in y:\n    if x:\n        break\n"),
    (
        "a guard becomes an if around the rest",
        "for x in y:\n    if x:\n        break\n    step()\n",
    ),
    ("de Morgan's law in a test", "if a:\n    x = b and c\n"),
    ("the arms of an if are swapped", "if a:\n    step()\n"),
    ("ifs are merged, split, nested or chained", "if a and b:\n    x()\nelse:\n    y()\n"),
    (
        "ifs are merged, split, nested or chained",
        "if a:\n    if b:\n        x()\nelse:\n    y()\n",
    ),
    (
        "what follows an if goes into its arms",
        "for x in y:\n    if x:\n        break\n    step()\n",
    ),
    (
        "an if becomes two of the same test",
        "for x in y:\n    if x:\n        step()\n        break\n",
    ),
    ("an if stands in one line", "if a:\n    x()\n    y()\n"),
    ("an if becomes one around its loop", "for x in y:\n    if x:\n        z()\n"),
    ("an if becomes one around its loop", "for x in y:\n    if f():\n        z()\n"),
    ("a condition becomes a variable", "if a:\n    x()\n"),
    ("a condition becomes a variable above the loop", "for k in y:\n    if k > 1:\n        x()\n"),
    (
        "a condition becomes a variable above the loop",
        "def f(s, y):\n    for k in y:\n        if s.n > 1:\n            x()\n        s.n += 1\n",
    ),
    ("a condition becomes a variable above the loop", "for k in y:\n    if f():\n        x()\n"),
    ("a condition becomes a function", "if (n := 4):\n    x(n)\n"),
    (
        "a condition becomes a property or a method",
        "def f(self):\n    if self.x:\n        y()\n",
    ),
    ("the variable of a condition is renamed", "def f(due):\n    if due:\n        x()\n"),
    (
        "the variable of a condition is renamed",
        "def f():\n    global due\n    due = 1\n    if due:\n        x()\n",
    ),
    (
        "an assignment goes into the test after it",
        "def f():\n    due = g()\n    if a and due:\n        x()\n",
    ),
    ("a conditional expression becomes an if", "x = [a if b else c for b in d]\n"),
    ("a conditional expression becomes an if", "x = f(a() if b else c)\n"),
    ("an if becomes a conditional expression", "if a:\n    x = b\nelse:\n    y = c\n"),
    ("an if becomes a conditional expression", "if a:\n    x = b\n"),
    ("a for asks an iterator for the next item", "for x in y:\n    z(x)\nelse:\n    w()\n"),
    (
        "a for over a range becomes a while",
        "def f(n):\n    for k in range(n):\n        if k:\n            continue\n        x(k)\n",
    ),
    (
        "a for over a range becomes a while",
        "def f(n):\n    for k in range(n):\n        x(k)\n    return k\n",
    ),
    ("enumerate becomes a counter", "for i, x in enumerate(y):\n    i = 2\n"),
    ("the test of a while becomes a break", "while True:\n    x()\n"),
    ("what follows a loop becomes its else", "for x in y:\n    if x:\n        break\nstep()\n"),
    (
        "the end of a loop moves to the head of the next pass",
        "for x in y:\n    model(x)\n    step(x)\n",
    ),
    (
        "the end of a loop moves to the head of the next pass",
        "for x in y:\n    model(x)\n    if z:\n        break\n",
    ),
    (
        "the end of a window is counted in a variable",
        "for i, x in enumerate(y):\n    i += 1\n    if (i + 1) % k == 0:\n        step()\n",
    ),
    (
        "the end of a window is counted in a variable",
        "for i, k in enumerate(y):\n    if (i + 1) % k == 0:\n        step()\n",
    ),
    (
        "an accumulation loops over windows",
        "for i, x in enumerate(y):\n    if x:\n        continue\n    if (i + 1) % k == 0:\n        step()\n",
    ),
    (
        "a loop over epochs and its batches become one",
        "for e in range(3):\n    for x in y:\n        if x:\n            break\n",
    ),
    (
        "a loop over epochs becomes a recursion",
        "def f():\n    for e in range(3):\n        if e:\n            break\n        x()\n",
    ),
    (
        "a loop over epochs becomes a recursion",
        "def f():\n    for e in range(3):\n        n = x()\n    return n\n",
    ),
    ("statements go into a try", "import torch\n"),
    ("statements go into a try with a finally", "def f():\n    return x()\n"),
    ("statements go into a context that does nothing", "import torch\n"),
    (
        "statements go into a context with gradients",
        "import torch\n@torch.no_grad()\ndef f(loss):\n    loss.backward()\n",
    ),
    ("an if becomes a match", "if a == b:\n    x()\n"),
    ("an if becomes a match", "if a == 1:\n    x()\nelif c == 2:\n    y()\n"),
    ("a loop is tested at the end of a pass", "step = 10\nwhile step < 10:\n    step += x()\n"),
    (
        "a loop is tested at the end of a pass",
        "step = first()\nwhile step < 10:\n    step += x()\n",
    ),
    (
        "a loop is tested at the end of a pass",
        "for k in y:\n    while step < 10:\n        step += x()\n    step = 0\n",
    ),
    (
        "a loop is tested at the end of a pass",
        "step = 0\nwhile step < 10:\n    step += 1\n    if step == 3:\n        continue\n    x()\n",
    ),
    ("a loop is tested at the end of a pass", "for k in range(n):\n    x()\n"),
    ("a loop is tested at the end of a pass", "for k in range(0):\n    x()\n"),
    ("a loop is tested at the end of a pass", "for k in range(3):\n    x(k)\nprint(k)\n"),
    ("a loop is tested at the end of a pass", "for k in range(3):\n    k += x()\n"),
    ("a loop is tested at the end of a pass", "for k in range(3):\n    x(lambda: k)\n"),
    (
        "a loop is tested at the end of a pass",
        "for k in range(3):\n    if k:\n        continue\n    x(k)\n",
    ),
    ("a loop is tested at the end of a pass", "n = 3\nfor k in range(n):\n    n = x()\n"),
    ("a loop is tested at the end of a pass", "for k in range(3):\n    x()\nelse:\n    y()\n"),
)


@pytest.mark.parametrize(("name", "text"), NO_PLACE)
def test_no_place(name: str, text: str) -> None:
    """A program that a refactoring would change in what it does is left alone."""
    assert not list(made(name, text, draws=8))


@pytest.mark.parametrize("name", NAMES)
def test_any_base(name: str) -> None:
    """On trainings drawn at random a refactoring leaves files that compile, with no new complaint of pyflakes."""
    rng = Random(name)
    for drawn in rng.sample(BASES, 2):
        project = base(drawn).project
        changed = catalogue()[name].apply(project, rng)
        for path, text in (changed or project).files.items():
            if text != project.files[path]:
                compile(text, path, "exec", dont_inherit=True)
                said, before = (
                    messages(path, text.encode()),
                    messages(path, project.files[path].encode()),
                )
                assert not said.keys() - before.keys(), text  # what is copied complains as often
