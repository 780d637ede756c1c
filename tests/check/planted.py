"""Trainings before and after, and faults planted into what was written: each must be seen, the sound text must not."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Training:
    """A training under Apex and its migration; `faults` are edits of the migration by what they do wrong."""

    name: str
    before: dict[str, str]
    after: dict[str, str]
    faults: dict[str, tuple[tuple[str, str], ...]]
    claims: tuple[tuple[str, str, int], ...] = ()


def _files(text: str) -> dict[str, str]:
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
    return Training(name, _files(before), _files(after), table, claims)


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

TRAININGS = (
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
)
