"""Records what the package `yolox` 0.3.0 computes on weights, images and objects from formulas.

    python reference.py OUT.safetensors [--small]

recorded.safetensors in this folder is the output with --small: it has only three sums of each
gradient, statistic and weight, in the order of their names, and of each other tensor with more than
900 values. Only yolox.models and yolox.utils.boxes of the package are used, so torch, torchvision
and an unpacked source archive on PYTHONPATH suffice.
"""
import importlib.util
import sys
import types

import torch

CLASSES, HEIGHT, WIDTH, STEPS, LR = 3, 64, 96, 20, 1e-4
MODELS = {"plain": dict(depth=0.33, width=0.125, depthwise=False),
          "depthwise": dict(depth=0.33, width=0.25, depthwise=True)}
# For each image: class and x1 y1 x2 y2 in pixels.
OBJECTS = [[(0, 5.3, 7.1, 41.7, 38.9), (2, 33.2, 11.4, 81.6, 52.8), (1, 70.1, 40.3, 79.7, 49.2)],
           [(1, 12.6, 3.7, 90.4, 60.2)]]


def package():
    """Returns yolox.models and yolox.utils.boxes, without the package's other imports."""
    spec = importlib.util.find_spec("yolox")
    root = types.ModuleType("yolox")
    root.__path__ = list(spec.submodule_search_locations)
    utils = types.ModuleType("yolox.utils")
    utils.__path__ = [path + "/utils" for path in root.__path__]
    log = types.ModuleType("loguru")
    log.logger = None
    sys.modules.update({"yolox": root, "yolox.utils": utils})
    sys.modules.setdefault("loguru", log)
    from yolox.utils import boxes, compat
    utils.bboxes_iou, utils.meshgrid = boxes.bboxes_iou, compat.meshgrid
    from yolox import models
    return models, boxes


def formula(name, shape):
    """Returns values in [-1, 1] that depend only on the tensor's name."""
    phase = sum((i + 1) * ord(c) for i, c in enumerate(name)) % 1009
    i = torch.arange(max(1, torch.Size(shape).numel()), dtype=torch.float64)
    return torch.sin(phase + 0.37 * i * i).view(shape)


def value(name, shape):
    wave = formula(name, shape)
    if len(shape) == 4:
        fan_in = shape[1] * shape[2] * shape[3]
        # Predictions are nearly equal in every cell, so rounding does not change the assignment.
        last = 0.05 if "_preds." in name else 1
        return (wave * last * (3 / fan_in) ** 0.5).float()
    if name.endswith("running_var") and ".stem." in name:
        return (8000 + 1000 * wave).float()  # for pixel values from 0 to 255
    if name.endswith("running_var") or ".bn.weight" in name:
        return (1 + 0.2 * wave).float()
    if "cls_preds" in name or "obj_preds" in name:
        return (wave - 1).float()
    return (0.2 * wave).float()


def pixels():
    i = torch.arange(2 * 3 * HEIGHT * WIDTH, dtype=torch.float64)
    levels = torch.floor(127.5 + 127.4 * torch.sin(0.0013 * i) * torch.cos(0.37 * i * i))
    return levels.float().view(2, HEIGHT, WIDTH, 3).permute(0, 3, 1, 2).contiguous()


def truths():
    labels = torch.zeros(2, 5, 5)
    for i, objects in enumerate(OBJECTS):
        for k, (label, x1, y1, x2, y2) in enumerate(objects):
            labels[i, k] = torch.tensor([label, (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1])
    return labels


def make(models, depth, width, depthwise):
    channels = [256, 512, 1024]
    backbone = models.YOLOPAFPN(depth, width, in_channels=channels, depthwise=depthwise)
    head = models.YOLOXHead(CLASSES, width, in_channels=channels, depthwise=depthwise)
    model = models.YOLOX(backbone, head)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eps, module.momentum = 1e-3, 0.03
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(value(name, list(tensor.shape)))
    return model


def optimizer_of(model):
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        conv = name.endswith("weight") and parameter.dim() == 4
        (decayed if conv else others).append(parameter)
    optimizer = torch.optim.SGD(others, lr=LR, momentum=0.9, nesterov=True)
    optimizer.add_param_group({"params": decayed, "weight_decay": 5e-4})
    return optimizer


def record(models, boxes, options):
    out = {}
    images, labels = pixels(), truths()

    model = make(models, **options).eval()
    with torch.no_grad():
        for level, feature in enumerate(model.backbone.backbone(images).values()):
            out[f"dark{level}"] = feature
        for level, feature in enumerate(model.backbone(images)):
            out[f"feature{level}"] = feature
        found = model(images)
        out["decoded"] = found.clone()
        for i, rows in enumerate(boxes.postprocess(found, CLASSES, 0.01, 0.65)):
            out[f"found{i}"] = rows

    model = make(models, **options).train()
    head, assigned = model.head, []
    inner = head.get_assignments

    def spy(*arguments, **named):
        result = inner(*arguments, **named)
        assigned.append(result)
        return result

    head.get_assignments = spy
    for l1 in (False, True):
        assigned.clear()
        head.use_l1 = l1
        model.load_state_dict(make(models, **options).state_dict())
        model.zero_grad()
        losses = model(images, labels)
        losses["total_loss"].backward()
        place = "l1." if l1 else ""
        for name in ("iou_loss", "conf_loss", "cls_loss", "l1_loss"):
            out[place + name] = torch.as_tensor(losses[name]).detach().reshape(1)
        for name, parameter in model.named_parameters():
            out[f"{place}grad.{name}"] = parameter.grad.clone()
    for i, (_, mask, ious, objects, _) in enumerate(assigned):
        out[f"assigned{i}.cells"] = mask.nonzero()[:, 0]
        out[f"assigned{i}.objects"], out[f"assigned{i}.ious"] = objects, ious
    for name, tensor in model.named_buffers():
        if "running" in name:
            out[f"after.{name}"] = tensor.clone()

    head.use_l1 = False
    model.load_state_dict(make(models, **options).state_dict())
    optimizer, losses = optimizer_of(model), []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(images, labels)["total_loss"]
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == 1:  # rounding errors grow later
            for name, tensor in model.state_dict().items():
                if tensor.is_floating_point():
                    out[f"moved.{name}"] = tensor - value(name, list(tensor.shape))
    out["steps.loss"] = torch.stack(losses)
    return out


def sums(name, tensor):
    """Returns the sums of the values, of their absolute values, and of their products with the
    formula's values."""
    values = tensor.double()
    return torch.stack([values.sum(), values.abs().sum(),
                        (values * formula(name, list(values.shape))).sum()])


def small(out):
    result, tables = {}, {}
    for name in sorted(out):
        family = next((f for f in ("l1.grad.", "grad.", "after.", "moved.")
                       if name.startswith(f)), None)
        if family:
            tables.setdefault(family + "sums", []).append(sums(name[len(family):], out[name]))
        elif out[name].numel() > 900:
            result[name + ".sums"] = sums(name, out[name])
        else:
            result[name] = out[name]
    return result | {name: torch.stack(rows) for name, rows in tables.items()}


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    models, boxes = package()
    out = {}
    for name, options in MODELS.items():
        all_of_it = record(models, boxes, options)
        for key, tensor in (small(all_of_it) if "--small" in sys.argv else all_of_it).items():
            out[f"{name}/{key}"] = tensor.contiguous()
    from safetensors.torch import save_file
    save_file(out, sys.argv[1])


if __name__ == "__main__":
    main()
