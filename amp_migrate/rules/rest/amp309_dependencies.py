"""What asks for Apex outside of the code.

## What it does
Names the lines of requirements.txt, environment.yml, setup.py, setup.cfg, pyproject.toml, Dockerfiles, shell scripts
and notebooks (`!pip install`) that install Apex, the help texts of options that speak of it, options that nothing reads any
more, and in migrated files the messages, docstrings and comments that do, and files in which nothing is left, once no code of the project imports it. Of a README or INSTALL that speaks of it, the first line is named.
Where only parts of Apex stay beside AMP, as FusedAdam, help texts that speak of AMP are named. With `--dependencies` the lines go that hold nothing else: a line of requirements.txt, an item of a list.
From comments and help texts of migrated files goes an aside in brackets that only says that Apex runs it, or comes first
(`(through NVIDIA apex)`), and the help text of `--fp16_opt_level` in programs made from transformers' examples says what
the level does now, where the code only compares it with O0.

## Why
An installation that still builds Apex takes long and may fail, for nothing. On PyPI `apex` is another package.

## Example
    # requirements.txt
    torch>=1.6
    git+https://github.com/NVIDIA/apex

## Use instead
    # requirements.txt
    torch>=1.6

## Safety
Report only; `--dependencies` removes lines, and nothing while some code still imports Apex.
"""

from __future__ import annotations

from amp_migrate.rules.base import Rule, Safety

RULE = Rule("AMP309", "Apex is asked for outside of the code", Safety.REPORT)
