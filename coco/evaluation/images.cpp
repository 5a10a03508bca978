#include "millrace/coco/evaluation/images.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
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
    throw Error(fmt::format("{} detections exceed the limit of 4294967295", all.size()));
  constexpr std::uint32_t kNoImage = UINT32_MAX;
  std::vector<std::int64_t> ids;  // a contiguous copy for the search
  ids.reserve(truth.images.size());
  for (const Image& image : truth.images) ids.push_back(image.id);
  std::vector<std::uint32_t> owners(all.size());
  std::atomic<std::int64_t> of_no_image = 0;
  std::atomic<bool> grouped = true;  // the detections are ordered by image
  const auto owner_of = [&](std::size_t i) {
    const auto at = std::ranges::lower_bound(ids, all[i].image_id);
    return at != ids.end() && *at == all[i].image_id ? static_cast<std::uint32_t>(at - ids.begin())
                                                     : kNoImage;
  };
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, all.size(), 4096), [&](const auto& range) {
    std::uint32_t before = range.begin() == 0 ? 0 : owner_of(range.begin() - 1);
    for (std::size_t begin = range.begin(), end = begin; begin < range.end(); begin = end) {
      const std::uint32_t owner = owner_of(begin);
      for (; end < range.end() && all[end].image_id == all[begin].image_id; ++end)
        owners[end] = owner;
      if (owner < before) grouped = false;
      before = owner;
      if (owner == kNoImage)
        of_no_image += static_cast<std::int64_t>(end - begin);
      else
        std::atomic_ref(first[owner + 1]) += static_cast<std::uint32_t>(end - begin);
    }
  });
  unknown = of_no_image;
  std::partial_sum(first.begin(), first.end(), first.begin());
  indices.resize(first.back());
  if (grouped) {  // detections of unknown images are last
    std::iota(indices.begin(), indices.end(), 0U);
    return;
  }
  auto next = first;
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (owners[i] != kNoImage) indices[next[owners[i]]++] = static_cast<std::uint32_t>(i);
}

}  // namespace millrace::coco
