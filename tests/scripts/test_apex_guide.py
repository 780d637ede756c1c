"""The page about Apex is current, and no public name is missing from it."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from fixture_support import cases

from amp_migrate import migrate_source
from amp_migrate.equivalence.reference import modules
from amp_migrate.equivalence.reference.amp import frontend, handle
from amp_migrate.rules import rules
from amp_migrate.rules.rest import (
    amp304_optimizers,
    amp305_normalization,
    amp306_fp16_utils,
    amp307_other,
)
from amp_migrate.settings import parse_toml

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "apex-to-native.md").read_text(encoding="utf-8")
OF_EVERY_MODULE = re.compile(r"\.__\w+__$")


@pytest.fixture(scope="module")
def guide() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("apex_guide", ROOT / "scripts" / "apex_guide.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(guide: ModuleType) -> None:
    """What the tool does today is what the page says; else: python scripts/apex_guide.py."""
    assert guide.page() == PAGE


def test_every_name_of_the_reference_is_there() -> None:
    """What a program can take from the reference implementation has a row."""
    names = {name for contents in modules.CONTENTS.values() for name in contents}
    told = set(re.findall(r"^\| `(?:[\w.]+\.)?(\w+)`", PAGE, re.M))

    assert (names - told, len(names) > 50) == (set(), True)


DELETED = {
    "amp": """
        init half_function float_function promote_function register_half_function register_float_function
        register_promote_function scale_loss disable_casts initialize state_dict load_state_dict master_params _amp_state
    """,
    "parallel": """
        DistributedDataParallel Reducer SyncBatchNorm convert_syncbn_model create_syncbn_process_group LARC multiproc
    """,
    "fp16_utils": """
        BN_convert_float network_to_half prep_param_lists model_grads_to_master_grads master_params_to_model_params tofp16
        to_python_float clip_grad_norm convert_module convert_network FP16Model FP16_Optimizer LossScaler DynamicLossScaler
    """,
    "RNN": "LSTM GRU ReLU Tanh mLSTM toRNNBackend",
}
"""The public names of what Apex deleted in 2025, by package."""


@pytest.mark.parametrize("package", DELETED)
def test_every_name_that_apex_deleted_has_a_rule_and_a_program(package: str) -> None:
    """Its row says which rule is responsible, and leads to a fixture that uses the name."""
    known = {rule.code for rule in rules()}
    used = {case.name: "\n".join(case.before.values()) for case in cases()}
    for name in DELETED[package].split():
        row = re.search(
            rf"^\| `{package}\.{name}` \| .+ \| (AMP\d+) \| .+ \| \[(.+)\]\(.+\) \|$", PAGE, re.M
        )
        assert row is not None, name
        assert row[1] in known
        assert re.search(rf"\b{name}\b", used[row[2]]), name


def test_every_fixture_of_the_page_uses_its_name(guide: ModuleType) -> None:
    """Every link of the last column leads to a program with that name in it."""
    document = parse_toml(guide.NAMES.read_bytes(), "names")
    entries = [entry for part in document["part"] for entry in part["names"] if "fixture" in entry]
    found = {case.name: case for case in cases()}
    for entry in entries:
        case = found[entry["fixture"]]
        last = entry["name"].rpartition(".")[2]
        assert re.search(rf"\b{last}\b", "\n".join(case.before.values())), entry["name"]
        row = re.search(rf"^.*\({re.escape('../fixtures/' + case.name)}\) \|$", PAGE, re.M)
        assert row is not None


@pytest.mark.parametrize(
    ("names", "module"),
    [
        (amp304_optimizers._NOTES, "optimizers"),
        (amp305_normalization._NOTES, "normalization"),
        (amp306_fp16_utils._ADVICE, "fp16_utils"),
        ({**amp307_other.GONE, **amp307_other.STAYS}, ""),
    ],
)
def test_every_name_of_the_rules_is_there(names: dict[str, str], module: str) -> None:
    """What a rule has a word about has a row; a module by the rows of its names."""
    for name in names:
        shown = name.removeprefix("apex.")
        if not OF_EVERY_MODULE.search(name):
            assert re.search(rf"^\| `(?:{module}[\w.]*\.)?{re.escape(shown)}[`.]", PAGE, re.M), name


def test_every_argument_is_there() -> None:
    """The arguments of initialize and scale_loss are those that the reference takes, in order."""
    for function in (frontend.initialize, handle.scale_loss):
        part = PAGE.partition(f"### Arguments of amp.{function.__name__}\n")[2].partition("\n#")[0]
        wanted = list(inspect.signature(function).parameters)
        assert re.findall(r"^\| `(\w+)` \|", part, re.M) == wanted


def test_rules_that_are_named_act_in_the_recipes(guide: ModuleType) -> None:
    """A row that names its rule itself is one that the recipes show; every rule on the page exists."""
    document = parse_toml(guide.NAMES.read_bytes(), "names")
    named = {
        entry["rule"] for part in document["part"] for entry in part["names"] if "rule" in entry
    }
    acting = {
        item.code
        for recipe in document["recipe"]
        for item in migrate_source(guide.SETUP + recipe["before"]).findings
    }

    assert named <= acting
    assert set(re.findall(r"AMP\d+", PAGE)) <= {rule.code for rule in rules()}
