#include "millrace/migration/mmdetection/import_mmdetection.h"

#include <utility>

#include "millrace/base/errors.h"
#include "millrace/migration/mmdetection/parts.h"

namespace millrace {
namespace {

mmdetection::Layout layout_of(const Translation& t) {
  const bool is_new = static_cast<bool>(t.look("train_dataloader"));
  return {.is_new = is_new,
          .train_cfg = t.look("model.train_cfg") ? "model.train_cfg" : "train_cfg",
          .test_cfg = t.look("model.test_cfg") ? "model.test_cfg" : "test_cfg",
          .train_set = is_new ? "train_dataloader.dataset" : "data.train",
          .val_set = is_new ? "val_dataloader.dataset" : "data.val",
          .test_set = is_new ? "test_dataloader.dataset" : "data.test"};
}

}  // namespace

ImportedConfig import_mmdetection(const ForeignConfig& config, const ImportOptions& options) {
  using namespace mmdetection;
  Translation t(config.tree);
  if (!t.look("model"))
    throw ConfigError(config.tree.place.text() + ": no `model = dict(...)`: no recipe");
  const auto layout = layout_of(t);
  const bool trains_norms = read_model(t, layout);
  const auto data = read_data(t, layout);
  EpochLength epoch{read_optimizer(t, data.images_per_gpu, trains_norms, options.gpus),
                    options.images};
  if (!epoch.images && data.split == "train2017") epoch.images = kCocoTrain2017WithObjects;
  const bool by_steps = read_schedule(t, layout, data, epoch);
  read_run(t, data, by_steps);
  note_rest(t, layout, config);
  return {"MMDetection", std::move(t.ours()), t.left_out()};
}

}  // namespace millrace
