import argparse
import torch
import torch.nn as nn
from datasets import make_batches
from models import Classifier
from engine import train
from apex import amp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    torch.manual_seed(7)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    train_loader = make_batches(6)

    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

    train(model, train_loader, criterion, optimizer)


if __name__ == "__main__":
    main()
