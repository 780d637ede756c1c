"""`apex.parallel`, over torch.distributed."""
