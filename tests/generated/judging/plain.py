"""Generated programs with Apex taken out: plain FP32 trainings, and what `enable` makes of them."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable
from dataclasses import replace

from amp_migrate.enable.enabling import Choices
from amp_migrate.enable.run import run_texts
from amp_migrate.settings import Settings
from generated.choices.features import OPTIONS
from generated.choices.sets import Features
from generated.choices.settle import settled
from generated.judging.check import Verdict, first_difference
from generated.judging.execute import Record, Run, records
from generated.refactor.judging.variant import MOST, applied
from generated.refactor.project import Project
from generated.refactor.refactoring import FAMILIES, catalogue
from generated.written.program import Program, build

_WITHOUT = {
    "imports": "plain",
    "guard": "none",
    "level": "O1",
    "scale_argument": "none",
    "other_arguments": "none",
    "mistake": "none",
    "loss_id": "no",
    "overflow": "none",
    "in_block": "no",
    "format": "plain",
}
_LAYOUTS = frozenset({"amp_argument", "args_amp"})


def plain(seed: int) -> Program:
    """Return the FP32 program of a seed."""
    rng = random.Random(seed)
    drawn = {name: rng.choices(list(o), list(o.values()))[0] for name, o in OPTIONS.items()}
    program = build(settled({**drawn, **_WITHOUT, **_apart(drawn)}))
    files = {name: _plain(data) for name, data in program.files.items()}
    return replace(program, files=files, twin={}, overflow=0)


def refactored(seed: int) -> Program:
    """Return the FP32 program of a seed in other clothes: under one to five refactorings."""
    rng = random.Random(f"refactored {seed}")
    program = plain(seed)
    texts = {name: data.decode() for name, data in program.files.items()}
    project = Project(texts, program.entry)
    wanted, done = rng.randint(1, MOST), 0
    for _ in range(4 * MOST):
        if done == wanted:
            break
        family = rng.choice(FAMILIES)
        own = sorted(r.name for r in catalogue().values() if r.family == family)
        changed = applied(project, (rng.choice(own), rng.randrange(1_000_000)))
        if changed is not None:
            project, done = changed, done + 1
    files = {name: text.encode() for name, text in project.files.items()}
    return replace(program, files=files, entry=project.entry)


def _apart(drawn: Features) -> Features:
    """Return what stands in place of features that Apex alone has."""
    layout = "train" if drawn["layout"] in _LAYOUTS else drawn["layout"]
    logging = "loss" if drawn["logging"] == "scale" else drawn["logging"]
    return {"layout": layout, "logging": logging}


def _plain(data: bytes) -> bytes:
    text = data.decode().lstrip("\ufeff")
    if "amp" not in text:
        return data
    tree = ast.fix_missing_locations(_Plain().visit(ast.parse(text)))
    return (ast.unparse(tree) + "\n").encode()


class _Plain(ast.NodeTransformer):
    """Takes out imports, initialize, scale_loss and the state of Apex, and nothing else."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if (node.module or "").startswith("apex") else node

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        item = node.items[0]
        call = item.context_expr
        if not _is(call, "scale_loss"):
            return node
        assert isinstance(call, ast.Call) and isinstance(item.optional_vars, ast.Name)
        return [_Renamed(item.optional_vars.id, call.args[0]).visit(s) for s in node.body]

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        self.generic_visit(node)
        if _is(node.value, "state_dict"):
            return None
        if not _is(node.value, "initialize"):
            return node
        given = _given(node.value)
        same = ast.unparse(node.targets[0]).strip("()[]") == ast.unparse(given).strip("()[]")
        flat = ast.unparse(node.targets[0]).translate(_BRACKETS)
        return (
            None
            if same or flat == ast.unparse(given).translate(_BRACKETS)
            else replace_value(node, given)
        )

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        self.generic_visit(node)
        gone = ("initialize", "load_state_dict")
        return None if any(_is(node.value, name) for name in gone) else node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and _is(node.value, "initialize"):
            node.value = _given(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not _is(node, "master_params"):
            return node
        text = f"[p for group in {ast.unparse(node.args[0])}.param_groups for p in group['params']]"
        return ast.parse(text, mode="eval").body

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        pairs = [
            (k, v) for k, v in zip(node.keys, node.values, strict=True) if not _is(v, "state_dict")
        ]
        node.keys, node.values = [k for k, _ in pairs], [v for _, v in pairs]
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(getattr(node, "body", None), list) and not isinstance(node, ast.Module):
            if not node.body:  # type: ignore[attr-defined]
                node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node


_BRACKETS = str.maketrans("", "", "()[]")


def replace_value(node: ast.Assign, value: ast.expr) -> ast.Assign:
    """Return an assignment of another value."""
    return ast.Assign(node.targets, value, lineno=node.lineno)


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name = name
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._value if node.id == self._name else node


def _is(node: ast.expr | None, method: str) -> bool:
    """Tell whether an expression calls something of `amp`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == method and ast.unparse(node.func.value) == "amp"


def _given(call: ast.expr) -> ast.expr:
    assert isinstance(call, ast.Call)
    named = {k.arg: k.value for k in call.keywords}
    models = call.args[0] if call.args else named["models"]
    optimizers = call.args[1] if len(call.args) > 1 else named["optimizers"]
    return ast.Tuple([models, optimizers], ast.Load())


def enabled(programs: Iterable[Program], choices: Choices) -> list[Verdict]:
    """Add AMP to FP32 programs and compare what both train: "enabled", "left" or "failed"."""
    programs = list(programs)
    verdicts = [_enabled(program, choices) for program in programs]
    made = [n for n, verdict in enumerate(verdicts) if verdict.outcome == "enabled"]
    sides = records([(programs[n].files, verdicts[n].after or {}, _run(programs[n])) for n in made])
    for n, (before, after) in zip(made, sides, strict=bool(made)):
        why = _difference(before, after, f"torch.{choices.dtype}")
        if why:
            verdicts[n] = Verdict("failed", why, verdicts[n].after)
    return verdicts


def _run(program: Program) -> Run:
    return Run(program.entry, program.runs, 0, ("logic", "casts"))


def _enabled(program: Program, choices: Choices) -> Verdict:
    try:
        report = run_texts(program.files, Settings(api="torch.cuda.amp"), choices)
    except Exception as error:  # it must not raise, whatever it is
        return Verdict("failed", f"raised {type(error).__name__}: {error}")
    after = {**program.files, **{change.path: change.after for change in report.changes}}
    if report.problems:
        return Verdict("failed", report.problems[0].reason, after)
    if not report.changes:
        return Verdict(
            "left",
            next((f"{f.code}: {f.message}" for f in report.findings), "nothing is found"),
            after,
        )
    return Verdict("enabled", "", after)


def _difference(before: dict[str, Record], after: dict[str, Record], dtype: str) -> str:
    if not any(event[0] == "step" for event in before.get("logic", ())):
        return "generator: the FP32 program never steps"
    found = first_difference(
        _steps(before["logic"]), _steps(after.get("logic", [("ended", "a crash")]))
    )
    if found:
        return f"logic: {found}"
    ended = [e[1] for e in after.get("casts", [("ended", "a crash")]) if e[0] == "ended" and e[1]]
    if ended:
        return f"casts: the program ends with {ended[0]}"
    types = {e[1] for e in after["casts"] if e[0] == "Linear"}
    return "" if types <= {dtype} else f"casts: a layer gives {sorted(map(str, types))}"


def _steps(record: Record) -> Record:
    return [event for event in record if event[0] != "scale"]
