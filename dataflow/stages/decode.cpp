#include "dataflow/stages/decode.h"

#include "base/errors.h"
#include "base/files.h"
#include "dataflow/detection_stages.h"
#include "dataflow/image_file.h"
#include "dataflow/stages/resize_shortest_edge.h"

namespace millrace {
namespace {

std::string bytes_of(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error& problem) {
    throw DataError(problem.what());  // one missing file is a fault of that sample alone
  }
}

const bool registered = register_map<Sample, Decode>(
    "reads and decodes the image: JPEG, PNG and what else OpenCV knows");

}  // namespace

Sample Decode::operator()(Sample sample) const {
  const cv::Size annotated(sample.width, sample.height);
  const auto enough = short_side > 0 && !annotated.empty()
                          ? shortest_edge_size(annotated, short_side, max_side)
                          : cv::Size();
  sample.image = {decode_rgb(bytes_of(sample.path), sample.path, annotated, strict, enough),
                  annotated};
  return sample;
}

}  // namespace millrace
