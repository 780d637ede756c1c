"""Let a program written for CUDA run on the CPU: devices, types and ``torch.cuda`` calls."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from amp_migrate.equivalence.capture.patching import put, wrap
from amp_migrate.equivalence.capture.standins import cudapolicy, recurrent, syncbn

_TYPES = "Float Double Half BFloat16 Int Long Short Byte Char Bool"
_NVTX = "mark range range_push range_pop range_start range_end"
_ZERO = """current_device memory_allocated max_memory_allocated memory_reserved
max_memory_reserved memory_cached max_memory_cached utilization"""
_NOTHING = """set_device synchronize empty_cache init reset_peak_memory_stats
reset_max_memory_allocated reset_max_memory_cached ipc_collect manual_seed manual_seed_all seed
seed_all memory_summary set_rng_state set_rng_state_all set_per_process_memory_fraction set_stream"""

_ACCELERATOR = "set_device_index set_device_idx set_stream synchronize empty_cache"


_PARSE = torch._C._nn._parse_to  # what Module.to gives its arguments to


class CudaOnCpu(TorchFunctionMode):
    """Sends every torch call that names a CUDA device to the CPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func` with CPU devices in place of CUDA ones."""
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.Tensor.backward:
            return self._backward(*args, **kwargs)
        if any(map(_may_name, map(type, args))):
            args = tuple(on_cpu(value) for value in args)
        if any(map(_may_name, map(type, kwargs.values()))):
            kwargs = {name: on_cpu(value) for name, value in kwargs.items()}
        if func is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:  # `.to(0)` is a GPU
            args = (args[0], "cpu", *args[2:])
        elif func is _PARSE and args and type(args[0]) is int:
            args = ("cpu", *args[1:])
        if type(kwargs.get("device")) is int:
            kwargs = {**kwargs, "device": "cpu"}
        return func(*args, **kwargs)

    def _backward(
        self,
        tensor: Any,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        with self:  # the mode is off in here, and user-defined backwards need it
            torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


@cache
def _may_name(kind: type) -> bool:
    """Tell whether a value of this type may name a device; every torch call asks that of its arguments."""
    return issubclass(kind, (str, torch.device))


def on_cpu(value: Any) -> Any:
    """Return `value`, with a CUDA device, its name or number, or a CUDA type turned into CPU's."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str):
        if value == "cuda" or value.startswith("cuda:"):
            return "cpu"
        return value.replace("torch.cuda.", "torch.") if value.startswith("torch.cuda.") else value
    return value


def install() -> None:
    """Start redirecting, for the life of the process."""
    cudapolicy.install()
    recurrent.install()
    syncbn.install()
    CudaOnCpu().__enter__()  # type: ignore[no-untyped-call]
    _replace_module()
    _replace_accelerator()
    _redirect_autocast_state()
    _redirect_parallel()
    wrap(torch.utils.data.DataLoader, "__init__", _unpinned)
    wrap(torch, "load", _load)
    wrap(torch, "set_default_tensor_type", lambda original: lambda kind: original(on_cpu(kind)))


def _replace_module() -> None:
    cuda: Any = torch.cuda
    for name in _ZERO.split():
        put(cuda, name, lambda *args, **kwargs: 0)
    for name in _NOTHING.split():
        put(cuda, name, lambda *args, **kwargs: None)
    for kind in _TYPES.split():
        put(cuda, f"{kind}Tensor", vars(torch)[f"{kind}Tensor"])
    put(cuda, "is_available", lambda: True)
    put(cuda, "is_initialized", lambda: True)
    put(cuda, "device_count", lambda: 1)
    put(cuda, "is_current_stream_capturing", lambda: False)
    put(cuda, "is_bf16_supported", lambda *args, **kwargs: True)
    put(cuda, "get_device_name", lambda *args, **kwargs: "CPU in place of CUDA")
    put(cuda, "get_device_capability", lambda *args, **kwargs: (8, 0))
    put(cuda, "get_rng_state", lambda *args, **kwargs: torch.zeros(8, dtype=torch.uint8))
    put(cuda, "get_rng_state_all", lambda: [torch.zeros(8, dtype=torch.uint8)])
    put(cuda, "mem_get_info", lambda *args, **kwargs: (1 << 34, 1 << 34))
    put(torch.Tensor, "record_stream", lambda tensor, stream: None)
    put(cuda, "memory_stats", lambda *args, **kwargs: {})
    for name in _NVTX.split():
        put(cuda.nvtx, name, _Nothing if name == "range" else lambda *args, **kwargs: None)
    put(cuda, "device", _Nothing)
    put(cuda, "Stream", _Nothing)
    put(cuda, "Event", _Nothing)
    put(cuda, "stream", _Nothing)
    put(cuda, "current_stream", _Nothing)
    put(cuda, "default_stream", _Nothing)
    put(cuda, "get_device_properties", lambda *args, **kwargs: _Properties())


def _replace_accelerator() -> None:
    """Answer as `torch.cuda` does; a CUDA build without a GPU raises in optimizers otherwise."""
    accelerator: Any = getattr(torch, "accelerator", None)  # since torch 2.6
    if accelerator is None:
        return
    put(accelerator, "current_accelerator", lambda *args, **kwargs: torch.device("cuda"))
    put(accelerator, "is_available", lambda: True)
    put(accelerator, "device_count", lambda: 1)
    put(accelerator, "current_stream", _Nothing)
    for name in ("current_device_index", "current_device_idx"):
        put(accelerator, name, lambda: 0)
    for name in _ACCELERATOR.split():
        put(accelerator, name, lambda *args, **kwargs: None)


class _Properties:
    name = "CPU in place of CUDA"
    major, minor = 8, 0
    multi_processor_count = 1
    total_memory = 1 << 34


class _Nothing(contextlib.nullcontext[None]):
    """A device guard, stream or event that does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def synchronize(self) -> None:
        return None

    def is_capturing(self) -> bool:
        return False

    def record(self, stream: Any = None) -> None:
        return None

    def wait(self, stream: Any = None) -> None:
        return None

    def wait_stream(self, stream: Any) -> None:
        return None

    def wait_event(self, event: Any) -> None:
        return None

    def record_event(self, event: Any = None) -> Any:
        return event or _Nothing()

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        return 0.0


def _redirect_autocast_state() -> None:
    def asking(original: Any) -> Any:
        return lambda device_type="cuda": original(on_cpu(device_type))

    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        wrap(torch, name, asking)
    put(torch, "get_autocast_gpu_dtype", lambda: torch.get_autocast_dtype("cpu"))

    def custom(original: Any) -> Any:
        def decorator(fwd: Any = None, *, device_type: str = "cuda", **kwargs: Any) -> Any:
            return original(fwd, device_type=on_cpu(device_type), **kwargs)

        return decorator

    for name in ("custom_fwd", "custom_bwd"):
        wrap(torch.amp, name, custom)
        put(torch.cuda.amp, name, vars(torch.amp)[name])


def _redirect_parallel() -> None:
    """One process uses one CPU: DataParallel passes through, NCCL becomes gloo."""
    parallel: Any = torch.nn.DataParallel

    def data_parallel_init(original: Any) -> Any:
        def __init__(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
            torch.nn.Module.__init__(self)
            self.module = module
            self.device_ids = [0]

        return __init__

    def forward(original: Any) -> Any:
        return lambda self, *args, **kwargs: self.module(*args, **kwargs)

    wrap(parallel, "__init__", data_parallel_init)
    wrap(parallel, "forward", forward)
    if torch.distributed.is_available():
        wrap(torch.distributed, "init_process_group", _gloo)
        wrap(torch.nn.parallel.DistributedDataParallel, "__init__", _without_devices)


def _unpinned(original: Any) -> Any:
    """The thread that pins memory asks a build of torch with CUDA for its driver."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.pin_memory = False

    return __init__


def _gloo(original: Any) -> Any:
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        return original("gloo", *args, **kwargs)

    return init_process_group


def _without_devices(original: Any) -> Any:
    def __init__(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, **kwargs: Any
    ) -> None:
        original(self, module, **kwargs)

    return __init__


def _load(original: Any) -> Any:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return original(f, "cpu", *args, **kwargs)

    return load
