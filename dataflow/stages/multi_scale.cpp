#include "millrace/dataflow/stages/multi_scale.h"

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {

MILLRACE_REGISTER(register_stage<MultiScale>(
    "resizes all images of a batch to a square, with a side drawn for each batch"));

std::vector<Sample> MultiScale::operator()(std::vector<Sample> group, Rng& rng) const {
  const auto side = static_cast<int>(sides[rng.below(sides.size())]);
  for (auto& sample : group) {
    image_of(sample, kName);
    resize(sample, {side, side});
  }
  return group;
}

}  // namespace millrace
