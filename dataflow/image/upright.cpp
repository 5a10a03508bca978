#include "millrace/dataflow/image/upright.h"

#include <opencv2/core.hpp>

namespace millrace {

cv::Mat upright(const cv::Mat& image, int orientation) {
  cv::Mat result = image, flipped;
  if (orientation >= 5) cv::transpose(image, result = cv::Mat());
  constexpr int kLeftToRight = 1, kBothWays = -1, kTopToBottom = 0;
  constexpr int kFlips[] = {kLeftToRight, kBothWays, kTopToBottom};  // of 2, 3, 4 and of 6, 7, 8
  const int flip = (orientation - 1) % 4;
  if (flip == 0) return result;
  cv::flip(result, flipped, kFlips[flip - 1]);
  return flipped;
}

}  // namespace millrace
