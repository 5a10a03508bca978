"""Records Hugging Face's RT-DETR and RT-DETRv2 on weights, images and noise from formulas: the
encoder, queries, decoder layers, matching, losses, gradients and twenty training steps.

    python transformers_rtdetr.py OUT.safetensors [--whole]

recorded.safetensors is its output; --whole writes all values of each gradient instead of a few.
Needs torch, transformers, scipy, torchvision and safetensors.
"""
import argparse
import zlib

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (RTDetrConfig, RTDetrForObjectDetection, RTDetrImageProcessor,
                          RTDetrResNetConfig, RTDetrV2Config, RTDetrV2ForObjectDetection)
from transformers.loss import loss_rt_detr

HEIGHT, WIDTH, CLASSES, STEPS, MOMENTUM = 64, 96, 3, 20, 0.9
# So small that rounding does not change which positions are selected as queries.
RATE = {"v1": 2e-8, "v2": 3e-7}
SOME = 8  # recorded values of each gradient
TINY = dict(encoder_hidden_dim=16, encoder_ffn_dim=32, encoder_attention_heads=2, d_model=16,
            decoder_in_channels=[16] * 3, decoder_ffn_dim=32, decoder_attention_heads=2,
            decoder_layers=2, num_labels=CLASSES, num_queries=10, num_denoising=8)
TARGETS = [{"class_labels": torch.tensor([0, 2, 1]),
            "boxes": torch.tensor([[0.3, 0.4, 0.2, 0.5], [0.7, 0.5, 0.3, 0.3],
                                   [0.5, 0.6, 0.9, 0.7]])},
           {"class_labels": torch.tensor([1]), "boxes": torch.tensor([[0.45, 0.35, 0.6, 0.4]])}]


def made_up(name, shape):
    """Returns numbers in [0, 1), hashed from the name and the index."""
    count = int(np.prod(shape))
    mask = np.uint64(0xFFFFFFFF)
    x = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761)
         + np.uint64(zlib.crc32(name.encode()))) & mask
    for _ in range(2):
        x ^= x >> np.uint64(16)
        x = (x * np.uint64(0x45D9F3B)) & mask
    x ^= x >> np.uint64(16)
    return torch.from_numpy((x.astype(np.float64) / 2.0**32).astype(np.float32)).view(shape)


def initial(name, shape):
    """Returns values with the magnitudes of a network early in training."""
    u = 2 * made_up(name, shape) - 1
    if name.endswith("running_var"):
        return 1 + 0.5 * u
    if len(shape) == 1:
        is_norm = name.endswith(".weight")
        return 1 + 0.3 * u if is_norm else (u if "sampling_offsets" in name else 0.2 * u)
    return u * (3.0 / np.prod(shape[1:])) ** 0.5


def file_name(name):
    """Returns the name that weights files use for a name in the model."""
    name = name.replace("o_proj", "out_proj").replace(".mlp.", ".").replace(".aifi.", ".encoder.")
    return name


def some(values, whole):
    flat = values.detach().reshape(-1).to(torch.float32)
    if whole or flat.numel() <= SOME:
        return flat.clone()
    return flat[torch.arange(SOME) * (flat.numel() - 1) // (SOME - 1)].clone()


def together(values, whole):
    """Returns some values of each tensor, in the order of the names in weights files; skips
    None."""
    kept = {file_name(name): value for name, value in values.items() if value is not None}
    return torch.cat([some(kept[name], whole) for name in sorted(kept)])


class Noise:
    """Replaces torch's random numbers during a step."""

    def __init__(self):
        self.calls = 0

    def numbers(self, like):
        self.calls += 1
        return made_up(f"noise{self.calls - 1}", tuple(like.shape))

    def rand_like(self, like, dtype=None, **_):
        return self.numbers(like)

    def randint_like(self, like, low, high, dtype=None, **_):
        whole = (self.numbers(like) * (high - low)).floor() + low
        return whole.to(dtype if dtype is not None else like.dtype)


def record(case, model, out, whole):
    # RTDetrV2 also has its heads' tensors under a second name.
    state = {name: value for name, value in model.state_dict().items()
             if value.is_floating_point() and name.startswith("model.")}
    for name, value in state.items():
        if not name.endswith("n_points_scale"):
            value.copy_(initial(file_name(name), tuple(value.shape)))
    pixels = (made_up("pixels", (2, 3, HEIGHT, WIDTH)) * 256).floor() / 255

    def put(name, value):
        out[f"{case}.{name}"] = value.detach().clone().contiguous()

    model.eval()
    with torch.no_grad():
        outputs = model(pixels)
    found = RTDetrImageProcessor().post_process_object_detection(
        outputs, threshold=0.0, target_sizes=[(2 * HEIGHT, 3 * WIDTH)] * 2)
    for i, image in enumerate(found):
        for name, value in image.items():
            put(f"found{i}.{name}", value)

    model.train()
    pairs = []
    assign = loss_rt_detr.linear_sum_assignment

    def noted(costs):
        result = assign(costs)
        pairs.append(torch.tensor(np.stack(result)))
        return result

    seen = {}
    model.model.decoder.register_forward_pre_hook(
        lambda module, args, kwargs: seen.update(memory=kwargs["encoder_hidden_states"]),
        with_kwargs=True)
    true_random = torch.rand_like, torch.randint_like
    velocity = {}
    totals = []
    for step in range(STEPS):
        noise = Noise()
        torch.rand_like, torch.randint_like = noise.rand_like, noise.randint_like
        loss_rt_detr.linear_sum_assignment = noted if step == 0 else assign
        outputs = model(pixels, labels=TARGETS)
        torch.rand_like, torch.randint_like = true_random
        model.zero_grad()
        outputs.loss.backward()
        totals.append(outputs.loss.detach())
        if step == 0:
            put("memory", seen["memory"])
            put("reference", outputs.init_reference_points)
            put("topk.logits", outputs.enc_topk_logits)
            put("topk.boxes", outputs.enc_topk_bboxes)
            put("features", outputs.intermediate_hidden_states)
            put("logits", outputs.intermediate_logits)
            put("boxes", outputs.intermediate_reference_points)
            for name, value in outputs.loss_dict.items():
                put("loss." + name, value)
            for i, pair in enumerate(pairs):
                put(f"pairs{i}", pair)
            put("gradients", together({name: parameter.grad for name, parameter
                                       in model.named_parameters()}, whole))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.grad is None:
                    continue
                old = velocity.get(name)
                velocity[name] = parameter.grad + (0 if old is None else MOMENTUM * old)
                parameter -= RATE[case] * velocity[name]
    put("totals", torch.stack(totals))
    put("trained", together(state, whole))
    put("names", torch.tensor([zlib.crc32(file_name(name).encode()) for name in state]).sort()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--whole", action="store_true")
    a = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    out = {}
    small = RTDetrResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128],
                               depths=[2, 2, 2, 2], layer_type="basic",
                               out_features=["stage2", "stage3", "stage4"])
    record("v1", RTDetrForObjectDetection(RTDetrConfig(
        backbone_config=small, encoder_in_channels=[32, 64, 128], hidden_expansion=0.5,
        freeze_backbone_batch_norms=False, **TINY)), out, a.whole)
    deep = RTDetrResNetConfig(embedding_size=16, hidden_sizes=[64, 128, 256, 512],
                              depths=[3, 4, 6, 3], layer_type="bottleneck",
                              out_features=["stage2", "stage3", "stage4"])
    record("v2", RTDetrV2ForObjectDetection(RTDetrV2Config(
        backbone_config=deep, encoder_in_channels=[128, 256, 512], hidden_expansion=1.0,
        decoder_offset_scale=0.7, **TINY)), out, a.whole)
    save_file(out, a.out)


if __name__ == "__main__":
    main()
