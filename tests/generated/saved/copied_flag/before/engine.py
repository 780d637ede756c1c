from apex import amp


def train(args, model, train_loader, criterion, optimizer):
    mixed_precision = args.fp16
    optimizer.zero_grad()
    model.train()
    for i, (images, labels) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, labels)
        if mixed_precision:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        print("loss", loss.item())
        optimizer.step()
        optimizer.zero_grad()
