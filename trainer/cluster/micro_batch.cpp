#include "millrace/trainer/cluster/micro_batch.h"

#include <algorithm>

#include "millrace/models/detector/device_pixels.h"

namespace millrace {
namespace {

/// Returns the images [first, first + count) of the batch; shares its pixels.
std::shared_ptr<const Batch> part_of(const Batch& batch, std::size_t first, std::size_t count) {
  if (count == batch.size()) return {std::shared_ptr<void>(), &batch};
  Batch part{.height = batch.height, .width = batch.width, .divisor = batch.divisor};
  const auto some = [&](const auto& all, auto& own) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    own.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  some(batch.images, part.images);
  some(batch.objects, part.objects);
  const auto bytes_before = batch.bytes() / batch.size() * first;
  part.pixels = {batch.pixels, batch.pixels.get() + bytes_before};
  if (batch.on_device) part.on_device = pixels_of_images(*batch.on_device, first, count);
  return std::make_shared<const Batch>(std::move(part));
}

/// Cuts a batch into groups at the boundaries of units. A unit is a micro-batch, or an image if a
/// group is one micro-batch.
std::vector<MicroBatchGroup> cut_batch(const Batch& batch, const StepPlace& place, StepInfo info,
                                       const MicroBatchCut& cut) {
  const auto unit = std::max<std::size_t>(1, cut.images), images = batch.size();
  const auto units_of = [unit](std::size_t count) { return (count + unit - 1) / unit; };
  const auto units = units_of(images);
  const auto fewest = units_of(static_cast<std::size_t>(place.fewest_images));
  const auto passes = std::clamp<std::size_t>(cut.passes, 1, std::max<std::size_t>(1, fewest));
  info.padded = {place.width, place.height};
  info.max_objects = place.max_objects;
  info.objects_with_shape = place.objects_with_shape;
  std::vector<MicroBatchGroup> groups(passes);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const auto begin = pass * units / passes, end = (pass + 1) * units / passes;
    groups[pass].first = cut.images > 0 ? begin : 0;
    const auto size = cut.images > 0 ? cut.images : end - begin;
    const auto last = std::min(end * unit, images);
    for (auto first = begin * unit; first < last; first += size) {
      info.first_image = place.first_image + static_cast<std::int64_t>(first);
      groups[pass].members.push_back({part_of(batch, first, std::min(size, last - first)), info});
    }
  }
  return groups;
}

}  // namespace

std::vector<MicroBatchGroup> cut_into_micro_batches(std::span<const Batch> batches,
                                                    std::span<const StepPlace> places,
                                                    const StepInfo& info,
                                                    const MicroBatchCut& cut) {
  std::vector<MicroBatchGroup> all;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    auto groups = cut_batch(batches[i], places[i], info, cut);
    if (i + 1 == batches.size())
      for (auto& group : groups) group.is_last = cut.images > 0 || &group == &groups.back();
    std::ranges::move(groups, std::back_inserter(all));
  }
  return all;
}

std::size_t count_numbers(const std::vector<MicroBatchGroup>& groups) {
  std::size_t count = 0;
  for (const auto& group : groups) count = std::max(count, group.first + group.members.size());
  return count;
}

}  // namespace millrace
