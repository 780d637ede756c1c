"""Stand-ins for the torchvision data sets: same constructors and fields, learnable pictures, no files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

Pixels = np.ndarray[Any, Any]
Transform = Callable[[Any], Any] | None

_CIFAR10 = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]
_DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_CLOTHES = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]
_STL10 = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]


class SyntheticImages(Dataset[tuple[Any, Any]]):
    """Noise with a blob whose place and colour tell the class, so that the loss can fall.

    Items are (PIL image, int) before the transforms, as in torchvision, and `data` and `targets` may be
    cut or replaced as there. The test set has pictures of its own.
    """

    shape: tuple[int, ...] = (32, 32, 3)
    names: tuple[str, ...] = tuple(_CIFAR10)
    length = 2048
    test_length = 512

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        self.train = bool(train)
        self._begin(root, transform, target_transform, self.train)
        self.targets: Any = self._labels()
        self.data: Any = self._pictures()

    def _begin(self, root: Any, transform: Transform, target: Transform, train: bool) -> None:
        self.root = root
        self.transform = transform
        self.target_transform = target
        self.transforms = Both(self) if transform or target else None
        self.classes = list(self.names)
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self._first, self._count = (0, self.length) if train else (self.length, self.test_length)

    def _labels(self) -> list[int]:
        return [index * 7 % len(self.names) for index in range(self._count)]

    def _pictures(self) -> Pixels:
        made = [self._pixels(index, target) for index, target in enumerate(self._labels())]
        return np.stack(made)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(picture(self.data[index]), self.targets[index])

    def _transformed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def _pixels(self, index: int, target: int) -> Pixels:
        height, width = self.shape[:2]
        random = np.random.RandomState(self._first + index)
        pixels = random.randint(0, 96, size=self.shape)
        row = (target * 5) % (height - height // 4)
        column = (target * 11) % (width - width // 4)
        channel = (..., target % 3) if len(self.shape) == 3 else (...,)
        pixels[row : row + height // 4, column : column + width // 4][channel] += 140
        return pixels.astype(np.uint8)


class Both:
    """The transforms of a data set as one function of picture and target, as `transforms` of torchvision."""

    def __init__(self, owner: SyntheticImages) -> None:
        self.owner = owner

    def __call__(self, image: Any, target: Any) -> tuple[Any, Any]:
        """Return both, transformed."""
        return self.owner._transformed(image, target)


def picture(pixels: Any) -> Any:
    """Return pixels, an array or a tensor, as a PIL image."""
    from PIL import Image  # comes with torchvision

    return Image.fromarray(np.asarray(pixels))


class SyntheticHundred(SyntheticImages):
    """32 x 32 pictures in 100 classes."""

    names = tuple(f"class {number}" for number in range(100))


class SyntheticGrey(SyntheticImages):
    """28 x 28 grey pictures in 10 classes (MNIST and its kin): `data` and `targets` are tensors."""

    shape = (28, 28)
    names = tuple(f"{number} - {name}" for number, name in enumerate(_DIGITS))

    def _labels(self) -> Any:
        return torch.tensor(super()._labels())

    def _pictures(self) -> Any:
        made = [self._pixels(index, int(target)) for index, target in enumerate(self._labels())]
        return torch.from_numpy(np.stack(made))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(picture(self.data[index]), int(self.targets[index]))


class SyntheticClothes(SyntheticGrey):
    """FashionMNIST."""

    names = tuple(_CLOTHES)


class SyntheticLabelled(SyntheticImages):
    """Data sets with a `split`, `labels` in an array and the channels first (SVHN)."""

    names = tuple(str(number) for number in range(10))

    def __init__(
        self,
        root: Any = None,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        self.split = split
        self._begin(root, transform, target_transform, not split.startswith("test"))
        self.labels: Any = np.array(self._labels())
        self.data = np.moveaxis(self._pictures(), 3, 1)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = picture(np.moveaxis(self.data[index], 0, 2))
        return self._transformed(image, int(self.labels[index]))


class SyntheticFolds(SyntheticLabelled):
    """96 x 96 pictures with `folds` before the transforms (STL10)."""

    shape = (96, 96, 3)
    names = tuple(_STL10)

    def __init__(
        self,
        root: Any = None,
        split: str = "train",
        folds: int | None = None,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, split, transform, target_transform, download)
        self.folds = folds
        if split.startswith("unlabeled"):
            self.labels = np.full(len(self.data), -1)


class SyntheticFolder(SyntheticImages):
    """256 x 256 pictures in 1000 classes, each made when its file is asked for (ImageFolder)."""

    shape = (256, 256, 3)
    names = tuple(f"class {number}" for number in range(1000))

    def __init__(
        self,
        root: Any = None,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Callable[[str], Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        train = not Path(str(root)).name.startswith(("val", "test"))
        self._begin(root, transform, target_transform, train)
        self.loader = self._load
        self.samples = [(f"{index}.png", target) for index, target in enumerate(self._labels())]
        self.imgs = self.samples
        self.targets = [target for _, target in self.samples]

    def _load(self, path: str) -> Any:
        index = int(Path(path).stem)
        return picture(self._pixels(index, self._known[index]))

    @cached_property
    def _known(self) -> list[int]:
        return self._labels()

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)


class SyntheticImageNet(SyntheticFolder):
    """ImageNet, whose second argument is the split."""

    def __init__(self, root: Any = None, split: str = "train", **kwargs: Any) -> None:
        super().__init__(root if split == "train" else "val", **kwargs)
        self.root, self.split = root, split


STAND_INS: dict[str, type[SyntheticImages]] = {
    "CIFAR10": SyntheticImages,
    "CIFAR100": SyntheticHundred,
    "SVHN": SyntheticLabelled,
    "STL10": SyntheticFolds,
    "MNIST": SyntheticGrey,
    "FashionMNIST": SyntheticClothes,
    "KMNIST": SyntheticGrey,
    "QMNIST": SyntheticGrey,
    "ImageNet": SyntheticImageNet,
    "ImageFolder": SyntheticFolder,
}
