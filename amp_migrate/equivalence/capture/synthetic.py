"""Stand-ins for the torchvision data sets: same constructors, learnable pictures, no files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch.utils.data import Dataset


class SyntheticImages(Dataset[tuple[Any, Any]]):
    """Noise with a blob whose place and colour tell the class, so that the loss can fall.

    Items are (PIL image, int) before the transforms, as in torchvision.
    """

    shape: tuple[int, ...] = (32, 32, 3)
    num_classes = 10
    length = 2048

    def __init__(
        self,
        root: Any = None,
        *args: Any,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.root = root
        # The positional places of torchvision: (root, train or split, transform, ...).
        callables = [value for value in args if callable(value)]
        self.transform = transform or (callables[0] if callables else None)
        self.target_transform = target_transform
        self.classes = [f"class {number}" for number in range(self.num_classes)]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.targets = [index * 7 % self.num_classes for index in range(self.length)]
        self.samples = [(f"{index}.png", target) for index, target in enumerate(self.targets)]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        from PIL import Image  # comes with torchvision

        target: Any = self.targets[index]
        image: Any = Image.fromarray(self._pixels(index, target))
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def _pixels(self, index: int, target: int) -> np.ndarray[Any, Any]:
        height, width = self.shape[:2]
        random = np.random.RandomState(index)
        pixels = random.randint(0, 96, size=self.shape)
        row = (target * 5) % (height - height // 4)
        column = (target * 11) % (width - width // 4)
        channel = (..., target % 3) if len(self.shape) == 3 else (...,)
        pixels[row : row + height // 4, column : column + width // 4][channel] += 140
        return pixels.astype(np.uint8)


class SyntheticGrey(SyntheticImages):
    """28 x 28 grey pictures in 10 classes (MNIST and its kin)."""

    shape = (28, 28)


class SyntheticHundred(SyntheticImages):
    """32 x 32 pictures in 100 classes."""

    num_classes = 100


class SyntheticLarge(SyntheticImages):
    """256 x 256 pictures in 1000 classes."""

    shape = (256, 256, 3)
    num_classes = 1000


STAND_INS: dict[str, type[SyntheticImages]] = {
    "CIFAR10": SyntheticImages,
    "CIFAR100": SyntheticHundred,
    "SVHN": SyntheticImages,
    "STL10": SyntheticImages,
    "MNIST": SyntheticGrey,
    "FashionMNIST": SyntheticGrey,
    "KMNIST": SyntheticGrey,
    "QMNIST": SyntheticGrey,
    "ImageNet": SyntheticLarge,
    "ImageFolder": SyntheticLarge,
}
