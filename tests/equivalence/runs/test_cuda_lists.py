"""Without a GPU, autocast casts what it casts on one."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

HALF, FULL = "torch.float16", "torch.float32"


@pytest.fixture(scope="module")
def dtypes() -> dict[str, str]:
    """Return, by expression, the dtype that fp16 autocast of the stand-in gives; in a process of its own."""
    program = dedent(
        """
        import sys, torch, torch.nn.functional as F
        from amp_migrate.equivalence.capture.standins import cudapolicy, recurrent
        cudapolicy.install()
        recurrent.install()
        packed = torch.nn.utils.rnn.pack_sequence([torch.randn(3, 6), torch.randn(2, 6)])
        image = torch.randn(1, 3, 8, 8).half()
        full = torch.randn(1, 3, 8, 8)
        volume = torch.randn(1, 1, 4, 4, 4).half()
        scores, labels = torch.randn(4, 5).half(), torch.zeros(4, dtype=torch.long)
        with torch.autocast("cpu", torch.float16):
            for line in sys.stdin.read().splitlines():
                print(line, eval(line).dtype, sep=" -> ")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="\n".join(EXPECTED),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split(" -> ") for line in done.stdout.splitlines())


EXPECTED = {
    # CPU autocast runs these in fp32, CUDA's takes them as they come
    "F.pad(image, (1, 1, 1, 1), mode='reflect')": HALF,
    "F.pad(image, (1, 1, 1, 1), mode='replicate')": HALF,
    "F.adaptive_avg_pool3d(volume, 2)": HALF,
    "F.max_pool3d(volume, 2)": HALF,
    # and what is made of operators that CUDA's list has is still cast
    "F.cross_entropy(scores, labels)": FULL,
    "F.cross_entropy(scores, labels, label_smoothing=0.1)": FULL,
    "F.conv2d(full, torch.randn(2, 3, 3, 3), padding='same')": HALF,
    # in CUDA's list alone
    "F.interpolate(image, scale_factor=2, mode='nearest-exact')": FULL,
    "F.interpolate(image, scale_factor=2, mode='bilinear', antialias=True)": FULL,
    "F.softmax(scores, 1)": FULL,
    # by cuDNN
    "torch.nn.LSTM(6, 5)(torch.randn(3, 1, 6))[0]": HALF,
    "torch.nn.GRU(6, 5, bidirectional=True)(torch.randn(3, 1, 6))[1]": HALF,
    "torch.nn.RNN(6, 5)(packed)[0].data": HALF,
    # the widest
    "torch.cat([image, full])": FULL,
    "torch.stack([image, full])": FULL,
}


@pytest.mark.parametrize("expression", EXPECTED)
def test_autocast_follows_the_lists_of_cuda(expression: str, dtypes: dict[str, str]) -> None:
    """One operator of each kind in which the two differ."""
    assert dtypes[expression] == EXPECTED[expression]
