#include "millrace/coco/evaluation/matching.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <numeric>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/image_matcher.h"

namespace millrace::coco {

AreaFrom area_from(const Detections& detections) {
  if (detections.empty() || detections[0].has_bbox) return AreaFrom::box;
  return detections[0].mask != Detections::kNoMask ? AreaFrom::mask : AreaFrom::keypoints;
}

void count_truths(const Plan& plan, const Image& image, std::span<std::int64_t> sums) {
  const std::size_t areas = plan.extent.areas;
  for (const Annotation& object : plan.truth.objects(image)) {
    const int position = plan.category(object.category_id);
    if (position < 0) continue;
    const auto k = plan.options.class_agnostic ? 0 : static_cast<std::size_t>(position);
    for (std::size_t a = 0; a < areas; ++a) sums[k * areas + a] += plan.counts(object, a);
  }
}

std::uint32_t match_image(const Plan& plan, const Image& image, const Detections& all,
                          Indices found, ImageMatches& out) {
  out.detections.resize(found.size());
  out.outcomes.resize(found.size() * plan.extent.outcomes());
  MatchRoom room{out.detections, out.outcomes};
  const std::uint32_t unknown = ImageMatcher(plan).match(image, all, found, room);
  out.detections.resize(room.detections.size());
  out.outcomes.resize(room.outcomes.size());
  return unknown;
}

namespace {

/// Fills `by_category` and `first`.
void list_by_category(Matches& matches) {
  const std::size_t all = matches.detections.size(), categories = matches.extent.categories;
  // Blocks of detections are listed in parallel, each at its offsets in the categories.
  constexpr std::size_t kMostBlocks = 64, kLeast = 4096;
  const std::size_t blocks = std::clamp<std::size_t>(all / kLeast, 1, kMostBlocks);
  const auto each_of_block = [&](std::size_t b, const auto& body) {
    for (std::size_t i = all * b / blocks; i < all * (b + 1) / blocks; ++i)
      body(i, matches.detections[i].category);
  };
  std::vector<std::size_t> next(blocks * categories, 0);  // counts, then offsets
  tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t b) {
    each_of_block(b, [&](std::size_t, std::uint32_t k) { ++next[b * categories + k]; });
  });
  std::size_t sum = 0;
  for (std::size_t k = 0; k < categories; ++k) {
    for (std::size_t b = 0; b < blocks; ++b) sum += std::exchange(next[b * categories + k], sum);
    matches.first[k + 1] = sum;
  }
  matches.by_category.resize(all);
  tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t b) {
    each_of_block(b, [&](std::size_t i, std::uint32_t k) {
      matches.by_category[next[b * categories + k]++] = static_cast<std::uint32_t>(i);
    });
  });
}

/// Moves the matches of all images to the front, closing gaps of unused memory.
void close_gaps(std::span<const MatchRoom> images, Matches& matches) {
  std::size_t count = 0;
  for (const MatchRoom& image : images) {
    Scored* const to = matches.detections.data() + count;
    if (image.detections.data() != to) {
      std::ranges::copy(image.detections, to);
      std::ranges::copy(image.outcomes,
                        matches.outcomes.data() + count * matches.extent.outcomes());
    }
    count += image.detections.size();
  }
  matches.detections.resize(count);
  matches.outcomes.resize(count * matches.extent.outcomes());
}

}  // namespace

Matches gather(std::span<const ImageMatches> images, const Extent& extent) {
  Matches matches(extent);
  std::vector<std::size_t> first = {0};  // offset of each image's detections
  for (const ImageMatches& image : images) first.push_back(first.back() + image.detections.size());
  matches.detections.resize(first.back());
  matches.outcomes.resize(first.back() * extent.outcomes());
  tbb::parallel_for(std::size_t{0}, images.size(), [&](std::size_t i) {
    std::ranges::copy(images[i].detections, matches.detections.data() + first[i]);
    std::ranges::copy(images[i].outcomes, matches.outcomes.data() + first[i] * extent.outcomes());
  });
  list_by_category(matches);
  return matches;
}

Matches match(const Plan& plan, const Detections& detections,
              std::span<const std::int64_t> image_ids) {
  const Dataset& truth = plan.truth;
  const auto chosen = chosen_images(truth, image_ids);
  const DetectionsByImage by_image(truth, detections);
  /// The state of a thread.
  struct Worker {
    explicit Worker(const Plan& plan)
        : matcher(plan), truths(plan.extent.categories * plan.extent.areas, 0) {}
    ImageMatcher matcher;
    std::vector<std::int64_t> truths;
    std::int64_t unknown = 0;
  };
  tbb::enumerable_thread_specific<Worker> workers([&] { return Worker(plan); });
  Matches matches(plan.extent);
  const std::size_t stride = plan.extent.outcomes();
  matches.detections.resize(by_image.indices.size());
  matches.outcomes.resize(by_image.indices.size() * stride);
  std::vector<MatchRoom> rooms(truth.images.size());
  tbb::parallel_for(std::size_t{0}, truth.images.size(), [&](std::size_t i) {
    if (!chosen[i]) return;
    Worker& worker = workers.local();
    const Image& image = truth.images[i];
    const auto given = by_image.of(i);
    const std::size_t first = by_image.first[i];
    rooms[i] = {std::span(matches.detections).subspan(first, given.size()),
                std::span(matches.outcomes).subspan(first * stride, given.size() * stride)};
    worker.unknown += worker.matcher.match(image, detections, given, rooms[i]);
    count_truths(plan, image, worker.truths);
  });
  close_gaps(rooms, matches);
  list_by_category(matches);

  for (const Worker& worker : workers) {
    matches.unknown_categories += worker.unknown;
    for (std::size_t i = 0; i < matches.truths.size(); ++i) matches.truths[i] += worker.truths[i];
  }
  matches.unknown_images = by_image.unknown;
  return matches;
}

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
