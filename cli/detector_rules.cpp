#include "millrace/cli/detector_rules.h"

#include <utility>
#include <variant>

#include "millrace/cli/command.h"
#include "millrace/models/maskrcnn/options.h"
#include "millrace/models/retinanet/options.h"

namespace millrace::cli {
namespace {

/// The options of a built-in detector: a two-stage detector or RetinaNet.
using DetectorOptions = std::variant<std::monostate, MaskRcnnOptions, RetinaNetOptions>;

template <class T>
T options_in(const Config& model) {
  return read_options<T>(model, {"type", "weights"});
}

DetectorOptions options_of(const std::string& type, const Config& model) {
  if (type == "maskrcnn") return options_in<MaskRcnnOptions>(model);
  if (type == "fasterrcnn") return MaskRcnnOptions(options_in<FasterRcnnOptions>(model));
  if (type == "cascadercnn") return MaskRcnnOptions(options_in<CascadeRcnnOptions>(model));
  if (type == "retinanet") return options_in<RetinaNetOptions>(model);
  return {};
}

/// Returns the anchor cells of each level. `first_stride`: the stride of the first level in pixels.
AnchorRule rule_of_anchors(const PyramidAnchors& anchors, std::int64_t first_stride) {
  AnchorRule rule{.stride_by_grid = anchors.stride == AnchorStride::grid};
  for (std::size_t level = 0; level < anchors.level_count(); ++level) {
    auto& own = rule.levels.emplace_back();
    own.stride = first_stride << level;
    const auto cells = anchors.cell(level, own.stride);  // (A, 4)
    const auto* side = cells.const_data_ptr<float>();
    for (std::int64_t i = 0; i < cells.size(0); ++i, side += 4)
      own.cells.push_back({side[0], side[1], side[2], side[3]});
  }
  return rule;
}

std::optional<AnchorRule> rule_of(const DetectorOptions& options, std::int64_t divisor) {
  AnchorRule rule;
  if (const auto* stages = std::get_if<MaskRcnnOptions>(&options)) {
    rule = rule_of_anchors(stages->rpn.anchors, stages->finest_stride());
    rule.foreground = stages->rpn.fg_iou_thresh;
    rule.offset = stages->boxes.offset;
    rule.boundary = stages->rpn.boundary_thresh;
  } else if (const auto* retinanet = std::get_if<RetinaNetOptions>(&options)) {
    rule = rule_of_anchors(retinanet->anchors, /*first_stride=*/8);
    rule.foreground = retinanet->fg_iou_thresh;
    rule.offset = retinanet->boxes.offset;
  } else {
    return std::nullopt;
  }
  rule.divisor = divisor;
  return rule;
}

CeilingRule ceiling_of(const DetectionOptions& detection) {
  CeilingRule rule{.detections_per_image = static_cast<std::size_t>(detection.detections_per_img)};
  if (detection.nms_type == NmsType::hard)
    rule.nms = detection.nms_thresh;
  else
    rule.nms = std::nullopt;
  return rule;
}

CeilingRule ceiling_of_stages(const MaskRcnnOptions& options) {
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

std::optional<AnchorRule> anchor_rule(const std::string& type, const Config& model,
                                      std::int64_t divisor, const std::vector<double>& sizes,
                                      const std::vector<double>& ratios) {
  auto table = model;
  const auto replace = [&](std::string_view path, const std::vector<double>& numbers) {
    Config list;
    auto& values = list.data.emplace<Config::Array>(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) values[i].data = numbers[i];
    if (!numbers.empty()) table.set_path(path, std::move(list));
  };
  replace("anchors.sizes", sizes);
  replace("anchors.aspect_ratios", ratios);
  return rule_of(options_of(type, table), divisor);
}

std::optional<CeilingRule> ceiling_rule(const std::string& type, const Config& model,
                                        std::int64_t divisor) {
  const auto options = options_of(type, model);
  std::optional<CeilingRule> rule;
  if (const auto* stages = std::get_if<MaskRcnnOptions>(&options))
    rule = ceiling_of_stages(*stages);
  if (const auto* retinanet = std::get_if<RetinaNetOptions>(&options))
    rule = ceiling_of(retinanet->detection);
  if (rule) rule->anchors = rule_of(options, divisor);
  return rule;
}

std::vector<double> numbers(const Config& model, std::string_view path) {
  std::vector<double> found;
  const auto* values = value_at<Config::Array>(model, path);
  if (!values) return found;
  for (const auto& value : *values) {
    const auto* whole = std::get_if<std::int64_t>(&value.data);
    const auto* real = std::get_if<double>(&value.data);
    found.push_back(whole ? static_cast<double>(*whole) : real ? *real : 0);
  }
  return found;
}

}  // namespace millrace::cli
