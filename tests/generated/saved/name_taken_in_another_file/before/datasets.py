import torch


def make_batches(count):
    return [(torch.randn(6, 3, 3, 3), torch.randint(0, 3, (6,))) for _ in range(count)]
