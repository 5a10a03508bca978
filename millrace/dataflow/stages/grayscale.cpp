#include "millrace/dataflow/stages/grayscale.h"

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/image/photometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<Grayscale>("makes an image grey by chance"));

}  // namespace

Sample Grayscale::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (rng.chance(probability)) image = photometry::saturation(image, 0);
  return sample;
}

}  // namespace millrace
