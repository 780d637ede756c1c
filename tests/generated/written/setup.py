"""What stands before the loop: imports of Apex, initialize, arguments, model and data."""

from __future__ import annotations

from dataclasses import replace

from generated.choices.sets import GANS, Features
from generated.written.names import Names
from generated.written.text import Lines, block

_PLEASE = (
    'raise ImportError("Please install apex from https://www.github.com/nvidia/apex '
    'to use fp16 training.")'
)
_STATEMENTS = {
    "whole": "import apex",
    "alias": "from apex import amp as apex_amp",
    "module_alias": "import apex.amp as amp",
}


def import_lines(f: Features) -> Lines:
    """Return the import of Apex with what guards it."""
    statement = _STATEMENTS.get(f["imports"], "from apex import amp")
    handlers: dict[str, Lines] = {
        "raise": [_PLEASE],
        "local_raise": [_PLEASE],
        "none": ["amp = None"],
        "flag": ["APEX_AVAILABLE = False"],
    }
    if f["imports"] not in handlers:
        return [statement]
    tried = [statement, "APEX_AVAILABLE = True"] if f["imports"] == "flag" else [statement]
    return [*block("try", tried), *block("except ImportError", handlers[f["imports"]])]


def is_local(f: Features) -> bool:
    """Tell whether Apex is imported where it is used."""
    return f["imports"] in ("local", "local_raise")


def initialize(f: Features, n: Names) -> tuple[Lines, Names]:
    """Return the statements that turn Apex on, and the names that hold after them."""
    models, optimizers = n.model, ", ".join(n.optimizers)
    target, after = f"{models}, {optimizers}", n
    shape = f["target"]
    if f["losses"] in GANS:
        models = f"[{n.model}_d, {n.model}_g]"
        optimizers = f"[{optimizers}]"
        target = (
            f"{models}, {optimizers}"
            if f["branch_order"] == "amp_first"
            else f"({models[1:-1]}), ({optimizers[1:-1]})"
        )
    elif f["head"] == "yes":
        models = f"[{n.model}, {n.head}]"
        target = f"{models}, {n.optimizer}"
    elif shape == "lists" and len(n.optimizers) == 1:
        models, optimizers = f"[{models}]", f"[{optimizers}]"
        target = f"{models}, {optimizers}"
    elif shape == "optimizer_list" or len(n.optimizers) > 1:
        optimizers = f"[{optimizers}]"
        target = f"{models}, {optimizers}"
    elif shape == "renamed":
        after = replace(n, model="net", optimizers=("opt",))
        target = "net, opt"
    arguments = [models, optimizers]
    if shape == "keyword":
        arguments = [f"models={models}", f"optimizers={optimizers}"]
    before, given = _arguments(f, n)
    call = f"{n.amp}.initialize({', '.join([*arguments, *given])})"
    statement = call if shape == "dropped" else f"{target} = {call}"
    lines = [*before, *_wrapped(f, statement)]
    if is_local(f):
        lines = [*import_lines(f), *lines]
    guard = n.flag
    if guard:
        lines = block(f"if {guard}", lines)
    if f["mistake"] == "scale_model":
        lines.append(f"{after.model} = {n.amp}.scale_loss({after.model})")
    if f["parallel"] == "yes":
        lines += block(
            f"if {n.args}.n_gpu > 1", [f"{after.model} = nn.DataParallel({after.model})"]
        )
    return lines, after


def _wrapped(f: Features, statement: str) -> Lines:
    """Break a long call over lines, as an editor does."""
    if len(statement) < 70 or f["format"] == "long_lines":
        return [statement]
    head, _, rest = statement.partition(".initialize(")
    return [f"{head}.initialize(", f"    {rest[:-1]}", ")"]


def _arguments(f: Features, n: Names) -> tuple[Lines, Lines]:
    before: Lines = []
    given: Lines = []
    level = f["level"]
    levels = {
        "O1": '"O1"',
        "O2": '"O2"',
        "O0": '"O0"',
        "args": f"{n.args}.opt_level",
        "variable": "opt_level",
        "formatted": f'f"O{{{n.args}.level}}"',
        "conditional": f'"O1" if {n.switch} else "O0"',
    }
    if level == "variable":
        before.append('opt_level = "O1"')
    if level != "absent":
        given.append(f"opt_level={levels[level]}")
    scale = f"{n.args}.loss_scale"
    scales = {
        "none": [],
        "dynamic": ['loss_scale="dynamic"'],
        "static": ["loss_scale=128.0"],
        "one": ["loss_scale=1.0"],
        "args": [f"loss_scale={scale}"],
        "args_number": [f"loss_scale={scale}"],
        "args_absent": [f"loss_scale={scale}"],
        "args_float": [f"loss_scale={scale}"],
        "args_zero": [f'loss_scale="dynamic" if {scale} == 0 else {scale}'],
        "bounds": ["min_loss_scale=1.0", "max_loss_scale=2.**24"],
    }
    given += scales[f["scale_argument"]]
    others = {
        "none": [],
        "verbosity": ["verbosity=0"],
        "keep_batchnorm": [f"keep_batchnorm_fp32={n.args}.keep_batchnorm_fp32"],
        "enabled": [f"enabled={n.switch}"],
    }
    given += others[f["other_arguments"]]
    losses = {"two": 2, "gan": 3, "gan_joint": 2}.get(f["losses"], 1)
    if f["loss_id"] != "no" and losses > 1:
        given.append(f"num_losses={losses}")
    return before, given


def parser_lines(f: Features, n: Names) -> Lines:
    """Return the command line of the program."""
    switch = n.switch.rpartition(".")[2]
    scales = {"args_float": "type=float, default=128.0", "args_zero": "type=float, default=0"}
    options = [
        ("epochs", "type=int, default=2" if f["epochs"] != "one" else "type=int, default=1"),
        ("lr", "type=float, default=0.05"),
        ("accum", "type=int, default=3"),
        ("max_grad_norm", "type=float, default=0.05"),
        ("mixup", "type=float, default=0.0"),
        ("n_gpu", "type=int, default=1"),
        (switch, 'action="store_true", help="16-bit (mixed) precision training"'),
        ("opt_level", 'type=str, default="O1"'),
        ("level", "type=int, default=1"),
        ("loss_scale", scales.get(f["scale_argument"], "default=None")),
        ("keep_batchnorm_fp32", "default=None"),
        ("resume", 'type=str, default=""'),
        ("output", 'type=str, default="checkpoint.pt"'),
        ("max_steps", "type=int, default=5"),
        ("device", 'type=str, default="cpu"'),
    ]
    added = [f'parser.add_argument("--{name}", {rest})' for name, rest in options]
    return ["parser = argparse.ArgumentParser()", *added, "args = parser.parse_args()"]


def availability_lines(f: Features, n: Names) -> Lines:
    """Return the check that Apex is there, where the program keeps a flag for that."""
    if f["imports"] != "flag" or not n.flag:
        return []
    return block(
        f"if {n.flag} and not APEX_AVAILABLE",
        ['raise RuntimeError("Apex is needed for mixed precision")'],
    )


def scheduler_lines(f: Features, n: Names) -> Lines:
    """Return the learning-rate scheduler."""
    if f["scheduler"] == "none":
        return []
    return [
        f"{n.scheduler} = torch.optim.lr_scheduler.StepLR({n.optimizer}, step_size=2, gamma=0.7)"
    ]


def resume_lines(f: Features, n: Names) -> Lines:
    """Return the statements that take up a checkpoint."""
    if f["checkpoint"] == "none" or f["resume"] == "no":
        return []
    amp = [f'{n.amp}.load_state_dict(checkpoint["amp"])']
    if f["resume"] == "keyed":
        amp = block('if "amp" in checkpoint', amp)
    body = [
        f"checkpoint = torch.load({n.args}.resume)",
        f'{n.model}.load_state_dict(checkpoint["model"])',
        f'{n.optimizer}.load_state_dict(checkpoint["optimizer"])',
        *(block(f"if {n.flag}", amp) if n.flag else amp),
    ]
    return block(f"if {n.args}.resume", body)


def save_lines(f: Features, n: Names) -> Lines:
    """Return the statements that write a checkpoint."""
    kept = [f'"model": {n.model}.state_dict()', f'"optimizer": {n.optimizer}.state_dict()']
    state = f"{n.amp}.state_dict()"
    path = f"{n.args}.output"
    if f["checkpoint"] == "none":
        return []
    if f["checkpoint"] == "literal" or (f["checkpoint"] == "function" and not n.flag):
        items = [*kept, f'"amp": {state}']
        return [
            "torch.save(",
            "    {",
            *[f"        {item}," for item in items],
            "    },",
            f"    {path},",
            ")",
        ]
    if f["checkpoint"] == "conditional":
        items = [*kept, f'"amp": {state} if {n.flag} else None']
        return ["state = {", *[f"    {item}," for item in items], "}", f"torch.save(state, {path})"]
    lines = [f"state = {{{', '.join(kept)}}}"]
    amp = [f'state["amp"] = {state}']
    return [*lines, *(block(f"if {n.flag}", amp) if n.flag else amp), f"torch.save(state, {path})"]
