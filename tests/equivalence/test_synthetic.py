"""The stand-ins have the fields of torchvision's data sets, and programs that use these fields run."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from amp_migrate.equivalence.capture.standins.synthetic import STAND_INS, SyntheticImages

SHAPES = {
    "CIFAR10": (2048, 32, 32, 3),
    "CIFAR100": (2048, 32, 32, 3),
    "SVHN": (2048, 3, 32, 32),
    "STL10": (2048, 3, 96, 96),
    "MNIST": (2048, 28, 28),
    "FashionMNIST": (2048, 28, 28),
}


def grey(image: object) -> object:
    """A transform that takes a PIL image, as torchvision's do."""
    return np.asarray(image.convert("L"))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", SHAPES)
def test_data_and_targets_have_the_types_of_torchvision(name: str) -> None:
    """Arrays, tensors and lists where torchvision has them; the classes by their names."""
    made = STAND_INS[name]("root")

    assert tuple(made.data.shape) == SHAPES[name]
    assert isinstance(made.data, torch.Tensor if "MNIST" in name else np.ndarray)
    targets = made.labels if name in ("SVHN", "STL10") else made.targets  # type: ignore[attr-defined]
    kind = (
        torch.Tensor
        if "MNIST" in name
        else np.ndarray
        if targets is not made.__dict__.get("targets")
        else list
    )
    assert isinstance(targets, kind) and len(targets) == len(made) == 2048
    assert made.class_to_idx[made.classes[3]] == 3
    assert {int(target) for target in targets} == set(range(len(made.classes)))


@pytest.mark.parametrize("name", STAND_INS)
def test_transforms_are_applied(name: str) -> None:
    """Given by keyword or set later, to picture and target; pictures are PIL images before."""
    made = STAND_INS[name]("root", transform=grey, target_transform=str)
    image, target = made[5]

    assert (image.ndim, target) == (2, str(35 % len(made.classes)))
    assert (
        made.transforms is not None and made.transforms(made.__class__("root")[5][0], 3)[1] == "3"
    )
    made.transform = made.target_transform = None
    image, target = made[5]
    assert (image.size[0], target) == (made.shape[1], 35 % len(made.classes))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("CIFAR10", ("root", True, grey, str, True)),
        ("MNIST", ("root", False, grey, str)),
        ("SVHN", ("root", "extra", grey, str)),
        ("STL10", ("root", "train", None, grey, str)),
        ("ImageFolder", ("root", grey, str)),
    ],
)
def test_arguments_stand_in_the_order_of_torchvision(
    name: str, arguments: tuple[object, ...]
) -> None:
    """Positional arguments mean what they mean there."""
    image, target = STAND_INS[name](*arguments)[0]  # type: ignore[arg-type]

    assert (image.ndim, target) == (2, "0")


def test_cut_data_are_what_is_trained_on() -> None:
    """Programs cut and relabel the fields; items and length follow."""
    made = SyntheticImages("root")
    made.data, made.targets = made.data[10:20], [1] * 10
    whole = SyntheticImages("root")

    assert (len(made), made[0][1]) == (10, 1)
    assert np.array_equal(np.asarray(made[0][0]), whole.data[10])


def test_train_and_test_are_not_the_same() -> None:
    """The test set is smaller and has its own pictures; both are the same in every run."""
    train, test = SyntheticImages("root"), SyntheticImages("root", train=False)

    assert (len(test), np.array_equal(train.data[:512], test.data)) == (512, False)
    assert np.array_equal(test.data, SyntheticImages("root", train=False).data)


def test_a_folder_has_samples_and_a_loader() -> None:
    """Subclasses of ImageFolder load `imgs` by themselves; validation folders have their own pictures."""
    train, valid = STAND_INS["ImageFolder"]("data/train"), STAND_INS["ImageFolder"]("data/val")
    path, target = train.imgs[7]  # type: ignore[attr-defined]
    image = train.loader(path)  # type: ignore[attr-defined]

    assert (target, image.size) == (train.targets[7], (256, 256))
    assert np.array_equal(np.asarray(image), np.asarray(train[7][0]))
    assert not np.array_equal(np.asarray(image), np.asarray(valid[7][0]))


def test_workers_can_take_them() -> None:
    """Data sets travel to the workers of a DataLoader."""
    made = pickle.loads(pickle.dumps(STAND_INS["ImageFolder"]("root")))

    assert made[3][1] == 21
