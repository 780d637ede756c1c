"""Products of what an initialized network gave and was made fp32: O2 left them, and so must what is written."""

from __future__ import annotations

from check.trainings.planted import Training

_OFF = "with torch.cuda.amp.autocast(enabled=False):\n"


def _training(name: str, product: str, helper: str = "") -> Training:
    """Return a training whose loss has a product; the fault lets autocast cast it."""
    imports = "import torch\nimport torch.nn.functional as F\n"
    head = f"{helper}\ndef main(model, loader):\n"
    made = "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    loop = "    for x, y in loader:\n"
    given = "asked, held = model(x), model(y)\n"
    loss = "loss = F.mse_loss(asked, held) + scores.mean()\n"
    before = (
        f"{imports}from apex import amp\n{head}{made}"
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O2")\n'
        f"{loop}        {given}        scores = {product}\n        {loss}"
        "        optimizer.zero_grad()\n"
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n"
        "        optimizer.step()\n"
    )
    kept = f"            {_OFF}                scores = {product}\n"
    after = (
        f"{imports}{head}{made}    scaler = torch.cuda.amp.GradScaler()\n"
        f"{loop}        with torch.cuda.amp.autocast():\n            {given}{kept}            {loss}"
        "        optimizer.zero_grad()\n        scaler.scale(loss).backward()\n"
        "        scaler.step(optimizer)\n        scaler.update()\n"
    )
    faults = {"the product is cast": ((kept, f"            scores = {product}\n"),)}
    return Training(name, {"main.py": before}, {"main.py": after}, faults)


_HELPER = "\ndef transport(texts, images):\n    return texts @ images.t()\n"

LEFT_WIDE = (
    _training("a product by an operator at O2", "asked.float() @ held.float().t()"),
    _training("a product by a function at O2", "torch.mm(asked.float(), held.float().t())"),
    _training("a product by a method at O2", "asked.float().matmul(held.float().t())"),
    _training("a helper that multiplies at O2", "transport(asked.float(), held.float())", _HELPER),
)
