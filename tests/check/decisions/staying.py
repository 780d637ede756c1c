"""Decisions on the programs of `fixtures/` taken wrongly: what has nothing to do with AMP written otherwise, or left out."""

from __future__ import annotations

from check.trainings.planted import Training
from fixture_support import cases

_WRONG = {
    'several/gan_loss_ids': {
        'drop Expr: before.py: torch.manual_seed(37)': (('torch.manual_seed(37)\n', ''),),
        'drop Expr: before.py: label.fill_(real_label)': (('    label.fill_(real_label)\n', ''),),
        'drop Expr: before.py: label.fill_(fake_label)': (('        label.fill_(fake_label)\n', ''),),
    },
    'several/gan_one_loss_each': {
        'clip of the other network': (('clip_grad_norm_(discriminator.parameters()', 'clip_grad_norm_(generator.parameters()'),),
        'clip of the other optimizer': (('clip_grad_norm_(discriminator.parameters()', "clip_grad_norm_([p for g in opt_g.param_groups for p in g['params']]"),),
        'clip of some parameters': (('clip_grad_norm_(discriminator.parameters()', 'clip_grad_norm_([p for p in discriminator.parameters() if p.ndim > 1]'),),
        'binop left: before.py: real = torch.randn(6, 3) * 0.5 + 1': (('        real = torch.randn(6, 3) * 0.5 + 1\n', '        real = torch.randn(6, 3) + 1\n'),),
        'number : before.py: real = torch.randn(6, 3) * 0.5 + 1': (('        real = torch.randn(6, 3) * 0.5 + 1\n', '        real = torch.randn(6, 6) * 0.5 + 1\n'),),
        'call dropped .item: before.py: d_loss.item()': (('        print(repr(d_loss.item()), repr(g_loss.item()))\n', '        print(repr(d_loss), repr(g_loss.item()))\n'),),
        'call dropped .detach: before.py: fake.detach()': (('            d_fake = discriminator(fake.detach())\n', '            d_fake = discriminator(fake)\n'),),
        'call dropped .mean: before.py: F.relu(1 - d_real).mean()': (('            d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()\n', '            d_loss = F.relu(1 - d_real) + F.relu(1 + d_fake).mean()\n'),),
        'binop left: before.py: d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()': (('            d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()\n', '            d_loss = F.relu(1 - d_real).mean() + F.relu(1).mean()\n'),),
        'number : before.py: z = torch.randn(6, 2)': (('        z = torch.randn(6, 2)\n', '        z = torch.randn(6, 5)\n'),),
        'call dropped .item: before.py: g_loss.item()': (('        print(repr(d_loss.item()), repr(g_loss.item()))\n', '        print(repr(d_loss.item()), repr(g_loss))\n'),),
        'call dropped .mean: before.py: F.relu(1 + d_fake).mean()': (('            d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()\n', '            d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake)\n'),),
        'number : before.py: d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()': (('            d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()\n', '            d_loss = F.relu(1 - d_real).mean() + F.relu(4 + d_fake).mean()\n'),),
        'call dropped .mean: before.py: discriminator(fake).mean()': (('            g_loss = -discriminator(fake).mean()\n', '            g_loss = -discriminator(fake)\n'),),
    },
    'accumulate/every_k': {
        'drop Expr: before.py: torch.manual_seed(5)': (('    torch.manual_seed(5)\n', ''),),
        'number : before.py: torch.manual_seed(5)': (('    torch.manual_seed(5)\n', '    torch.manual_seed(8)\n'),),
        'test inverted: before.py: (i + 1) % accumulation == 0': (('        if (i + 1) % accumulation == 0:\n', '        if not ((i + 1) % accumulation == 0):\n'),),
        'call dropped .item: before.py: loss.item()': (('        print(i, repr(loss.item()))\n', '        print(i, repr(loss))\n'),),
        'call dropped .detach: before.py: p.detach()': (('        sha.update(p.detach().numpy().tobytes())\n', '        sha.update(p.numpy().tobytes())\n'),),
        'binop left: before.py: loss = loss / accumulation': (('            loss = loss / accumulation\n', '            loss = loss\n'),),
        'number : before.py: accumulation = 4': (('    accumulation = 4\n', '    accumulation = 7\n'),),
        'number : before.py: model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Adap': (('        nn.Conv2d(3, 6, 3, padding=1),\n', '        nn.Conv2d(3, 6, 3, padding=4),\n'),),
        'number : before.py: optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)': (('    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)\n', '    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=3.0, nesterov=True)\n'),),
        'number : before.py: images = torch.randn(4, 3, 8, 8)': (('        images = torch.randn(4, 3, 8, 8)\n', '        images = torch.randn(4, 3, 8, 11)\n'),),
        'number : before.py: labels = torch.randint(0, 4, (4,))': (('        labels = torch.randint(0, 4, (4,))\n', '        labels = torch.randint(0, 4, (7,))\n'),),
    },
    'clip/norm_logged': {
        'drop Expr: before.py: torch.manual_seed(29)': (('    torch.manual_seed(29)\n', ''),),
        'number : before.py: torch.manual_seed(29)': (('    torch.manual_seed(29)\n', '    torch.manual_seed(32)\n'),),
        'call dropped .detach: before.py: vector.detach()': (('    print(hashlib.sha256(vector.detach().numpy().tobytes()).hexdigest())\n', '    print(hashlib.sha256(vector.numpy().tobytes()).hexdigest())\n'),),
        'call dropped .item: before.py: loss.item()': (('        print(repr(loss.item()), repr(float(grad_norm)))\n', '        print(repr(loss), repr(float(grad_norm)))\n'),),
        'number : before.py: model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))': (('    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))\n', '    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 5))\n'),),
        "number : before.py: optimizer = torch.optim.SGD([{'params': model[2].parameters(), 'lr': 0.5}, {'params': mode": (('            {"params": model[0].parameters()},\n', '            {"params": model[3].parameters()},\n'),),
        'number : before.py: batches = [(torch.randn(9, 6), torch.randint(0, 2, (9,))) for _ in range(6)]': (('    batches = [(torch.randn(9, 6), torch.randint(0, 2, (9,))) for _ in range(6)]\n', '    batches = [(torch.randn(9, 6), torch.randint(0, 2, (12,))) for _ in range(6)]\n'),),
        'number : before.py: train(model, optimizer, batches, max_norm=0.3, scaler=scaler)': (('    train(model, optimizer, batches, max_norm=0.3, scaler=scaler)\n', '    train(model, optimizer, batches, max_norm=3.0, scaler=scaler)\n'),),
    },
    'evaluate/teacher': {
        'drop Expr: before.py: torch.manual_seed(73)': (('torch.manual_seed(73)\n', ''),),
    },
    'evaluate/inference_flagged': {
        'default changed: before.py: half': (('    def __init__(self, model, half=False):\n', '    def __init__(self, model, half=True):\n'),),
        'decorator dropped: before.py: torch.no_grad()': (('    @torch.no_grad()\n', ''),),
        'call dropped .cuda: before.py: torch.from_numpy(np.ascontiguousarray(image)).cuda()': (('        tensor = torch.from_numpy(np.ascontiguousarray(image)).cuda()\n', '        tensor = torch.from_numpy(np.ascontiguousarray(image))\n'),),
        'number : before.py: return scores.softmax(dim=1).cpu().numpy()': (('        return scores.softmax(dim=1).float().cpu().numpy()\n', '        return scores.softmax(dim=4).float().cpu().numpy()\n'),),
    },
    'checkpoint/trainer_methods': {
        "drop load_state_dict: before.py: self.model.load_state_dict(state['model'])": (('        self.model.load_state_dict(state["model"])\n', ''),),
    },
    'project/main_engine_checkpoint': {
        "drop load_state_dict: checkpoint.py: model.load_state_dict(state['model'])": (('    model.load_state_dict(state["model"])\n', ''),),
        'decorator dropped: engine.py: torch.no_grad()': (('@torch.no_grad()\n', ''),),
        'drop Expr: engine.py: model.train()': (('    model.train()\n', ''),),
        'number : engine.py: correct = 0': (('    correct = 0\n', '    correct = 3\n'),),
        'call dropped .item: engine.py: loss.item()': (('        print(epoch, repr(loss.item()))\n', '        print(epoch, repr(loss))\n'),),
        'call dropped .sum: engine.py: (outputs.argmax(1) == labels).sum()': (('        correct += (outputs.argmax(1) == labels).sum().item()\n', '        correct += outputs.argmax(1) == labels.item()\n'),),
        'helper given None: main.py: train_one_epoch(model, data[:4], optimizer, epoch, scaler)': (('        train_one_epoch(model, data[:4], optimizer, epoch, scaler)\n', '        train_one_epoch(model, data[:4], optimizer, epoch, None)\n'),),
        'helper arg swapped: main.py: train_one_epoch(model, data[:4], optimizer, epoch, scaler)': (('        train_one_epoch(model, data[:4], optimizer, epoch, scaler)\n', '        train_one_epoch(model, data[:4], optimizer, scaler, epoch)\n'),),
        "helper given off scaler: main.py: save_checkpoint('last.pt', model, optimizer, epoch, scaler)": (('        save_checkpoint("last.pt", model, optimizer, epoch, scaler)\n', '        save_checkpoint("last.pt", model, optimizer, epoch, torch.cuda.amp.GradScaler(enabled=False))\n'),),
        "drop load_state_dict: checkpoint.py: optimizer.load_state_dict(state['optimizer'])": (('    optimizer.load_state_dict(state["optimizer"])\n', ''),),
        'drop Expr: engine.py: model.eval()': (('    model.eval()\n', ''),),
    },
    'project/script_with_utils': {
        'default changed: run_task.py: prefix': (('def evaluate(args, model, prefix=""):\n', 'def evaluate(args, model, prefix=17):\n'),),
        'number : run_task.py: loader = DataLoader(train_dataset, sampler=SequentialSampler(train_dataset), batch_size=': (('    loader = DataLoader(train_dataset, sampler=SequentialSampler(train_dataset), batch_size=4)\n', '    loader = DataLoader(train_dataset, sampler=SequentialSampler(train_dataset), batch_size=7)\n'),),
        "drop load_state_dict: run_task.py: optimizer.load_state_dict(torch.load('optimizer.pt'))": (('        optimizer.load_state_dict(torch.load("optimizer.pt"))\n', '        pass\n'),),
        'drop Expr: run_task.py: model.train()': (('        model.train()\n', ''),),
        'call dropped .item: run_task.py: loss.item()': (('        tr_loss += loss.item()\n', '        tr_loss += loss\n'),),
        'test inverted: run_task.py: (step + 1) % args.gradient_accumulation_steps == 0': (('        if (step + 1) % args.gradient_accumulation_steps == 0:\n', '        if not ((step + 1) % args.gradient_accumulation_steps == 0):\n'),),
        'call dropped .mean: run_task.py: outputs[0].mean()': (('            eval_loss += outputs[0].mean().item()\n', '            eval_loss += outputs[0].item()\n'),),
        'binop left: run_task.py: loss = loss / args.gradient_accumulation_steps': (('                loss = loss / args.gradient_accumulation_steps\n', '                loss = loss\n'),),
        'number : run_task.py: optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, eps=1e-08)': (('    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, eps=1e-8)\n', '    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, eps=3.0)\n'),),
        'drop Expr: run_task.py: model.eval()': (('        model.eval()\n', ''),),
        'call dropped .item: run_task.py: outputs[0].mean().item()': (('            eval_loss += outputs[0].mean().item()\n', '            eval_loss += outputs[0].mean()\n'),),
    },
    'dual/installed_flag': {
        'test inverted: before.py: args.native_amp and has_native_amp': (('    if args.native_amp and has_native_amp:\n', '    if not (args.native_amp and has_native_amp):\n'),),
        'number : before.py: optimizer = torch.optim.SGD(model.parameters(), lr=0.1)': (('    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n', '    optimizer = torch.optim.SGD(model.parameters(), lr=3.0)\n'),),
        'test inverted: before.py: args.num_gpu > 1': (('    if args.num_gpu > 1:\n', '    if not (args.num_gpu > 1):\n'),),
        "test inverted: before.py: use_amp == 'native'": (('    if use_amp == "native":\n', "    if not (use_amp == 'native'):\n"),),
        'test inverted: before.py: has_native_amp': (('        if has_native_amp:\n', '        if not (has_native_amp):\n'),),
        'test inverted: before.py: args.apex_amp or args.native_amp': (('    elif args.apex_amp or args.native_amp:\n', '    elif not (args.apex_amp or args.native_amp):\n'),),
        'test inverted: before.py: args.local_rank == 0': (('    else:\n        if args.local_rank == 0:\n', '    else:\n        if not (args.local_rank == 0):\n'),),
        'test inverted: before.py: loss_scaler is not None': (('        if loss_scaler is not None:\n', '        if not (loss_scaler is not None):\n'),),
    },
    'simple/static_scale': {
        'drop Expr: before.py: torch.manual_seed(11)': (('torch.manual_seed(11)\n', ''),),
    },
    'simple/level_o2': {
        'wrap find_unused: before.py: torch.nn.DataParallel(unet)': (('unet = torch.nn.DataParallel(unet)\n', 'unet = torch.nn.DataParallel(unet, find_unused_parameters=True)\n'),),
        'wrap static: before.py: torch.nn.DataParallel(unet)': (('unet = torch.nn.DataParallel(unet)\n', 'unet = torch.nn.DataParallel(unet, static_graph=True)\n'),),
    },
    'autocast/helper_in_both_blocks': {
        'drop Expr: before.py: torch.manual_seed(17)': (('torch.manual_seed(17)\n', ''),),
        'number : before.py: self.S = nn.Linear(3, 4)': (('        self.S = nn.Linear(3, 4)\n', '        self.S = nn.Linear(3, 7)\n'),),
        'call dropped .item: before.py: shown.clone().detach().float().mean().item()': (('            print(repr(shown.clone().detach().float().mean().item()))\n', '            print(repr(shown.clone().detach().float().mean()))\n'),),
        'call dropped .mean: before.py: shown.clone().detach().float().mean()': (('            print(repr(shown.clone().detach().float().mean().item()))\n', '            print(repr(shown.clone().detach().float().item()))\n'),),
        'call dropped .float: before.py: shown.clone().detach().float()': (('            print(repr(shown.clone().detach().float().mean().item()))\n', '            print(repr(shown.clone().detach().mean().item()))\n'),),
        'call dropped .detach: before.py: shown.clone().detach()': (('            print(repr(shown.clone().detach().float().mean().item()))\n', '            print(repr(shown.clone().float().mean().item()))\n'),),
        'call dropped .clone: before.py: shown.clone()': (('            print(repr(shown.clone().detach().float().mean().item()))\n', '            print(repr(shown.detach().float().mean().item()))\n'),),
        'number : before.py: self.G = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))': (('        self.G = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))\n', '        self.G = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 5))\n'),),
        'call dropped .item: before.py: loss.item()': (('            print(repr(loss.item()))\n', '            print(repr(loss))\n'),),
        'number : before.py: self.optimizer = torch.optim.SGD(params, lr=0.1)': (('        self.optimizer = torch.optim.SGD(params, lr=0.1)\n', '        self.optimizer = torch.optim.SGD(params, lr=3.0)\n'),),
        'number : before.py: parts = styled(self.S, [(z, 2)])': (('            self.optimizer.zero_grad()\n            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n                parts = styled(self.S, [(z, 2)])\n', '            self.optimizer.zero_grad()\n            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n                parts = styled(self.S, [(z, 5)])\n'),),
    },
}  # fmt: skip
_CLAIMS = {"dual/installed_flag": (("AMP114", "before.py", 109),)}
STAYING = tuple(
    Training(case.name, case.before, case.after, _WRONG[case.name], _CLAIMS.get(case.name, ()))
    for case in cases()
    if case.name in _WRONG
)
