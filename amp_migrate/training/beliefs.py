"""What is believed of names, each with its reason. Everything else is asked of the code itself."""

from __future__ import annotations

import re

# torch's functions that clip gradients or compute their norm. Copies of them in a project are read instead; a
# function of an unknown library that has their name does what they do.
READS_GRADIENTS = frozenset(
    {"clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"}
)  # fmt: skip

# How torch's functions that clip name what they are given first.
PARAMETERS = "parameters"

# Methods of modules and optimizers that hand out parameters: gradients are reached through them alone.
HAND_OUT_PARAMETERS = frozenset({"parameters", "named_parameters", "param_groups", "master_params"})
LIST_PARAMETERS = ("parameters", "named_parameters")  # those of modules

# Packages whose functions read no gradients of the parameters that they are given, those of torch named above apart: those
# that count the operations and parameters of a network, and those of Python for texts, files, clocks and types.
LEAVE_GRADIENTS_ALONE = frozenset(
    {
        "builtins", "collections", "copy", "functools", "itertools", "logging", "math", "numpy", "pickle", "torch",
        "fvcore", "ptflops", "thop", "torchinfo", "torchstat", "torchsummary", "torchsummaryX",
        "base64", "csv", "datetime", "fnmatch", "glob", "hashlib", "json", "os", "pathlib", "re", "shutil", "string", "textwrap", "time", "typing",
    }
)  # fmt: skip
# Objects that hold attributes and do nothing else.
ONLY_HOLD = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
# Methods of containers that keep what they are given.
COLLECTS = frozenset({"append", "appendleft", "extend", "insert", "put", "setdefault", "update"})
# Methods of containers and averaged copies that keep parameters, and do nothing with their gradients.
KEEPS_PARAMETERS = frozenset(
    {"append", "add", "add_param_group", "extend", "update", "update_parameters", "zip"}
)
# Methods of networks that write parameters, and do nothing with their gradients.
LOADS_PARAMETERS = frozenset({"load_state_dict", "_load_from_state_dict"})
# The same, and those of averaged copies that put other weights in place.
CHANGES_WEIGHTS = frozenset({"load_state_dict", "apply_shadow", "copy_to", "restore"})

# Attributes of a gradient that say nothing of its values.
SHAPE_OF_GRADIENT = frozenset(
    {"device", "dim", "dtype", "is_sparse", "layout", "ndim", "numel", "requires_grad", "shape", "size"}
)  # fmt: skip

# Methods of a gradient that commute with the scale, or end it: multiplying, averaging over processes, clearing.
KEEPS_THE_SCALE = frozenset(
    {"coalesce", "contiguous", "data", "detach", "detach_", "div_", "is_contiguous", "mul_", "to", "view"}
)  # fmt: skip
# What says the same of a gradient and of its multiples.
KNOWS_NO_SCALE = frozenset({"isfinite", "isinf", "isnan", "sign", "count_nonzero"})
CLEARS = frozenset({"zero_", "zero_grad"})
MAY_CLEAR = ("zero_grad", "set_to_none", "reset_grad", "zero_none")  # in a text: unknown means yes

# Collective operations add gradients of processes, or copy them: the scale stays. The words are those of
# torch.distributed, horovod and apex.
REDUCES = (
    "all_reduce", "allreduce", "reduce_", "all_gather", "broadcast", "synchronize",
    "average_grad", "sync_grad", "zero_none_grad",
)  # fmt: skip


def reduces(name: str) -> bool:
    """Tell whether a function is called as a collective operation is."""
    return any(word in name for word in REDUCES)


# Methods of a network that run none of its layers.
RUNS_NO_FORWARD = frozenset(
    {
        "add_module", "apply", "buffers", "children", "cpu", "cuda", "double", "eval", "flops", "float", "half", "load_state_dict",
        "modules", "named_buffers", "named_children", "named_modules", "named_parameters", "no_sync", "parameters",
        "register_buffer", "register_forward_hook", "requires_grad_", "share_memory", "state_dict", "to", "train", "type",
        "zero_grad",
    }
)  # fmt: skip

# The same of a network, or of whatever else a training has, that nothing more is known of.
KEEPS_HOUSE = RUNS_NO_FORWARD | {
    "register_hook", "get", "items", "keys", "values", "save", "save_pretrained", "load", "from_pretrained", "update",
    "step", "backward", "append", "extend", "insert", "add_scalar", "log", "info", "print", "synchronize", "size", "item", "detach",
    "resize_token_embeddings", "clip_grad_norm", "update_moving_average", "reset_parameters",
}  # fmt: skip
BEGINS_HOUSEKEEPING = (
    "get_", "load", "save", "freeze", "unfreeze", "init", "set_", "update", "reset", "parse_", "log", "print", "register",
    "add_", "remove", "prepare_",
)  # fmt: skip

# Methods by which a network of a library is run, beside calling it.
RUNS_FORWARD = frozenset({"decode", "encode", "forward", "generate", "predict"})

# Classes of libraries (fvcore, detectron2) that ask what they are given for its state, and load it where a file has one
# by the same name.
SAVES_STATES = re.compile(r"(^|\.)\w*Checkpointer$")

# Parts of torch.optim that make no optimizers; and optimizers of other libraries, by the ends of their names.
BESIDE_OPTIMIZERS = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.")
OPTIMIZER_CLASS = re.compile(r"(Ada(m\w{0,3}|[Ff]actor|Bound|Belief|delta|grad)|L(amb|AMB|ARS|ion)|NovoGrad|Ranger|RMSprop\w*|SGDW?)$")  # fmt: skip

# Functions of libraries that run the forward of a network they are given, over data and without gradients, at once.
EVALUATES_GIVEN = frozenset({"torch.optim.swa_utils.update_bn"})
# Words in names of code out of sight that evaluates the network it is given, and of what does otherwise.
EVALUATES = re.compile(r"(^|_)(eval|evaluat(e|ion)|generate|infer(ence)?|predict(ions?)?|score|test|val(idate|idation)?)(_|$)")  # fmt: skip
EVALUATES_NOTHING = re.compile(
    r"(^|_)(build|can|create|export|fit|has|is|make|should|split|train|training|wrap)(_|$)"
)
# What they call so makes one that runs a network, and leaves gradients alone.
MAKES_EVALUATOR = re.compile(r"evaluator$", re.I)

# Functions that run the network or function that they are given, whatever they are called on: those of Python, of
# torch.utils.checkpoint, torch.nn.parallel, torch.jit, torch.func and torch.optim. Results of the second set run it when
# called.
RUNS_GIVEN = frozenset(
    {
        "checkpoint", "checkpoint_sequential", "data_parallel", "functional_call", "map", "parallel_apply", "reduce", "starmap",
        "trace", "update_bn",
    }
)  # fmt: skip
WRAPS_GIVEN = frozenset({"partial", "partialmethod", "trace", "vmap"})

# What runs its first argument with what the others hold.
RUNS_FIRST = frozenset({"filter", "functools.reduce", "itertools.starmap", "map"})

# What gives the items of what it is given, one by one, and shows how far it came.
SHOWS_PROGRESS = {"tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.tqdm", "tqdm.tqdm_notebook"}

# What goes through what it is given only as somebody goes through its result.
LAZILY = frozenset(
    {"enumerate", "filter", "iter", "map", "zip"}
    | SHOWS_PROGRESS
    | {
        f"itertools.{name}"
        for name in (
            "accumulate", "batched", "chain", "chain.from_iterable", "compress", "cycle", "dropwhile", "filterfalse",
            "groupby", "islice", "pairwise", "starmap", "takewhile", "tee", "zip_longest",
        )
    }
)  # fmt: skip

# What makes a copy or a running average of a network.
COPIES = frozenset({"deepcopy", "AveragedModel"})

# The layers of torch.nn that multiply matrices or convolve.
MULTIPLYING_LAYERS = frozenset(
    {
        "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRU", "GRUCell",
        "LSTM", "LSTMCell", "Linear", "MultiheadAttention", "RNN", "RNNCell", "Transformer", "TransformerEncoder",
    }
)  # fmt: skip

# torch refuses to run these while autocast is on.
REFUSES_CASTS = frozenset(
    {"torch.binary_cross_entropy", "torch.nn.functional.binary_cross_entropy"}
)
REFUSING_LAYERS = frozenset({"torch.nn.BCELoss", "torch.nn.modules.loss.BCELoss"})

# What casts run in half of torch.nn.functional; the rest runs in fp32, or as its inputs come.
RUN_IN_HALF = frozenset(
    {
        "bilinear", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "linear", "multi_head_attention_forward", "prelu", "scaled_dot_product_attention",
    }
)  # fmt: skip

# Methods of `apex.amp` and of a GradScaler that hand out and take the loss scale.
APEX_STATE = frozenset({"state_dict", "load_state_dict"})

SCALER_CLASSES = frozenset(
    {
        "torch.GradScaler", "torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler",
        "torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler",
    }
)  # fmt: skip
AUTOCASTS = frozenset(
    {
        "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.autocast", "torch.cuda.amp.autocast",
        "torch.cuda.amp.autocast_mode.autocast",
    }
)  # fmt: skip
# Contexts that cast or not, and change nothing else of what runs in them.
CASTS_AT_MOST = AUTOCASTS | {"contextlib.ExitStack", "contextlib.nullcontext"}
# Contexts of libraries and helpers with these names enter the autocast of torch.
CALLED_AUTOCAST = frozenset({"autocast", "maybe_autocast"})
WITHOUT_GRADIENTS = frozenset({"torch.no_grad", "torch.autograd.no_grad", "torch.inference_mode"})

# Functions of torch that neither apex.amp nor autocast cast, whatever they are given.
CASTS_LEAVE_ALONE = frozenset(
    {
        "torch.BoolTensor", "torch.FloatTensor", "torch.IntTensor", "torch.LongTensor", "torch.Size", "torch.Tensor",
        "torch.abs", "torch.all", "torch.any", "torch.arange", "torch.argmax", "torch.argmin", "torch.argsort",
        "torch.as_tensor", "torch.bernoulli", "torch.broadcast_tensors", "torch.cat", "torch.chunk", "torch.clamp",
        "torch.clone", "torch.concat", "torch.device", "torch.empty", "torch.empty_like", "torch.enable_grad",
        "torch.eq", "torch.equal", "torch.eye", "torch.flatten", "torch.flip", "torch.from_numpy", "torch.full",
        "torch.full_like", "torch.gather", "torch.ge", "torch.gt", "torch.index_select", "torch.inference_mode",
        "torch.is_tensor", "torch.isfinite", "torch.isinf", "torch.isnan", "torch.le", "torch.linspace",
        "torch.logical_and", "torch.logical_not", "torch.logical_or", "torch.lt", "torch.manual_seed",
        "torch.masked_select", "torch.max", "torch.mean", "torch.meshgrid", "torch.min", "torch.movedim", "torch.ne",
        "torch.nn.Parameter", "torch.nn.functional.one_hot", "torch.nn.functional.pad", "torch.nn.init.constant_",
        "torch.nn.init.normal_", "torch.nn.init.ones_", "torch.nn.init.xavier_uniform_", "torch.nn.init.zeros_",
        "torch.nn.utils.rnn.pad_sequence", "torch.no_grad", "torch.nonzero", "torch.numel", "torch.ones",
        "torch.ones_like", "torch.permute", "torch.rand", "torch.rand_like", "torch.randint", "torch.randn",
        "torch.randn_like", "torch.randperm", "torch.repeat_interleave", "torch.reshape", "torch.roll", "torch.save",
        "torch.scatter", "torch.select", "torch.set_grad_enabled", "torch.sort", "torch.split", "torch.squeeze",
        "torch.stack", "torch.tensor", "torch.tile", "torch.topk", "torch.transpose", "torch.tril", "torch.triu",
        "torch.unbind", "torch.unique", "torch.unsqueeze", "torch.where", "torch.zeros", "torch.zeros_like",
    }
)  # fmt: skip

# Packages that compute no tensors: what they are given leaves torch.
PACKAGES_WITHOUT_CASTS = frozenset(
    {
        "PIL", "argparse", "base64", "collections", "csv", "cv2", "datetime", "gc", "glob", "hashlib", "io",
        "itertools", "json", "logging", "math", "matplotlib", "numpy", "os", "pandas", "pathlib", "random", "re",
        "seaborn", "shutil", "statistics", "string", "sys", "tensorboardX", "time", "tqdm", "typing", "uuid", "wandb",
        "warnings", "yaml",
    }
)  # fmt: skip

# Packages that do nothing with gradients of an optimizer, or of what holds one; neither Apex nor a GradScaler runs with torch_xla.
LEAVE_HOLDERS_ALONE = (
    LEAVE_GRADIENTS_ALONE
    | PACKAGES_WITHOUT_CASTS
    | frozenset(
        {
            "abc", "absl", "accelerate", "apex", "attr", "attrs", "contextlib", "dataclasses", "easydict", "enum", "functools", "inspect", "joblib",
            "operator", "pprint", "tempfile", "tensorboard", "textwrap", "torch_xla", "traceback", "types",
            "weakref",
        }
    )
)  # fmt: skip
# What libraries say of their functions and classes that make learning rate schedulers: words in the name, its end, or the
# module of a class that is no optimizer. Those of ignite's handlers that are called otherwise set a parameter, too.
MAKES_SCHEDULE = re.compile(r"schedule|warmup|^piecewiselinear$", re.I)
ENDS_AS_SCHEDULE = re.compile(r"(^|[^A-Z])LR((On|With)\w+)?$")
MODULE_OF_SCHEDULES = re.compile(r"schedulers?$")
LOGS_RATES = frozenset({"OptimizerParamsHandler"})  # ignite's, of the optimizer's groups

# Methods of tensors that give the same numbers, cut or ordered otherwise.
SHAPES = frozenset(
    {"contiguous", "detach", "flatten", "permute", "reshape", "squeeze", "transpose", "unsqueeze", "view"}
)  # fmt: skip
# Methods that tensors, containers and strings have, and that no cast changes. They read no gradients of what they are given.
METHODS_WITHOUT_CASTS = SHAPES | {
    "add_", "all", "any", "append", "argmax", "argmin", "bool", "byte", "chunk", "clamp", "clamp_", "clone", "copy",
    "copy_", "count", "cpu", "cuda", "detach_", "dim", "div_", "double", "endswith", "eq", "expand", "expand_as", "extend",
    "fill_", "flip", "float", "format", "gather", "ge", "get", "gt", "half", "index", "index_select", "insert", "int",
    "is_contiguous", "isdigit", "item", "items", "join", "keys", "le", "long", "lower", "lstrip", "lt", "masked_fill",
    "masked_fill_", "max", "mean", "min", "mul_", "narrow", "ndimension", "ne", "new", "new_full", "new_ones", "new_tensor",
    "new_zeros", "nonzero", "normal_", "numel", "numpy", "pin_memory", "pop", "popitem", "popleft", "repeat", "replace",
    "roll", "rsplit", "rstrip", "setdefault", "size", "sort", "split", "squeeze_", "startswith", "strip", "sub_", "t", "to",
    "tolist", "topk", "type", "type_as", "unbind", "unfold", "unsqueeze_", "upper", "values", "view_as", "zero_", "zfill",
}  # fmt: skip

# Methods of networks that hand out weights or copies of them, which casts leave fp32; attributes of layers that are weights.
HAND_OUT_WEIGHTS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"})  # fmt: skip
WEIGHTS = frozenset({"weight", "bias"})
# Methods of networks that hand out what they hold, or set a mode.
HAND_OUT_STATE = HAND_OUT_WEIGHTS | {
    "modules", "named_modules", "children", "named_children", "requires_grad_", "zero_grad", "train", "eval", "no_sync",
}  # fmt: skip

# Classes of libraries whose names end so make input of text or images, on the CPU.
PREPARES_INPUT = ("Tokenizer", "FeatureExtractor", "ImageProcessor")

# Names of variables, believed only where nothing in sight makes what they hold: networks, losses and criteria of public
# code are called so, and a loss goes by its name where a library computes it.
NETWORK_NAME = re.compile(
    r"(^|_)(net|nets|model|models|module|network|encoder|decoder|generator|discriminator|critic|backbone|"
    r"classifier|teacher|student|vae|unet|bert|resnet|netg|netd|gen|dis|disc)(_?\d+|_?[a-z])?(_ema|_ddp)?$",
    re.I,
)
NETWORK_LETTER = re.compile(r"^(G|D|E|F|netG|netD|net[A-Z]\w*)$")
CRITERION_NAME = re.compile(
    r"(criterion|criteria|loss_?f(n|unc(tion)?)|(^|_)loss$|^loss_|crit$|objective)", re.I
)
# What runs a backward of its own, or hands one on: none of these is a tensor.
NEVER_A_LOSS = ("super", "torch.autograd", "optimizer", "engine", "ctx")
LOSS_NAME = re.compile(r"loss|cost|err", re.I)
# Engines of libraries take the loss as an argument of their backward.
ENGINE_NAME = re.compile(r"(accelerator|engine|fabric|strategy)$", re.I)
# Helpers that are not in sight clip or log gradients where they say so, or clip what is called as these are.
CLIP_WORDS = ("grad_norm", "gradient_norm", "grad_norms", "check_grad", "log_grad")
OWNER_NAME = re.compile(r"(optim|model|param|net$|^opt)", re.I)
# What has a `step()`, where nothing in sight makes it.
OPTIMIZER_NAME = re.compile(r"opt", re.I)
SCHEDULE_NAME = re.compile(r"sched|warmup|lr_", re.I)
# What a file was loaded into, where no call of torch.load is in sight.
CHECKPOINT_NAME = re.compile(r"(ckpt|checkpoint|check_point|snapshot|resume|saved)", re.I)

ARRAYS = frozenset({"PIL", "cv2", "imageio", "matplotlib", "numpy", "scipy", "skimage"})
_NO_TENSORS = frozenset({"torch.Generator", "torch.compile", "torch.device", "torch.load"})


def gives_tensor(name: str) -> bool:
    """Tell whether a callee outside the project, by its dotted name, gives a tensor, an array or an image, which holds no objects."""
    module, _, _ = name.rpartition(".")
    if module == "torch":
        return name not in _NO_TENSORS
    return module == "torch.nn.functional" or name.partition(".")[0] in ARRAYS
