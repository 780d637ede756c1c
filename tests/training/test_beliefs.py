"""What is believed of the names of callees outside the project."""

from __future__ import annotations

import pytest

from amp_migrate.training.beliefs import gives_tensor


@pytest.mark.parametrize(
    "name",
    [
        "torch.cat",
        "torch.zeros",
        "torch.nn.functional.interpolate",
        "numpy.stack",
        "cv2.resize",
        "PIL.Image.open",
    ],
)
def test_tensors_arrays_and_images_hold_no_objects(name: str) -> None:
    """Code that is given what these make can come to no optimizer by it."""
    assert gives_tensor(name)


@pytest.mark.parametrize(
    "name",
    [
        "torch.load",
        "torch.compile",
        "torch.nn.Linear",
        "torch.optim.SGD",
        "torch.utils.data.DataLoader",
        "types.SimpleNamespace",
        "argparse.Namespace",
    ],
)
def test_what_may_hold_objects(name: str) -> None:
    """Networks, optimizers, loaders and namespaces, and what a file held, may lead to one."""
    assert not gives_tensor(name)
