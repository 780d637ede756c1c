"""The decorators that take the place of `amp.float_function` and `amp.half_function`, written into a file."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, replace

from amp_migrate.facts.paths import bottom
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.values.forms import is_module_itself


class Inside(enum.Enum):
    """What a function runs: Python, which autocast reaches as Apex did, or a kernel, which Apex did not reach.

    A `backward` runs where autocast is off, as it was in the `forward` of its class, where Apex cast as well.
    """

    PYTHON = "function"
    KERNEL = "kernel"
    FORWARD = "forward"
    BACKWARD = "backward"


_CUSTOM = {Inside.FORWARD: "custom_fwd", Inside.BACKWARD: "custom_bwd"}
_COMPOSED = {"multi_head_attention_forward", "scaled_dot_product_attention"}
TORCH = ("torch", "torch.nn.functional", "torch.Tensor")
_TEXT = '''\
def {name}(function):
    """Give a {noun} its {old} tensors in {new} while autocast is on."""

    def is_floating(value):
        if isinstance(value, (list, tuple)):
            return all(is_floating(v) for v in value)
        return torch.is_tensor(value) and value.is_floating_point()

    def cast(value):
        if isinstance(value, (list, tuple)):
            return type(value)([cast(v) for v in value])
        return value.{method}() if {needed} else value

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not torch.is_autocast_enabled():
            return function(*args, **kwargs)
        args = [cast(a) if is_floating(a) else a for a in args]
        kwargs = {{k: cast(v) if is_floating(v) else v for k, v in kwargs.items()}}
{call}

    return wrapper'''
_METHOD = '''\
def {name}(function):
    """Give the {noun} of an autograd.Function its {old} tensors in {new} while autocast is on."""
    return {given}'''
_PLAIN = "        return function(*args, **kwargs)"
_SHELTERED = """\
        with {autocast}:
            return function(*args, **kwargs)"""


@dataclass(frozen=True, slots=True)
class Helper:
    """A decorator that casts arguments: to fp32 or fp16, of a Python function or of a kernel."""

    half: bool
    inside: Inside

    @property
    def name(self) -> str:
        """The name it is written under."""
        return f"{'half' if self.half else 'float'}_{self.inside.value}"

    @property
    def base(self) -> Helper:
        """The decorator that casts, which that of a method of an ``autograd.Function`` is made of."""
        method = self.inside in _CUSTOM
        return replace(self, inside=Inside.PYTHON) if method else self

    def text(self, spelling: Spelling) -> str:
        """Return its definition, which needs its base."""
        words = {
            "name": self.name,
            "noun": self.inside.value,
            "old": "fp32" if self.half else "fp16",
            "new": "fp16" if self.half else "fp32",
        }
        if self.inside in _CUSTOM:
            given = spelling.of_function(_CUSTOM[self.inside], f"{self.base.name}(function)")
            return _METHOD.format(**words, given=given)
        sheltered = _SHELTERED.format(autocast=spelling.autocast("False"))
        return _TEXT.format(
            **words,
            method="half" if self.half else "float",
            needed=f"value.is_cuda and value.dtype == torch.float{32 if self.half else 16}"
            if self.half
            else "value.dtype == torch.float16",
            call=sheltered if self.inside is Inside.KERNEL else _PLAIN,
        )


def inside(project: Project, module: Module, node: ast.expr) -> Inside | None:
    """Tell what a function runs that an expression names; None where that cannot be seen."""
    if isinstance(node, ast.Lambda):
        return Inside.PYTHON
    meaning = project.resolve(module, node)
    if isinstance(meaning, Function):
        return None if is_of_autograd(meaning) else Inside.PYTHON
    if isinstance(node, ast.Attribute) and node.attr == "apply":
        cls = project.resolve(module, node.value)
        if isinstance(cls, Class) and _is_autograd(cls):
            return Inside.PYTHON
    if isinstance(meaning, str):
        owner, _, name = meaning.rpartition(".")
        return of_torch(owner, name)
    return Inside.KERNEL if _is_compiled(project, module, node) else None


def member_inside(project: Project, module: Module, owner: ast.expr, name: str) -> Inside | None:
    """Tell what the function `name` of a module (or class) runs; None where that cannot be seen."""
    meaning = project.resolve(module, owner)
    if isinstance(meaning, str):
        return of_torch(meaning, name)
    source = module if _is_this_module(module, owner) else meaning
    found = project.lookup.member(source, name) if isinstance(source, Module | Class) else ()
    if len(found) != 1 or not isinstance(found[0], Function) or is_of_autograd(found[0]):
        return None
    return Inside.PYTHON


def of_torch(owner: str, name: str) -> Inside | None:
    """Tell what a function of a library runs, by its dotted name; None where that cannot be seen."""
    return Inside.KERNEL if owner in TORCH and name not in _COMPOSED else None


def is_of_autograd(function: Function) -> bool:
    """Tell whether a function is the `forward` or `backward` of an `autograd.Function`."""
    return function.cls is not None and _is_autograd(function.cls)


def _is_autograd(cls: Class) -> bool:
    return any(
        base.rpartition(".")[2] in ("Function", "InplaceFunction") for base in cls.externals()
    )


def _is_compiled(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether a name comes from an extension module: one that a package of the project has no file for."""
    node = bottom(node)
    if not isinstance(node, ast.Name):
        return False
    bindings = module.scopes.bound(node)
    if len(bindings) != 1 or not isinstance(bindings[0], ast.alias):
        return False
    alias = bindings[0]
    statement = module.tree.parents[alias]
    if not isinstance(statement, ast.ImportFrom):
        return False
    package = project.lookup.source(module, statement)
    if package is None or project.lookup.imported(module, alias):
        return False
    if not isinstance(package, Module):
        return True
    scopes = package.scopes
    return not scopes.stars and not scopes.bindings(package.tree.module, alias.name)


def _is_this_module(module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is ``sys.modules[__name__]``, or a name for it."""
    if isinstance(node, ast.Name):
        value = module.scopes.only_value(node)
        return (
            value is not None and not isinstance(value, ast.Name) and _is_this_module(module, value)
        )
    return is_module_itself(node)
