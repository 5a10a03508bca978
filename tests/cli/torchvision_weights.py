"""Writes and checks torchvision's weights files for the tests of `trainer convert`.

  torchvision_weights.py make DIR     writes new.pth (a state dict in today's format) and old.pth
                                      (the format before torch 1.6, with the names of 2019) of
                                      the same small Mask R-CNN
  torchvision_weights.py check A B    loads both with strict=True into that model; exit status 1
                                      if they differ
"""
import sys
from collections import OrderedDict

import torch
from torchvision.models import resnet18
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.ops import FrozenBatchNorm2d

CLASSES = 7  # with the background
OLD = (("rpn.head.conv.0.0.", "rpn.head.conv."), ("mask_head.0.0.", "mask_head.mask_fcn1."),
       ("mask_head.1.0.", "mask_head.mask_fcn2."), ("mask_head.2.0.", "mask_head.mask_fcn3."),
       ("mask_head.3.0.", "mask_head.mask_fcn4."),
       *((f"{block}_blocks.{i}.0.", f"{block}_blocks.{i}.") for block in ("inner", "layer")
         for i in range(4)))


def model():
    body = resnet18(weights=None, norm_layer=FrozenBatchNorm2d)
    layers = {f"layer{i + 1}": str(i) for i in range(4)}
    return MaskRCNN(BackboneWithFPN(body, layers, [64, 128, 256, 512], 8), CLASSES)


def make(folder):
    torch.manual_seed(1)
    state = model().state_dict()
    for name, value in state.items():
        if "bbox_pred" in name and "roi_heads" in name:
            value[:4] = 0  # background row: never read, and not stored if the background is last
        elif "mask_fcn_logits" in name:
            value[:1] = 0
        elif value.is_floating_point() and value.dim() < 2:
            value.uniform_(0.5, 1.5)
    torch.save(state, folder + "/new.pth")
    old = OrderedDict()
    for name, value in state.items():
        for new, then in OLD:
            name = name.replace(new, then)
        old[name] = value
    torch.save(old, folder + "/old.pth", _use_new_zipfile_serialization=False)


def check(a, b):
    loaded = []
    for file in (a, b):
        wanted = model()
        wanted.load_state_dict(torch.load(file, weights_only=True), strict=True)
        loaded.append(wanted.state_dict())
    wrong = [name for name, value in loaded[0].items() if not torch.equal(value, loaded[1][name])]
    print("differ:", wrong) if wrong else None
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(make(sys.argv[2]) if sys.argv[1] == "make" else check(*sys.argv[2:4]))
