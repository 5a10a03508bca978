#include "millrace/trainer/cluster/step_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "millrace/base/errors.h"

namespace millrace {

std::vector<StepPlace> agree_on_places(const Cluster& cluster, std::span<const Batch> batches) {
  using Size = std::array<std::int32_t, 3>;  // images, width, height
  std::vector<Size> mine;
  for (const auto& batch : batches)
    mine.push_back({static_cast<std::int32_t>(batch.size()), batch.width, batch.height});
  const auto all = cluster.gather(
      "batches", {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Size)});

  std::vector<StepPlace> places;
  std::int64_t images = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    StepPlace place;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].size() != mine.size() * sizeof(Size))
        throw Error(fmt::format("{} has {} batches in this step, {} has {}",
                                cluster.name(static_cast<std::int64_t>(rank)),
                                all[rank].size() / sizeof(Size), cluster.name(), mine.size()));
      Size theirs;
      std::memcpy(theirs.data(), all[rank].data() + i * sizeof(Size), sizeof(Size));
      if (static_cast<std::int64_t>(rank) == cluster.rank()) place.first_image = images;
      images += theirs[0];
      place.width = std::max(place.width, theirs[1]);
      place.height = std::max(place.height, theirs[2]);
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace millrace
