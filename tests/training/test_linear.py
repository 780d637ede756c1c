"""What is made of gradients by linear maps alone, and put back into them, may run before or behind the division by a scale."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.training.gradients.linear import Linear

_LINEAR = {
    "summed over processes in one tensor": """
        grads = []
        for p in params:
            if p.grad is not None:
                grads.append(p.grad)
        flat = torch.cat([g.view(-1) for g in grads])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        start = 0
        for g in grads:
            g.copy_(flat[start : start + g.numel()].view_as(g))
            start += g.numel()
        """,
    "in buckets of their types": """
        buckets = {}
        for p in params:
            kind = p.grad.data.type()
            if kind not in buckets:
                buckets[kind] = []
            buckets[kind].append(p.grad.data)
        for bucket in buckets.values():
            flat = _flatten_dense_tensors(bucket)
            dist.all_reduce(flat)
            for g, synced in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
                g.copy_(synced / 2)
        """,
    "by a helper": """
        average([p.grad for p in params])
        """,
    "through what a helper gives back": """
        for p in params:
            p.grad = half(p.grad)
        """,
    "added to zeros": """
        total = torch.zeros(3)
        for p in params:
            total += p.grad
        for p in params:
            p.grad.copy_(total)
        """,
    "bound anew in every window": """
        for batch in batches:
            loss = run(batch)
            loss.backward()
            grads = [p.grad for p in params]
            average(grads)
            optimizer.step()
        """,
    "bound anew on both ways to where they are read": """
        for batch in batches:
            run(batch).backward()
            if small(batch):
                grads = [p.grad.data for p in params]
            else:
                grads = [p.grad for p in params if p.grad is not None]
            average(grads)
            optimizer.step()
        """,
    "side by side with a number": """
        filled = 0
        for p in params:
            piece, filled = [p.grad], filled + p.grad.numel()
            if filled > 10:
                average(piece)
        """,
    "beside a buffer of their type": """
        room = params[0].grad.new(10).zero_()
        for p in params:
            room[: p.grad.numel()].copy_(p.grad.view(-1))
            p.grad.view(-1).copy_(room[: p.grad.numel()])
        """,
    "with handles that are waited for": """
        handles = [dist.all_reduce(p.grad, async_op=True) for p in params]
        for handle in handles:
            handle.wait()
        """,
}
_READ = {
    "summed up over windows": """
        total = torch.zeros(3)
        for batch in batches:
            run(batch).backward()
            total += params[0].grad
            params[0].grad.copy_(total)
            optimizer.step()
        """,
    "bound anew to what it was": """
        grads = [p.grad for p in params]
        for batch in batches:
            run(batch).backward()
            grads = [g + p.grad for g, p in zip(grads, params)]
            average(grads)
            optimizer.step()
        """,
    "kept for the next window on one way": """
        grads = []
        for batch in batches:
            run(batch).backward()
            if small(batch):
                grads = [p.grad for p in params]
            average(grads)
            optimizer.step()
        """,
    "collected over windows": """
        grads = []
        for batch in batches:
            run(batch).backward()
            grads.append(params[0].grad)
            optimizer.step()
        average(grads)
        """,
    "read behind the step": """
        for batch in batches:
            run(batch).backward()
            grads = [p.grad.clone() for p in params]
            optimizer.step()
            for p, g in zip(params, grads):
                p.grad.add_(g)
        """,
    "clamped on the way": """
        flat = torch.cat([p.grad.view(-1) for p in params])
        for p in params:
            p.grad.copy_(flat.clamp(-1, 1))
        """,
    "printed": """
        flat = torch.cat([p.grad.view(-1) for p in params])
        print(flat)
        """,
    "kept by an object": """
        self.flat = torch.cat([p.grad.view(-1) for p in params])
        """,
    "kept by a list of the caller": """
        for p in params:
            kept.append(p.grad)
        """,
    "multiplied by themselves": """
        grads = [p.grad for p in params]
        for g in grads:
            g.mul_(grads[0])
        """,
    "divided by their own sum": """
        grads = [p.grad for p in params]
        total = sum(grads)
        for g in grads:
            g.div_(total)
        """,
    "added to weights": """
        for p in params:
            flat = p.grad.view(-1)
            p.data.add_(flat)
        """,
    "mixed with noise": """
        flat = torch.cat([p.grad.view(-1) for p in params])
        flat += torch.randn(3)
        for p in params:
            p.grad.copy_(flat)
        """,
    "divided by the loss scale": """
        grads = [p.grad for p in params]
        for g in grads:
            g.div_(self.scaler.get_scale())
        """,
    "given other data": """
        grads = [p.grad for p in params]
        for g in grads:
            g.data = torch.randn(3)
        """,
    "decayed": """
        for g, p in [(p.grad, p) for p in params]:
            g.add_(p.data, alpha=0.1)
        """,
    "taken out of pairs": """
        pairs = list(zip([p.grad for p in params], params))
        for g, p in pairs:
            g.add_(p, alpha=0.1)
        """,
    "compared": """
        flat = torch.cat([p.grad.view(-1) for p in params])
        if (flat > 3).any():
            return
        """,
    "given back": """
        return [p.grad for p in params]
        """,
    "carried over a step": """
        total = torch.zeros(3)
        for batch in batches:
            total += params[0].grad
            optimizer.step()
            params[0].grad.copy_(total)
        """,
    "carried over what a parameter runs": """
        total = torch.zeros(3)
        for batch in batches:
            total += params[0].grad
            run(batch)
            params[0].grad.copy_(total)
        """,
    "of a helper that reads them": """
        report([p.grad for p in params])
        """,
    "yielded": """
        for p in params:
            yield p.grad
        """,
    "another binding of what is copied": """
        flat = torch.cat([p.grad.view(-1) for p in params])
        if small:
            flat = params[0].data
        for p in params:
            p.grad.copy_(flat)
        """,
}
_TEXT = """
import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

def average(grads):
    flat = torch.stack(grads)
    dist.all_reduce(flat)
    for own, other in zip(grads, flat.div_(2)):
        own.copy_(other)

def report(grads):
    print(sum(grads).norm())

def half(grad):
    return grad * 0.5

def change(self, params, kept, batches, optimizer, run, small):
"""


def _stays(body: str) -> bool:
    tree = Tree("train.py", _TEXT + indent(dedent(body), "    "))
    project = build({"train.py": tree}, ["."])
    linear = Linear(project)
    read = [
        n for n in tree.nodes(ast.Attribute) if n.attr == "grad" and isinstance(n.ctx, ast.Load)
    ]
    assert read
    return all(linear.stays(project.modules["train.py"], node) for node in read)


@pytest.mark.parametrize("body", _LINEAR.values(), ids=_LINEAR)
def test_is_linear(body: str) -> None:
    """Nothing of this tells gradients from their multiples."""
    assert _stays(body)


@pytest.mark.parametrize("body", _READ.values(), ids=_READ)
def test_is_a_read(body: str) -> None:
    """What is no linear map, or outlives the scale, reads gradients."""
    assert not _stays(body)
