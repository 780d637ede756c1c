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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--max_grad_norm", type=float, default=0.05)
    args = parser.parse_args()
    torch.manual_seed(7)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer_body = torch.optim.SGD(model.layers[:-1].parameters(), lr=args.lr, momentum=0.9)
    optimizer_head = torch.optim.SGD(model.layers[-1].parameters(), lr=args.lr, momentum=0.9)
    train_loader = make_batches(6)

    model, [optimizer_body, optimizer_head] = amp.initialize(
        model, [optimizer_body, optimizer_head], opt_level="O1"
    )

    model.zero_grad()
    model.train()
    running_loss = 0.0
    for i, (images, labels) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, labels)
        with amp.scale_loss(loss, [optimizer_body, optimizer_head]) as scaled_loss:
            scaled_loss.backward()
        running_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
        optimizer_body.step()
        optimizer_head.step()
        model.zero_grad()
    print("average", running_loss)


if __name__ == "__main__":
    main()
