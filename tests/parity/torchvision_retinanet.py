"""Runs torchvision's RetinaNet on the weights and batch in a file, and writes its losses, gradients
and detections to a second file.

    python torchvision_retinanet.py IN.safetensors OUT.safetensors
"""
import sys

import torch
from safetensors.torch import load_file, save_file
from torchvision.models.detection import RetinaNet
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.retinanet import _default_anchorgen
from torchvision.ops.feature_pyramid_network import LastLevelP6P7

given = load_file(sys.argv[1])
inputs = {name[3:]: given.pop(name) for name in list(given) if name.startswith("in.")}
backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5,
                               returned_layers=[2, 3, 4],
                               extra_blocks=LastLevelP6P7(256, 256))
classes = given["head.classification_head.cls_logits.weight"].shape[0] // 9
model = RetinaNet(backbone, classes, anchor_generator=_default_anchorgen(),
                  score_thresh=float(inputs["threshold"]))
model.load_state_dict(given, strict=True)

images = ImageList(inputs["batch"], [tuple(size) for size in inputs["sizes"].tolist()])
targets = [{"boxes": inputs[f"boxes{i}"], "labels": inputs[f"labels{i}"]}
           for i in range(len(images.image_sizes))]
features = list(model.backbone(images.tensors).values())
outputs = model.head(features)
anchors = model.anchor_generator(images, features)
out = {"anchors": anchors[0], "logits": outputs["cls_logits"], "deltas": outputs["bbox_regression"]}

losses = model.compute_loss(targets, outputs, anchors)
out["loss.classification"] = losses["classification"]
out["loss.regression"] = losses["bbox_regression"]
sum(losses.values()).backward()
for name, parameter in model.named_parameters():
    if name.startswith("head.") or ".fpn." in name:
        out["grad." + name] = parameter.grad

counts = [f.shape[2] * f.shape[3] * 9 for f in features]
with torch.no_grad():
    split = {name: list(value.split(counts, dim=1)) for name, value in outputs.items()}
    found = model.postprocess_detections(split, [list(a.split(counts)) for a in anchors],
                                         images.image_sizes)
for i, image in enumerate(found):
    for name, value in image.items():
        out[f"{name}{i}"] = value
save_file({name: value.detach().contiguous() for name, value in out.items()}, sys.argv[2])
