"""The words that libraries give a meaning: a name of the project that is one of them keeps it."""

from __future__ import annotations

import argparse
import builtins
import collections
import itertools
import logging
import math
import os
import random
import sys
import time
from functools import cache

import torch


@cache
def external() -> frozenset[str]:
    """Return the attributes of what programs take from Python, from PyTorch and from Apex."""
    held: list[object] = [
        *(
            argparse,
            builtins,
            collections,
            itertools,
            logging,
            math,
            os,
            os.path,
            random,
            sys,
            time,
        ),
        *(str, int, float, dict, list, tuple, set, bytes, type, logging.Logger),
        *(argparse.ArgumentParser, argparse.Namespace, collections.OrderedDict, collections.deque),
        *(
            torch,
            torch.nn,
            torch.nn.functional,
            torch.optim,
            torch.cuda,
            torch.utils,
            torch.utils.data,
        ),
        *(
            torch.nn.utils,
            torch.autograd,
            torch.distributed,
            torch.optim.lr_scheduler,
            torch.backends,
        ),
        *(torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.optim.Optimizer, torch.device),
        *(
            torch.nn.Sequential,
            torch.nn.ModuleList,
            torch.nn.ModuleDict,
            torch.nn.Linear,
            torch.nn.Conv2d,
        ),
        *(torch.nn.BatchNorm2d, torch.nn.Embedding, torch.nn.LSTM, torch.nn.DataParallel),
        *(torch.nn.parallel, torch.nn.init, torch.utils.data.DataLoader, torch.utils.data.Dataset),
        *(torch.optim.SGD, torch.optim.Adam, torch.optim.lr_scheduler.LRScheduler, torch.Generator),
        torch.utils.data.DataLoader([0]),
        torch.nn.Linear(1, 1),
        torch.nn.BatchNorm2d(1),
        torch.optim.SGD([torch.zeros(1)], lr=0.1),
    ]
    apex = {
        *("amp", "initialize", "scale_loss", "master_params", "state_dict", "load_state_dict"),
        *("register_half_function", "register_float_function", "register_promote_function"),
        *(
            "half_function",
            "float_function",
            "promote_function",
            "disable_casts",
            "init",
            "wrap_optimizer",
        ),
        *("parallel", "optimizers", "normalization", "fp16_utils", "multi_tensor_apply", "apex"),
        *(
            "loss_scalers",
            "opt_properties",
            "loss_scale",
            "_amp_stash",
            "_amp_state",
            "_loss_scale",
        ),
        *(
            "all_fp16_params",
            "all_fp32_from_fp16_params",
            "enabled",
            "opt_level",
            "module",
            "_overflow_buf",
        ),
        *(
            "grad_fn",
            "main",
            "parse_args",
            "keys",
            "fn",
            "args",
            "kwargs",
            "maxlen",
            "default_factory",
        ),
    }
    return frozenset(apex.union(*map(dir, held)))
