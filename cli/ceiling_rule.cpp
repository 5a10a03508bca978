#include "millrace/cli/ceiling_rule.h"

#include "millrace/cli/anchor_rule.h"
#include "millrace/models/maskrcnn/options.h"
#include "millrace/models/retinanet/options.h"

namespace millrace::cli {
namespace {

CeilingRule ceiling_of(const DetectionOptions& detection) {
  CeilingRule rule{.detections_per_image = static_cast<std::size_t>(detection.detections_per_img)};
  rule.nms =
      detection.nms_type == NmsType::hard ? std::optional(detection.nms_thresh) : std::nullopt;
  return rule;
}

template <class T>
CeilingRule ceiling_of_stages(const Config& model) {
  const MaskRcnnOptions& options = read_options<T>(model, {"type", "weights"});
  auto rule = ceiling_of(options.detection);
  if (!options.masks) return rule;
  const auto& head = options.mask_head;
  const auto side = options.pyramid.has_pyramid() ? head.pooler_resolution
                                                  : (head.pooler_resolution + 1) / 2;  // after C5
  rule.masks = {.cells = static_cast<int>(2 * side),
                .soft = head.target == MaskTarget::soft,
                .padded = head.paste == MaskPaste::padded};
  return rule;
}

}  // namespace

std::optional<CeilingRule> ceiling_rule(const std::string& type, const Config& model,
                                        std::int64_t divisor) {
  std::optional<CeilingRule> rule;
  if (type == "maskrcnn") rule = ceiling_of_stages<MaskRcnnOptions>(model);
  if (type == "fasterrcnn") rule = ceiling_of_stages<FasterRcnnOptions>(model);
  if (type == "cascadercnn") rule = ceiling_of_stages<CascadeRcnnOptions>(model);
  if (type == "retinanet")
    rule = ceiling_of(read_options<RetinaNetOptions>(model, {"type", "weights"}).detection);
  if (rule) rule->anchors = anchor_rule(type, model, divisor);
  return rule;
}

}  // namespace millrace::cli
