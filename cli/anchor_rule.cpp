#include "millrace/cli/anchor_rule.h"

#include <utility>

#include "millrace/models/maskrcnn/options.h"
#include "millrace/models/retinanet/options.h"

namespace millrace::cli {
namespace {

/// The cells of each level, the first with this stride.
AnchorRule rule_of(const PyramidAnchors& anchors, std::int64_t first_stride) {
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

template <class T>
AnchorRule rule_of_stages(const Config& model) {
  const MaskRcnnOptions& options = read_options<T>(model, {"type", "weights"});
  auto rule = rule_of(options.rpn.anchors, options.finest_stride());
  rule.foreground = options.rpn.fg_iou_thresh;
  rule.offset = options.boxes.offset;
  rule.boundary = options.rpn.boundary_thresh;
  return rule;
}

AnchorRule rule_of_retinanet(const Config& model) {
  const auto options = read_options<RetinaNetOptions>(model, {"type", "weights"});
  auto rule = rule_of(options.anchors, /*first_stride=*/8);
  rule.foreground = options.fg_iou_thresh;
  rule.offset = options.boxes.offset;
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
  std::optional<AnchorRule> rule;
  if (type == "maskrcnn") rule = rule_of_stages<MaskRcnnOptions>(table);
  if (type == "fasterrcnn") rule = rule_of_stages<FasterRcnnOptions>(table);
  if (type == "cascadercnn") rule = rule_of_stages<CascadeRcnnOptions>(table);
  if (type == "retinanet") rule = rule_of_retinanet(table);
  if (rule) rule->divisor = divisor;
  return rule;
}

std::vector<double> numbers(const Config& model, std::string_view path) {
  std::vector<double> found;
  const auto* list = model.find_path(path);
  const auto* values = list ? std::get_if<Config::Array>(&list->data) : nullptr;
  if (!values) return found;
  for (const auto& value : *values) {
    const auto* whole = std::get_if<std::int64_t>(&value.data);
    const auto* real = std::get_if<double>(&value.data);
    found.push_back(whole ? static_cast<double>(*whole) : real ? *real : 0);
  }
  return found;
}

}  // namespace millrace::cli
