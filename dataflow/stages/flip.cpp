#include "dataflow/stages/flip.h"

#include "dataflow/detection_stages.h"
#include "dataflow/geometry.h"

namespace millrace {
namespace {

const bool registered = register_map<Sample, FlipHorizontally>(
    "mirrors the image and its objects left to right by chance");

}  // namespace

Sample FlipHorizontally::operator()(Sample sample, Rng& rng) const {
  if (!rng.chance(probability)) return sample;

  sample.image.mirror();
  mirror(sample.objects, sample.image.size().width);
  return sample;
}

}  // namespace millrace
