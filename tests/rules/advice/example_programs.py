"""The programs in which the examples of `explain` stand."""

from __future__ import annotations

HEAD = """\
import argparse
import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
"""
PARTS = """\
parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
criterion = torch.nn.MSELoss()
accumulation_steps = 2
loader = [(torch.randn(8, 4).cuda(), torch.randn(8, 2).cuda()) for _ in range(4)]
"""
IMPORT = "from apex import amp\n"
INIT = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
LOOP = "for i, (images, labels) in enumerate(loader):\n"
FORWARD = "    output = model(images)\n    loss = criterion(output, labels)\n"
ZERO = "    optimizer.zero_grad()\n"
BACKWARD = (
    "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n        scaled_loss.backward()\n"
)
STEP = "    optimizer.step()\n"
START = HEAD + IMPORT + PARTS + INIT
WHOLE = START + LOOP + FORWARD + ZERO + BACKWARD + STEP
NATIVE = HEAD + PARTS + "scaler = torch.cuda.amp.GradScaler()\n"
NATIVE_FORWARD = "    with torch.cuda.amp.autocast():\n        output = model(images)\n        loss = criterion(output, labels)\n"
TWO = """\
encoder, head = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 2).cuda()
encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
head_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
[encoder, head], [encoder_optimizer, head_optimizer] = amp.initialize(
    [encoder, head], [encoder_optimizer, head_optimizer], opt_level="O1"
)
"""
TRAIN_STEP = """\
def train_step(model, optimizer, images):
    loss = model(images).sum()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
EXAMPLE = "<example>"
IN_LOOP = f"    {EXAMPLE}"

# Where the example of a rule stands: at the place of <example>, with its indentation. An example of several files has
# a program for each.
PROGRAMS: dict[str, str | dict[str, str]] = {
    "AMP101": WHOLE.replace(IMPORT, f"{EXAMPLE}\n"),
    "AMP102": WHOLE.replace(INIT, f"{EXAMPLE}\n"),
    "AMP103": WHOLE.replace(BACKWARD, f"{IN_LOOP}\n"),
    "AMP104": WHOLE.replace(FORWARD, f"{IN_LOOP}\n"),
    "AMP105": WHOLE.replace(STEP, f"{IN_LOOP}\n"),
    "AMP106": WHOLE.replace(STEP, f"{IN_LOOP}\n{STEP}"),
    "AMP107": WHOLE
    + f"def evaluate(images):\n    {EXAMPLE}\n    return output\nevaluate(loader[0][0])\n",
    "AMP108": WHOLE + f"{EXAMPLE}\ntorch.save(checkpoint, 'a.pt')\n",
    "AMP110": START.replace(INIT, f"if args.fp16:\n    {INIT}")
    + f"{LOOP}{FORWARD}{ZERO}{IN_LOOP}\n{STEP}",
    "AMP111": WHOLE.replace(INIT, f"{INIT}{EXAMPLE}\n"),
    "AMP115": WHOLE.replace(FORWARD, f"{IN_LOOP}\n"),
    "AMP116": WHOLE.replace(
        BACKWARD, f"    penalty = model(images).pow(2).sum()\n{BACKWARD}{IN_LOOP}\n"
    ),
    "AMP112": WHOLE.replace(
        FORWARD, f"    x, layer = images, model\n{IN_LOOP}\n    loss = y.sum()\n"
    ),
    "AMP201": START + f"{LOOP}{FORWARD}{IN_LOOP}\n",
    "AMP202": START + f"{LOOP}{FORWARD}{IN_LOOP}\n        optimizer.zero_grad()\n",
    "AMP204": START + f"{LOOP}{FORWARD}{IN_LOOP}\n",
    "AMP206": HEAD + IMPORT + PARTS + f"images, labels = loader[0]\n{EXAMPLE}\noptimizer.step()\n",
    "AMP208": START
    + LOOP.replace("i,", "step,")
    + f"{FORWARD}{IN_LOOP}\n        optimizer.zero_grad()\n",
    "AMP211": HEAD
    + IMPORT
    + "from torch.nn.parallel import DistributedDataParallel\n"
    + f"{PARTS}{EXAMPLE}\n{LOOP}{FORWARD}{ZERO}{BACKWARD}{STEP}",
    "AMP302": f"import torch\nimport apex\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP305": "import torch\nfrom apex.normalization import FusedRMSNorm\n"
    f"class Block(torch.nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        {EXAMPLE}\n",
    "AMP307": "import torch\nfrom apex.contrib.xentropy import SoftmaxCrossEntropyLoss\n"
    f"def loss(logits, labels):\n    {EXAMPLE}\n    return losses\n",
    "AMP404": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}    penalty = model(images).pow(2).sum()\n{IN_LOOP}\n    scaler.update()\n",
    "AMP405": f"{HEAD}{PARTS}epochs = 2\n{EXAMPLE}\n        scaler.update()\n",
    "AMP406": f"{NATIVE}{EXAMPLE}\n",
    "AMP407": f"{NATIVE}criterion = torch.nn.MSELoss()\n{EXAMPLE}\n",
    "AMP408": f"{HEAD}{PARTS}{EXAMPLE}\n    scaler.step(optimizer)\n    scaler.update()\n",
    "AMP409": f"{NATIVE}{LOOP}{ZERO}{IN_LOOP}\n    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    "AMP410": f"{NATIVE}{LOOP}{NATIVE_FORWARD}{IN_LOOP}\n",
    "AMP411": f"{NATIVE}{LOOP}{ZERO}{IN_LOOP}\n    scaler.step(optimizer)\n    scaler.update()\n",
    "AMP412": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}{IN_LOOP}\n    scaler.update()\n    scaler.step(optimizer)\n",
    "AMP413": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}{IN_LOOP}\n    scaler.update()\n",
    "AMP414": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}    penalty = model(images).pow(2).sum()\n{IN_LOOP}\n    scaler.update()\n",
    "AMP902": WHOLE.replace(BACKWARD, f"{IN_LOOP}\n"),
    "AMP203": WHOLE.replace(STEP, f"{IN_LOOP}\n        optimizer.zero_grad()\n")
    .replace(ZERO, "", 1)
    .replace("(output, labels)", "(output, labels) / accumulation_steps"),
    "AMP207": WHOLE.replace(BACKWARD, f"{IN_LOOP}\n"),
    "AMP209": WHOLE.replace(FORWARD + ZERO, f"{IN_LOOP}\n"),
    "AMP210": WHOLE.replace(STEP, f"{IN_LOOP}\n"),
    "AMP212": WHOLE.replace(BACKWARD + STEP, f"{IN_LOOP}\n"),
    "AMP301": f"import torch\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP304": f"from apex.optimizers import FusedAdam\nimport torch\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP402": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}{IN_LOOP}\n    scaler.update()\n",
    "AMP403": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}{IN_LOOP}\n",
    "AMP903": WHOLE.replace(INIT, f"{EXAMPLE}\n"),
    "AMP906": WHOLE.replace(STEP, f"    closure = lambda: loss\n{IN_LOOP}\n"),
    "AMP911": WHOLE.replace(BACKWARD + STEP, f"{IN_LOOP}\n"),
    "AMP109": {
        "engine.py": f"{HEAD}{IMPORT}criterion = torch.nn.MSELoss()\n{EXAMPLE}\n",
        "main.py": f"{HEAD}{IMPORT}from engine import train\n{PARTS}def main(model, optimizer):\n{IN_LOOP}\n"
        "main(model, optimizer)\n",
    },
    "AMP113": START + f"{EXAMPLE}\n" + WHOLE[len(START) :],
    "AMP114": f"{HEAD}{IMPORT}{PARTS}backend = 'native' if args.fp16 else 'apex'\n{EXAMPLE}\n{LOOP}{ZERO}"
    "    with torch.cuda.amp.autocast(enabled=backend == 'native'):\n"
    "        loss = criterion(model(images), labels)\n"
    "    if backend == 'native':\n        scaler.scale(loss).backward()\n"
    "        scaler.step(optimizer)\n        scaler.update()\n"
    "    elif backend == 'apex':\n        with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
    "            scaled_loss.backward()\n        optimizer.step()\n",
    "AMP117": {
        "engine.py": f"{EXAMPLE}\n",
        "main.py": START.replace("import torch\n", "import torch\nfrom engine import backward\n", 1)
        + f"{LOOP}{FORWARD}{ZERO}{IN_LOOP}\n{STEP}",
    },
    "AMP118": START + f"{EXAMPLE}\n" + WHOLE[len(START) :].replace("amp.scale_loss", "scale_loss"),
    "AMP119": f"{HEAD}{PARTS}{EXAMPLE}\ndef train(amp):\n    for images, labels in loader:\n"
    "        optimizer.zero_grad()\n        loss = criterion(model(images), labels)\n"
    "        if amp is not None:\n            with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
    "                scaled_loss.backward()\n        else:\n            loss.backward()\n"
    f"        optimizer.step()\nif amp is not None:\n    {INIT}train(amp)\n",
    "AMP120": "import torch\nfrom apex import amp\nfrom mmcv.runner import Hook, IterBasedRunner\n"
    "class ApexHook(Hook):\n    def after_train_iter(self, runner):\n        runner.optimizer.zero_grad()\n"
    '        with amp.scale_loss(runner.outputs["loss"], runner.optimizer) as scaled_loss:\n'
    "            scaled_loss.backward()\n        runner.optimizer.step()\n"
    "def train(model, loader):\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    f"{IN_LOOP}\n    runner = IterBasedRunner(model, optimizer=optimizer)\n"
    '    runner.register_hook(ApexHook())\n    runner.run([loader], [("train", 1)])\n',
    "AMP121": f"{WHOLE}class Penalty:\n    def __init__(self, opt_level):\n        self.weight = 1\n        {EXAMPLE}\n"
    'penalty = Penalty("O1")\n',
    "AMP122": f"{HEAD}{IMPORT}{PARTS}{TRAIN_STEP}def overflowed():\n{IN_LOOP}\n    return False\n{INIT}{LOOP}"
    "    train_step(model, optimizer, images)\n    if overflowed():\n        print(i)\n",
    "AMP123": f"{HEAD}{IMPORT}def transport(made, wanted):\n    return (made @ wanted.t()).mean()\n{PARTS}"
    + INIT.replace("O1", "O2")
    + f"{LOOP}    output = model(images)\n{IN_LOOP}\n    loss = criterion(output, labels) + distance\n"
    + f"{ZERO}{BACKWARD}{STEP}",
    "AMP124": f"{START}fast = args.fp16\n{WHOLE[len(START) :]}{IN_LOOP}\n",
    "AMP125": f"{START}{EXAMPLE}\nweight = torch.eye(2).cuda()\n"
    + WHOLE[len(START) :].replace("(output, labels)", "(Scale.apply(output, weight), labels)"),
    "AMP205": START + f"{EXAMPLE}\n" + WHOLE[len(START) :],
    "AMP213": f"{HEAD}{PARTS}{EXAMPLE}\ntrainer = Trainer(model, optimizer)\n{LOOP}{ZERO}{FORWARD}    trainer.step(loss)\n",
    "AMP214": f"{HEAD}{IMPORT}{PARTS}{TWO}{LOOP}    encoder_optimizer.zero_grad()\n    head_optimizer.zero_grad()\n{IN_LOOP}\n",
    "AMP303": f"import torch\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP306": "import torch\nfrom apex.fp16_utils import FP16_Optimizer, network_to_half\n"
    "model = torch.nn.Linear(4, 2).cuda()\ncriterion = torch.nn.CrossEntropyLoss()\n"
    "loader = [(torch.ones(2, 4).cuda(), torch.ones(2).long().cuda())]\n"
    f"{EXAMPLE}\n",
    "AMP308": f"{HEAD}{PARTS}{LOOP}{ZERO}{FORWARD}{IN_LOOP}\n{STEP}",
    "AMP309": {"requirements.txt": f"{EXAMPLE}\n", "train.py": WHOLE},
    "AMP310": {"requirements.txt": f"{EXAMPLE}\n", "train.py": WHOLE},
    "AMP401": f"import torch\n{EXAMPLE}\n",
    "AMP901": f"{HEAD}{IMPORT}{PARTS}teacher = torch.nn.Linear(4, 2)\n{EXAMPLE}\n{LOOP}{FORWARD}{ZERO}{BACKWARD}{STEP}",
    "AMP904": WHOLE.replace(FORWARD + ZERO + BACKWARD, f"{ZERO}{IN_LOOP}\n").replace(
        IMPORT, f"import engine\n{IMPORT}"
    ),
    "AMP905": WHOLE.replace(BACKWARD + STEP, f"{IN_LOOP}\n").replace(
        IMPORT, f"import framework\n{IMPORT}"
    ),
    "AMP907": WHOLE.replace(
        BACKWARD + STEP, f"    penalty = model(images).pow(2).sum()\n{IN_LOOP}\n"
    ),
    "AMP908": f"{START}{LOOP}{FORWARD}{BACKWARD}{IN_LOOP}\n",
    "AMP909": WHOLE + f"{EXAMPLE}\n",
    "AMP912": WHOLE.replace(BACKWARD + STEP, f"{IN_LOOP}\n"),
    "AMP913": f"{START}{EXAMPLE}\n",
}
