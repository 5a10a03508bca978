#!/usr/bin/env python3
"""Compares our RT-DETR with the one in `transformers`: a training step and a detection, R18-vd.

    tests/bench/rtdetr.py TRAINER [--rounds 2] [--steps 6]

Both read the same COCO photos (640x480 of MILLRACE_TEST_DATA, default ../shared/data), resized to
squares, and start from the same random weights, which the package writes. Training: 4 images of
416, AdamW with clipped gradients, fp32, two threads. Detection: one image of 640, up to the 300
best boxes. MILLRACE_PEERS_PYTHON is a Python that has torch, torchvision, scipy and transformers;
without it the comparison is skipped.

Rounds are interleaved, and medians are printed. On a busy machine, compare CPU seconds.
"""
import itertools
import json
import os

from steps import THREADS, compare_package, timed

BATCH, CLASSES = 4, 80


def our_sets(folder, size):
    return "configs/coco/rtdetr_r18vd.toml", {
        "data.root": f'"{folder}"', "unset": '["data.stages"]', "data.flip": 0.0,
        "data.short_side": size, "data.batch_size": BATCH, "data.test_batch_size": 1,
        "train.threads": THREADS, "model.weights": f'"{folder}/model.safetensors"'}


# ------------------------------------------------ the package, in a separate process

def peer_model():
    import torch
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    backbone = RTDetrResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2],
                                  layer_type="basic", out_features=["stage2", "stage3", "stage4"])
    model = RTDetrForObjectDetection(RTDetrConfig(
        backbone_config=backbone, encoder_in_channels=[128, 256, 512], hidden_expansion=0.5,
        decoder_layers=3, num_labels=CLASSES, freeze_backbone_batch_norms=False))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.fill_(1)
    return model


def peer_photos(folder, size):
    """Yields (RGB image (3, size, size), labels) of each photo."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    with open(os.path.join(folder, "annotations", "instances_train2017.json")) as f:
        every = json.load(f)
    label = {c: k for k, c in enumerate(sorted(c["id"] for c in every["categories"]))}
    for image in every["images"]:
        file = os.path.join(folder, "train2017", image["file_name"])
        pixels = decode_jpeg(read_file(file), mode=ImageReadMode.RGB).float() / 255
        sides = torch.tensor([image["width"], image["height"]] * 2)
        own = [a for a in every["annotations"]
               if a["image_id"] == image["id"] and not a["iscrowd"]]
        boxes = torch.tensor([[x + w / 2, y + h / 2, w, h]
                              for x, y, w, h in (a["bbox"] for a in own)]).view(-1, 4)
        yield (torch.nn.functional.interpolate(pixels[None], size=(size, size), mode="bilinear")[0],
               {"class_labels": torch.tensor([label[a["category_id"]] for a in own],
                                             dtype=torch.int64),
                "boxes": boxes / sides})


def peer_measure(folder, steps, inference, size):
    import torch
    from transformers import RTDetrForObjectDetection, RTDetrImageProcessor
    model = RTDetrForObjectDetection.from_pretrained(folder)
    torch.set_num_threads(THREADS)
    model.train(not inference)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    processor = RTDetrImageProcessor()

    def train(batch):
        output = model(torch.stack([image for image, _ in batch]),
                       labels=[labels for _, labels in batch])
        optimizer.zero_grad(set_to_none=True)
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return {"loss": float(output.loss)}

    def detect(batch):
        with torch.no_grad():
            found = processor.post_process_object_detection(
                model(batch[0][0][None]), threshold=0.0, target_sizes=[(480, 640)])[0]
        return {"detections": len(found["scores"])}

    return timed(detect if inference else train, itertools.cycle(list(peer_photos(folder, size))),
                 1 if inference else BATCH, steps)


def write_weights(folder):
    peer_model().save_pretrained(folder)


if __name__ == "__main__":
    compare_package(__doc__, __file__, "transformers", our_sets, write_weights, peer_measure)
