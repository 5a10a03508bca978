"""Writes a classifier of torchvision or timm with random weights, and its backbone's feature maps.

    python pretrained_backbones.py torchvision|timm NAME FOLDER

FOLDER/model.pth and model.safetensors contain the same complete state dict. expected.safetensors
contains the input, the backbone's maps, finest first, and

- for a ResNet: regions pooled from C4 after the last stage, as in detectron2's Res5ROIHeads;
- for an HRNet: the weights and output maps of an HRFPN.
"""
import sys

import torch
from safetensors.torch import save_file
from torch.nn import functional

library, name, folder = sys.argv[1:]
torch.manual_seed(1)
if library == "timm":
    import timm
    model = timm.create_model(name, pretrained=False)
else:
    import torchvision
    model = getattr(torchvision.models, name)(weights=None)
model.eval()
for key, value in model.state_dict().items():  # so that no norm is the identity
    if key.endswith("running_mean"):
        value.normal_(0, 0.1)
    elif key.endswith("running_var"):
        value.uniform_(0.5, 1.5)
    elif value.dim() == 1 and key.endswith("weight"):
        value.uniform_(0.3, 0.8)
    elif value.dim() == 1 and key.endswith("bias"):
        value.normal_(0, 0.1)

out = {"input": torch.randn(2, 3, 64, 96)}


def resnet(x):
    x = model.maxpool(torch.relu(model.bn1(model.conv1(x))))
    maps = []
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        x = stage(x)
        maps.append(x)
    return maps


def regions(c4):
    from torchvision.ops import roi_align
    out["rois"] = torch.tensor([[0, 3., 4, 60, 50], [1, 10, 0, 95, 63], [0, 20, 20, 24, 23]])
    pooled = roi_align(c4, out["rois"], 14, 1 / 16, sampling_ratio=0, aligned=True)
    return model.layer4(pooled)


def hrfpn(maps):
    sides = maps[0].shape[2:]
    joined = torch.cat([functional.interpolate(m, size=sides, mode="bilinear") for m in maps], 1)
    prefix = "fpn."
    weights = {"reduction": torch.randn(8, joined.shape[1], 1, 1) * 0.1}
    for i in range(5):
        weights[f"layer_blocks.{i}"] = torch.randn(8, 8, 3, 3) * 0.1
    bias = torch.randn(8)
    for key, weight in weights.items():
        out[f"{prefix}{key}.0.weight"], out[f"{prefix}{key}.0.bias"] = weight, bias.clone()
    joined = functional.conv2d(joined, weights["reduction"], bias)
    for i in range(5):  # as in MMDetection: pooled from the finest map, without incomplete cells
        level = functional.avg_pool2d(joined, 2 ** i, 2 ** i) if i else joined
        out[f"p{i}"] = functional.conv2d(level, weights[f"layer_blocks.{i}"], bias, padding=1)


with torch.no_grad():
    if "hrnet" in name:
        x = torch.relu(model.bn1(model.conv1(out["input"])))
        x = torch.relu(model.bn2(model.conv2(x)))
        maps = model.stages(x)
        hrfpn(maps)
    else:
        maps = resnet(out["input"])
        out["regions"] = regions(maps[2])
for i, value in enumerate(maps):
    out[f"map{i}"] = value
save_file({key: value.contiguous() for key, value in out.items()}, folder + "/expected.safetensors")
state = {key: value.contiguous() for key, value in model.state_dict().items()}
torch.save(state, folder + "/model.pth")
save_file(state, folder + "/model.safetensors")
