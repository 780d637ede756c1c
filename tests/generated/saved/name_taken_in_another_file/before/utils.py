from apex import amp


def backward(optimizer, loss):
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
