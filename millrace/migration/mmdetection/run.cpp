#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "millrace/migration/mmdetection/parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {
namespace {

void put_every(Translation& t, const std::string& callback, const Found& found, bool by_epoch,
               const TrainingData& data) {
  const double length = found.real() * (by_epoch ? data.times : 1);
  t.put(callback + ".every",
        words(by_epoch ? length == 1 ? "1 epoch" : fmt::format("{} epochs", length)
                       : fmt::format("{} steps", length)),
        found, by_epoch ? data.repeated() : "");
}

void read_best(Translation& t) {
  const auto best = t.read_any({"default_hooks.checkpoint.save_best", "evaluation.save_best"});
  if (!best) return;
  const auto name = best.text();
  if (name == "auto" || name == "bbox_mAP" || name == "coco/bbox_mAP")
    t.put("callbacks.keep_best.metric", words("bbox/AP"), best);
  else if (name == "segm_mAP" || name == "coco/segm_mAP")
    t.put("callbacks.keep_best.metric", words("segm/AP"), best);
  else
    t.leave_out(best, "[callbacks.keep_best] metric is one of metrics.jsonl, such as bbox/AP50");
}

}  // namespace

void read_run(Translation& t, const TrainingData& data, bool by_steps) {
  const auto interval = t.read_any({"train_cfg.val_interval", "evaluation.interval"});
  t.read("evaluation.metric");
  if (interval)
    put_every(t, "callbacks.evaluate", interval, !by_steps, data);
  else if (data.times != 1)
    t.set("callbacks.evaluate.every", words(fmt::format("{} epochs", data.times)), data.repeated());
  const auto saves =
      t.read_any({"default_hooks.checkpoint.interval", "checkpoint_config.interval"});
  const bool by_epoch = flag_or(t, "default_hooks.checkpoint.by_epoch",
                                flag_or(t, "checkpoint_config.by_epoch", !by_steps));
  if (saves) put_every(t, "callbacks.checkpoint", saves, by_epoch, data);
  if (const auto keep = t.read_any(
          {"default_hooks.checkpoint.max_keep_ckpts", "checkpoint_config.max_keep_ckpts"}))
    t.put("callbacks.checkpoint.keep", std::max(0.0, keep.real()), keep);
  read_best(t);
  if (const auto log = t.read_any({"default_hooks.logger.interval", "log_config.interval"}))
    t.put("callbacks.log.every", words(fmt::format("{} steps", log.integer())), log);
  if (const auto folder = t.read("work_dir")) t.put("train.output", words(folder.text()), folder);
  if (const auto seed = t.read_any({"randomness.seed", "seed"}))
    t.put("train.seed", seed.real(), seed);
  for (const auto* key :
       {"default_hooks.checkpoint.type", "default_hooks.logger.type", "default_hooks.timer",
        "default_hooks.param_scheduler", "default_hooks.sampler_seed", "log_config.hooks",
        "default_hooks.visualization.type", "test_cfg.type", "val_cfg.type"})
    t.read(key);
}

}  // namespace millrace::mmdetection
