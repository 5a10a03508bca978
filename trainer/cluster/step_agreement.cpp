#include "millrace/trainer/cluster/step_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
// Packed compactly, so that one exchange is enough.
inline auto members(BatchSize& size) {
  return std::tie(size.images, size.width, size.height, size.max_objects, size.objects_with_shape,
                  size.ids);
}

inline auto members(StepProposal& proposal) {
  return std::tie(proposal.stop, proposal.signal, proposal.detector_metrics, proposal.checkpoint,
                  proposal.data_place, proposal.waited_s, proposal.busy_s, proposal.hyper,
                  proposal.batches);
}

namespace {

using Sizes = std::vector<BatchSize>;

/// Sets the places of this rank's batches, and the ids of all images.
void set_places(StepAgreement& agreement, const std::vector<Sizes>& all, const Cluster& cluster) {
  const auto mine = static_cast<std::size_t>(cluster.rank());
  auto& places = agreement.places;
  places.resize(all[mine].size());
  std::int64_t images = 0, max_objects = 0, with_shape = 0;
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].size() != places.size())
        throw Error(fmt::format("{} has {} batches in this step, {} has {}",
                                cluster.name(static_cast<std::int64_t>(rank)), all[rank].size(),
                                cluster.name(), places.size()));
      const auto& [count, width, height, objects, shapes, ids] = all[rank][i];
      if (!ids.empty()) agreement.ids.push_back(ids);
      if (rank == mine) places[i].first_image = images;
      images += count;
      places[i].width = std::max(places[i].width, width);
      places[i].height = std::max(places[i].height, height);
      auto& fewest = places[i].fewest_images;
      fewest = rank == 0 ? count : std::min(fewest, count);
      max_objects = std::max(max_objects, objects);
      with_shape += shapes;
    }
  for (auto& place : places) place.max_objects = max_objects, place.objects_with_shape = with_shape;
}

/// Sets the counts of objects in the size of a batch.
void count_objects(const Batch& batch, BatchSize& size) {
  for (const auto& objects : batch.objects) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects.crowd[i]) continue;
      ++count;
      if (!std::holds_alternative<std::monostate>(objects.segmentations[i]))
        ++size.objects_with_shape;
    }
    size.max_objects = std::max(size.max_objects, count);
  }
}

constexpr double kMinReportedShare = 0.05;  // minimum share of the time that is reported

}  // namespace

std::vector<BatchSize> sizes_of(std::span<const Batch> batches, bool with_ids) {
  std::vector<BatchSize> sizes;
  for (const auto& batch : batches) {
    auto& size = sizes.emplace_back(std::ssize(batch.images), batch.width, batch.height);
    count_objects(batch, size);
    if (!with_ids) continue;
    for (const auto& image : batch.images) size.ids.push_back(image.image_id);
  }
  return sizes;
}

StepAgreement agree_on_step(const Cluster& cluster, const StepProposal& proposal) {
  StepAgreement agreement;
  double longest = -1, shortest = 0;
  std::uint64_t first_place = 0;
  std::vector<Sizes> sizes;
  for (auto& theirs : gather_values(cluster, "agreement on the step", proposal)) {
    auto& [stop, signal, metrics, checkpoint, place, waited_s, busy_s, hyper, batches] = theirs;
    const auto rank = std::ssize(sizes);
    if (agreement.stop.empty() && !stop.empty())
      agreement.stop = rank == 0 ? stop : fmt::format("{} of {}", stop, cluster.name(rank));
    if (agreement.signal == 0) agreement.signal = signal;
    if (first_place == 0) first_place = place;
    if (place != 0 && place != first_place)
      throw Error(
          fmt::format("{} is at another position in the data than the ranks before it; do all "
                      "hosts have the same images and annotations?",
                      cluster.name(rank)));
    agreement.detector_metrics |= metrics;
    agreement.checkpoint |= checkpoint;
    for (const auto& batch : batches) agreement.images += batch.images;
    if (rank == 0) agreement.hyper = std::move(hyper);
    sizes.push_back(std::move(batches));
    shortest = rank == 0 ? busy_s : std::min(shortest, busy_s);
    if (busy_s <= longest) continue;
    longest = busy_s;
    agreement.slowest = rank;
    agreement.slowest_waited_s = waited_s;
  }
  agreement.slowest_s = longest - shortest;
  if (agreement.stop.empty()) set_places(agreement, sizes, cluster);
  return agreement;
}

std::optional<std::string> Stragglers::add(const StepAgreement& step, const Cluster& cluster,
                                           Clock::time_point now) {
  if (began_ == Clock::time_point{}) began_ = now;
  auto& lost = lost_[step.slowest];
  lost.all_s += step.slowest_s;
  lost.data_s += std::min(step.slowest_waited_s, step.slowest_s);
  if (now - began_ < every_) return std::nullopt;
  const auto seconds = std::chrono::duration<double>(now - began_).count();
  const auto longest = *std::ranges::max_element(
      lost_, {}, [](const auto& of_rank) { return of_rank.second.all_s; });
  began_ = now;
  lost_.clear();
  if (longest.second.all_s < kMinReportedShare * seconds) return std::nullopt;
  return fmt::format(
      "in the last {} the other ranks waited longest for {}: {}, including {} for its data",
      duration_text(seconds), cluster.name(longest.first), duration_text(longest.second.all_s),
      duration_text(longest.second.data_s));
}

}  // namespace millrace
