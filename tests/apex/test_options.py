"""What an initialize asks for."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.apex.levels import possible
from amp_migrate.apex.options import Options, number, read
from amp_migrate.apex.sites import Kind
from amp_migrate.apex.unpacked.entries import entries
from amp_migrate.plan.cannot import Cannot
from tests.placement.training import PATH, Training

HEAD = "from apex import amp\nimport torch\n"


def _read(text: str) -> Options:
    case = Training(f"{HEAD}{text}\n")
    (site,) = (s for s in case.index.sites if s.kind is Kind.INITIALIZE)
    return read(case.project, site, lambda node: node if isinstance(node, ast.Constant) else None)


CASTS: dict[str, tuple[str, bool | None, str]] = {
    "default": ("m, o", True, ""),
    "a level": ("m, o, opt_level='O2'", True, ""),
    "off": ("m, o, opt_level='O0'", False, ""),
    "disabled": ("m, o, enabled=False", False, ""),
    "enabled": ("m, o, enabled=True", True, ""),
    "an option": ("m, o, enabled=args.fp16", None, "args.fp16"),
    "by position": ("m, o, args.fp16, 'O1'", None, "args.fp16"),
    "a level from elsewhere": ("m, o, opt_level=args.level", None, 'args.level != "O0"'),
    "both": ("m, o, enabled=args.fp16, opt_level=args.level", None, 'args.level != "O0" and args.fp16'),
    "a level off, an option": ("m, o, enabled=args.fp16, opt_level='O0'", False, ""),
    "chosen": ("m, o, opt_level='O1' if a else 'O0'", None, "a"),
    "chosen the other way": ("m, o, opt_level='O0' if a else 'O1'", None, "not a"),
    "chosen of two that cast": ("m, o, opt_level='O1' if a else 'O2'", True, ""),
    "chosen of two that do not": ("m, o, opt_level='O0' if a else 'O0'", False, ""),
    "chosen of what is not known": ("m, o, opt_level=x if a else 'O0'", None, "(x if a else 'O0') != \"O0\""),
    "made": ("m, o, opt_level='O' + n", None, "('O' + n) != \"O0\""),
    "a string of it": ("m, o, opt_level=f'O{n}'", None, "f'O{n}' != \"O0\""),
}  # fmt: skip


@pytest.mark.parametrize(("given", "value", "text"), CASTS.values(), ids=CASTS)
def test_when_casts_are_on(given: str, value: bool | None, text: str) -> None:
    """The level and `enabled=` decide."""
    options = _read(f"amp.initialize({given})")
    assert (options.casts.value, options.casts.text) == (value, text)


SCALES: dict[str, tuple[str, bool, bool, str | None]] = {
    "none": ("", True, False, None),
    "None": ("loss_scale=None", True, False, None),
    "dynamic": ("loss_scale='dynamic'", True, True, None),
    "a number": ("loss_scale=128", True, True, "128.0"),
    "a number as text": ("loss_scale='128.0'", True, True, "128.0"),
    "one": ("loss_scale=1.0", False, False, None),
    "no number": ("loss_scale='much'", True, False, None),
    "from elsewhere": ("loss_scale=args.scale", True, False, None),
}


@pytest.mark.parametrize(("given", "scaling", "always", "pinned"), SCALES.values(), ids=SCALES)
def test_loss_scales(given: str, scaling: bool, always: bool, pinned: str | None) -> None:
    """A number stays, one scales nothing, and what is asked for scales at O0 too."""
    options = _read(f"amp.initialize(m, o{', ' if given else ''}{given})")
    assert (options.scaling, options.always_scales, options.pinned) == (scaling, always, pinned)
    assert (options.chosen_scale is not None) is (given == "loss_scale=args.scale")


BOUNDS: dict[str, tuple[str, str | None, str | None, str | None, str | None]] = {
    "none": ("", None, None, None, None),
    "below": ("min_loss_scale=128", "128.0", None, None, None),
    "above": ("max_loss_scale=2.**12", None, "4096.0", "4096.0", None),
    "above the first scale": ("max_loss_scale=2.**20", None, "1048576.0", None, None),
    "above what Apex has": ("max_loss_scale=2**24", None, None, None, None),
    "zero": ("min_loss_scale=0", None, None, None, None),
    "both the same": ("min_loss_scale=64, max_loss_scale=64.0", None, None, "64.0", "64.0"),
    "from elsewhere": ("min_loss_scale=args.x", None, None, None, None),
    "None": ("min_loss_scale=None", None, None, None, None),
}


@pytest.mark.parametrize(("given", "low", "high", "first", "pinned"), BOUNDS.values(), ids=BOUNDS)
def test_bounds(
    given: str, low: str | None, high: str | None, first: str | None, pinned: str | None
) -> None:
    """Those that a GradScaler can keep; equal ones are a scale that stays."""
    options = _read(f"amp.initialize(m, o, {given})")
    assert (options.minimum, options.maximum) == (low, high)
    assert (options.init_scale, options.pinned) == (first, pinned)
    assert bool(options.remarks) is (given == "min_loss_scale=args.x")


REMARKS: dict[str, tuple[str, list[str]]] = {
    "O1": ("opt_level='O1'", []),
    "O2": ("opt_level='O2'", ["opt_level O2 becomes"]),
    "one of two": (
        "opt_level='O1' if a else 'O2'",
        ["opt_level is chosen at run time: O2 becomes"],
    ),
    "one of all": ("opt_level=args.level", ["opt_level is chosen at run time: O2 and O3 become "]),
    "several losses": ("num_losses=2", ["num_losses is dropped"]),
    "outputs": ("cast_model_outputs=torch.float16", ["cast_model_outputs is dropped"]),
    "no outputs": ("cast_model_outputs=None", []),
}


@pytest.mark.parametrize(("given", "starts"), REMARKS.values(), ids=REMARKS)
def test_remarks(given: str, starts: list[str]) -> None:
    """What native AMP does otherwise is said."""
    remarks = _read(f"amp.initialize(m, o, {given})").remarks
    assert len(remarks) == len(starts)
    assert all(r.startswith(s) for r, s in zip(remarks, starts, strict=True))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("*both", "AMP909"),
        ("optimizers=o", "AMP909"),
        ("m, o, **load()", "AMP909"),
        ("m, o, **{'verbose': 1}", "AMP909"),
        ("m, o, cast_model_type=torch.bfloat16", "AMP903"),
        ("m, o, opt_level='O2', cast_model_type=False", "AMP903"),
        ("m, o, opt_level='O3', cast_model_type=torch.float32", "AMP903"),
        ("m, o, opt_level=args.level, cast_model_type=False", "AMP903"),
    ],
)
def test_refused(given: str, code: str) -> None:
    """What cannot be read, and other types than float16."""
    with pytest.raises(Cannot) as caught:
        _read(f"amp.initialize({given})")
    assert caught.value.code == code


def test_unpacked_options() -> None:
    """A dictionary above the call is read."""
    options = _read("kw = {'opt_level': 'O0'}\nkw['loss_scale'] = 4\namp.initialize(m, o, **kw)")
    assert options.casts.value is False and options.pinned == "4.0"
    assert _read("amp.initialize(m, o, cast_model_type=torch.half)").casts.value is True


@pytest.mark.parametrize("given", ["False", "torch.float32", "None"])
@pytest.mark.parametrize("level", ["'O1'", "'O0'", "'O1' if half else 'O0'"])
def test_a_type_that_the_network_has_anyhow(given: str, level: str) -> None:
    """O0 and O1 keep a network in float32."""
    options = _read(f"amp.initialize(m, o, opt_level={level}, cast_model_type={given})")
    assert (
        not options.remarks
        and options.casts == _read(f"amp.initialize(m, o, opt_level={level})").casts
    )


Held = dict[str, str] | None
MAPPINGS: dict[str, tuple[str, str, Held]] = {
    "written out": ("", "{'a': 1}", {"a": "1"}),
    "dict": ("", "dict(a=1, **{'b': 2})", {"a": "1", "b": "2"}),
    "joined": ("", "{'a': 1} | {'a': 2}", {"a": "2"}),
    "a variable": ("k = {'a': 1}\n", "k", {"a": "1"}),
    "stored behind": ("k = {}\nk['a'] = 1\n", "k", {"a": "1"}),
    "updated": ("k = {'a': 1}\nk.update(a=2, b=3)\n", "k", {"a": "2", "b": "3"}),
    "at times": ("k = {}\nif x:\n    k['opt_level'] = 'O2'\n", "k", {"opt_level": "k.get('opt_level', 'O1')"}),
    "one of two": ("k = {'a': 1}\nif x:\n    k['a'] = 2\n", "k", {"a": "k['a']"}),
    "an item": ("c = {'amp': {'a': 1}}\n", "c['amp']", {"a": "1"}),
    "a copy": ("k = {'a': 1}\n", "k.copy()", {"a": "1"}),
    "printed": ("k = {'a': 1}\nprint(k)\n", "k", {"a": "1"}),
    "handed on": ("k = {'a': 1}\nchange(k)\n", "k", None),
    "a varying key": ("k = {'a': 1}\nk[x] = 2\n", "k", None),
    "two variables": ("k = {'a': 1}\nk = {'a': 2}\n", "k", None),
    "popped": ("k = {'a': 1}\nk.pop('a')\n", "k", None),
    "deleted": ("k = {'a': 1}\ndel k['a']\n", "k", None),
    "loaded": ("k = load()\n", "k", None),
    "aliased": ("k = {'a': 1}\nj = k\nj['a'] = 2\n", "k", {"a": "2"}),
    "an alias": ("k = {'a': 1}\nj = k\nk['b'] = 2\n", "j", {"a": "1", "b": "2"}),
    "aliased twice": ("k = {'a': 1}\ni = j = k\nj['a'] = 2\n", "k", None),
    "aliased and handed on": ("k = {'a': 1}\nj = k\nchange(j)\n", "k", None),
    "an alias of several": ("k = {'a': 1}\nj = k\nj = l\nj['a'] = 2\n", "k", None),
    "an alias of itself": ("j = k\nk = j\n", "k", None),
    "filled by a function": ("def f():\n    k = {}\n    k['a'] = 1\n    k.update(b=2)\n    return dict(**k)\n", "f()", {"a": "1", "b": "2"}),
    "filled and returned": ("def f():\n    k = {'a': 1}\n    k['b'] = 2\n    return k\n", "f()", {"a": "1", "b": "2"}),
    "filled by what varies": ("def f():\n    k = {}\n    k['a'] = x\n    return k\n", "f()", None),
    "filled and more": ("def f():\n    k = {}\n    train()\n    return k\n", "f()", None),
    "a comprehension": ("k = {n: 1 for n in ns}\n", "k", None),
    "written in a function": ("k = {'a': 1}\ndef late():\n    k['b'] = 2\n", "k", None),
    "written in the function of the use": ("k = {}\ndef late():\n    k['a'] = 1\n    ", "k", {"a": "1"}),
    "set anew in the function of the use": ("k = {'a': 1}\ndef late():\n    k['a'] = 2\n    k['b'] = 3\n    ", "k", {"a": "2", "b": "3"}),
    "written in a turn before the use": (
        "k = {}\ndef late():\n    for n in ns:\n        if n:\n            k['a'] = 1\n            continue\n        ", "k", {"a": "k.get('a')"},
    ),
    "written at times in the function of the use": ("k = {}\ndef late():\n    if x:\n        k['a'] = 1\n    ", "k", {"a": "k.get('a')"}),
    "written in the function of the use and in another": (
        "k = {}\ndef more():\n    k['b'] = 1\ndef late():\n    k['a'] = 1\n    ", "k", None,
    ),
    "a global of a function": ("def late():\n    global k\n    k = {'a': 1}\n    k['b'] = 2\n    ", "k", {"a": "1", "b": "2"}),
    "a global of a function that the module writes": (
        "def late():\n    global k\n    k = {'a': 1}\n    use(**k)\nlate()\nk['b'] = 2\nlate()\n", "k", None,
    ),
    "a walrus": ("f(k := {'a': 1})\n", "k", None),
    "in a loop": ("k = {}\nfor n in ns:\n    k['a'] = n\n", "k", {"a": "k.get('a')"}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "mapping", "held"), MAPPINGS.values(), ids=MAPPINGS)
def test_what_a_mapping_holds(text: str, mapping: str, held: Held) -> None:
    """All that writes to it must be seen."""
    case = Training(f"{text}use(**{mapping})\n")
    module = case.project.modules[PATH]
    call = next(c for c in module.tree.nodes(ast.Call) if ast.unparse(c.func) == "use")
    found = entries(case.project, module, call.keywords[0].value, call)
    assert (None if found is None else {k: ast.unparse(v) for k, v in found.items()}) == held


LEVELS: dict[str, tuple[str, str, set[str]]] = {
    "written": ("", "'O1'", {"O1"}),
    "chosen": ("", "'O1' if a else 'O2'", {"O1", "O2"}),
    "or": ("", "'O1' or 'O2'", {"O1", "O2"}),
    "a variable": ("v = 'O2'\n", "v", {"O2"}),
    "set twice": ("v = 'O2'\nif a:\n    v = 'O3'\n", "v", {"O2", "O3"}),
    "set by a loop": ("for v in vs: pass\n", "v", {"O0", "O1", "O2", "O3"}),
    "of itself": ("v = v\n", "v", {"O0", "O1", "O2", "O3"}),
    "an option": ("p.add_argument('--lv', choices=['O0', 'O1'])\n", "args.lv", {"O0", "O1"}),
    "an option by dest": ("p.add_argument('--x', dest='lv', choices=('O1',))\n", "args.lv", {"O1"}),
    "an option that is set": ("p.add_argument('--lv', choices=['O0', 'O1'])\nargs.lv = z\n", "args.lv", {"O0", "O1", "O2", "O3"}),
    "an option that is set to a text": ("p.add_argument('--lv', choices=['O0', 'O1'])\nargs.lv = 'O2'\n", "args.lv", {"O0", "O1", "O2"}),
    "an option that is counted on": ("p.add_argument('--lv', choices=['O0'])\nargs.lv += z\n", "args.lv", {"O0", "O1", "O2", "O3"}),
    "an option of any value": ("p.add_argument('--lv')\n", "args.lv", {"O0", "O1", "O2", "O3"}),
    "a call": ("", "f()", {"O0", "O1", "O2", "O3"}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "node", "levels"), LEVELS.values(), ids=LEVELS)
def test_levels_that_an_expression_may_be(text: str, node: str, levels: set[str]) -> None:
    """All four where that is not known."""
    case = Training(f"{text}use({node})\n")
    module = case.project.modules[PATH]
    call = next(c for c in module.tree.nodes(ast.Call) if ast.unparse(c.func) == "use")
    assert possible(module, call.args[0]) == levels


def test_numbers() -> None:
    """Constants and what is computed of them."""
    texts = ["128", "2.0", "2**16", "2.**10", "3**2", "2**x", "2**5000", "'1'", "-1"]
    found = [number(ast.parse(text, mode="eval").body) for text in texts]
    assert found == [128.0, 2.0, 65536.0, 1024.0, 9.0, None, None, 1.0, None]
