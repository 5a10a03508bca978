#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/dataflow/stages/geometric.h"
#include "millrace/doctor/checks.h"

namespace millrace {
namespace {

constexpr coco::FindingKind kTiny{
    "object-tiny", coco::Severity::note, "objects under 16 pixels when their image is resized",
    "little is left of them after the first layers of a network; larger sides, such as "
    "data.short_side, show more"};

}  // namespace

SizeCounts check_sizes(const DataSplit& split, std::int64_t short_side, std::int64_t max_side,
                       coco::Findings& findings) {
  const auto& data = *split.annotations;
  SizeCounts counts{};
  for (const auto& image : data.images) {
    const cv::Size size(image.width, image.height);
    const double scale =
        static_cast<double>(shortest_edge_size(size, short_side, max_side).width) / size.width;
    for (const auto& object : data.objects(image)) {
      const auto box = coco::clipped_box(object, image);
      if (object.crowd || !box.has_area() ||
          std::ranges::count(split.category_ids, object.category_id) == 0)
        continue;
      const double pixels = scale * std::sqrt(double{box.width()} * double{box.height()});
      const auto kind = std::ranges::upper_bound(kSizeBounds, pixels) - kSizeBounds.begin();
      ++counts[static_cast<std::size_t>(kind)];
      if (kind == 0)
        findings.add(kTiny, {.annotation = object.id,
                             .image = image.id,
                             .file = std::string(data.text(image.file_name)),
                             .what = fmt::format("{:.3g} pixels", pixels)});
    }
  }
  return counts;
}

}  // namespace millrace
