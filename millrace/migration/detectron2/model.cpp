#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "millrace/migration/detectron2/model_parts.h"
#include "millrace/migration/detectron2/parts.h"
#include "millrace/migration/detectron2/readers.h"

namespace millrace::detectron2 {
namespace {

void read_fpn(Translation& t) {
  if (is_on_c4(t)) {
    for (const auto* key : {"IN_FEATURES", "OUT_CHANNELS", "NORM", "FUSE_TYPE"})
      t.read(std::string("MODEL.FPN.") + key);
    return;
  }
  t.read("MODEL.FPN.IN_FEATURES");
  t.copy("MODEL.FPN.OUT_CHANNELS", "model.fpn.out_channels");
  put_norm(t, "MODEL.FPN.NORM", "model.fpn.norm");
  must(t, "MODEL.FPN.FUSE_TYPE", {"sum"});
}

void read_weights(Translation& t) {
  const auto found = t.read("MODEL.WEIGHTS");
  auto name = found.text();
  if (name.empty()) return;
  std::string how;
  if (const auto scheme = name.find("://"); scheme != std::string::npos) {
    how = name;
    if (name.starts_with("detectron2://"))
      how = "https://dl.fbaipublicfiles.com/detectron2/" + name.substr(scheme + 3);
    const bool has_kind = name.rfind('.') != std::string::npos && name.rfind('.') > name.rfind('/');
    name = weights_file(name) + (has_kind ? "" : ".pkl");
  }
  t.put("model.weights", words(name), found, how);
}

/// Returns whether there are several views.
bool read_test_augmentation(Translation& t) {
  const auto enabled = t.read("TEST.AUG.ENABLED");
  const auto sizes = t.read("TEST.AUG.MIN_SIZES");
  const auto most = t.read("TEST.AUG.MAX_SIZE");
  const auto flip = t.read("TEST.AUG.FLIP");
  if (!enabled.flag()) return false;
  auto all = sizes.reals();
  if (all.empty()) sizes.fail("a size is needed");
  const double largest = std::ranges::max(all);
  for (auto& one : all) one /= largest;
  t.put("model.test.aug_scales", all, sizes, fmt::format("shares of {}", largest));
  t.put("model.test.aug_flip", Config::Data(flip.flag()), flip);
  t.put("data.test_short_side", largest, sizes, "the largest view, as views are made from it");
  t.put("data.test_max_side", most.real(), most);
  return true;
}

}  // namespace

bool read_model(Translation& t) {
  const auto architecture = must(t, "MODEL.META_ARCHITECTURE", {"GeneralizedRCNN", "RetinaNet"});
  must(t, "MODEL.KEYPOINT_ON", {"False"});
  must(t, "MODEL.LOAD_PROPOSALS", {"False"});
  must(t, "MODEL.ANCHOR_GENERATOR.NAME", {"DefaultAnchorGenerator"});
  if (architecture == "RetinaNet")
    read_retinanet(t);
  else
    read_rcnn(t);
  read_resnet(t);
  read_fpn(t);
  t.copy("TEST.DETECTIONS_PER_IMAGE", "model.test.detections_per_img");
  read_weights(t);
  return read_test_augmentation(t);
}

}  // namespace millrace::detectron2
