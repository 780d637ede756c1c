"""Evaluations behind calls of which nothing tells what they run: each must be seen to lose its casts."""

from __future__ import annotations

from check.trainings.planted import Training

_TRAIN = """
def train(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {made}
    for x in loader:
        optimizer.zero_grad()
        {trained}
    return net
"""
_BEFORE = _TRAIN.format(
    made='net, optimizer = amp.initialize(net, optimizer, opt_level="O1")',
    trained="""loss = net(x).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()""",
)
_AFTER = _TRAIN.format(
    made="scaler = torch.cuda.amp.GradScaler()",
    trained="""with torch.cuda.amp.autocast():
            loss = net(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()""",
)
_SCORE = """
def score(model, loader):
    with torch.no_grad():
        return [model(x).sum().item() for x in loader]
"""
_OF_NET = _SCORE.replace("model", "holder").replace("holder(x)", "holder.net(x)")
_WAYS = {
    "a function of several by type": (
        f"import functools\n\n\n@functools.singledispatch\ndef score(loader, model):\n    raise TypeError\n\n\n"
        f"@score.register(list){_SCORE.replace('score(model, loader)', '_(loader, model)')}",
        "print(score(loader, net))",
    ),
    "a thread of a pool that is given it": (
        f"from concurrent.futures import ThreadPoolExecutor\n{_SCORE}",
        "with ThreadPoolExecutor(1) as pool:\n        print(pool.submit(score, net, loader).result())",
    ),
    "a descriptor in the body of a class": (
        f"{_SCORE}\n\nclass Given:\n    def __init__(self, run):\n        self.run = run\n\n    def __get__(self, one, owner):\n"
        "        return self.run\n\n\nclass Scores:\n    score = Given(score)\n",
        "print(Scores().score(net, loader))",
    ),
    "a file that looks itself up": (
        f"{_SCORE}\n\ndef named(name):\n    return getattr(sys.modules[__name__], name)\n",
        'print(named("score")(net, loader))',
    ),
    "an object that keeps it": (
        f"{_OF_NET}\n\nclass Holder:\n    def __init__(self, net):\n        self.net = net\n\n\n"
        "def named(name):\n    return getattr(sys.modules[__name__], name)\n",
        'print(named("score")(Holder(net), loader))',
    ),
    "a registry of a library": (
        f"from registry import Registry\n\nSCORES = Registry()\n\n\n@SCORES.register(){_SCORE}",
        'print(SCORES.get("score")(net, loader))',
    ),
    "its name among all": (
        _SCORE,
        "for name in sys.argv:\n        print(globals()[name](net, loader))",
    ),
    "a class that a library keeps": (
        """from registry import Registry

SCORES = Registry()


@SCORES.register()
class Scores:
    def __init__(self, model):
        self.network = model

    def __call__(self, loader):
        with torch.no_grad():
            return [self.network(x).sum().item() for x in loader]
""",
        'print(SCORES.get("Scores")(net)(loader))',
    ),
    "what a library is given beside the network": (
        f"from engines import Engine\n{_SCORE}",
        "print(Engine(net, score).run(loader))",
    ),
    "a callback that gets all that a helper gets": (
        f"{_SCORE}\n\nOFFERED = [score]\n\n\ndef tell(told, *given):\n    told(*given)\n",
        "tell(globals()[sys.argv[1]], net, loader)",
    ),
    "what such a function calls": (
        f"""from registry import Registry

SCORES = Registry()

{_SCORE}

@SCORES.register()
def report(model, loader):
    print(score(model, loader))
""",
        'SCORES.get("report")(net, loader)',
    ),
}


def _training(name: str) -> Training:
    """Return a training with an evaluation behind it, cast where it runs the network."""
    scores, call = _WAYS[name]
    end = f"""

def main(net, loader):
    net = train(net, loader)
    {call}


main(torch.nn.Linear(4, 1), [torch.randn(8, 4)])
"""
    run = "torch.no_grad():"
    cast = "torch.no_grad(), torch.cuda.amp.autocast():"
    before = f"import sys\n\nimport torch\nfrom apex import amp\n{scores}{_BEFORE}{end}"
    after = f"import sys\n\nimport torch\n{scores.replace(run, cast)}{_AFTER}{end}"
    fault = {"the casts are lost": ((cast, run),)}
    return Training(f"evaluated by {name}", {"train.py": before}, {"train.py": after}, fault)


ASTRAY = tuple(map(_training, _WAYS))
