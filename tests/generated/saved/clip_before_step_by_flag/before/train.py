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
    parser.add_argument("--fp16", action="store_true", help="16-bit (mixed) precision training")
    args = parser.parse_args()
    torch.manual_seed(7)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    train_loader = make_batches(6)

    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

    stepped = 0
    optimizer.zero_grad()
    model.train()
    running_loss = 0.0
    for i, (images, labels) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, labels)
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        running_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
        if args.fp16:
            optimizer.step()
            stepped += 1
        else:
            optimizer.step()
        optimizer.zero_grad()
    print("average", running_loss)


if __name__ == "__main__":
    main()
