"""Packages that a training does not need, replaced by ones whose every name does nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from inspect import isclass, isfunction
from types import ModuleType
from typing import Any


class _Silent(type):
    """The class of every name of a stub: attributes are such names again, and empty as a collection."""

    def __getattr__(cls, name: str) -> Any:
        if _is_special(name):
            raise AttributeError(name)
        return made(name)

    def __bool__(cls) -> bool:
        return False

    def __len__(cls) -> int:
        return 0

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __enter__(cls) -> Any:
        return cls()

    def __exit__(cls, *error: object) -> None:
        return None


class Nothing(metaclass=_Silent):
    """A value that does nothing: can be called, entered, indexed, gone through, decorate and be a base class."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if _is_made(cls) and _decorates(args, kwargs) else super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        return None

    def __class_getitem__(cls, key: object) -> Any:
        return cls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if _decorates(args, kwargs) else Nothing()

    def __getattr__(self, name: str) -> Any:
        if _is_special(name):
            raise AttributeError(name)
        return Nothing()

    def __getitem__(self, key: object) -> Any:
        return Nothing()

    def __setitem__(self, key: object, value: object) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def made(name: str) -> _Silent:
    """Return a new class of that name, of which a program may derive its own."""
    return _Silent(name, (Nothing,), {"_amp_migrate_made": True})


def _decorates(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether a call is that of a decorator, given a function or class of the program alone."""
    alone = len(args) == 1 and not kwargs
    return alone and (isfunction(args[0]) or (isclass(args[0]) and not _is_made(args[0])))


def _is_made(kind: type) -> bool:
    return "_amp_migrate_made" in vars(kind)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class _Stub(ModuleType):
    """A module with every name, all of which do nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__all__: list[str] = []
        self.__version__ = "9999.0"  # new enough for whoever asks

    def __getattr__(self, name: str) -> Any:
        if _is_special(name):
            raise AttributeError(name)
        kind = made(name)
        setattr(self, name, kind)  # the same class whenever it is asked for
        return kind


class _StubLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


class Stubs(MetaPathFinder):
    """A finder for the modules `names` and whatever lies in them, installed or not."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def install(self) -> None:
        """Go first on ``sys.meta_path``."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a stub, or a package that is not there and that a stub lies in."""
        wanted = any(fullname == name or fullname.startswith(f"{name}.") for name in self.names)
        around = any(name.startswith(f"{fullname}.") for name in self.names)
        if wanted or (around and not self._is_elsewhere(fullname, path)):
            return ModuleSpec(fullname, _StubLoader(), is_package=True)
        return None

    def _is_elsewhere(self, fullname: str, path: Sequence[str] | None) -> bool:
        others = (finder for finder in sys.meta_path if finder is not self)
        return any(finder.find_spec(fullname, path) is not None for finder in others)
