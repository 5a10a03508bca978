#include "dataflow/stages/flip.h"

#include <opencv2/core.hpp>

#include "dataflow/detection_stages.h"
#include "dataflow/geometry.h"

namespace millrace {
namespace {

const bool registered = register_map<Sample, FlipHorizontally>(
    "mirrors the image and its objects left to right by chance");

}  // namespace

Sample FlipHorizontally::operator()(Sample sample, Rng& rng) const {
  if (!rng.chance(probability)) return sample;

  cv::flip(sample.image, sample.image, /*flipCode=*/1);
  mirror(sample.objects, sample.image.cols);
  return sample;
}

}  // namespace millrace
