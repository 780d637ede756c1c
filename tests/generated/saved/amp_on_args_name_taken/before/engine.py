

def train(args, model, train_loader, criterion, optimizer):
    scaler = 2.0
    optimizer.zero_grad()
    model.train()
    for i, (images, labels) in enumerate(train_loader):
        images = images * scaler
        output = model(images)
        loss = criterion(output, labels)
        if args.fp16:
            with args.amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        print("loss", loss.item())
        optimizer.step()
        optimizer.zero_grad()
