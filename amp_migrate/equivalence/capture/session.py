"""Put every hook in place, once torch is imported."""

from __future__ import annotations

from amp_migrate.equivalence.capture import determinism
from amp_migrate.equivalence.capture.amp import everywhere, native, widest
from amp_migrate.equivalence.capture.amp.apexchoice import offer_apex
from amp_migrate.equivalence.capture.amp.apexside import ApexSide
from amp_migrate.equivalence.capture.amp.fp16side import MODULE, Fp16Side
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.events import clipping
from amp_migrate.equivalence.capture.events import loading as batches
from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.events.census import Census
from amp_migrate.equivalence.capture.events.largebatch import LargeBatch
from amp_migrate.equivalence.capture.events.light import Light
from amp_migrate.equivalence.capture.events.products import Products
from amp_migrate.equivalence.capture.events.registry import Registry
from amp_migrate.equivalence.capture.events.steps import Steps
from amp_migrate.equivalence.capture.imports import ImportHooks
from amp_migrate.equivalence.capture.recorder import Recorder
from amp_migrate.equivalence.capture.standins import fakecuda, loading


def install(config: CaptureConfig, hooks: ImportHooks) -> Recorder:
    """Seed, redirect CUDA where there is none, and start following the program."""
    recorder = Recorder(config)
    recorder.start()
    registry = Registry()
    steps = Steps(recorder, registry)
    backward = Backward(recorder, registry)
    determinism.seed_everything(config.seed)
    determinism.note_compile(recorder.notes)
    determinism.note_scripts(recorder.notes, tuple(copy for _, copy in config.roots))
    fake = config.device == "cpu"
    if fake:
        fakecuda.install()
    native.steer_scaler(config, fake)
    native.steer_autocast(config, fake, recorder.notes)
    if not config.casts:
        widest.install()
    loading.install(config, hooks)
    apex = ApexSide(config, recorder, backward, steps)
    old = Fp16Side(config, recorder, backward, steps)
    offer_apex(hooks, config, recorder.notes, apex.attach, {MODULE: old.attach})
    if config.batch_times != 1.0:
        batches.enlarge(config.batch_times)
    if config.light:
        determinism.allow_tf32(config.tf32)
        Light(recorder).install()
        return recorder
    determinism.switch_on()
    registry.install()
    steps.install()
    clipping.install(recorder, registry)
    native.follow_scaler(recorder, backward, steps)
    backward.before.append(lambda tensors: determinism.switch_on())
    if config.census:
        Census(recorder, backward).install()
    if config.products:
        Products(recorder, backward).install()
    if config.check_fix:
        LargeBatch(recorder, registry, backward).install()
    if config.everywhere:  # inside what records, which sees losses and gradients as they were
        everywhere.install(config.everywhere, config.device, config.first_scale)
    backward.install()
    return recorder
