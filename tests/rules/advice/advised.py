"""What a person does about the programs of fixtures/refused and fixtures/internals, as their findings advise."""

from __future__ import annotations

from typing import NamedTuple

PERTURBED_IN_FP32 = """\
def perturbed_in_fp32(model, x, y, optimizer):
    delta = torch.zeros_like(x, requires_grad=True)
    loss = F.cross_entropy(model(x + delta), y)
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    return (x + delta.grad.sign()).detach()


"""


class Advised(NamedTuple):
    """Words of an advice, and the edits that follow it: (file, old text, new text).

    The file may be left out where there is one. `options` are those that the advice names. `leads_to` is the finding
    that takes the place of this one where more stands in the way.
    """

    case: str
    advice: str
    edits: tuple[tuple[str, ...], ...] = ()
    scaler: str = "auto"
    leads_to: str = ""


ADVISED = (
    Advised(
        "refused/mean_in_the_call_at_o2",
        "give the loss a name in a statement of its own",
        (
            (
                "        with amp.scale_loss(critic(fake).mean() - critic(real).mean(), optimizer) as scaled_loss:\n",
                "        loss = critic(fake).mean() - critic(real).mean()\n"
                "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n",
            ),
        ),
    ),
    Advised(
        "refused/teacher_asked_twice",
        "write `torch.clear_autocast_cache()` behind what runs without gradients there",
        (
            (
                "            hidden = self.cross(x)\n",
                "            hidden = self.cross(x)\n        torch.clear_autocast_cache()\n",
            ),
        ),
    ),
    Advised(
        "refused/initialize_handed_on_in_a_timer",
        "write out the arguments of amp.initialize",
        (
            ("def prepared(model, *args, **kwargs):", "def prepared(model, optimizer):"),
            (
                "amp.initialize(model, *args, **kwargs)",
                'amp.initialize(model, optimizer, opt_level="O1")',
            ),
            ('prepared(net, optimizer, opt_level="O1")', "prepared(net, optimizer)"),
        ),
    ),
    *(
        Advised(
            case,
            "make the PlainLearner in a function of its own",
            (
                (
                    "def main(",
                    "def plain(body):\n    return PlainLearner(body, lr=0.05)\n\n\ndef main(",
                ),
                (
                    f"    body = {nets}.get(name)(width=8)\n    learner = {trainers}.get(way)(body, lr=0.05)\n",
                    "    body = Deep(width=8)\n"
                    '    learner = plain(body) if way == "plain" else MixedLearner(body, lr=0.05)\n',
                ),
            ),
        )
        for case, nets, trainers in (
            ("refused/one_registry_for_networks_and_trainers", "PARTS", "PARTS"),
            ("refused/registries_filled_together", "BODIES", "LEARNERS"),
        )
    ),
    *(
        Advised(
            case,
            "put it under `with torch.cuda.amp.autocast(enabled=...):` with what turns Apex on",
            (
                ("        warm.step(torch.randn(4, 4), torch.randn(4, 2))\n", ""),
                (
                    "    runner = Runner(",
                    "    for _ in range(24):\n"
                    "        warm.step(torch.randn(4, 4), torch.randn(4, 2))\n"
                    "    runner = Runner(",
                ),
            ),
        )
        for case in (
            "refused/runners_of_which_one_initializes",
            "refused/set_up_beside_another",
        )
    ),
    Advised(
        "refused/version_that_decides",
        "delete this use, then run again",
        (
            ("from apex.amp import __version__ as version\n", ""),
            ("version.VERSION >= (0, 1, 0)", "True"),
        ),
    ),
    Advised(
        "refused/window_in_a_match_of_another_count",
        "change the code so that gradients are touched only between the last backward and the step",
        (("        match done % 2:\n", "        match seen % 3:\n"),),
    ),
    Advised(
        "refused/optimizer_taken_out_of_a_dict",
        "assign the optimizer to a variable above",
        (
            (
                '    parts["ready"] = amp.initialize(parts["net"], parts.pop("optimizer", None), opt_level="O1")\n',
                '    optimizer = parts.pop("optimizer", None)\n'
                '    parts["ready"] = amp.initialize(parts["net"], optimizer, opt_level="O1")\n',
            ),
        ),
    ),
    Advised(
        "refused/optimizer_of_a_native_runner",
        "turn on the native AMP of that training where it is wanted",
        (
            ("from apex import amp\n", ""),
            ('net, optimizer = amp.initialize(net, optimizer, opt_level="O1")\n', ""),
            ("Runner(net, optimizer)", "Runner(net, optimizer, half=True)"),
        ),
    ),
    Advised(
        "refused/optimizers_that_a_function_steps_natively",
        "delete this call",
        (
            ("check.py", "from apex import amp\n", ""),
            (
                "check.py",
                "[encoder, decoder], [first, second] = amp.initialize([encoder, decoder], [first, second])\n",
                "",
            ),
        ),
    ),
    Advised(
        "refused/loop_variable_of_optimizers_and_schedules",
        "keep the two in variables of their own",
        (
            (
                "for each in self.schedules:\n            each.step()",
                "for schedule in self.schedules:\n            schedule.step()",
            ),
        ),
    ),
    Advised(
        "refused/attack_shared_with_a_program_left",
        "change what keeps Apex in virtual.py",
        (("virtual.py", "    mixed_hooks.register(amp)\n", ""),),
    ),
    Advised(
        "refused/losses_yielded_to_a_program_left",
        "give each program a function of its own here",
        (
            ("small.py", "from stream import losses", "from stream import yielded"),
            ("small.py", "for loss in losses(", "for loss in yielded("),
            (
                "stream.py",
                "def losses(model, batches):\n",
                "def yielded(model, batches):\n    for x, y in batches:\n        yield mse_loss(model(x), y)\n\n\n"
                "def losses(model, batches):\n",
            ),
        ),
        leads_to="AMP909",
    ),
    Advised(
        "refused/registered_for_a_program_that_is_left",
        "with `scaled_loss.backward()` in it",
        (("two.py", "run(scaled_loss, opt, net)\n", "scaled_loss.backward()\n    opt.step()\n"),),
    ),
    Advised(
        "refused/optimizer_chosen_behind_a_while",
        "read them in a `for` that sets `name`",
        (
            ("    global name\n", ""),
            ("    waiting = list(names)\n", ""),
            (
                "    while waiting:\n        name = waiting.pop()\n",
                "    for name in reversed(names):\n",
            ),
        ),
    ),
    Advised(
        "refused/loss_scale_taken_from_an_iterator",
        "put it into a variable above amp.initialize, and give it that",
        (
            (
                "    model, optimizer = amp.initialize(",
                "    scale = next(scales)\n    model, optimizer = amp.initialize(",
            ),
            ("loss_scale=next(scales)", "loss_scale=scale"),
        ),
    ),
    Advised(
        "refused/embedding_steps_more_rarely",
        "or both in each round",
        (
            (
                "        if number % rounds == 0:\n            of_embedding.step()\n            of_",
                "        of_embedding.step()\n        of_",
            ),
        ),
    ),
    Advised(
        "refused/embedding_steps_more_rarely",
        "step and clear both optimizers under `if number % rounds == 0:`",
        (
            ("        of_head.step()\n        of_head.zero_grad()\n", ""),
            (
                "            of_embedding.step()\n",
                "            of_embedding.step()\n            of_head.step()\n            of_head.zero_grad()\n",
            ),
        ),
    ),
    Advised(
        "refused/optimizer_handed_to_an_unknown_object",
        "migrate it by hand",
        (
            ("from annealing import Annealer", "from torch.optim.lr_scheduler import LambdaLR"),
            (
                'Annealer(optimizer, "lr", [(0, args.lr), (len(loader), 0.0)])',
                "LambdaLR(optimizer, lambda number: 1 - number / len(loader))",
            ),
            ("schedule)\n    trainer.run", "lambda engine: schedule.step())\n    trainer.run"),
        ),
    ),
    Advised(
        "refused/initialized_again_when_restored",
        "delete this amp.initialize, as the constructor has initialized by then",
        (
            (
                '"amp" in state:\n            self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level=self.level)\n',
                '"amp" in state:\n',
            ),
        ),
    ),
    Advised(
        "refused/initialize_in_a_lambda_handed_on",
        "write amp.initialize where the lambda is called",
        (
            ("def build(args, start):", "def build(args):"),
            ("start(net, opt)", 'amp.initialize(net, opt, opt_level="O1")'),
            ('build(args, lambda m, o: amp.initialize(m, o, opt_level="O1"))', "build(args)"),
        ),
    ),
    Advised(
        "refused/initialized_in_the_first_fold_alone",
        "call amp.initialize once, before the training loop",
        (("if args.fp16 and fold == 0:", "if args.fp16:"),),
    ),
    Advised(
        "refused/scaler_of_an_object_that_may_be_missing",
        "ask for `self.descent` above this line and leave where it is None",
        (
            (
                "        loss = nn.functional.cross_entropy(self.network(inputs), labels)\n",
                "        if self.descent is None:\n            return 0.0\n"
                "        loss = nn.functional.cross_entropy(self.network(inputs), labels)\n",
            ),
        ),
    ),
    Advised(
        "refused/level_deleted_behind_initialize",
        "leave `level` as it is behind amp.initialize",
        (("        del level\n", ""),),
    ),
    Advised(
        "refused/native_in_the_handler_beside_a_table",
        "import amp where it is used instead of passing it on",
        (
            ('BACKENDS = {"apex": amp, "none": None}\n', ""),
            ('BACKENDS["apex"] is not None', "amp is not None"),
        ),
    ),
    Advised(
        "refused/output_behind_noisy_labels",
        "give its result a name in a statement of its own",
        (
            (
                "    return learn(noisy(y), network(x.float()))\n",
                "    labels = noisy(y)\n    output = network(x.float())\n    return learn(labels, output)\n",
            ),
        ),
    ),
    Advised(
        "refused/output_in_a_comprehension",
        "give its result a name in a statement of its own",
        (
            (
                "    return [learn(network(x), y) for x, y in batches]\n",
                "    losses = []\n    for x, y in batches:\n        output = network(x)\n"
                "        losses.append(learn(output, y))\n    return losses\n",
            ),
        ),
    ),
    Advised(
        "refused/epoch_before_initialize",
        "move amp.initialize above this line",
        (
            (
                '        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")\n        for x',
                "        for x",
            ),
            (
                "lr=0.05)\n",
                'lr=0.05)\n        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")\n',
            ),
        ),
    ),
    Advised(
        "refused/generator_asked_behind_the_training",
        "put it under `with torch.cuda.amp.autocast(enabled=...):` with what turns Apex on",
        (
            ("def scores(net, batches):", "def scores(net, batches, half):"),
            (
                "            yield F.cross_entropy(net(x), y).item()",
                "            with torch.cuda.amp.autocast(enabled=half):\n"
                "                value = F.cross_entropy(net(x), y).item()\n"
                "            yield value",
            ),
            ("in scores(net, batches)]", "in scores(net, batches, False)]"),
            ("pending = scores(net, batches)", "pending = scores(net, batches, True)"),
        ),
    ),
    Advised(
        "refused/initialize_in_a_choice_that_draws",
        "put what it gives into a variable above and test that",
        (
            ("net, opt = amp.initialize", "use_amp = wanted()\nnet, opt = amp.initialize"),
            ("if wanted() else", "if use_amp else"),
        ),
    ),
    Advised(
        "refused/trains_without_casts_at_times",
        "call a function of its own here, with the body of perturbed()",
        (
            ("def main(", PERTURBED_IN_FP32 + "def main("),
            ("return [perturbed(", "return [perturbed_in_fp32("),
        ),
    ),
    Advised(
        "refused/casts_disabled_by_what_callers_give",
        "write `with amp.disable_casts():` around that code, and call it without elsewhere",
        (
            (
                "print(guarded(model, batches, amp.disable_casts()))",
                "with amp.disable_casts():\n        print(score(model, batches))",
            ),
            ("guarded(model, batches, contextlib.nullcontext())", "score(model, batches)"),
        ),
    ),
    Advised(
        "refused/clip_helper_above_the_backward",
        "clip once per step, straight before optimizer.step()",
        (
            ("        clip(1.0)\n", ""),
            ("        optimizer.step()", "        clip(1.0)\n        optimizer.step()"),
        ),
    ),
    Advised(
        "refused/norms_of_a_dry_run",
        "read them once per step, straight before optimizer.step()",
        (
            ("        norms.append(sum(p.grad.norm() for p in model.parameters()).item())\n", ""),
            (
                "        optimizer.step()",
                "        print(sum(p.grad.norm() for p in model.parameters()).item())\n        optimizer.step()",
            ),
        ),
    ),
    Advised(
        "refused/refused_loss_in_a_handler",
        "give F.binary_cross_entropy_with_logits what the sigmoid is given",
        (
            ("head.py", "p = torch.sigmoid(self.net(x))", "p = self.net(x)"),
            (
                "head.py",
                "F.binary_cross_entropy(p, t)",
                "F.binary_cross_entropy_with_logits(p, t)",
            ),
        ),
    ),
    Advised(
        "refused/initialized_in_what_the_forward_runs",
        "call `ensure` before this statement instead of in it",
        (
            ("        self.ensure()\n        loss =", "        loss ="),
            (
                "            loss = self.compute()",
                "            self.ensure()\n            loss = self.compute()",
            ),
        ),
    ),
    Advised(
        "refused/loss_scaler_by_attribute",
        "write what it does here",
        (
            (
                "            loss_scaler(loss, optimizer)\n",
                "            with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
                "                scaled_loss.backward()\n            optimizer.step()\n",
            ),
            ("import timm.utils as utils\n", ""),
            ("utils.ApexScaler()", "True"),
        ),
    ),
    Advised(
        "refused/linear_off_the_list",
        "delete this use, then run again",
        (
            (
                '    if "--wide" in sys.argv:\n        amp.lists.functional_overrides.FP16_FUNCS.remove("linear")\n',
                "",
            ),
        ),
    ),
    Advised(
        "refused/casts_out_of_sight",
        "write @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32) on forward()",
        (
            (
                "area = amp.float_function(elsewhere.area)\n",
                "\ndef area(box):\n"
                "    return elsewhere.area(box.float() if torch.is_autocast_enabled() else box)\n",
            ),
            (
                "    @staticmethod\n    def forward",
                "    @staticmethod\n    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)\n    def forward",
            ),
            (
                "    @amp.float_function\n    def backward",
                "    @torch.cuda.amp.custom_bwd\n    def backward",
            ),
            (
                "@amp.promote_function\ndef joined(a, b):\n",
                "def joined(a, b):\n"
                "    if torch.is_autocast_enabled():\n"
                "        a, b = a.float(), b.float()\n",
            ),
            ("        amp.register_float_function(module, name)\n", ""),
            ('        amp.register_half_function(elsewhere, "linear")\n', "        pass\n"),
            ('    amp.register_float_function(torch, "batch_norm")\n', ""),
        ),
    ),
    Advised(
        "refused/weights_shown_between_micro_batches",
        "read them after the last backward",
        (
            (
                "    for label, weight in net.named_parameters():\n        board.show(label, weight)\n    return",
                "    return",
            ),
            (
                "        nn.utils.clip_grad_norm_(",
                "        for label, weight in net.named_parameters():\n            board.show(label, weight)\n"
                "        nn.utils.clip_grad_norm_(",
            ),
        ),
    ),
    Advised(
        "refused/read_before_a_step_that_waits",
        "read them after the last backward",
        (
            ("        history.append(norms(net))\n", ""),
            (
                "            optimizer.step()\n",
                "            history.append(norms(net))\n            optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "refused/gradients_between_backwards",
        "read them after the last backward",
        (
            ("        remember(fisher, model)\n", ""),
            (
                "        optimizer.step()\n",
                "        remember(fisher, model)\n        optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "refused/accumulated_side_by_side",
        "step both optimizers in one function",
        (
            (
                "    if last:\n"
                "        optimizer.step()\n"
                "        optimizer.zero_grad()\n"
                "\n"
                "\n"
                "def generator_step",
                "\n\ndef generator_step",
            ),
            (
                "    if last:\n"
                "        optimizer.step()\n"
                "        optimizer.zero_grad()\n"
                "\n"
                "\n"
                "def train(",
                "\n\ndef train(",
            ),
            (
                "        generator_step(netG, netD, optimizer_G, noise, criterion, k, last)\n",
                "        generator_step(netG, netD, optimizer_G, noise, criterion, k, last)\n"
                "        if last:\n"
                "            for optimizer in (optimizer_D, optimizer_G):\n"
                "                optimizer.step()\n"
                "                optimizer.zero_grad()\n",
            ),
        ),
    ),
    Advised(
        "refused/amp_argument_out_of_sight",
        "import amp where fit() uses it",
        (
            ("import torch\n", "import torch\nfrom apex import amp\n"),
            ("    from apex import amp\n\n", ""),
            ("batches, amp):", "batches, mixed):"),
            ("if amp is not None", "if mixed"),
            ("batches, amp)", "batches, True)"),
            ('settings["amp"]', 'settings["mixed"]'),
        ),
    ),
    Advised(
        "refused/scale_loss_through_a_helper",
        "write `with amp.scale_loss(...)` where the block begins",
        (
            ("    scaling = bound(amp.scale_loss, optimizers=optimizer)\n", ""),
            ("with scaling(loss)", "with amp.scale_loss(loss, optimizer)"),
        ),
    ),
    Advised(
        "refused/scale_loss_in_a_dict_made_elsewhere",
        "write `with amp.scale_loss(...)` where the block begins",
        (
            ("    ways = Ways(enter=amp.scale_loss)\n", ""),
            ("with ways.enter(loss, optimizer)", "with amp.scale_loss(loss, optimizer)"),
        ),
    ),
    Advised(
        "refused/amp_or_none_asked_elsewhere",
        "keep a flag for AMP in place of `self.amp`",
        (
            ("models.py", "import torch\n", "import torch\nfrom apex import amp\n"),
            ("models.py", "self.amp = None", "self.mixed = False"),
            ("models.py", "self.amp is not None", "self.mixed"),
            ("models.py", "self.amp.scale_loss", "amp.scale_loss"),
            ("models.py", "not self.amp", "not self.mixed"),
            ("train.py", "copy.copy(model).amp", "model.mixed"),
            ("train.py", "import copy\n", ""),
            (
                "train.py",
                "    if args.mixed:\n        initialize_amp(model)\n",
                "    if args.mixed:\n"
                "        model.nn_module, model.optimizer = amp.initialize(\n"
                '            model.nn_module, model.optimizer, opt_level="O1"\n'
                "        )\n"
                "        model.mixed = True\n",
            ),
            ("train.py", "from utils import initialize_amp", "from apex import amp"),
            (
                "models.py",
                "        with torch.no_grad():\n",
                "        with torch.no_grad(), torch.cuda.amp.autocast(enabled=self.mixed):\n",
            ),
            (
                "utils.py",
                'def initialize_amp(model, opt_level="O1"):\n'
                "    from apex import amp\n"
                "\n"
                "    model.nn_module, model.optimizer = amp.initialize(\n"
                "        model.nn_module, model.optimizer, opt_level=opt_level\n"
                "    )\n"
                "    model.amp = amp\n",
                "",
            ),
        ),
    ),
    Advised(
        "refused/amp_or_none_by_name",
        "keep a flag for AMP in place of `self.amp`",
        (
            ("self.amp = None", "self.mixed = False"),
            ("self.amp = amp", "self.mixed = True"),
            ("self.amp is not None", "self.mixed"),
            ("self.amp.scale", "amp.scale"),
            ('"amp", None', '"mixed", False'),
        ),
    ),
    Advised(
        "refused/backward_of_a_frozen_model",
        "initialize amp only where `args.frozen` lets the optimizer step",
        (
            ("model, optimizer = amp.init", "if not args.frozen:\n    model, optimizer = amp.init"),
            ("    print(head.weight.grad.norm().item())\n", ""),
        ),
    ),
    Advised(
        "refused/backward_without_optimizer",
        "initialize amp only where `optimizer is not None` lets the optimizer step",
        (
            (
                "    for images in loader:",
                "    if optimizer is not None:\n"
                '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
                "    for images in loader:",
            ),
            ('\nmodel, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n', "\n"),
            ("            print([p.grad.norm().item() for p in model.parameters()])\n", ""),
        ),
    ),
    Advised(
        "refused/bfloat16_model",
        "delete amp.initialize and amp.scale_loss, and run the forward passes under",
        (
            ("from apex import amp\n", ""),
            (
                "    model, optimizer = amp.initialize(\n"
                '        model, optimizer, opt_level="O2", cast_model_type=torch.bfloat16\n'
                "    )\n",
                "",
            ),
            (
                "        loss = criterion",
                "        with torch.cuda.amp.autocast(dtype=torch.bfloat16):\n"
                "            loss = criterion",
            ),
            (
                "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
                "            scaled_loss.backward()\n",
                "        loss.backward()\n",
            ),
        ),
    ),
    Advised(
        "refused/float32_model",
        "or delete cast_model_type=torch.float32, then run again",
        (
            (
                "    model, optimizer = amp.initialize(\n"
                '        model, optimizer, opt_level="O2", cast_model_type=torch.float32\n'
                "    )\n",
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O2")\n',
            ),
        ),
    ),
    Advised(
        "refused/class_alone",
        "where nothing does, Apex refuses amp.scale_loss: write loss.backward() in its place",
        (
            (
                '            if HAS_AMP and hasattr(self.optimizer, "_amp_stash"):\n'
                "                # the last micro-batch unscales\n"
                "                delay_unscale = (i + 1) % accumulate != 0\n"
                "                with amp.scale_loss(\n"
                "                    loss, self.optimizer, delay_unscale=delay_unscale\n"
                "                ) as scaled_loss:\n"
                "                    scaled_loss.backward()\n"
                "            else:\n"
                "                loss.backward()\n",
                "            loss.backward()\n",
            ),
        ),
    ),
    Advised(
        "refused/clip_before_many_steps",
        "read them in the function that steps the optimizer",
        (
            (
                "    def clip(self):\n"
                "        for model in self.models:\n"
                "            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n"
                "\n",
                "",
            ),
            ("            self.clip()\n", ""),
            (
                "        for optimizer in self.optimizers:\n            optimizer.step()\n",
                "        for model in self.models:\n"
                "            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n"
                "        for optimizer in self.optimizers:\n"
                "            optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "refused/clip_errors_swallowed",
        "read the gradients straight before this call, on every way to it",
        (
            (
                "    try:\n"
                "        wrapper.clip(network)\n"
                "    except RuntimeError:\n"
                "        return None\n",
                "    wrapper.clip(network)\n",
            ),
        ),
    ),
    Advised(
        "refused/iterator_gone_through_while_training",
        "make a list of it here",
        (("(model(chunk) for chunk in chunks)", "[model(chunk) for chunk in chunks]"),),
    ),
    Advised(
        "refused/outputs_of_a_map_gone_through_later",
        "make a list of it here",
        (("found = map(outputs_of, batches[:5])", "found = list(map(outputs_of, batches[:5]))"),),
    ),
    Advised(
        "refused/amp_under_a_flag_handed_on",
        "import amp where it is used instead of passing it on",
        (("with apex.scale_loss", "with amp.scale_loss"),),
    ),
    Advised(
        "refused/closure",
        "call closure() before the step and write optimizer.step()",
        (("    optimizer.step(closure)", "    closure()\n    optimizer.step()"),),
    ),
    Advised(
        "refused/wrappers_of_a_training_that_stays",
        "call closure() before the step and write optimizer.step()",
        (("train.py", "    optimizer.step(closure)", "    closure()\n    optimizer.step()"),),
    ),
    Advised(
        "refused/closure_through_a_wrapper",
        "call closure() before the step and write self.optimizer.step()",
        (
            (
                "        return self.optimizer.step(closure)",
                "        loss = closure()\n        self.optimizer.step()\n        return loss",
            ),
        ),
    ),
    Advised(
        "refused/context_returned",
        "with `scaled_loss.backward()` in it",
        (
            (
                "    def scaled(self, loss, optimizer, use_amp):\n"
                "        if use_amp:\n"
                "            return amp.scale_loss(loss, optimizer)\n"
                "        return contextlib.nullcontext(loss)\n",
                "    def backward(self, loss, optimizer, use_amp):\n"
                "        if use_amp:\n"
                "            with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
                "                scaled_loss.backward()\n"
                "        else:\n"
                "            loss.backward()\n"
                "        optimizer.step()\n",
            ),
        ),
        leads_to="AMP904",
    ),
    Advised(
        "refused/steps_without_overflow_read",
        "delete this and run again",
        (('        log(amp.state_dict()["loss_scaler0"]["unskipped"])\n', ""),),
    ),
    Advised(
        "refused/context_with_another_loss",
        "with `scaled_loss.backward()` in it",
        (
            (
                "        with (amp.scale_loss(loss, optimizer) if fp16 else nullcontext(loss / 2)) as scaled:\n"
                "            scaled.backward()\n",
                "        loss = loss if fp16 else loss / 2\n"
                "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
                "            scaled_loss.backward()\n",
            ),
        ),
    ),
    Advised(
        "refused/total_with_the_scaled_loss",
        "with `scaled_loss.backward()` in it",
        (
            (
                "            total = scaled_loss + penalty\n            total.backward()\n",
                "            scaled_loss.backward()\n",
            ),
        ),
    ),
    Advised(
        "refused/engine_of_another_package",
        "or delete EngineWrapper.backward() where nothing does",
        (
            ("if is_apex_available():\n    from apex import amp\n", ""),
            (
                "    def backward(self, loss):\n"
                '        """Compute gradients without counting micro steps."""\n'
                "        if self.zero_optimization():\n"
                "            self.optimizer.is_gradient_accumulation_boundary = self.is_gradient_accumulation_boundary()\n"
                "            self.optimizer.backward(loss)\n"
                "        elif self.amp_enabled():\n"
                "            # AMP delays unscaling between the boundaries\n"
                "            delay_unscale = not self.is_gradient_accumulation_boundary()\n"
                "            with amp.scale_loss(loss, self.optimizer, delay_unscale=delay_unscale) as scaled_loss:\n"
                "                scaled_loss.backward()\n"
                "        elif self.fp16_enabled():\n"
                "            self.optimizer.backward(loss)\n"
                "        else:\n"
                "            loss.backward()\n",
                "    pass\n",
            ),
        ),
    ),
    Advised(
        "refused/gradients_collected_by_a_helper",
        "read them inside `if self.seen % self.accumulate == 0:` and leave the rest where it is",
        (
            (
                "        self.norms.append(sum(p.grad.norm() for p in self.model.parameters()))\n",
                "",
            ),
            (
                "            if self.seen % self.accumulate == 0:\n",
                "            if self.seen % self.accumulate == 0:\n"
                "                self.norms.append(sum(p.grad.norm() for p in self.model.parameters()))\n",
            ),
        ),
    ),
    Advised(
        "refused/helper_steps_every_k",
        "read the gradients in step() straight before this step",
        (
            ("        clip(optimizer)\n        step(", "        step("),
            ("        optimizer.step()\n", "        clip(optimizer)\n        optimizer.step()\n"),
        ),
    ),
    Advised(
        "refused/helper_steps_under_tests",
        "put their steps under one test",
        (("        if not args.frozen_head:\n            step(head", "            step(head"),),
    ),
    Advised(
        "refused/helper_with_other_settings",
        "with the same settings",
        (("0.1, None)", '0.1, "O1")'),),
    ),
    Advised(
        "refused/inference_beside_autocast",
        "delete one of the two here",
        (('    if args.fp16:\n        model = amp.initialize(model, opt_level="O1")\n', ""),),
    ),
    Advised(
        "refused/initialized_elsewhere",
        "put the forward pass and the loss under",
        (
            (
                "def backward_step(args, loss, optimizer, model):\n",
                "def main(args, model, images):\n"
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                "    if args.fp16:\n"
                "        model, optimizer = amp.initialize(model, optimizer, opt_level='O1')\n"
                "    with torch.cuda.amp.autocast(enabled=args.fp16):\n"
                "        loss = model(images).sum()\n",
            ),
        ),
    ),
    Advised(
        "refused/teacher_asked_behind_a_training_of_a_library",
        "put it under `with torch.cuda.amp.autocast(enabled=...):` with what turns Apex on",
        (
            (
                "inference.py",
                "def scored(detector, images):",
                "def scored(detector, images, half):",
            ),
            ("inference.py", "def detected(model, images):", "def detected(model, images, half):"),
            ("inference.py", "= scored(model, images)", "= scored(model, images, half)"),
            (
                "inference.py",
                "        return detector(images)",
                "        with torch.cuda.amp.autocast(enabled=half):\n"
                "            return detector(images)",
            ),
            ("main.py", "(teacher, images)", '(teacher, images, optimizer_config["use_fp16"])'),
            (
                "main.py",
                "detected(model, images)",
                'detected(model, images, optimizer_config["use_fp16"])',
            ),
            (
                "main.py",
                "scored(model, images)",
                'scored(model, images, optimizer_config["use_fp16"])',
            ),
        ),
    ),
    Advised(
        "refused/initialized_on_two_ways",
        "keep one of the two, for both ways to get a model",
        (
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
                "    optimizer.load",
                "    optimizer.load",
            ),
            (
                "        optimizer = torch.optim.Adam(model.parameters())\n"
                "        model, optimizer = amp.init",
                "        optimizer = torch.optim.Adam(model.parameters())\n"
                "    model, optimizer = amp.init",
            ),
        ),
    ),
    Advised(
        "refused/input_gradient_in_the_step",
        "call optimizer.zero_grad() behind it",
        (
            (
                "        loss.backward()\n",
                "        loss.backward()\n        optimizer.zero_grad()\n",
            ),
        ),
    ),
    Advised(
        "refused/input_gradient_in_the_step",
        "use torch.autograd.grad here",
        (
            ("        loss.backward()\n", "        (grad,) = torch.autograd.grad(loss, x)\n"),
            ("x.grad.sign", "grad.sign"),
        ),
    ),
    Advised(
        "refused/lazy_init_ritual",
        "delete the lines that restore master weights",
        (
            (
                "    optimizer._lazy_init_maybe_master_weights()\n"
                "    optimizer._amp_stash.lazy_init_called = True\n"
                '    for param, saved in zip(amp.master_params(optimizer), state["master params"]):\n'
                "        param.data.copy_(saved.data)\n",
                "",
            ),
        ),
    ),
    Advised("refused/level_o3", 'write opt_level="O1"', (('"O3"', '"O1"'),)),
    Advised(
        "refused/backward_for_an_optimizer_of_the_caller",
        "change the code so that gradients are touched only between the last backward and the step",
        (
            (
                "        other.backward()\n        outer.step()\n        outer.zero_grad()\n",
                "        (gradient,) = torch.autograd.grad(other, weights)\n        outer.apply(gradient)\n",
            ),
        ),
    ),
    *(
        Advised(
            f"refused/{name}",
            "change the code so that gradients are touched only between the last backward and the step",
            (
                (
                    "            shift.backward()\n            self.domain_optimizer.step()\n            self.domain_optimizer.zero_grad()\n",
                    "            self.domain_optimizer.apply(torch.autograd.grad(shift, self.domains))\n",
                ),
                (
                    "import torch.nn.functional as F\nfrom apex import amp\n\nfrom",
                    "import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\nfrom",
                ),
            ),
        )
        for name in ("optimizer_beside_its_schedule", "optimizer_of_a_library_beside_its_schedule")
    ),
    Advised(
        "refused/level_o3_of_what_a_library_may_train",
        'write opt_level="O1" and run again',
        (('"O3"', '"O1"'),),
    ),
    Advised(
        "refused/level_o3_behind_a_training",
        "call it before that one and run again",
        (
            ('    teacher = amp.initialize(teacher, opt_level="O3")\n', ""),
            (
                "    student, optimizer =",
                '    teacher = amp.initialize(teacher, opt_level="O3")\n    student, optimizer =',
            ),
        ),
    ),
    Advised(
        "internals/loss_scaler_read",
        "scale by a number of your own",
        (
            (
                "        self.scaler = amp.scaler.LossScaler(2**14)\n",
                "        self.scale = 2**14\n",
            ),
            ("self.scaler.loss_scale()", "self.scale"),
        ),
    ),
    Advised(
        "refused/mmcv_batch_processor_apart",
        "put its forward passes and losses under",
        (
            (
                '    features = model.module.extract(data["img"])\n'
                '    return dict(loss=model.module.head.loss(features, data["gt"]))\n',
                "    with torch.cuda.amp.autocast():\n"
                '        features = model.module.extract(data["img"])\n'
                '        return dict(loss=model.module.head.loss(features, data["gt"]))\n',
            ),
        ),
    ),
    Advised(
        "refused/mmcv_processor_for_a_second_network",
        "put it under `with torch.cuda.amp.autocast(enabled=...):` with what turns Apex on",
        (
            ("def run_batch", "MIXED = True\n\n\ndef run_batch"),
            (
                "    cost, losses = net(batch)\n",
                "    with torch.cuda.amp.autocast(enabled=MIXED):\n        cost, losses = net(batch)\n",
            ),
            ('settings["mixed"]', "MIXED"),
        ),
    ),
    Advised(
        "refused/amp_handed_on_beside_native",
        "delete what uses Apex here and keep native AMP",
        (
            ("ladder.py", '    if options.numbers == "O2":\n        amp = classic()\n', ""),
            ("ladder.py", "def classic():\n    from apex import amp\n\n    return amp\n\n\n", ""),
        ),
    ),
    Advised(
        "refused/mmcv_runner_gets_a_second_network",
        "put it under `with torch.cuda.amp.autocast(enabled=...):` with what turns Apex on",
        (
            (
                "    losses = net(batch)\n",
                "    with torch.cuda.amp.autocast(enabled=True):\n        losses = net(batch)\n",
            ),
        ),
    ),
    Advised(
        "refused/mmcv_own_forward",
        "put its forward passes and losses under",
        (
            (
                '        x = data["img"]\n        return dict(',
                '        x = data["img"]\n'
                "        with torch.cuda.amp.autocast():\n"
                "            return dict(",
            ),
        ),
    ),
    Advised(
        "refused/norm_collected_where_nothing_trains",
        "report them inside `if active:` alone",
        (
            (
                "            history.append((phase, loss.item(), gradient_norm(network)))\n            if active:\n",
                "            if active:\n                history.append((phase, loss.item(), gradient_norm(network)))\n",
            ),
        ),
    ),
    Advised(
        "refused/norm_collected_with_the_loss",
        "leave the rest where it is",
        (
            ("(phase, loss.item(), gradient_norm(network))", "(phase, loss.item())"),
            (
                "% 2 == 0:\n",
                "% 2 == 0:\n            history.append((phase, gradient_norm(network)))\n",
            ),
        ),
    ),
    Advised(
        "refused/norm_told_where_no_step_follows",
        "change the code so that gradients are touched only between the last backward and the step",
        (
            (
                "        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n"
                "        self.norms.append(float(norm))\n"
                "        if training and norm < limit:\n"
                "            self.optimizer.step()\n",
                "            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n"
                "            self.norms.append(float(norm))\n"
                "            if norm < limit:\n"
                "                self.optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "refused/level_o3_trained_elsewhere",
        'write opt_level="O1" and run again',
        (('opt_level="O3"', 'opt_level="O1"'),),
    ),
    Advised(
        "refused/optimizer_of_an_evaluation_handed_on",
        "or delete this call where nothing does",
        (
            (
                '    net, optimizer = amp.initialize(net, optimizer, opt_level="O1", enabled=half)\n',
                "",
            ),
            ("from apex import amp\n", ""),
        ),
    ),
    Advised(
        "refused/casts_disabled_while_scaling",
        "call a function of its own here",
        (
            (
                "def main():\n",
                "def clean_loss(model, batches):\n"
                "    with torch.no_grad():\n"
                "        return sum(F.cross_entropy(model(x), y).item() for x, y in batches)\n"
                "\n\ndef main():\n",
            ),
            (
                "            print(repr(robust_loss(model, batches, optimizer, half)))\n",
                "            print(repr(clean_loss(model, batches)))\n",
            ),
        ),
    ),
    Advised(
        "older/left_handle_without_optimizer",
        "write `optimizer = handle.wrap_optimizer(optimizer)` and `with optimizer.scale_loss(loss)`",
        (
            ("amp.init()\n", "handle = amp.init()\n"),
            ("    for x, y", "    optimizer = handle.wrap_optimizer(optimizer)\n    for x, y"),
            (
                "        torch.nn.functional.mse_loss(model(x), y).backward()\n",
                "        loss = torch.nn.functional.mse_loss(model(x), y)\n"
                "        with optimizer.scale_loss(loss) as scaled:\n            scaled.backward()\n",
            ),
        ),
    ),
    Advised(
        "older/left_handle_as_a_value",
        "delete this use of the handle",
        (("    log(handle)\n", ""),),
    ),
    Advised(
        "older/left_clip_of_copies",
        "write optimizer.clip_master_grads(max_norm) where clipping is meant",
        (
            (
                "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                "optimizer.clip_master_grads(1.0)",
            ),
        ),
    ),
    Advised(
        "older/left_fused_clip",
        "give FusedAdam max_grad_norm where clipping is meant",
        (
            (
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)\n",
                "",
            ),
            ("bias_correction=False)", "bias_correction=False, max_grad_norm=args.max_grad_norm)"),
        ),
    ),
    Advised(
        "older/left_fused_of_torch",
        "make a FusedAdam of apex.optimizers in the function that wraps it",
        (
            ("import FP16_Optimizer", "import FP16_Optimizer, FusedAdam"),
            ("torch.optim.Adam(", "FusedAdam("),
        ),
    ),
    Advised(
        "older/left_fused_of_the_project",
        "make a FusedAdam of apex.optimizers in the function that wraps it",
        (
            ("import FP16_Optimizer", "import FP16_Optimizer, FusedAdam"),
            ("class FusedAdam(", "class OwnAdam("),
        ),
    ),
    Advised(
        "older/left_handle_before_an_unknown_network",
        "call amp.init behind what makes the network",
        (
            (
                "    amp.init(enabled=True)\n    net = load(name)\n",
                "    net = load(name)\n    amp.init(enabled=True)\n",
            ),
        ),
    ),
    Advised(
        "older/left_handle_by_a_flag_set_behind",
        "call amp.init behind what makes the network",
        (
            ("    if options.half:\n        amp.init()\n", ""),
            ("eval()\n", "eval()\n    if options.half:\n        amp.init()\n"),
        ),
    ),
    Advised(
        "refused/initialize_as_a_value",
        "call amp.initialize where it is to run",
        (
            ("started(start, model, rate)", "started(model, rate)"),
            ("return start(", "return amp.initialize("),
            ("started(amp.initialize, model, 0.1)", "started(model, 0.1)"),
        ),
    ),
    Advised(
        "older/left_fused_flag_elsewhere",
        "ask `if args.fp16:` of one flag where FP16_Optimizer is called",
        (
            (
                "def build(model, half, lr):\n    if half:",
                "def build(model, args):\n    if args.fp16:",
            ),
            ("lr=lr", "lr=args.lr"),
            ('build(model, config["fp16"], config["lr"])', "build(model, args)"),
            ("def train(model, config, batches)", "def train(model, args, batches)"),
            ('if config["fp16"]:', "if args.fp16:"),
        ),
    ),
    Advised(
        "older/left_fused_eps",
        "delete it and look at `eps` again",
        ((", eps_inside_sqrt=True", ""),),
    ),
    Advised(
        "older/left_fused_gradients_of_the_last_window",
        "read no gradients",
        (
            (
                "        for kept, p in zip(last, model.parameters()):\n            p.grad.add_(kept * momentum)\n",
                "",
            ),
            ("        last = [p.grad.clone() for p in model.parameters()]\n", ""),
        ),
    ),
    Advised(
        "older/left_fused_read",
        "read no gradients",
        (
            (
                "        norm = torch.stack([p.grad.float().norm() for p in self.model.parameters()]).norm()\n",
                "",
            ),
            (
                '        self.writer.add_scalar("grad_norm", norm / self.optimizer.cur_scale, number)\n',
                "",
            ),
        ),
    ),
    Advised(
        "older/left_deferred",
        "call optimizer.update_master_grads() in front of it",
        (("        if step % every == 0:\n    ", ""),),
    ),
    Advised(
        "older/left_isinstance",
        "ask the flag that turns fp16 on instead",
        (
            ("        if isinstance(optimizer, FP16_Optimizer):\n    ", ""),
            ("        else:\n            loss.backward()\n", ""),
        ),
    ),
    Advised(
        "older/left_masters_read",
        "delete this use",
        (
            (
                "        for group in optimizer.fp32_from_fp16_groups:\n"
                "            log(sum(p.norm() for p in group))\n",
                "",
            ),
        ),
    ),
    Advised(
        "older/left_part_of_the_network",
        "keep the network itself in a variable and use that here",
        (
            ("model = network_to_half(model)", "net = model\n    model = network_to_half(net)"),
            ("model[1].state_dict()", "net.state_dict()"),
        ),
    ),
    Advised(
        "refused/options_out_of_sight",
        "write the options into the call of amp.initialize",
        (
            ('**preset("O1")', 'opt_level="O1"'),
            ("**json.load(file)", 'opt_level="O1"'),
        ),
    ),
    Advised(
        "internals/overflow_accumulated",
        "delete this and run again",
        (
            ("        print(any_overflow())\n", ""),
            (
                "\n"
                "\n"
                "def any_overflow():\n"
                "    return any(s._has_overflow for s in amp._amp_state.loss_scalers)\n",
                "",
            ),
        ),
    ),
    Advised(
        "internals/overflow_before_step",
        "ask in the code that calls a function which does the backward and the step",
        (
            (
                "        if not amp._amp_state.loss_scalers[0]._has_overflow:\n"
                "            optimizer.step()\n",
                "        optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "refused/plain_backward_beside",
        "call optimizer.zero_grad() behind it",
        (
            (
                "        loss_critic.backward()\n",
                "        loss_critic.backward()\n        optimizer.zero_grad()\n",
            ),
        ),
    ),
    Advised(
        "refused/plain_backward_in_another_method",
        "call self.optimizer.zero_grad() behind it",
        (
            (
                "        self.optimizer_critic.zero_grad()\n",
                "        self.optimizer_critic.zero_grad()\n        self.optimizer.zero_grad()\n",
            ),
            (
                "        for i, (x, y) in enumerate(loader):\n"
                "            self.train_step(i, x, y)\n"
                "            self.train_critic(x)\n",
                "        for i, (x, y) in enumerate(loader):\n"
                "            self.train_step(i, x, y)\n"
                "            if (i + 1) % 4 == 0:\n"
                "                self.train_critic(x)\n",
            ),
        ),
    ),
    Advised(
        "refused/registered_hook",
        "put the forward pass and the loss under",
        (
            (
                '        loss = runner.outputs["loss"]\n',
                "        with torch.cuda.amp.autocast():\n"
                "            loss = runner.model(runner.batch).sum()\n",
            ),
        ),
    ),
    Advised(
        "refused/rehearsal_that_steps",
        "read them after the last backward",
        (
            ("    print(torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0))\n", ""),
            (
                "    optimizer.step()\n",
                "    print(torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0))\n"
                "    optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "internals/scale_moved_by_hand",
        "leave the check and the scale to amp.scale_loss and optimizer.step()",
        (
            (", delay_overflow_check=True", ""),
            (
                "        scaler = amp._amp_state.loss_scalers[0]\n"
                "        for p in amp.master_params(self.optimizer):\n"
                "            dist.all_reduce(p.grad)\n"
                "            self.found += int(not torch.isfinite(p.grad).all())\n"
                "        scaler._overflow_buf = self.found\n"
                "        if not scaler.update_scale():\n"
                "            self.optimizer.step()\n"
                "        else:\n"
                "            self.optimizer._amp_stash.all_fp32_from_fp16_params.clear()\n"
                "        self.found.zero_()\n",
                "        self.optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "internals/scales_set_in_loop",
        "write the body once, without the loop",
        (
            (
                "        for scaler in amp._amp_state.loss_scalers:\n"
                "            scaler._loss_scale = max(scaler._loss_scale, 128.0)\n",
                "        amp._amp_state.loss_scalers[0]._loss_scale = max(amp._amp_state.loss_scalers[0]._loss_scale, 128.0)\n",
            ),
        ),
    ),
    Advised(
        "refused/skipped_line", "remove the comment and run again", (("  # amp-migrate: skip", ""),)
    ),
    Advised(
        "refused/stash_asked_for",
        "ask the flag that turns AMP on instead",
        (
            (
                '        if not hasattr(optimizer, "_amp_stash"):\n            loss = loss * 128\n',
                "",
            ),
        ),
    ),
    Advised(
        "refused/stash_asked_for_by_a_helper",
        "ask the flag that turns AMP on instead",
        (
            (
                "stepping.py",
                '    if hasattr(optimizer, "_amp_stash"):\n        torch',
                "    if True:\n        torch",
            ),
        ),
    ),
    Advised(
        "refused/step_in_a_conditional_expression",
        "write optimizer.step() as a statement of its own, under an `if`",
        (
            (
                "        stepped = optimizer.step() if torch.isfinite(loss) else None\n",
                "        stepped = None\n"
                "        if torch.isfinite(loss):\n"
                "            stepped = optimizer.step()\n",
            ),
        ),
    ),
    Advised(
        "refused/step_in_a_lambda_of_a_table",
        "write optimizer.step() as a statement of its own",
        (
            ('    tools = {"advance": lambda: optimizer.step()}\n', ""),
            ('tools["advance"]()', "optimizer.step()"),
        ),
    ),
    Advised(
        "refused/step_inside_a_library",
        "give amp-migrate the files that do",
        (("network.adaptive.step()", "optimizer.step()"),),
    ),
    Advised(
        "refused/initialized_again_by_another_level",
        "call build() with the same settings for both",
        (('    if level != "O0":\n        level = "O0"\n', ""),),
    ),
    Advised(
        "refused/step_out_of_sight",
        "give amp-migrate the files that step optimizer as well",
        (
            (
                "        loop.finish_iteration()\n",
                "        optimizer.step()\n        loop.finish_iteration()\n",
            ),
        ),
    ),
    Advised(
        "refused/stepper_of_another_file_handed_on",
        "let code of the files given call Scheduled.step() itself",
        (
            ("main.py", "from engine import Engine\n", ""),
            ("main.py", "    engine = Engine(after_backward=scheduled.step)\n", ""),
            ("main.py", "        engine.done()\n", "        scheduled.step()\n"),
        ),
    ),
    Advised(
        "refused/trainer_without_apex_beside",
        "make the Student in a function of its own",
        (
            ("    student = Student(networks[1], second)\n", ""),
            (
                "        print(teacher.update(images, labels), student.update(images, labels))\n",
                "        print(teacher.update(images, labels))\n"
                "\n"
                "\n"
                "def alone():\n"
                "    network = nn.Linear(6, 3)\n"
                "    student = Student(network, torch.optim.SGD(network.parameters(), lr=0.1))\n"
                "    for _ in range(6):\n"
                "        print(student.update(torch.randn(5, 6), torch.randint(3, (5,))))\n",
            ),
            ("    main()\n", "    main()\n    alone()\n"),
        ),
    ),
    Advised(
        "refused/network_loaded_at_the_first_call",
        "delete this call, and put the forward pass of _vocoder under `with torch.cuda.amp.autocast(enabled=...):`",
        (
            (
                "        if half:\n            from apex import amp\n\n"
                '            _vocoder, _ = amp.initialize(_vocoder, [], opt_level="O1")\n',
                "",
            ),
            (
                "    audio = _vocoder(mel.cuda())\n",
                "    with torch.cuda.amp.autocast(enabled=half):\n        audio = _vocoder(mel.cuda())\n",
            ),
        ),
    ),
    Advised(
        "refused/scaler_anew_in_each_fold",
        "call amp.initialize once, before the training loop",
        (
            (
                "if args.half:\n    for fold in range(3):\n",
                "if args.half:\n    net = nn.Linear(6, 3)\n    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
                '    net, opt = amp.initialize(net, opt, opt_level="O1")\n    for fold in range(3):\n',
            ),
            (
                "        net = nn.Linear(6, 3)\n        opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
                '        net, opt = amp.initialize(net, opt, opt_level="O1")\n',
                "",
            ),
        ),
    ),
    Advised(
        "refused/amp_or_none_by_an_option_that_changes",
        "keep a flag for AMP in place of `self._amp` and import amp where it is used",
        (
            (
                '        self._amp = None\n        if self.settings.precision == "mixed":\n'
                "            from apex import amp\n\n            self._amp = amp\n",
                '        self.mixed = self.settings.precision == "mixed"\n',
            ),
            ("import torch.nn as nn\n", "import torch.nn as nn\nfrom apex import amp\n"),
            (
                "        if self._amp is not None:\n            model,",
                "        if self.mixed:\n            model,",
            ),
            (
                "        if self._amp is not None:\n            with",
                "        if self.mixed:\n            with",
            ),
            ("if self._amp is not None else model", "if self.mixed else model"),
            ("if self._amp is not None else {}", "if self.mixed else {}"),
            ("self._amp.initialize", "amp.initialize"),
            ("self._amp.scale_loss", "amp.scale_loss"),
            ("self._amp.master_params", "amp.master_params"),
            ("self._amp.state_dict", "amp.state_dict"),
        ),
    ),
    Advised(
        "refused/helpers_with_settings_of_their_files",
        "call prepared() with the same settings for both",
        (("second.py", 'SCALE = "dynamic"', "SCALE = 128.0"),),
    ),
    Advised(
        "refused/level_set_in_the_arm_that_trains",
        "set `level` before the test around amp.initialize",
        (
            ("        level = args.level\n", ""),
            ('    level = "O0"\n', "    level = args.level\n"),
        ),
    ),
    Advised(
        "refused/step_through_a_wrapper_before_the_training",
        "delete the step before the first backward",
        (("    updater.step()\n    schedule.step()\n    for", "    schedule.step()\n    for"),),
    ),
    Advised(
        "refused/level_set_behind_an_early_return",
        "set that above this test",
        (
            (
                '        if not options["half"]:\n            return\n        level = "O1" if options["safe"] else "O0"\n',
                '        level = "O1" if options["safe"] else "O0"\n        if not options["half"]:\n            return\n',
            ),
        ),
    ),
    Advised(
        "refused/settings_of_apex_itself",
        "delete this use, then run again",
        (("amp._amp_state.hard_override = True\n", ""),),
    ),
    Advised(
        "refused/gradients_kept_past_an_update",
        "run one backward for each step and change its gradients",
        (
            (
                "    with amp.scale_loss(F.mse_loss(net(x + noise), x[:, :2]), optimizer) as scaled:\n"
                "        scaled.backward()\n"
                "    noisy = [p.grad.clone() for p in net.parameters()]\n"
                "    optimizer.zero_grad()\n",
                "",
            ),
            ("for p, other in zip(net.parameters(), noisy)", "for p in net.parameters()"),
            ("add_(other, alpha=0.5)", "add_(torch.randn_like(p), alpha=0.01)"),
        ),
    ),
    Advised(
        "refused/gradients_of_tasks_projected",
        "run one backward for each step and change its gradients",
        (
            (
                "        for loss in losses:\n"
                "            self.optimizer.zero_grad()\n"
                "            with amp.scale_loss(loss, self.optimizer) as scaled:\n"
                "                scaled.backward(retain_graph=True)\n"
                "            each.append(torch.cat([p.grad.flatten().clone() for p in self.weights()]))\n",
                "        self.optimizer.zero_grad()\n"
                "        with amp.scale_loss(loss, self.optimizer) as scaled:\n"
                "            scaled.backward()\n"
                "        each.append(torch.cat([p.grad.flatten().clone() for p in self.weights()]))\n",
            ),
            ("    def backward(self, losses):\n", "    def backward(self, loss):\n"),
            (
                "        losses = [F.mse_loss(out[:, 0], x[:, 0]), F.mse_loss(out[:, 1], -x[:, 0])]\n"
                "        surgery.backward(losses)\n",
                "        loss = F.mse_loss(out[:, 0], x[:, 0]) + F.mse_loss(out[:, 1], -x[:, 0])\n"
                "        surgery.backward(loss)\n",
            ),
            (
                "            total = total + own\n        self.optimizer.zero_grad()\n",
                "            total = total + own\n",
            ),
        ),
    ),
    Advised(
        "refused/flag_of_every_other_fold",
        "give all that is trained here the same setting",
        (("options.half and fold % 2 == 0", "options.half"),),
    ),
    Advised(
        "refused/step_taken_early",
        "write optimizer.step() here",
        (
            ("            advance()\n", "            optimizer.step()\n"),
            ("        step()\n", "        optimizer.step()\n"),
        ),
    ),
    Advised(
        "refused/steps_in_a_list",
        "keep slow and fast instead",
        (
            (
                "    for step in [slow.step, fast.step]:\n        step()\n",
                "    for optimizer in [slow, fast]:\n        optimizer.step()\n",
            ),
        ),
    ),
)
