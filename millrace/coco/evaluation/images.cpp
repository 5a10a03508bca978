#include "millrace/coco/evaluation/images.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
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
  std::vector<std::int64_t> ids;  // close together, for the search
  ids.reserve(truth.images.size());
  for (const Image& image : truth.images) ids.push_back(image.id);
  std::vector<std::uint32_t> owners(all.size());
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, all.size(), 4096), [&](const auto& range) {
    std::int64_t id = 0;
    std::uint32_t owner = kNoImage;
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      if (i == range.begin() || id != all[i].image_id) {
        id = all[i].image_id;
        const auto at = std::ranges::lower_bound(ids, id);
        owner =
            at != ids.end() && *at == id ? static_cast<std::uint32_t>(at - ids.begin()) : kNoImage;
      }
      owners[i] = owner;
    }
  });
  for (const std::uint32_t owner : owners) {
    if (owner == kNoImage)
      ++unknown;
    else
      ++first[owner + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  indices.resize(first.back());
  auto next = first;
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i] != kNoImage) indices[next[owners[i]]++] = static_cast<std::uint32_t>(i);
}

}  // namespace millrace::coco
