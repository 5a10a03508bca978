"""torchvision's detectors with an R50-FPN as peers: the model, the photos, weights that train
without diverging. Runs in the peer's process; `folder` is made by steps.make_data."""
import json
import os

from steps import THREADS


def categories(folder):
    with open(os.path.join(folder, "annotations", "instances_train2017.json")) as f:
        return sorted(c["id"] for c in json.load(f)["categories"])


def free_backbone(detector, norm):
    """Returns the R50-FPN with norm layers of type `norm`; stem and C2 are frozen."""
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.ops.feature_pyramid_network import LastLevelP6P7
    levels = {"returned_layers": [2, 3, 4], "extra_blocks": LastLevelP6P7(256, 256)}
    return resnet_fpn_backbone(backbone_name="resnet50", weights=None, norm_layer=norm,
                               trainable_layers=3, **(levels if detector == "retinanet" else {}))


def made(detector, folder, short, longest):
    """Returns maskrcnn, fasterrcnn or retinanet with random weights."""
    import torch
    from torchvision.models.detection import FasterRCNN, MaskRCNN, RetinaNet
    from torchvision.models.detection.retinanet import _default_anchorgen
    from torchvision.ops import FrozenBatchNorm2d
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    kind = {"maskrcnn": MaskRCNN, "fasterrcnn": FasterRCNN, "retinanet": RetinaNet}[detector]
    anchors = {"anchor_generator": _default_anchorgen()} if detector == "retinanet" else {}
    return kind(free_backbone(detector, FrozenBatchNorm2d),
                num_classes=len(categories(folder)) + 1, min_size=short, max_size=longest,
                **anchors)


def weights_file(detector, folder):
    return os.path.join(folder, f"{detector}.pth")


def loaded(detector, folder, short, longest):
    """Returns the detector with the weights of write_weights."""
    import torch
    model = made(detector, folder, short, longest)
    model.load_state_dict(torch.load(weights_file(detector, folder), weights_only=True))
    return model


def examples(folder):
    """Yields (image (3, H, W) in 0..1, target) of each photo."""
    import numpy as np
    import torch
    from pycocotools.coco import COCO
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    coco = COCO(os.path.join(folder, "annotations", "instances_train2017.json"))
    label = {c: k + 1 for k, c in enumerate(categories(folder))}
    for i in coco.getImgIds():
        own = coco.loadAnns(coco.getAnnIds(i))
        boxes = torch.tensor([a["bbox"] for a in own], dtype=torch.float32)
        boxes[:, 2:] += boxes[:, :2]
        file = os.path.join(folder, "train2017", coco.imgs[i]["file_name"])
        yield (decode_jpeg(read_file(file), mode=ImageReadMode.RGB).float() / 255,
               {"boxes": boxes, "labels": torch.tensor([label[a["category_id"]] for a in own]),
                "masks": torch.from_numpy(np.stack([coco.annToMask(a) for a in own]))})


def write_weights(detector, folder):
    """Writes weights whose norms have the photos' statistics; Mask R-CNN's class scores are scaled
    until there are detections.
    """
    import torch
    from torch import nn
    model = made(detector, folder, 800, 1333).eval()
    free = free_backbone(detector, nn.BatchNorm2d)
    free.load_state_dict(model.backbone.state_dict(), strict=False)
    for module in free.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the average of all forward passes
    photos = [image for image, _ in examples(folder)]
    with torch.no_grad():
        free.train()(nn.functional.interpolate(torch.stack(photos[:4]) * 4 - 2, size=(384, 512)))
        model.backbone.load_state_dict(free.state_dict(), strict=False)
        for _ in range(12 if detector == "maskrcnn" else 0):
            if sum(len(found["labels"]) for found in model(photos[:2])) >= 180:
                break
            model.roi_heads.box_predictor.cls_score.weight *= 2
    torch.save(model.state_dict(), weights_file(detector, folder))


def train_step(model):
    """Returns a function that takes a step on a list of examples and returns the losses."""
    import torch
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 1e-4,
                                momentum=0.9)

    def step(batch):
        losses = model([image for image, _ in batch], [dict(target) for _, target in batch])
        optimizer.zero_grad(set_to_none=True)
        sum(losses.values()).backward()
        optimizer.step()
        return {k: v.item() for k, v in losses.items()}

    return step
