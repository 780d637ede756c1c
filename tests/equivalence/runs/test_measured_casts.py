"""What a GPU was seen to cast is what stands in for it, and for Apex, on machines without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[3]
MEASURED = json.loads((Path(__file__).parent / "cuda_dtypes.json").read_text(encoding="utf-8"))
_INSTALL = {
    "autocast": "from amp_migrate.equivalence.capture.standins import cudapolicy, recurrent\n"
    "cudapolicy.install()\n"
    "recurrent.install()\n"
    "torch.autocast('cpu', torch.float16).__enter__()",
    "reference": "from amp_migrate.equivalence.reference import install\n"
    "install('cpu', quiet=True)\n"
    "from apex import amp\n"
    "amp.initialize(torch.nn.Linear(2, 2), opt_level='O1', verbosity=0)",
}
NO_KERNEL = {"F.local_response_norm(h4, 2)", "F.avg_pool3d(h5, 2)"}
# Since torch 2.12 or 2.13 it is in CUDA's list; the GPU ran 2.11.
NEWER = {"F.rms_norm(h2, (5,))"}
# What Apex leaves in fp32 with torch 1.11 and later, or cannot run, and the reference repairs.
REPAIRED = {
    "F.prelu(f4, torch.ones(3, device=dev))",
    "nn.PReLU(device=dev)(f4)",
    "nn.RNN(5, 4, device=dev)(f3)[0]",
    "F.bilinear(h2, h2, f3)",
}


@pytest.mark.parametrize("way", _INSTALL)
def test_the_cpu_casts_as_the_gpu_did(way: str) -> None:
    """But for what has no kernel on the CPU, and what a newer torch casts."""
    head = "import json, sys, warnings\nwarnings.simplefilter('ignore')\nimport torch\nimport gpu_casts\n"
    program = f"{head}{dedent(_INSTALL[way])}\nprint(json.dumps(gpu_casts.evaluated('cpu')))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    expected = {line: dtypes[way] for line, dtypes in MEASURED["dtypes"].items()}
    assert len(found) > 200
    differing = {line for line in expected if found[line] != expected[line]}
    assert differing - NEWER <= NO_KERNEL
    assert all(found[line] == "raises NotImplementedError" for line in differing & NO_KERNEL)


def test_the_reference_casts_as_apex_did() -> None:
    """On the GPU, beside Apex 25.04 itself, but for its repairs."""
    dtypes = MEASURED["dtypes"]
    assert {
        line for line in dtypes if dtypes[line]["reference"] != dtypes[line]["apex"]
    } == REPAIRED
