#include "millrace/coco/data/results_fit.h"

#include <fmt/format.h>

#include <map>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

/// Returns whether a detection can belong to this image.
bool fits(const Detections& found, const Detections::Record& one, const Image& image) {
  if (image.width == 0 || image.height == 0) return true;  // not recorded
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  if (one.mask != Detections::kNoMask) {
    const auto& extent = found.mask_of(one).extent;
    if (extent.width != width || extent.height != height) return false;
  }
  if (!one.has_bbox) return true;
  const double x = one.bbox[0] + one.bbox[2] / 2, y = one.bbox[1] + one.bbox[3] / 2;
  return x >= 0 && y >= 0 && x <= width && y <= height;
}

}  // namespace

void require_fit(const Detections& found, const Dataset& truth, const std::string& file) {
  constexpr auto kAdvice =
      "`trainer predict --gt FILE` and `trainer eval --out FILE` write detections with the ids of "
      "FILE";
  std::size_t unknown = 0;
  std::map<std::int64_t, bool> fitting;  // by id of known images
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& one = found[i];
    if (const auto* image = truth.find_image(one.image_id))
      fitting.try_emplace(one.image_id, true).first->second &= fits(found, one, *image);
    else
      ++unknown;
  }
  if (2 * unknown > found.size())
    throw Error(fmt::format("{}: {} of {} detections belong to images that are not in {}; {}", file,
                            unknown, found.size(), truth.source, kAdvice));
  std::size_t others = 0;
  for (const auto& [id, is_fitting] : fitting) others += !is_fitting;
  if (2 * others > fitting.size())
    throw Error(
        fmt::format("{}: in {} of {} images, detections do not fit the image size in {}, so they "
                    "probably belong to other images; {}",
                    file, others, fitting.size(), truth.source, kAdvice));
}

}  // namespace millrace::coco
