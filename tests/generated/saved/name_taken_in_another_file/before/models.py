import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(27, 12), nn.ReLU(), nn.Linear(12, 3))

    def forward(self, x):
        return self.layers(x)
