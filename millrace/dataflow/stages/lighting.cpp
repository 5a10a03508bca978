#include "millrace/dataflow/stages/lighting.h"

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/image/photometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(
    register_stage<Lighting>("adds a random colour along the principal components of ImageNet's"));

const double kEigenvalues[3] = {0.2175 * 255, 0.0188 * 255, 0.0045 * 255};
const cv::Matx33d kEigenvectors(-0.5675, 0.7192, 0.4009,    // red
                                -0.5808, -0.0045, -0.8140,  // green
                                -0.5836, -0.6948, 0.4203);  // blue

}  // namespace

cv::Vec3d Lighting::draw(Rng& rng) const {
  cv::Vec3d weights;
  for (int i = 0; i < 3; ++i) weights[i] = deviation * rng.normal() * kEigenvalues[i];
  return kEigenvectors * weights;
}

Sample Lighting::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  image = photometry::shift(image, draw(rng));
  return sample;
}

}  // namespace millrace
