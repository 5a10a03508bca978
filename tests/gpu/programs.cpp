#include "tests/gpu/programs.h"

#include "millrace/coco/sample/sample.h"
#include "tests/gpu/on_device.h"

namespace millrace::testing {

Words on_tested_device() {
  return {"plugins=['" + tested().plugin + "']", "train.device='" + tested().kind + "'"};
}

Words as_small_as_asked() {
  if (!tested().small) return {};
  return {"data.short_side=96", "data.max_side=160", "model.backbone.width=16"};
}

std::string sample_data() {
  static const Scratch folder;
  const auto root = folder / "sample";
  const bool small = tested().small;
  if (!fs::exists(root))
    coco::make_sample(root, {.train = small ? 16 : 1024, .val = small ? 4 : 128});
  return setting("data.root", root);
}

}  // namespace millrace::testing
