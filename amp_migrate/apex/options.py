"""What one `amp.initialize` asks for, as the native form needs it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from amp_migrate.apex.choices import dynamic_unless_one
from amp_migrate.apex.levels import ALL, OF_GIVEN, Spell, cast, chosen, patched, possible
from amp_migrate.apex.sites import Site
from amp_migrate.apex.unchosen import unchosen
from amp_migrate.apex.unpacked.asked import remark, unpacked
from amp_migrate.apex.unpacked.by_default import by_default
from amp_migrate.apex.unpacked.writes import Entries, at_run_time
from amp_migrate.facts.constants import filled, is_false, is_none, is_true, number
from amp_migrate.facts.paths import path
from amp_migrate.flow.condition import FALSE, TRUE, Condition, conjunction, speller
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Project

Constant = Callable[[ast.expr], ast.Constant | None]

PARAMETERS = (
    "models", "optimizers", "enabled", "opt_level", "cast_model_type", "patch_torch_functions",
    "keep_batchnorm_fp32", "master_weights", "loss_scale", "cast_model_outputs", "num_losses", "verbosity",
    "min_loss_scale", "max_loss_scale",
)  # fmt: skip


@dataclass(slots=True)
class Options:
    """The arguments of one initialize: conditions under which casts and scaling are on, and scaler settings.

    `patches` is when Apex cast whatever ran, and not the networks alone that it was given: at O1. `switch` is when Apex scaled: `enabled=`, and that a loss scale which is 1 under a test is not. `always_scales`: a
    loss scale is asked for, which Apex honours at O0 too, or O2 casts nothing.
    `chosen_scale` is a loss_scale known only at run time; `stays`: its dynamic one has no room between its bounds. `idle`: nothing trains with the optimizers.
    """

    arguments: dict[str, ast.expr]
    casts: Condition
    switch: Condition
    level: str | None
    patches: Condition = TRUE
    scaling: bool = True
    init_scale: str | None = None
    growth_interval: str | None = None
    pinned: str | None = None
    stays: bool = False
    minimum: str | None = None
    maximum: str | None = None
    always_scales: bool = False
    idle: bool = False
    chosen_scale: ast.expr | None = None
    levels: frozenset[str] = frozenset()
    remarks: list[str] = field(default_factory=list)

    def tune(self, name: str, value: ast.expr, segment: Spell) -> None:
        """Take a setting that a program gives the loss scaler of Apex right after initialize."""
        if name == "_scale_seq_len":
            self.growth_interval = segment(value)
            self.remarks.append(
                "growth_interval counts steps, where Apex counted backward passes in _scale_seq_len"
            )
        else:
            _bounds(self, {name.removeprefix("_"): value}, segment, lambda _: None)

    def keep_scale(self, scale: float) -> None:
        """Scale by a number that stays."""
        self.scaling = True
        self.init_scale = self.pinned = repr(scale)
        self.remarks.append(
            f"the static loss scale {scale:g} is kept; unlike Apex, GradScaler skips a step "
            "whose gradients overflow"
        )


def arguments(call: ast.Call) -> tuple[dict[str, ast.expr], list[ast.expr]]:
    """Return the arguments of an initialize call by name, and the mappings that it unpacks (``**kwargs``)."""
    named = dict(zip(PARAMETERS, call.args, strict=False))
    unpacked: list[ast.expr] = []
    for keyword in call.keywords:
        if keyword.arg is None:
            unpacked.append(keyword.value)
        else:
            named[keyword.arg] = keyword.value
    return named, unpacked


def read(project: Project, site: Site, constant: Constant) -> Options:
    """Read the options of an initialize site; what native AMP cannot do becomes a remark.

    `constant` gives the constant that a name always stands for.
    """
    named, mappings = arguments(site.call)
    if any(isinstance(node, ast.Starred) for node in site.call.args) or "models" not in named:
        raise Cannot(
            "AMP909",
            *site.at,
            "the arguments of amp.initialize are unpacked here, and cannot be read",
            "write out the arguments of amp.initialize, then run again",
        )
    segment, unread = speller(site.module.tree), ""
    for mapping in mappings:
        held, missing = unpacked(project, site, mapping, PARAMETERS[2:])
        unread = unread if held is not None else segment(mapping)
        later: Entries = {key: at_run_time(mapping, key) for key in missing}
        named = {**named, **held} if held is not None else {**later, **named}
    wanted = named.get("opt_level")
    local = isinstance(wanted, ast.Name) and site.module.scopes.is_local(wanted)
    known = constant(wanted) or chosen(site.module, wanted) if local and wanted else None
    asked = known or wanted
    level, on = cast(asked, segment)
    switch = named.get("enabled")
    given = TRUE
    if switch is not None and not is_true(switch):
        given = FALSE if is_false(switch) else Condition(None, segment(switch))
    alone = level in ("O2", "O3") and _is_empty(named["models"])
    options = Options(named, FALSE if alone else conjunction([on, given]), given, level)
    options.always_scales = alone and level == "O2"
    options.levels = frozenset() if alone else _levels(project, site, wanted, level)
    scale = named.get("loss_scale")
    left = scale is not None and by_default(project, site, scale) is not None
    _loss_scale(options, scale and (constant(scale) or scale), segment, told=not left)
    _bounds(options, named, segment, constant)
    options.patches = conjunction([patched(asked, on, options.levels, segment), given])
    _cast_model_type(site, named.get("cast_model_type"), options.levels, segment)
    _remarks(options, named, options.levels)
    said = unchosen(project, site.module, site.call, wanted) if wanted is not None else None
    options.remarks += [said] if said is not None else []
    if unread:
        options.remarks.append(remark(unread))
    return options


def _cast_model_type(
    site: Site, cast: ast.expr | None, levels: frozenset[str], segment: Spell
) -> None:
    """Raise where a type is asked for that autocast with a GradScaler does not train in; O0 and O1 keep float32 anyhow."""
    if cast is None or is_none(cast) or _is_type(cast, "float16", "half"):
        return
    keeps = is_false(cast) or _is_type(cast, "float32", "float")
    if keeps and levels <= {"O0", "O1"}:
        return
    given = f"cast_model_type={segment(cast)}"
    if keeps:
        raise Cannot(
            "AMP903",
            *site.at,
            f"{given} has O2 and O3 train in float32, of which autocast would make float16",
            f"delete amp.initialize and amp.scale_loss, as float32 needs no loss scale; or delete {given}, then run again",
        )
    raise Cannot(
        "AMP903",
        *site.at,
        f"{given} trains in another type than float16, which GradScaler is not for",
        f"delete amp.initialize and amp.scale_loss, and run the forward passes under "
        f"torch.cuda.amp.autocast(dtype={segment(cast)}): bfloat16 needs no loss scale",
    )


def _levels(
    project: Project, site: Site, node: ast.expr | None, level: str | None
) -> frozenset[str]:
    """Return the opt_levels that one initialize may run with."""
    if level is not None:
        return frozenset({level})
    node = node and (by_default(project, site, node) or node)
    return possible(site.module, node) if node is not None else ALL


def _is_empty(node: ast.expr) -> bool:
    """Tell whether no model is given, which is all that O2 and O3 cast."""
    return isinstance(node, ast.List) and not node.elts


def _is_type(node: ast.expr, *names: str) -> bool:
    return (path(node) or "").rpartition(".")[2] in names


def _loss_scale(
    options: Options, node: ast.expr | None, segment: Spell, *, told: bool = True
) -> None:
    if node is None or is_none(node):
        return
    if isinstance(node, ast.Constant):
        if node.value == "dynamic":
            options.always_scales = True
            return
        try:
            scale = float(node.value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            options.remarks.append(
                f"loss_scale={segment(node)} is no loss scale, and Apex raises for it"
            )
            return
        if scale == 1.0:
            options.scaling = False
            return
        options.always_scales = True
        options.keep_scale(scale)
        return
    dynamic = dynamic_unless_one(node, segment)
    if dynamic is not None:
        options.always_scales = True
        options.switch = conjunction([dynamic, options.switch])
        return
    options.chosen_scale = node
    if not told:
        return
    off = ", and at O0 scales nothing" if "O0" in options.levels else ""
    options.remarks.append(
        f"loss_scale={segment(node)} is chosen at run time: a number stays the scale, but unlike Apex GradScaler "
        f"skips a step whose gradients overflow{off}"
    )


def _bounds(
    options: Options, named: dict[str, ast.expr], segment: Spell, constant: Constant
) -> None:
    if options.pinned is not None:
        return  # Apex keeps a static scale, whatever its bounds
    for key, name in (("min_loss_scale", "minimum"), ("max_loss_scale", "maximum")):
        node = named.get(key)
        if node is None or is_none(node):
            continue
        value = number(filled(node, constant))
        if value is not None:
            if (key == "max_loss_scale" and value >= 2**24) or value <= 0:
                continue
            setattr(options, name, repr(value))
        else:
            options.remarks.append(
                f"{key}={segment(node)} is dropped, as GradScaler has no bounds: call scaler.update(value) behind "
                "scaler.update() where the scale leaves them"
            )
    if options.minimum is not None and options.minimum == options.maximum:
        options.init_scale = options.minimum
        options.pinned = options.minimum if options.chosen_scale is None else None
        options.stays = options.chosen_scale is not None
        options.minimum = options.maximum = None
    if (
        options.maximum is not None
        and options.init_scale is None
        and float(options.maximum) < 65536
    ):
        options.init_scale = options.maximum


def _remarks(options: Options, named: dict[str, ast.expr], levels: frozenset[str]) -> None:
    if levels == {"O2"}:
        options.remarks.append(
            "opt_level O2 becomes autocast: weights stay fp32 (O2 kept fp16 weights with fp32 masters), and behind "
            "its block what the network gives may be fp16, which was fp32, so memory and the last bits of the losses change"
        )
    elif OF_GIVEN & levels and len(levels) > 1:
        high = " and ".join(sorted(OF_GIVEN & levels))
        options.remarks.append(
            f"opt_level is chosen at run time: {high} become{'s' * (' ' not in high)} autocast as well, with weights "
            "that stay fp32 instead of fp16, and outputs behind its block that may be fp16, which were fp32, so memory "
            "and the last bits of the losses change"
        )
    if "num_losses" in named:
        options.remarks.append(
            "num_losses is dropped: one GradScaler scales all losses, where Apex had a scale for each"
        )
    if "cast_model_outputs" in named and not is_none(named["cast_model_outputs"]):
        options.remarks.append(
            "cast_model_outputs is dropped: cast the outputs of the model where their type matters"
        )
