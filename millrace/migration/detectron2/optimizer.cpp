#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/text.h"
#include "millrace/migration/detectron2/parts.h"

namespace millrace::detectron2 {
namespace {

void read_clipping(Translation& t) {
  const auto enabled = t.read("SOLVER.CLIP_GRADIENTS.ENABLED");
  const auto kind = t.read("SOLVER.CLIP_GRADIENTS.CLIP_TYPE");
  const auto value = t.read("SOLVER.CLIP_GRADIENTS.CLIP_VALUE");
  t.read("SOLVER.CLIP_GRADIENTS.NORM_TYPE");
  if (!enabled.flag()) return;
  if (kind.text() == "value")
    t.put("optimizer.clip_value", value.real(), value);
  else if (kind.text() == "full_model")
    t.put("optimizer.clip_norm", value.real(), value);
  else
    t.leave_out(kind,
                "the norm of each parameter's gradient; optimizer.clip_norm bounds that of "
                "all together, optimizer.clip_value each number");
}

}  // namespace

double read_optimizer(Translation& t, std::optional<std::int64_t> given_gpus) {
  const auto batch = t.read("SOLVER.IMS_PER_BATCH");
  const auto world = t.read("SOLVER.REFERENCE_WORLD_SIZE");
  const auto images = batch.integer();
  const auto gpus = given_gpus.value_or(std::max<std::int64_t>(1, world.integer()));
  if (images < 1 || images % gpus != 0)
    batch.fail(
        fmt::format("it does not divide into whole images for each of {}; --gpus says for "
                    "how many processes the recipe is meant",
                    counted(gpus, "GPU")));
  t.put("data.batch_size", static_cast<double>(images / gpus), batch,
        gpus == 1 ? "" : fmt::format("{} / {} processes", images, gpus));
  t.put("optimizer.lr_batch", static_cast<double>(images), batch);
  t.copy("SOLVER.BASE_LR", "optimizer.lr");
  t.copy("SOLVER.MOMENTUM", "optimizer.momentum");
  t.copy("SOLVER.NESTEROV", "optimizer.nesterov");
  t.copy("SOLVER.WEIGHT_DECAY", "optimizer.weight_decay");
  t.copy("SOLVER.WEIGHT_DECAY_NORM", "optimizer.weight_decay_norm");
  t.copy("SOLVER.WEIGHT_DECAY_BIAS", "optimizer.weight_decay_bias");
  t.copy("SOLVER.BIAS_LR_FACTOR", "optimizer.bias_lr_factor");
  read_clipping(t);
  const auto half = t.read("SOLVER.AMP.ENABLED");
  if (half.flag()) t.put("train.precision", words("fp16"), half);
  return static_cast<double>(images);
}

}  // namespace millrace::detectron2
