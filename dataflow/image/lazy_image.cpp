#include "millrace/dataflow/image/lazy_image.h"

#include <opencv2/core.hpp>
#include <stdexcept>

#include "millrace/dataflow/image/bilinear.h"

namespace millrace {

LazyImage LazyImage::clone() const {
  auto copy = *this;
  copy.pixels_ = pixels_.clone();
  return copy;
}

cv::Mat& LazyImage::pixels() {
  if (mirrored_ || size() != pixels_.size()) {
    cv::Mat looked_at(size(), pixels_.type());
    write_to(looked_at);
    *this = looked_at;
  }
  target_size_ = {};
  resampling_ = Resampling::opencv;
  return pixels_;
}

void LazyImage::write_to(cv::Mat& target) const {
  if (target.size() != size() || target.type() != pixels_.type())  // OpenCV would reallocate
    throw std::invalid_argument("the target of an image has another size or type");
  if (target.size() != pixels_.size() && resampling_ == Resampling::pillow) {
    resize_antialiased(pixels_, target);
    if (mirrored_) cv::flip(target, target, /*flipCode=*/1);
  } else if (target.size() != pixels_.size())
    resize_bilinear(pixels_, target, mirrored_);
  else if (mirrored_)
    cv::flip(pixels_, target, /*flipCode=*/1);
  else
    pixels_.copyTo(target);
}

}  // namespace millrace
