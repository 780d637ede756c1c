"""Trainings before and after, and faults planted into what was written: each must be seen, the sound text must not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import dedent


@dataclass(frozen=True)
class Training:
    """A training under Apex and its migration; `faults` are edits of the migration by what they do wrong."""

    name: str
    before: dict[str, str]
    after: dict[str, str]
    faults: dict[str, tuple[tuple[str, str], ...]]
    claims: tuple[tuple[str, str, int] | tuple[str, str, int, int, bool], ...] = ()


def skipped_apart(training: Training) -> Training:
    """Return a training of which a rule says that a GradScaler decides for each optimizer of its scaled losses."""
    claims = [
        ("AMP105", path, number, number, True)
        for path, text in training.before.items()
        for number, line in enumerate(text.splitlines(), 1)
        if "scale_loss(" in line
    ]
    return replace(training, claims=(*training.claims, *claims))


def spoilt(training: Training, fault: str) -> dict[str, str]:
    """Return the migration of a training with one of its faults."""
    after = dict(training.after)
    for old, new in training.faults[fault]:
        held = [path for path, text in after.items() if old in text]
        assert held, f"nothing to spoil: {old}"
        for path in held:
            after[path] = after[path].replace(old, new)
    return after


def files(text: str) -> dict[str, str]:
    """Split a text into files at lines ``# file: name``."""
    found: dict[str, str] = {}
    for part in dedent(text).split("# file: ")[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body
    return found


def _training(
    name: str,
    before: str,
    after: str,
    *,
    claims: tuple[tuple[str, str, int], ...] = (),
    **faults: object,
) -> Training:
    table = {}
    for fault, edits in faults.items():
        assert isinstance(edits, list)
        table[fault.replace("_", " ")] = tuple(edits)
    return Training(name, files(before), files(after), table, claims)


_ADVERSARIES_BEFORE = """
    # file: gan.py
    import torch
    from apex import amp

    def train(args, generator, critic, loader):
        opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4)
        opt_d = torch.optim.Adam(critic.parameters(), lr=1e-4)
        [generator, critic], [opt_g, opt_d] = amp.initialize(
            [generator, critic], [opt_g, opt_d], opt_level="O1", num_losses=2
        )
        for step, (real, noise) in enumerate(loader):
            opt_d.zero_grad()
            fake = generator(noise)
            loss_d = critic(fake.detach()).mean() - critic(real).mean()
            with amp.scale_loss(loss_d, opt_d, loss_id=0) as scaled_loss:
                scaled_loss.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(opt_d), 1.0)
            opt_d.step()
            if step % args.critics == 0:
                opt_g.zero_grad()
                loss_g = -critic(generator(noise)).mean()
                with amp.scale_loss(loss_g, opt_g, loss_id=1) as scaled_loss:
                    scaled_loss.backward()
                opt_g.step()
        torch.save({"critic": critic.state_dict(), "amp": amp.state_dict()}, args.out)

    def resume(args, critic):
        state = torch.load(args.out)
        critic.load_state_dict(state["critic"])
        amp.load_state_dict(state["amp"])
"""
_ADVERSARIES_AFTER = """
    # file: gan.py
    import torch

    def train(args, generator, critic, loader):
        opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4)
        opt_d = torch.optim.Adam(critic.parameters(), lr=1e-4)
        scaler = torch.cuda.amp.GradScaler()
        for step, (real, noise) in enumerate(loader):
            opt_d.zero_grad()
            with torch.cuda.amp.autocast():
                fake = generator(noise)
                loss_d = critic(fake.detach()).mean() - critic(real).mean()
            scaler.scale(loss_d).backward()
            scaler.unscale_(opt_d)
            torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
            scaler.step(opt_d)
            if step % args.critics == 0:
                opt_g.zero_grad()
                with torch.cuda.amp.autocast():
                    loss_g = -critic(generator(noise)).mean()
                scaler.scale(loss_g).backward()
                scaler.step(opt_g)
            scaler.update()
        torch.save({"critic": critic.state_dict(), "scaler": scaler.state_dict()}, args.out)

    def resume(args, critic, scaler):
        state = torch.load(args.out)
        critic.load_state_dict(state["critic"])
        scaler.load_state_dict(state["scaler"])
"""
_BACKWARD_D = "        scaler.scale(loss_d).backward()\n"
_ZERO_D = "        opt_d.zero_grad()\n"
_ZERO_G = "            opt_g.zero_grad()\n"
_STEP_G = "            scaler.step(opt_g)\n"
_CLIP = "        torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)\n"

_TEACHER_BEFORE = """
    # file: train.py
    import argparse
    import copy
    import torch
    import torch.nn.functional as F
    from apex import amp

    def validate(args, model, loader):
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in loader:
                total += F.cross_entropy(model(x), y).item()
        return total

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--fp16", action="store_true")
        args = parser.parse_args()
        model = torch.nn.Linear(4, 2)
        teacher = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = [(torch.randn(3, 4), torch.randint(2, (3,)))]
        if args.fp16:
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for x, y in loader:
            with torch.no_grad():
                wanted = teacher(x)
            outputs = model(x)
            loss = F.cross_entropy(outputs, y) + F.mse_loss(outputs, wanted)
            optimizer.zero_grad()
            if args.fp16:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            optimizer.step()
        print(validate(args, model, loader))

    if __name__ == "__main__":
        main()
"""
_TEACHER_AFTER = """
    # file: train.py
    import argparse
    import copy
    import torch
    import torch.nn.functional as F

    def validate(args, model, loader):
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in loader:
                with torch.cuda.amp.autocast(enabled=args.fp16):
                    loss = F.cross_entropy(model(x), y)
                total += loss.item()
        return total

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--fp16", action="store_true")
        args = parser.parse_args()
        model = torch.nn.Linear(4, 2)
        teacher = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = [(torch.randn(3, 4), torch.randint(2, (3,)))]
        scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
        for x, y in loader:
            with torch.no_grad(), torch.cuda.amp.autocast(enabled=args.fp16):
                wanted = teacher(x)
            with torch.cuda.amp.autocast(enabled=args.fp16):
                outputs = model(x)
                loss = F.cross_entropy(outputs, y) + F.mse_loss(outputs, wanted)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(validate(args, model, loader))

    if __name__ == "__main__":
        main()
"""
_CASTS_8 = "        with torch.cuda.amp.autocast(enabled=args.fp16):\n"
_CASTS_VALIDATION = "            with torch.cuda.amp.autocast(enabled=args.fp16):\n"

_BESIDE_BEFORE = """
    # file: common.py
    def score(model, batches):
        model.eval()
        return sum(model(x).mean().item() for x in batches) + model(batches[0]).mean().item()

    def compute(model, x):
        return model(x).mean()

    # file: mixed.py
    import torch
    from apex import amp
    from common import compute, score

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in [torch.randn(3, 4)]:
        loss = compute(model, x)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

    # file: plain.py
    import torch
    from common import compute

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in [torch.randn(3, 4)]:
        loss = compute(model, x)
        loss.backward()
        optimizer.step()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
"""
_BESIDE_AFTER = """
    # file: common.py
    import torch

    def score(model, batches):
        model.eval()
        return sum(model(x).mean().item() for x in batches) + model(batches[0]).mean().item()

    def compute(model, x, scaler=None):
        with torch.cuda.amp.autocast(enabled=scaler is not None and scaler.is_enabled()):
            return model(x).mean()

    # file: mixed.py
    import torch
    from common import compute, score

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x in [torch.randn(3, 4)]:
        loss = compute(model, x, scaler)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    # file: plain.py
    import torch
    from common import compute

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in [torch.randn(3, 4)]:
        loss = compute(model, x)
        loss.backward()
        optimizer.step()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
"""

_OPTIONS_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    OPTIONS = {"opt_level": "O1", "loss_scale": 128.0}
    x = torch.randn(3, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(model(x).mean().item())
    model, optimizer = amp.initialize(model, optimizer, **OPTIONS)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_STATIC = (
    "scaler = torch.cuda.amp.GradScaler("
    "init_scale=128.0, growth_interval=2**31 - 1, backoff_factor=1 - 2**-30)"
)
_OPTIONS_AFTER = f"""
    # file: train.py
    import torch

    OPTIONS = {{"opt_level": "O1", "loss_scale": 128.0}}
    x = torch.randn(3, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(model(x).mean().item())
    {_STATIC}
    for _ in range(3):
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_LIMIT_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    a, b = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    opt_a = torch.optim.SGD(a.parameters(), lr=0.1)
    opt_b = torch.optim.SGD(b.parameters(), lr=0.1)
    [a, b], [opt_a, opt_b] = amp.initialize([a, b], [opt_a, opt_b], opt_level="O1", max_loss_scale=2.**13)
    for x in [torch.randn(3, 4)]:
        opt_a.zero_grad()
        loss_a = a(x).mean()
        with amp.scale_loss(loss_a, opt_a) as scaled_loss:
            scaled_loss.backward()
        opt_a.step()
        opt_b.zero_grad()
        loss_b = b(x).mean()
        with amp.scale_loss(loss_b, opt_b) as scaled_loss:
            scaled_loss.backward()
        opt_b.step()
"""
_LIMIT_AFTER = """
    # file: train.py
    import torch

    a, b = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    opt_a = torch.optim.SGD(a.parameters(), lr=0.1)
    opt_b = torch.optim.SGD(b.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(init_scale=8192.0)
    for x in [torch.randn(3, 4)]:
        opt_a.zero_grad()
        with torch.cuda.amp.autocast():
            loss_a = a(x).mean()
        scaler.scale(loss_a).backward()
        scaler.step(opt_a)
        opt_b.zero_grad()
        with torch.cuda.amp.autocast():
            loss_b = b(x).mean()
        scaler.scale(loss_b).backward()
        scaler.step(opt_b)
        scaler.update()
        if scaler.get_scale() > 8192.0:
            scaler.update(8192.0)
"""

_VARIABLE_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def train(loader, epochs):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def start():
            nonlocal model, optimizer
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

        start()
        for x in loader:
            step(model, optimizer, x)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

    train([torch.randn(2, 4)], 2)
"""
_VARIABLE_AFTER = """
    # file: train.py
    import torch

    scaler = torch.cuda.amp.GradScaler(enabled=False)

    def train(loader, epochs):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def start():
            global scaler
            scaler = torch.cuda.amp.GradScaler()

        start()
        for x in loader:
            step(model, optimizer, x)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    train([torch.randn(2, 4)], 2)
"""
_GIVEN = ("def step(model, optimizer, x):", "def step(model, optimizer, x, scaler):")

_MEASURED_BEFORE = """
    # file: train.py
    import contextlib
    import torch
    import torch.nn.functional as F
    from apex import amp

    @contextlib.contextmanager
    def evaluating(model):
        model.eval()
        with torch.no_grad():
            yield
        model.train()

    def validate(model, criterion, loader):
        total = 0.0
        with evaluating(model):
            for x, y in loader:
                output = model(x)

                def add():
                    nonlocal total
                    total += criterion(output, y).item()

                add()
                total += F.mse_loss(output.float(), y).item()
        return total

    def train(model, loader):
        criterion = torch.nn.L1Loss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
        print(validate(model, criterion, loader))

    train(torch.nn.Linear(4, 1), [(torch.randn(2, 4), torch.randn(2, 1))])
"""
_MEASURED_AFTER = """
    # file: train.py
    import contextlib
    import torch
    import torch.nn.functional as F

    @contextlib.contextmanager
    def evaluating(model):
        model.eval()
        with torch.no_grad():
            yield
        model.train()

    def validate(model, criterion, loader):
        total = 0.0
        with evaluating(model):
            for x, y in loader:
                with torch.cuda.amp.autocast():
                    output = model(x)

                    def add():
                        nonlocal total
                        total += criterion(output, y).item()

                    add()
                total += F.mse_loss(output.float(), y).item()
        return total

    def train(model, loader):
        criterion = torch.nn.L1Loss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(validate(model, criterion, loader))

    train(torch.nn.Linear(4, 1), [(torch.randn(2, 4), torch.randn(2, 1))])
"""

TRAININGS = (
    _training(
        "an evaluation in a context manager, with its loss in a closure",
        _MEASURED_BEFORE,
        _MEASURED_AFTER,
        the_loss_is_not_cast=[("            add()\n", "        add()\n")],
        nothing_is_cast=[
            (
                "            with torch.cuda.amp.autocast():\n                output",
                "            if True:\n                output",
            )
        ],
    ),
    _training(
        "a GradScaler as variable of the file",
        _VARIABLE_BEFORE,
        _VARIABLE_AFTER,
        the_one_made_is_local=[("        global scaler\n", "")],
        the_one_that_is_off_is_given=[
            ("def train(loader, epochs):", "def train(loader, epochs, scaler):"),
            ("train([torch.randn(2, 4)], 2)", "train([torch.randn(2, 4)], 2, scaler)"),
            _GIVEN,
            ("step(model, optimizer, x)\n\n", "step(model, optimizer, x, scaler)\n\n"),
        ],
        the_one_that_is_off_is_a_default=[
            ("def step(model, optimizer, x):", "def step(model, optimizer, x, scaler=scaler):")
        ],
        the_one_that_is_off_is_kept=[
            (
                "    model = torch.nn.Linear(4, 1)\n",
                "    model = torch.nn.Linear(4, 1)\n    kept = scaler\n",
            ),
            _GIVEN,
            ("step(model, optimizer, x)\n\n", "step(model, optimizer, x, kept)\n\n"),
        ],
    ),
    _training(
        "two networks that take turns",
        _ADVERSARIES_BEFORE,
        _ADVERSARIES_AFTER,
        a_backward_is_lost=[(_BACKWARD_D, "")],
        a_backward_runs_twice=[(_BACKWARD_D, _BACKWARD_D * 2)],
        the_backward_is_that_of_another_loss=[("scale(loss_g)", "scale(loss_d)")],
        the_second_backward_moves_above_the_test=[
            ("            scaler.scale(loss_g).backward()\n", ""),
            (
                "        if step % args.critics == 0:\n",
                "        scaler.scale(loss_d + 0).backward()\n        if step % args.critics == 0:\n",
            ),
        ],
        a_clear_is_lost=[(_ZERO_G, "")],
        a_clear_moves_above_the_test=[
            (_ZERO_G, ""),
            (
                "        if step % args.critics",
                "        opt_g.zero_grad()\n        if step % args.critics",
            ),
        ],
        a_clear_moves_behind_the_backward=[(_ZERO_D, ""), (_BACKWARD_D, _BACKWARD_D + _ZERO_D)],
        a_clear_moves_out_of_the_loop=[
            (_ZERO_D, ""),
            ("    for step", "    opt_d.zero_grad()\n    for step"),
        ],
        a_clear_is_that_of_the_other_optimizer=[(_ZERO_G, _ZERO_G.replace("opt_g", "opt_d"))],
        a_step_is_lost=[(_STEP_G, "")],
        a_step_moves_out_of_the_test=[
            (_STEP_G, ""),
            ("        scaler.update()", "        scaler.step(opt_g)\n        scaler.update()"),
        ],
        a_step_is_that_of_the_other_optimizer=[(_STEP_G, _STEP_G.replace("opt_g", "opt_d"))],
        a_step_above_the_clip=[
            ("        scaler.step(opt_d)\n", ""),
            (_CLIP, "        scaler.step(opt_d)\n" + _CLIP),
        ],
        a_clip_is_lost=[(_CLIP, "")],
        a_clip_has_another_limit=[(_CLIP, _CLIP.replace("1.0", "2.0"))],
        another_test_guards_the_step=[
            ("step % args.critics == 0", "(step + 1) % args.critics == 0")
        ],
        a_forward_moves_behind_the_step=[
            ("            fake = generator(noise)\n", ""),
            (
                "        scaler.step(opt_d)\n",
                "        scaler.step(opt_d)\n        fake = generator(noise)\n",
            ),
        ],
        the_state_is_not_saved=[(', "scaler": scaler.state_dict()', "")],
        the_state_is_not_loaded=[('    scaler.load_state_dict(state["scaler"])\n', "")],
        the_loop_ends_after_a_turn=[
            ("        scaler.update()\n", "        scaler.update()\n        break\n")
        ],
    ),
    _training(
        "a flag, a validation and a teacher",
        _TEACHER_BEFORE,
        _TEACHER_AFTER,
        the_forward_is_not_cast=[
            (
                _CASTS_8 + "            outputs = model(x)\n            loss =",
                "        outputs = model(x)\n        loss =",
            )
        ],
        the_loss_is_not_cast=[
            (
                "            outputs = model(x)\n            loss =",
                "            outputs = model(x)\n        loss =",
            )
        ],
        the_validation_is_not_cast=[(_CASTS_VALIDATION, "            if True:\n")],
        the_teacher_is_not_cast=[
            (
                ", torch.cuda.amp.autocast(enabled=args.fp16):\n            wanted",
                ":\n            wanted",
            )
        ],
        the_flag_of_the_scaler_is_lost=[("GradScaler(enabled=args.fp16)", "GradScaler()")],
        the_flag_of_the_scaler_is_turned=[
            ("GradScaler(enabled=args.fp16)", "GradScaler(enabled=not args.fp16)")
        ],
        the_scaler_is_off=[("GradScaler(enabled=args.fp16)", "GradScaler(enabled=False)")],
        the_flag_of_the_forward_is_lost=[(_CASTS_8, "        with torch.cuda.amp.autocast():\n")],
        the_flag_of_the_forward_is_another=[
            (_CASTS_8, "        with torch.cuda.amp.autocast(enabled=not args.fp16):\n")
        ],
        the_flag_of_the_validation_is_lost=[
            (_CASTS_VALIDATION, "            with torch.cuda.amp.autocast():\n")
        ],
    ),
    _training(
        "a program beside it that never had AMP",
        _BESIDE_BEFORE,
        _BESIDE_AFTER,
        the_helper_casts_in_both=[
            (
                "torch.cuda.amp.autocast(enabled=scaler is not None and scaler.is_enabled())",
                "torch.cuda.amp.autocast()",
            )
        ],
        the_other_program_casts=[
            (
                "\nloss = model(x).mean()\n",
                "\nwith torch.cuda.amp.autocast():\n    loss = model(x).mean()\n",
            )
        ],
        the_helper_does_not_cast=[
            (
                "with torch.cuda.amp.autocast(enabled=scaler is not None and scaler.is_enabled()):",
                "if True:",
            )
        ],
    ),
    _training(
        "a static scale among options",
        _OPTIONS_BEFORE,
        _OPTIONS_AFTER,
        the_scale_is_lost=[(_STATIC, "scaler = torch.cuda.amp.GradScaler()")],
        the_scale_is_another=[("init_scale=128.0", "init_scale=256.0")],
        the_scale_grows=[(", growth_interval=2**31 - 1, backoff_factor=1 - 2**-30", "")],
        the_evaluation_before_it_is_cast=[
            (
                "print(model(x).mean().item())\nscaler",
                "with torch.cuda.amp.autocast():\n    print(model(x).mean().item())\nscaler",
            )
        ],
    ),
    _training(
        "a limit of the scale",
        _LIMIT_BEFORE,
        _LIMIT_AFTER,
        the_limit_is_lost=[
            ("    if scaler.get_scale() > 8192.0:\n        scaler.update(8192.0)\n", "")
        ],
        the_limit_is_another=[("8192.0", "4096.0")],
        the_clears_leak=[
            ("    opt_a.zero_grad()\n", ""),
            ("    scaler.update()\n    if", "    scaler.update()\n    opt_a.zero_grad()\n    if"),
        ],
        the_second_step_is_lost=[("    scaler.step(opt_b)\n", "")],
        the_second_backward_is_scaled_with_the_first=[
            ("scaler.scale(loss_b).backward()", "scaler.scale(loss_a + loss_b).backward()")
        ],
    ),
)
