"""The training step of a GAN: two networks, two optimizers, three losses."""

from __future__ import annotations

from generated.choices.sets import Features
from generated.written.clips import guarded
from generated.written.names import Names
from generated.written.step import note
from generated.written.text import Lines, block


def whole(f: Features, n: Names) -> Lines:
    """Return one iteration: the discriminator's phase, then the generator's."""
    net_d, net_g = f"{n.model}_d", f"{n.model}_g"
    opt_d, opt_g = n.optimizers
    lines = [
        *note(f, "train the discriminator"),
        f"{opt_d}.zero_grad()",
        f"real_score = {net_d}({n.x})",
        "real = torch.ones_like(real_score, dtype=torch.float32)",
        f"loss_real = {n.criterion}(real_score, real)",
    ]
    fake = [
        f"noise = torch.randn({n.x}.size(0), 6)",
        f"fake = {net_g}(noise)",
        f"fake_score = {net_d}(fake.detach())",
        f"loss_fake = {n.criterion}(fake_score, torch.zeros_like(real))",
    ]
    if f["losses"] == "gan_joint":
        lines += [
            *fake,
            "loss_d = (loss_real + loss_fake) / 2",
            *_backward(f, n, "loss_d", opt_d, 0),
        ]
        printed = "loss_d.item()"
    else:
        lines += _backward(f, n, "loss_real", opt_d, 0)
        lines += [*fake, *_backward(f, n, "loss_fake", opt_d, 1)]
        printed = "(loss_real + loss_fake).item()"
    return [
        *lines,
        f"{opt_d}.step()",
        "",
        *note(f, "train the generator"),
        f"{opt_g}.zero_grad()",
        f"loss_g = {n.criterion}({net_d}(fake), real)",
        *_backward(f, n, "loss_g", opt_g, 1 if f["losses"] == "gan_joint" else 2),
        f"{opt_g}.step()",
        f'print("losses", {printed}, loss_g.item())',
    ]


def _backward(f: Features, n: Names, loss: str, optimizer: str, loss_id: int) -> Lines:
    given = {"no": "", "keyword": f", loss_id={loss_id}", "positional": f", {loss_id}"}[
        f["loss_id"]
    ]
    head = f"with {n.amp}.scale_loss({loss}, {optimizer}{given}) as {n.scaled}"
    return guarded(f, n, block(head, [f"{n.scaled}.backward()"]), [f"{loss}.backward()"])
