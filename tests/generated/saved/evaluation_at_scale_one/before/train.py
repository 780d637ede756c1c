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


@torch.no_grad()
def validate(model, val_loader, criterion):
    model.eval()
    total, correct = 0.0, 0
    for images, labels in val_loader:
        output = model(images)
        total += criterion(output, labels).item()
        correct += (output.argmax(dim=1) == labels).sum().item()
    print("validation", total, correct)


def train(args, model, train_loader, val_loader, criterion, optimizer):
    optimizer.zero_grad()
    model.train()
    for i, (images, labels) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, labels)
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        print("loss", loss.item())
        optimizer.step()
        optimizer.zero_grad()
    validate(model, val_loader, criterion)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--fp16", action="store_true", help="16-bit (mixed) precision training")
    args = parser.parse_args()
    torch.manual_seed(7)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    train_loader = make_batches(6)
    val_loader = make_batches(2)

    if args.fp16:
        model, optimizer = amp.initialize(
            model, optimizer, opt_level="O1", loss_scale=1.0
        )

    train(args, model, train_loader, val_loader, criterion, optimizer)


if __name__ == "__main__":
    main()
