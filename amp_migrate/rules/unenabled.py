"""What `amp-migrate enable` says without changing anything: why a training stays in FP32, and what to look at."""

from __future__ import annotations

from amp_migrate.rules.enabling import says

RULES = (
    says(
        "AMP511",
        "an operation that may not take what autocast gives",
        "Nothing. The finding says what to do, should it be given 16-bit values: writes into FP32 tensors by `index_add_` and "
        "the like, `out=`, `torch.linalg`, `torch.fft`, sparse matrices, products of features with themselves, and gradients of gradients.",
        "These raise where the types of their tensors differ, or are not there for 16 bits.",
        """
        total = torch.zeros(8, 2, device="cuda").index_add_(0, index, output)
        """,
        """
        total = torch.zeros(8, 2, device="cuda").index_add_(0, index, output.float())
        """,
    ),
    says(
        "AMP512",
        "a network runs in threads",
        "With `--dtype bfloat16`, `forward()` of a network in DataParallel gets autocast inside; where its class is not in the files given, the "
        "training stays in FP32. A function that a thread of the program runs gets autocast of its own where it runs a network, and "
        "is named where it may.",
        "The threads of DataParallel enter autocast anew, with its default type: bfloat16 silently becomes float16, without a "
        "GradScaler. Threads of the program know nothing of the autocast around them.",
        """
        model = torch.nn.DataParallel(model)  # with --dtype bfloat16
        """,
        """
        model = torch.nn.parallel.DistributedDataParallel(model)
        """,
    ),
    says(
        "AMP513",
        "a scheduler steps with its optimizer",
        "Nothing. The finding speaks of a warning that the first iterations may print.",
        "A GradScaler starts at a scale of 65536 and skips steps that overflow. A scheduler that steps all the same is ahead by "
        "those few steps, and torch warns once that it stepped before the optimizer.",
        """
        optimizer.step()
        scheduler.step()
        """,
        """
        (Nothing has to be done. To be exact, step the scheduler where `scaler.get_scale()` did not fall.)
        """,
    ),
    says(
        "AMP590",
        "the training cannot be followed",
        "Nothing. The finding names what stands in the way; the training stays in FP32 as a whole.",
        "Half a training with AMP goes wrong without a word: a step that was forgotten uses gradients 65536 times too large.",
        """
        trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1))
        loss = model(images).sum()
        loss.backward()
        trainer.optimizer.step()
        """,
        """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(images).sum()
        loss.backward()
        optimizer.step()
        """,
    ),
    says(
        "AMP591",
        "the optimizer steps with a closure",
        "Nothing. The training stays in FP32.",
        "`GradScaler.step()` raises where it is given a closure, and LBFGS runs its closure several times for a step.",
        """
        def closure():
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            return loss
        optimizer.step(closure)
        """,
        """
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        """,
    ),
    says(
        "AMP592",
        "AMP would change the training on some path",
        "Nothing. The finding shows the lines that lead to the place where the training with AMP would go wrong.",
        "Before a file is written, the new text is read again: gradients are unscaled once before anything reads them, "
        "nothing steps on scaled ones, `update()` runs once between two steps, casts are on where a network runs.",
        """
        for images, labels in loader:
            optimizer.zero_grad()
            try:
                loss = criterion(model(images), labels)
                loss.backward()
            except RuntimeError:
                print("out of memory")
            optimizer.step()
        """,
        """
        for images, labels in loader:
            optimizer.zero_grad()
            try:
                loss = criterion(model(images), labels)
                loss.backward()
            except RuntimeError:
                continue
            optimizer.step()
        """,
    ),
    says(
        "AMP593",
        "Apex comes first",
        "Nothing. Files that use Apex, and what works together with them, stay as they are.",
        "They have AMP already. `amp-migrate PATH` makes it native; a training with both would scale its losses twice.",
        """
        from apex import amp
        """,
        """
        scaler = torch.cuda.amp.GradScaler()
        """,
    ),
    says(
        "AMP594",
        "the training has native AMP already",
        "Nothing: the finding says that this training was seen.",
        "Where autocast or a GradScaler is used, AMP was added by hand, or by an earlier run.",
        """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        """,
        """
        (Nothing is to be done.)
        """,
    ),
    says(
        "AMP595",
        "the rewrite failed its own check",
        "Nothing. The new text was read again, and was not the FP32 training with AMP: everything stays as it was.",
        "Before a file is written it must parse, compile, define its names, keep to the protocol of GradScaler, cast forward "
        "passes and losses, and take the same steps on the same gradients.",
        """
        (No program is known that gets this finding: it is a fault of amp-migrate. Please report it.)
        """,
        """
        (Add AMP to this code by hand; `amp-migrate verify` compares it with what it was.)
        """,
    ),
    says(
        "AMP596",
        "a comment asks to leave a line that AMP needs",
        "Nothing. `# amp-migrate: skip` keeps its line as it is, and so the whole training stays in FP32.",
        "Every line of a training changes, or none does.",
        """
        optimizer.step()  # amp-migrate: skip
        """,
        """
        optimizer.step()
        """,
    ),
    says(
        "AMP597",
        "the network has weights in 16 or 64 bits",
        "Nothing. The training stays as it is.",
        "AMP keeps weights in FP32 and casts what is safe. A GradScaler refuses gradients in fp16, which weights in fp16 "
        "have, and what is in FP64 is not cast at all.",
        """
        model = model.half()
        """,
        """
        model = model.cuda()
        """,
    ),
)
