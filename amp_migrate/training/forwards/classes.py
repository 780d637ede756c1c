"""Which classes are networks: modules of torch, and classes derived from those of libraries, with a forward of their own."""

from __future__ import annotations

from amp_migrate.project import Class, Function

_OTHERS = ("object", "abc.ABC", "torch.autograd.")


def is_network_class(cls: Class) -> bool:
    """Tell whether the objects of a class are networks, as far as that is seen: what a base out of sight is, its `forward` tells."""
    bases = cls.externals()
    if "torch.nn.Module" in bases:
        return True
    known = all(base.startswith(_OTHERS) for base in bases)
    return not known and cls.method("forward") is not None


def is_of_network(function: Function) -> bool:
    """Tell whether a function is a method of such a class."""
    return function.cls is not None and is_network_class(function.cls)
