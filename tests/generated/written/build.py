"""Model, optimizers and data of a program."""

from __future__ import annotations

from generated.choices.sets import GANS, LOSS_IN_MODEL, Features
from generated.written.names import Names
from generated.written.text import Lines, block


def wants_loss(f: Features) -> bool:
    """Tell whether the model computes its loss itself."""
    return f["forward"] in LOSS_IN_MODEL


_NETWORKS = {
    "mlp": ["nn.Flatten()", "nn.Linear(27, 12)", "nn.ReLU()", "nn.Linear(12, 3)"],
    "conv": ["nn.Conv2d(3, 4, 2)", "nn.ReLU()", "nn.Flatten()", "nn.Linear(16, 3)"],
    "norm": [
        "nn.Conv2d(3, 4, 2)",
        "nn.BatchNorm2d(4)",
        "nn.ReLU()",
        "nn.Flatten()",
        "nn.Linear(16, 3)",
    ],
}


def model_lines(f: Features) -> Lines:
    """Return the class of the model."""
    layers = ", ".join(_NETWORKS[f["network"]])
    if f["losses"] in GANS:
        return [
            "def make_discriminator():",
            "    return nn.Sequential(nn.Flatten(), nn.Linear(27, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1))",
            "",
            "",
            "def make_generator():",
            "    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 27))",
        ]
    loss = wants_loss(f)
    run = block(
        "def forward(self, x, labels=None)" if loss else "def forward(self, x)",
        (
            [
                "scores = self.layers(x)",
                *block("if labels is None", ["return (scores,)"]),
                *_model_loss(f),
            ]
            if loss
            else ["return self.layers(x)"]
        ),
    )
    init = block(
        "def __init__(self)", ["super().__init__()", f"self.layers = nn.Sequential({layers})"]
    )
    return block("class Classifier(nn.Module)", [*init, "", *run])


def _model_loss(f: Features) -> Lines:
    if f["forward"] != "loss_dict":
        return ["return F.cross_entropy(scores, labels), scores"]
    return [
        "soft = F.cross_entropy(scores * 0.5, labels)",
        'return {"hard": F.cross_entropy(scores, labels), "soft": 0.1 * soft}',
    ]


def data_lines(f: Features) -> Lines:
    """Return the function that makes the batches."""
    if f["losses"] in GANS:
        item = "(torch.randn(4, 27), torch.zeros(4))"
    else:
        item = "(torch.randn(6, 3, 3, 3), torch.randint(0, 3, (6,)))"
    lines = block("def make_batches(count)", [f"return [{item} for _ in range(count)]"])
    if f["batches"] == "loader":
        sample = "(torch.randn(3, 3, 3), torch.randint(0, 3, ()))"
        samples = block("def make_samples(count)", [f"return [{sample} for _ in range(count)]"])
        lines = [*lines, "", "", *samples] if f["evaluation"] != "none" else samples
    return lines


def build_lines(f: Features, n: Names) -> Lines:
    """Return the statements that make model, optimizers, scheduler and data."""
    if f["losses"] in GANS:
        opt_d, opt_g = n.optimizers
        models = [
            f"{n.model}_d, {n.model}_g = make_discriminator(), make_generator()",
            f"{n.criterion} = nn.BCEWithLogitsLoss()",
            f"{opt_d} = {_optimizer(f, f'{n.model}_d.parameters()', n)}",
            f"{opt_g} = {_optimizer(f, f'{n.model}_g.parameters()', n)}",
        ]
        return [*models, *_data(f, n)]
    lines = [f"{n.model} = Classifier()"]
    if not (wants_loss(f) or f["forward"] == "functional") or f["losses"] in (
        "sum",
        "sum_in_call",
        "two",
    ):
        lines.append(f"{n.criterion} = nn.CrossEntropyLoss()")
    if len(n.optimizers) == 2:
        first, second = n.optimizers
        lines.append(f"{first} = {_optimizer(f, f'{n.model}.layers[:-1].parameters()', n)}")
        lines.append(f"{second} = {_optimizer(f, f'{n.model}.layers[-1].parameters()', n)}")
    elif f["head"] == "yes":
        lines.append(f"{n.head} = nn.Linear(3, 3)")
        both = f"[*{n.model}.parameters(), *{n.head}.parameters()]"
        lines.append(f"{n.optimizer} = {_optimizer(f, both, n)}")
    elif f["groups"] == "yes":
        lines += [
            f"decay = [p for p in {n.model}.parameters() if p.dim() > 1]",
            f"others = [p for p in {n.model}.parameters() if p.dim() == 1]",
            'groups = [{"params": decay}, {"params": others, "weight_decay": 0.0}]',
            f"{n.optimizer} = {_optimizer(f, 'groups', n)}",
        ]
    else:
        lines.append(f"{n.optimizer} = {_optimizer(f, f'{n.model}.parameters()', n)}")
    if f["teacher"] == "yes":
        lines += [f"{n.teacher} = Classifier()", f"{n.teacher}.eval()"]
    if f["ema"] == "yes":
        lines.append(f"{n.ema} = copy.deepcopy({n.model})")
    return [*lines, *_data(f, n)]


def _optimizer(f: Features, params: str, n: Names) -> str:
    makers = {
        "sgd": f"torch.optim.SGD({params}, lr={n.args}.lr, momentum=0.9)",
        "adam": f"torch.optim.Adam({params}, lr={n.args}.lr)",
        "adamw": f"torch.optim.AdamW({params}, lr={n.args}.lr, weight_decay=0.01)",
    }
    return makers[f["optimizer"]]


def _data(f: Features, n: Names) -> Lines:
    count = 7 if f["accumulation"] == "after_loop" else 6
    lines = [f"{n.loader} = make_batches({count})"]
    if f["batches"] == "loader":
        samples = f"make_samples({6 * count})"
        lines = [f"{n.loader} = DataLoader({samples}, batch_size=6, shuffle=True)"]
    if f["evaluation"] != "none":
        lines.append("val_loader = make_batches(2)")
    return lines
