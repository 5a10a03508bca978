"""Reads how an MMDetection recipe trains: optimizer, learning rate, and what runs between steps."""

from __future__ import annotations

from millrace.migrate.mmdetection.data import TrainingData
from millrace.migrate.mmdetection.layout import Layout
from millrace.migrate.shared_rules import EpochLength, rounded_epochs
from millrace.migrate.toml import Setting
from millrace.migrate.translation import Found, Translation, number
from millrace.migrate.values import plain

USUAL_GPUS = 8  # number of GPUs that MMDetection's recipes assume

_SCHEDULES = "schedule.type must be step, cosine, poly, exponential or constant"
_FALLS = "the learning rate decays to 0"


def read_optimizer(
    t: Translation, images_per_gpu: float, trains_norms: bool, gpus: int | None
) -> float:
    """`gpus`: number of GPUs for the recipe; None = from the recipe. Returns the number of images
    per step on all GPUs."""
    path = "optim_wrapper.optimizer" if t.look("optim_wrapper") else "optimizer"
    kind = t.read(f"{path}.type")
    name = kind.text() if kind else "SGD"
    if name == "AdamW":
        t.put("optimizer.type", "adamw", kind)
    elif name != "SGD":
        t.leave_out(kind, "optimizer.type must be sgd or adamw")
    for key in ("lr", "momentum", "nesterov"):
        t.copy(f"{path}.{key}", f"optimizer.{key}")
    betas = t.read(f"{path}.betas")
    if betas:
        both = betas.reals()
        if len(both) != 2:
            betas.fail("expected two numbers")
        t.put("optimizer.momentum", both[0], betas)
        t.put("optimizer.beta2", both[1], betas)
    t.copy(f"{path}.eps", "optimizer.epsilon")
    _read_decay(t, path, trains_norms)
    images_per_step = _read_batch(t, images_per_gpu, gpus)
    clips = ("optim_wrapper.clip_grad", "optimizer_config.grad_clip")
    t.copy(f"{clips[0]}.max_norm", "optimizer.clip_norm", f"{clips[1]}.max_norm")
    for clip in clips:
        t.expect(f"{clip}.norm_type", 2, "the norm is Euclidean")
    t.read("optimizer_config.type")
    t.copy("optim_wrapper.accumulative_counts", "optimizer.accumulate")
    _read_precision(t)
    return images_per_step


def _read_decay(t: Translation, path: str, trains_norms: bool) -> None:
    decay = t.read(f"{path}.weight_decay")
    whole = decay.real() if decay else 0.0
    if decay:
        t.put("optimizer.weight_decay", whole, decay)
    else:
        t.set("optimizer.weight_decay", 0.0, "torch's default")
    above = "optim_wrapper" if t.look("optim_wrapper") else "optimizer"
    rules = f"{above}.paramwise_cfg"
    norms = t.read(f"{rules}.norm_decay_mult")
    if norms:
        t.put("optimizer.weight_decay_norm", whole * norms.real(), norms, "times weight_decay")
    elif trains_norms and decay:
        t.put("optimizer.weight_decay_norm", whole, decay, "torch also decays norms")
    biases = t.read(f"{rules}.bias_decay_mult")
    if biases:
        t.put("optimizer.weight_decay_bias", whole * biases.real(), biases, "times weight_decay")
    t.copy(f"{rules}.bias_lr_mult", "optimizer.bias_lr_factor")
    t.read(f"{rules}.bypass_duplicate")
    _read_groups(t, f"{rules}.custom_keys", whole)
    t.leave_out_rest(
        rules, "use [[optimizer.groups]], rules by name with lr_factor and weight_decay"
    )


def _read_groups(t: Translation, path: str, decay: float) -> None:
    """Reads rules by parameter name. `decay`: weight decay of all other parameters."""
    rules = t.look(path)
    groups = []
    for name, rule in rules.need().members.items() if rules else ():
        at = f"{path}.{name}"
        found = Found(at, rule, rule.place)
        if name != "backbone" or not isinstance(rule.data, dict):
            t.read(at)
            t.leave_out(
                found, "parameters have other names here; use match in [[optimizer.groups]]"
            )
            continue
        rate, factor = t.read(f"{at}.lr_mult"), t.read(f"{at}.decay_mult")
        group = {"match": Setting("backbone.*", found.origin())}
        if rate:
            group["lr_factor"] = Setting(number(rate.real()), rate.origin())
        if factor:
            group["weight_decay"] = Setting(number(decay * factor.real()), factor.origin())
        groups.append(group)
    if groups:
        t.put("optimizer.groups", groups, rules)


def _read_batch(t: Translation, images_per_gpu: float, given_gpus: int | None) -> float:
    """Sets the batch size to which the learning rate refers. Returns the number of images per
    step."""
    base = t.read("auto_scale_lr.base_batch_size")
    t.read("auto_scale_lr.enable")
    if base and given_gpus is None:
        t.put("optimizer.lr_batch", base.real(), base)
        return base.real()
    gpus = given_gpus or USUAL_GPUS
    usual = "" if given_gpus else ", as in MMDetection's recipes; --gpus sets another number"
    t.set(
        "optimizer.lr_batch",
        number(gpus * images_per_gpu),
        f"{plain(images_per_gpu)} images on each of {gpus} GPUs{usual}",
    )
    return gpus * images_per_gpu


def _read_precision(t: Translation) -> None:
    wrapper = t.read("optim_wrapper.type")
    scale = t.read_any("optim_wrapper.loss_scale", "fp16.loss_scale")
    half = t.look("fp16")
    kind = t.read("optim_wrapper.dtype")
    name = wrapper.text() if wrapper else ""
    if wrapper and name not in ("OptimWrapper", "AmpOptimWrapper"):
        t.leave_out(wrapper, "optim_wrapper must be OptimWrapper or AmpOptimWrapper")
    if not half and name != "AmpOptimWrapper":
        return
    is_brain = kind and kind.text() == "bfloat16"
    t.put("train.precision", "bf16" if is_brain else "fp16", half or wrapper)
    if scale and not isinstance(scale.need().data, (str, dict)):
        t.put("train.loss_scale", scale.real(), scale)


def read_schedule(
    t: Translation, layout: Layout, data: TrainingData, epoch: EpochLength
) -> bool:
    """Reads the length of training and the learning rate. Returns whether they are given in
    steps."""
    by_steps = _read_length(t, layout, data, epoch)
    if t.look("param_scheduler"):
        _read_schedulers(t, data, epoch)
    else:
        _read_lr_config(t, by_steps, data, epoch)
    return by_steps


def _read_length(t: Translation, layout: Layout, data: TrainingData, epoch: EpochLength) -> bool:
    epochs = t.read_any("train_cfg.max_epochs", "runner.max_epochs", "total_epochs")
    steps = t.read_any("train_cfg.max_iters", "runner.max_iters")
    t.read("runner.type")
    if layout.is_new:
        t.read("train_cfg.type")
    if epochs:
        length = rounded_epochs(epochs.real() * data.times)
        t.put("train.epochs", length, epochs, data.repeated())
    elif steps:
        length = epoch.epochs(steps.real(), steps)
        t.put("train.epochs", length, steps, f"{plain(steps.real())} {epoch.how()}")
    return bool(steps) and not epochs


def _read_schedulers(t: Translation, data: TrainingData, epoch: EpochLength) -> None:
    """Reads the schedulers of 3.x: a list, each from `begin` to `end`."""
    found = t.look("param_scheduler")
    paths = ["param_scheduler"]
    if found.is_list():
        paths = [f"param_scheduler.{index}" for index in range(len(found.items()))]
    warms = False
    for path in paths:
        kind = t.read(f"{path}.type")
        if not kind:
            continue
        by_epoch = t.flag_or(f"{path}.by_epoch", True)
        begin, end = t.read(f"{path}.begin"), t.read(f"{path}.end")
        t.read(f"{path}.convert_to_iter_based")
        if kind.text() == "LinearLR" and not (begin and begin.real()) and end:
            _put_warmup(t, end, by_epoch, data)
            _put_warmup_factor(t, t.read(f"{path}.start_factor"), 1 / 3, "LinearLR's default")
            warms = True
        elif kind.text() == "MultiStepLR":
            _read_milestones(t, f"{path}.milestones", by_epoch, end, data, epoch)
            t.copy(f"{path}.gamma", "schedule.gamma")
        elif kind.text() == "CosineAnnealingLR":
            t.put("schedule.type", "cosine", kind)
            t.read(f"{path}.T_max")
            t.expect(f"{path}.eta_min", 0.0, _FALLS)
        elif kind.text() == "PolyLR":
            _put_poly(t, path, kind)
            t.expect(f"{path}.eta_min", 0.0, _FALLS)
        else:
            t.leave_out(kind, _SCHEDULES)
        t.leave_out_rest(path, "no counterpart in [schedule]")
    if not warms:
        t.set("schedule.warmup", "0 steps", "no warm-up")


def _read_lr_config(
    t: Translation, by_steps: bool, data: TrainingData, epoch: EpochLength
) -> None:
    """Reads the schedule of 2.x: a single dict."""
    path = "lr_config"
    if not t.look(path):
        return
    policy = t.read(f"{path}.policy")
    kind = policy.text() if policy else "step"
    by_epoch = t.flag_or(f"{path}.by_epoch", not by_steps)
    if kind == "step":
        in_epochs = by_epoch and not by_steps
        _read_milestones(t, f"{path}.step", in_epochs, Found(""), data, epoch)
        t.copy(f"{path}.gamma", "schedule.gamma")
    elif kind == "CosineAnnealing":
        t.put("schedule.type", "cosine", policy)
        t.expect(f"{path}.min_lr", 0.0, _FALLS)
    elif kind == "poly":
        _put_poly(t, path, policy)
        t.expect(f"{path}.min_lr", 0.0, _FALLS)
    else:
        t.leave_out(policy, _SCHEDULES)
    warmup = t.read(f"{path}.warmup")
    length, ratio = t.read(f"{path}.warmup_iters"), t.read(f"{path}.warmup_ratio")
    in_epochs = t.flag_or(f"{path}.warmup_by_epoch", False)
    if not warmup:
        t.set("schedule.warmup", "0 steps", "no warm-up")
        return
    if warmup.text() != "linear":
        t.leave_out(warmup, "warm-up is linear")
    if length:
        _put_warmup(t, length, in_epochs, data)
    _put_warmup_factor(t, ratio, 0.1, "mmcv's default")


def _put_warmup(t: Translation, length: Found, by_epoch: bool, data: TrainingData) -> None:
    if by_epoch:
        t.put("schedule.warmup", f"{plain(length.real() * data.times)} epochs", length)
    else:
        t.put("schedule.warmup", f"{plain(length.real())} steps", length)


def _put_warmup_factor(t: Translation, found: Found, usual: float, why: str) -> None:
    if found:
        t.put("schedule.warmup_factor", found.real(), found)
    else:
        t.set("schedule.warmup_factor", usual, why)


def _put_poly(t: Translation, path: str, kind: Found) -> None:
    t.put("schedule.type", "poly", kind)
    t.put("schedule.power", t.real_or(f"{path}.power", 1), kind)


def _read_milestones(
    t: Translation, path: str, by_epoch: bool, end: Found, data: TrainingData, epoch: EpochLength
) -> None:
    """Reads the milestones. `end`: end of the scheduler, if set."""
    found = t.read(path)
    if not found:
        return
    theirs = found.reals()
    ours = [
        rounded_epochs(at * data.times) if by_epoch else epoch.epochs(at, found) for at in theirs
    ]
    how = data.repeated() if by_epoch else epoch.how()
    t.put("schedule.milestones", ours, found, how)
    if end and theirs and end.real() < max(theirs):
        t.leave_out(
            end,
            "the scheduler ends before its last milestones, which MMDetection 3 ignores and "
            "Millrace keeps",
        )


def read_run(t: Translation, data: TrainingData, by_steps: bool) -> None:
    """Reads evaluations, checkpoints and logs."""
    interval = t.read_any("train_cfg.val_interval", "evaluation.interval")
    t.read("evaluation.metric")
    if interval:
        _put_every(t, "callbacks.evaluate", interval, not by_steps, data)
    elif data.times != 1:
        t.set("callbacks.evaluate.every", f"{plain(data.times)} epochs", data.repeated())
    saves = t.read_any("default_hooks.checkpoint.interval", "checkpoint_config.interval")
    old = t.flag_or("checkpoint_config.by_epoch", not by_steps)
    by_epoch = t.flag_or("default_hooks.checkpoint.by_epoch", old)
    if saves:
        _put_every(t, "callbacks.checkpoint", saves, by_epoch, data)
    keep = t.read_any(
        "default_hooks.checkpoint.max_keep_ckpts", "checkpoint_config.max_keep_ckpts"
    )
    if keep:
        t.put("callbacks.checkpoint.keep", max(0.0, keep.real()), keep)
    _read_best(t)
    log = t.read_any("default_hooks.logger.interval", "log_config.interval")
    if log:
        t.put("callbacks.log.every", f"{log.integer()} steps", log)
    folder = t.read("work_dir")
    if folder:
        t.put("train.output", folder.text(), folder)
    t.copy("randomness.seed", "train.seed", "seed")
    for key in ("checkpoint.type", "logger.type", "timer", "param_scheduler", "sampler_seed"):
        t.read(f"default_hooks.{key}")
    for path in (
        "log_config.hooks",
        "default_hooks.visualization.type",
        "test_cfg.type",
        "val_cfg.type",
    ):
        t.read(path)


def _put_every(
    t: Translation, callback: str, found: Found, by_epoch: bool, data: TrainingData
) -> None:
    length = found.real() * (data.times if by_epoch else 1)
    text = f"{plain(length)} {'epochs' if by_epoch else 'steps'}"
    every = "1 epoch" if text == "1 epochs" else text
    t.put(f"{callback}.every", every, found, data.repeated() if by_epoch else "")


def _read_best(t: Translation) -> None:
    best = t.read_any("default_hooks.checkpoint.save_best", "evaluation.save_best")
    if not best:
        return
    name = best.text()
    if name in ("auto", "bbox_mAP", "coco/bbox_mAP"):
        t.put("callbacks.keep_best.metric", "bbox/AP", best)
    elif name in ("segm_mAP", "coco/segm_mAP"):
        t.put("callbacks.keep_best.metric", "segm/AP", best)
    else:
        t.leave_out(
            best, "[callbacks.keep_best] metric must be a name of metrics.jsonl, such as bbox/AP50"
        )
