#include "millrace/coco/evaluation/images.h"

#include <fmt/format.h>

#include <numeric>

#include "millrace/base/errors.h"

namespace millrace::coco {

std::vector<bool> chosen_images(const Dataset& truth, std::span<const std::int64_t> ids) {
  std::vector<bool> chosen(truth.images.size(), ids.empty());
  for (const std::int64_t id : ids)
    if (const Image* image = truth.find_image(id))
      chosen[static_cast<std::size_t>(image - truth.images.data())] = true;
  return chosen;
}

DetectionsByImage::DetectionsByImage(const Dataset& truth, const Detections& all)
    : first(truth.images.size() + 1, 0) {
  if (all.size() > UINT32_MAX)
    throw Error(fmt::format("{} detections are too many: 4294967295 are the limit", all.size()));
  constexpr std::uint32_t kNoImage = UINT32_MAX;
  std::vector<std::uint32_t> owners(all.size(), kNoImage);
  const Image* image = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!image || image->id != all[i].image_id) image = truth.find_image(all[i].image_id);
    if (!image) {
      ++unknown;
      continue;
    }
    owners[i] = static_cast<std::uint32_t>(image - truth.images.data());
    ++first[owners[i] + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  indices.resize(first.back());
  auto next = first;
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i] != kNoImage) indices[next[owners[i]]++] = static_cast<std::uint32_t>(i);
}

}  // namespace millrace::coco
