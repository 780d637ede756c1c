"""What keeps torch at a version without native AMP.

## What it does
Names the lines of requirements.txt, environment.yml, setup.py, setup.cfg, pyproject.toml, Dockerfiles and shell scripts
that admit no torch which has the AMP that is written: 1.6 for `torch.cuda.amp`, 1.7 where `DataParallel` makes replicas, to which
autocast comes from there on, 2.3 for `torch.amp.GradScaler`. Requirements that begin below it, as `torch>=1.5`, are named as well,
and so are the torch of a README that names no later one, that of NVIDIA's containers, and requirements in scripts that write them.

## Why
Apex ran with torch from 0.4 on. In such an environment the migrated program raises AttributeError where it makes its
GradScaler, without AMP as well.

## Example
    # requirements.txt
    torch==1.3.1

## Use instead
    # requirements.txt
    torch==1.13.1

## Safety
Report only: another torch may change more than AMP.
"""

from __future__ import annotations

from amp_migrate.rules.base import Rule, Safety

RULE = Rule("AMP310", "torch is kept below native AMP", Safety.REPORT)
