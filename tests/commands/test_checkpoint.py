"""Apex checkpoints as GradScaler checkpoints: what is written goes on where Apex stopped."""

from __future__ import annotations

import argparse
import sys
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from amp_migrate.checkpoint import ConversionError, LossScale, Settings, convert, scaler_state
from amp_migrate.commands.cli import main


def apex_state(*scalers: tuple[float, int]) -> dict[str, Any]:
    return {
        f"loss_scaler{number}": {"loss_scale": scale, "unskipped": unskipped}
        for number, (scale, unskipped) in enumerate(scalers)
    }


def saved(folder: Path, **content: Any) -> Path:
    torch.save(content, folder / "old.pt")
    return folder / "old.pt"


def converted(old: Path, **options: Any) -> Any:
    new = old.with_name("new.pt")
    convert(old, new, **{"key": "amp", "new_key": "scaler", **options})
    return torch.load(new, weights_only=True)


@pytest.mark.parametrize(
    ("scales", "micro_batches", "scale", "interval", "tracker"),
    [
        ([LossScale(65536.0, 123)], 1, 65536.0, 2000, 123),
        ([LossScale(128.0, 123_456)], 1, 128.0, 2000, 1456),
        ([LossScale(65536.0, 2000)], 1, 65536.0, 2000, 0),
        ([LossScale(65536.0, 1999)], 4, 65536.0, 500, 499),
        ([LossScale(65536.0, 1999)], 3, 65536.0, 666, 665),
        ([LossScale(65536.0, 7)], 5000, 65536.0, 1, 0),
        ([LossScale(512.0, 1), LossScale(64.0, 9), LossScale(64.0, 5)], 1, 64.0, 2000, 5),
    ],
)
def test_state_of_the_scaler(
    scales: list[LossScale], micro_batches: int, scale: float, interval: int, tracker: int
) -> None:
    state = scaler_state(scales, Settings(micro_batches=micro_batches))

    assert state["scale"] == scale
    assert (state["growth_interval"], state["_growth_tracker"]) == (interval, tracker)


@pytest.mark.parametrize("unskipped", [1960, 1999, 3999, 123_970])
@pytest.mark.parametrize("micro_batches", [1, 3, 4, 7])
def test_scale_grows_within_one_interval(unskipped: int, micro_batches: int) -> None:
    """A count that never meets the interval would keep the scale where it is for ever."""
    scaler = torch.amp.GradScaler("cpu")
    settings = Settings(micro_batches=micro_batches)
    scaler.load_state_dict(scaler_state([LossScale(1024.0, unskipped)], settings))
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    steps = 0
    while steps <= 2000 // micro_batches and (steps == 0 or scaler.get_scale() == 1024.0):
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        steps += 1

    assert scaler.get_scale() == 2048.0
    expected = 2000 // micro_batches - unskipped % 2000 // micro_batches
    assert steps == max(1, expected)


def test_static_scale_stays_through_growth_and_overflow() -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.load_state_dict(scaler_state([LossScale(384.0, 4321)], Settings(static=True)))
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    for step in range(2100):
        optimizer.zero_grad()
        scaler.scale(weight.sum() * (float("inf") if step % 400 == 7 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()

    assert scaler.get_scale() == 384.0


@pytest.mark.parametrize(("micro_batches", "interval", "tracker"), [(1, 300, 65), (4, 75, 16)])
def test_growth_interval_of_the_program(micro_batches: int, interval: int, tracker: int) -> None:
    settings = Settings(growth_interval=300, micro_batches=micro_batches)

    state = scaler_state([LossScale(1024.0, 965)], settings)

    assert (state["growth_interval"], state["_growth_tracker"]) == (interval, tracker)


def test_new_key_takes_the_place_of_the_old_and_the_rest_stays(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    old = saved(
        tmp_path,
        epoch=3,
        amp=apex_state((1024.0, 17)),
        model=model.state_dict(),
        args=argparse.Namespace(lr=0.1),
    )

    convert(old, tmp_path / "new.pt", "amp", "scaler")
    with torch.serialization.safe_globals([argparse.Namespace]):
        new = torch.load(tmp_path / "new.pt", weights_only=True)

    assert list(new) == ["epoch", "scaler", "model", "args"]
    assert new["scaler"]["scale"] == 1024.0
    assert isinstance(new["model"], OrderedDict)
    assert all(torch.equal(new["model"][name], item) for name, item in model.state_dict().items())
    assert new["args"].lr == 0.1


def test_file_can_be_converted_in_place(tmp_path: Path) -> None:
    old = saved(tmp_path, amp=apex_state((1024.0, 17)))

    convert(old, old, "amp", "amp")

    assert torch.load(old, weights_only=True)["amp"]["_growth_tracker"] == 17
    assert [file.name for file in tmp_path.iterdir()] == ["old.pt"]


def test_state_saved_without_amp_stays_none(tmp_path: Path) -> None:
    """A program that saves `amp.state_dict() if fp16 else None` reads the new key in both cases."""
    old = saved(tmp_path, epoch=3, amp=None)

    assert converted(old) == {"epoch": 3, "scaler": None}


def test_disabled_amp_becomes_a_disabled_scaler(tmp_path: Path) -> None:
    new = converted(saved(tmp_path, amp={}))

    torch.amp.GradScaler("cpu", enabled=False).load_state_dict(new["scaler"])
    assert new["scaler"] == {}


def pickled(folder: Path, monkeypatch: pytest.MonkeyPatch, **kept: object) -> Path:
    """Return a checkpoint of FP16_Optimizer, written while an Apex was installed."""

    class LossScaler:
        pass

    LossScaler.__module__, LossScaler.__qualname__ = "apex.amp.scaler", "LossScaler"
    modules = {name: ModuleType(name) for name in ("apex", "apex.amp", "apex.amp.scaler")}
    vars(modules["apex.amp.scaler"])["LossScaler"] = LossScaler
    scaler = LossScaler()
    vars(scaler).update(_loss_scale=512.0, _unskipped=4, **kept)
    optimizer = {"loss_scaler": scaler, "overflow": False, "optimizer_state_dict": {"state": {}}}
    with monkeypatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        return saved(folder, optimizer=optimizer, model=torch.ones(2))


@pytest.fixture
def pickled_scaler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return pickled(tmp_path, monkeypatch, dynamic=True)


@pytest.mark.parametrize(
    ("kept", "interval"),
    [
        ({"dynamic": False, "_scale_seq_len": 2000}, 2**31 - 1),
        ({"dynamic": True, "_scale_seq_len": 500}, 500),
    ],
)
def test_pickled_loss_scaler_says_how_its_scale_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any], interval: int
) -> None:
    new = converted(pickled(tmp_path, monkeypatch, **kept), key="optimizer")

    assert new["scaler"]["growth_interval"] == interval


@pytest.mark.parametrize("pickles", [False, True])
@pytest.mark.parametrize("key", ["amp", "optimizer"])
def test_pickled_loss_scaler_is_read_without_apex(
    pickled_scaler: Path, pickles: bool, key: str
) -> None:
    new = converted(pickled_scaler, key=key, pickles=pickles)

    assert new["scaler"]["scale"] == 512.0
    assert new["scaler"]["_growth_tracker"] == 4
    assert new["optimizer"]["loss_scaler"] == {"loss_scale": 512.0, "unskipped": 4}
    assert torch.equal(new["model"], torch.ones(2))
    assert "apex" not in sys.modules


class Custom:
    pass


def test_other_objects_need_permission(tmp_path: Path) -> None:
    old = saved(tmp_path, amp=apex_state((2.0, 0)), extra=Custom())

    with pytest.raises(ConversionError, match=r"Custom, more than .* --allow-pickle"):
        convert(old, tmp_path / "new.pt", "amp", "scaler")
    assert not (tmp_path / "new.pt").exists()

    convert(old, tmp_path / "new.pt", "amp", "scaler", pickles=True)
    assert torch.load(tmp_path / "new.pt", weights_only=False)["scaler"]["scale"] == 2.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model": 1}, "has no 'amp'; it has 'model'"),
        ({"amp": 3}, "'amp' is not the state of Apex amp"),
        ({"amp": {"scale": {}}}, "'amp' is not the state of Apex amp; it has"),
        ({"amp": {"loss_scaler0": {"loss_scale": 1.0}}}, "without scale or count"),
        ({"amp": apex_state((float("inf"), 1))}, "the loss scale is inf"),
        ({"amp": apex_state((0.0, 1))}, "the loss scale is 0.0"),
        ({"amp": apex_state((2.0, 1)), "scaler": {}}, "has 'scaler' already"),
    ],
)
def test_what_cannot_be_converted_is_said(
    tmp_path: Path, content: dict[str, Any], message: str
) -> None:
    old = saved(tmp_path, **content)

    with pytest.raises(ConversionError) as caught:
        convert(old, tmp_path / "new.pt", "amp", "scaler")

    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"no checkpoint", b"PK\x03\x04"])
def test_file_that_is_no_checkpoint_is_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "old.pt").write_bytes(data)

    done = CliRunner().invoke(
        main, ["convert-checkpoint", str(tmp_path / "old.pt"), str(tmp_path / "new.pt")]
    )

    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "old.pt: " in done.stderr


def test_command_says_what_it_did(tmp_path: Path) -> None:
    old = saved(tmp_path, state=apex_state((512.0, 9), (64.0, 8)))
    new = tmp_path / "new.pt"
    options = ["--key", "state", "--new-key", "grad_scaler", "--micro-batches", "2"]

    done = CliRunner().invoke(main, ["convert-checkpoint", str(old), str(new), *options])

    assert done.exit_code == 0
    expected = "loss scale 64 (the smallest of 2), growth count 4 at 'grad_scaler', from 'state'\n"
    assert done.stderr == f"{new}: {expected}"
    assert torch.load(new, weights_only=True)["grad_scaler"]["growth_interval"] == 1000


def test_command_keeps_a_static_scale(tmp_path: Path) -> None:
    old, new = saved(tmp_path, amp=apex_state((128.0, 9))), tmp_path / "new.pt"

    done = CliRunner().invoke(main, ["convert-checkpoint", "--static", str(old), str(new)])

    assert done.stderr == f"{new}: static loss scale 128 at 'scaler', from 'amp'\n"
    assert torch.load(new, weights_only=True)["scaler"]["growth_interval"] == 2**31 - 1


class Unusual:
    """What a pickle may hold besides tensors."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("hello",)


@pytest.mark.parametrize(
    "value", [Unusual(), Path("a.txt"), range(3)], ids=["code", "path", "range"]
)
def test_error_names_the_option_that_loads_more(tmp_path: Path, value: object) -> None:
    old = saved(tmp_path, amp=apex_state((2.0, 1)), more=value)

    done = CliRunner().invoke(main, ["convert-checkpoint", str(old), str(tmp_path / "new.pt")])

    assert "than tensors and plain data; --allow-pickle loads it" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.exit_code == 2


def test_file_that_is_there_is_overwritten_with_force_alone(tmp_path: Path) -> None:
    old, new = saved(tmp_path, amp=apex_state((2.0, 1))), tmp_path / "new.pt"
    new.write_text("precious")
    command = ["convert-checkpoint", str(old), str(new)]

    refused = CliRunner().invoke(main, command)
    assert refused.stderr == f"Error: {new}: exists already; --force overwrites it\n"
    assert (refused.exit_code, new.read_text()) == (2, "precious")

    assert CliRunner().invoke(main, [*command, "--force"]).exit_code == 0
    assert torch.load(new, weights_only=True)["scaler"]["scale"] == 2.0
