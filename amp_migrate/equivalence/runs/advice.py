"""What to do about a program that does not run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.runs.records import Crash
from amp_migrate.equivalence.runs.workspace import IGNORED

# Modules that PyPI has under another name.
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "git": "GitPython",
    "google.protobuf": "protobuf",
    "mpl_toolkits": "matplotlib",
    "PIL": "pillow",
    "pkg_resources": "'setuptools<81'",
    "pytorch_lightning": "pytorch-lightning",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
_OF_TORCH = ("torch", "torchvision", "torchaudio")
_CPU_INDEX = "--index-url https://download.pytorch.org/whl/cpu"
_STAND_INS = (
    "torchvision's data sets have stand-ins: add --synthetic-data; --link DIR keeps a large data folder out of the "
    "copy, and --shim stands in for other data"
)
_NO_STAND_IN = (
    "--synthetic-data has no stand-in for this data set of torchvision: --shim stands in for it, --link DIR keeps a "
    "large data folder out of the copy"
)
_DATA = (
    "if these are data that lie outside the project, the path must be absolute; --synthetic-data or --shim stand in "
    "for data that are not there"
)


_ALL_OUTPUT = (
    "--show-output shows all that the program prints; what the training itself does not need (a logger, plots) can be "
    "left out with --stub MODULE, or replaced with --shim MODULE:NAME=FILE:OBJECT"
)
_ONE_WAY = (
    "this option chose Apex, beside which the program has a native way (AMP114): choose that, in which the migration "
    "changes nothing"
)


def advice(crash: Crash, options: Options) -> str:
    """Return what to do about `crash`, in one or two sentences."""
    if crash.missing:
        return _install(crash, options)
    if "NVIDIA Apex AMP no longer exists" in crash.error:
        return _ONE_WAY
    if crash.absent:
        module, _, name = crash.absent.partition(":")
        return (
            f"the {module} that is installed here has no {name}: install the release that the program was written for, "
            f"or stand in for it with --shim {crash.absent}=FILE:OBJECT"
        )
    if any("torchvision/datasets" in folder for folder in crash.modules):
        return _NO_STAND_IN if options.synthetic_data else _STAND_INS
    if crash.error.partition(":")[0] in ("FileNotFoundError", "NotADirectoryError"):
        return _folder(crash, options) + _DATA
    if options.device == "cuda":
        return f"make `{shlex.join(options.command)}` run by itself first; --show-output shows all that it prints"
    return _ALL_OUTPUT


def _folder(crash: Crash, options: Options) -> str:
    """Return what to do about a folder that is not in the project; empty where the file alone is missing."""
    named = re.search(r"'([^']+)'$", crash.error)
    parent = Path(named[1] if named else "").parent
    started = (options.before or options.project) / options.inside
    if parent.is_absolute() or (started / parent).is_dir():
        return ""
    return f"{parent} is no folder of the project: if the program writes there, make it; "


def _install(crash: Crash, options: Options) -> str:
    top = crash.missing.partition(".")[0]
    if top == "apex":
        return (
            f"the stand-in for Apex has no {crash.missing}: run this where NVIDIA Apex is installed, or with "
            "--shim; PyPI's apex is another project"
        )
    home = next(_homes(options.before or options.project, top), None)
    if home is not None:
        return f"{crash.missing} is in {home or '.'} of the project: start there, or put it into PYTHONPATH"
    package = _PACKAGES.get(crash.missing, _PACKAGES.get(top, top))
    wheels = f" {_CPU_INDEX}" if top in _OF_TORCH and options.device == "cpu" else ""
    install = f"{shlex.quote(crash.executable)} -m pip install {package}{wheels}"
    if top in _OF_TORCH:
        return install
    writer = any("torch/utils/tensorboard" in folder for folder in crash.modules)
    idle = "torch.utils.tensorboard" if writer else top
    return f"{install}; or --stub {idle}, if the training needs nothing of it (a logger, plots)"


def _homes(project: Path, name: str) -> Iterator[str]:
    """Yield the folders of the project that hold a module of this name, nearest first."""
    folders = [project]
    while folders:
        folder = folders.pop(0)
        inner = sorted(p for p in folder.iterdir() if p.is_dir() and p.name not in IGNORED)
        if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
            yield folder.relative_to(project).as_posix()
        folders += [place for place in inner if not place.is_symlink()]
