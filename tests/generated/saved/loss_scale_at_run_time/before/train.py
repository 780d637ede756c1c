import argparse
import torch
import torch.nn as nn
from apex import amp


def make_batches(count):
    return [(torch.randn(4, 27), torch.zeros(4)) for _ in range(count)]


def make_discriminator():
    return nn.Sequential(nn.Flatten(), nn.Linear(27, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1))


def make_generator():
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 27))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--loss_scale", default=None)
    args = parser.parse_args()
    torch.manual_seed(7)
    model_d, model_g = make_discriminator(), make_generator()
    criterion = nn.BCEWithLogitsLoss()
    optimizer_d = torch.optim.AdamW(model_d.parameters(), lr=args.lr, weight_decay=0.01)
    optimizer_g = torch.optim.AdamW(model_g.parameters(), lr=args.lr, weight_decay=0.01)
    train_loader = make_batches(6)

    [model_d, model_g], [optimizer_d, optimizer_g] = amp.initialize(
        [model_d, model_g], [optimizer_d, optimizer_g], opt_level="O1", loss_scale=args.loss_scale
    )

    model_d.train()
    model_g.train()
    for i, (images, labels) in enumerate(train_loader):
        optimizer_d.zero_grad()
        real_score = model_d(images)
        real = torch.ones_like(real_score, dtype=torch.float32)
        loss_real = criterion(real_score, real)
        with amp.scale_loss(loss_real, optimizer_d) as scaled_loss:
            scaled_loss.backward()
        noise = torch.randn(images.size(0), 6)
        fake = model_g(noise)
        fake_score = model_d(fake.detach())
        loss_fake = criterion(fake_score, torch.zeros_like(real))
        with amp.scale_loss(loss_fake, optimizer_d) as scaled_loss:
            scaled_loss.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss_g = criterion(model_d(fake), real)
        with amp.scale_loss(loss_g, optimizer_g) as scaled_loss:
            scaled_loss.backward()
        optimizer_g.step()
        print("losses", (loss_real + loss_fake).item(), loss_g.item())


if __name__ == "__main__":
    main()
