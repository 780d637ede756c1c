import argparse
import torch
import torch.nn as nn
from apex import amp


def make_batches(count):
    return [(torch.randn(6, 3, 3, 3), torch.randint(0, 3, (6,))) for _ in range(count)]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(27, 12), nn.ReLU(), nn.Linear(12, 3))

    def forward(self, x):
        return self.layers(x)


class BaseTrainer:
    def __init__(self, args, model, optimizer, train_loader, criterion):
        self.args = args
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.criterion = criterion
        self.model, self.optimizer = amp.initialize(
            self.model, self.optimizer, opt_level="O1"
        )

    def backward(self, loss):
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train(self):
        self.optimizer.zero_grad()
        self.model.train()
        for i, (images, labels) in enumerate(self.train_loader):
            loss = self.compute_loss(images, labels)
            self.backward(loss)
            print("loss", loss.item())
            self.update()

    def compute_loss(self, inputs, targets):
        raise NotImplementedError


class ClassifierTrainer(BaseTrainer):
    def compute_loss(self, images, labels):
        output = self.model(images)
        loss = self.criterion(output, labels)
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    torch.manual_seed(7)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    train_loader = make_batches(6)
    trainer = ClassifierTrainer(args, model, optimizer, train_loader, criterion)
    trainer.train()


if __name__ == "__main__":
    main()
