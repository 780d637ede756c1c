from utils import backward


def train(model, train_loader, criterion, optimizer):
    scaler = 2.0
    optimizer.zero_grad()
    model.train()
    for i, (images, labels) in enumerate(train_loader):
        images = images * scaler
        output = model(images)
        loss = criterion(output, labels)
        backward(optimizer, loss)
        print("loss", loss.item())
        optimizer.step()
        optimizer.zero_grad()
