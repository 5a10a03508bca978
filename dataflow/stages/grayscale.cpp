#include "dataflow/stages/grayscale.h"

#include "dataflow/detection_stages.h"
#include "dataflow/photometry.h"
#include "dataflow/transforms.h"

namespace millrace {
namespace {

const bool registered = register_map<Sample, Grayscale>("makes an image grey by chance");

}  // namespace

Sample Grayscale::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (rng.chance(probability)) image = photometry::saturation(image, 0);
  return sample;
}

}  // namespace millrace
