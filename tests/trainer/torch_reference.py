"""Writes ten steps of torch.optim and the rates of its schedules as JSON: torch_reference.py OUT"""
import json
import sys

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def gradient(step):
    """Returns the same numbers as in torch_peers_test.cpp."""
    return torch.tensor([[((step * 7 + i * 3) % 11 - 5) / 4 for i in range(6)]]).view(2, 3)


def run(optimizer, **options):
    value = torch.nn.Parameter(torch.tensor([[1.0, -2.0, 0.5], [3.0, -0.25, 0.0]]))
    chosen = optimizer([value], **options)
    values = []
    for step in range(10):
        value.grad = gradient(step)
        chosen.step()
        values.append(value.detach().flatten().tolist())
    return values


def rates(make, epochs=12):
    value = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([value], lr=0.5)
    schedule = make(optimizer)
    result = []
    for _ in range(epochs):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return result


S = torch.optim.lr_scheduler
out = {
    "sgd": run(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": run(torch.optim.SGD, lr=0.1, momentum=0.8, weight_decay=0.01, nesterov=True),
    "adamw": run(torch.optim.AdamW, lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.05),
    "step": rates(lambda o: S.MultiStepLR(o, [8, 11], gamma=0.1)),
    "cosine": rates(lambda o: S.CosineAnnealingLR(o, T_max=12)),
    "poly": rates(lambda o: S.PolynomialLR(o, total_iters=12, power=0.9)),
    "exponential": rates(lambda o: S.ExponentialLR(o, gamma=0.8)),
    "warmup": rates(lambda o: S.LinearLR(o, start_factor=0.1, total_iters=5)),
}
with open(sys.argv[1], "w") as file:
    json.dump(out, file)
