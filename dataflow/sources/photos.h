// Image files to detect in, of which some may be broken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/test_time.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

/// What became of a file.
struct Photo {
  cv::Size size;      // upright, pixels; empty: it cannot be decoded at all
  std::string fault;  // a sentence that names the file; empty: it was decoded
};

/// Files as samples; image_id is the file's number, from 0. Their sizes are known only once they
/// are decoded, so that a flow may begin at once however many there are.
class Photos final : public Source<Sample> {
 public:
  /// `sizes`: the annotated size of each file, empty = not annotated; or no sizes.
  Photos(std::vector<std::filesystem::path> files, const TestTime& how,
         std::vector<cv::Size> sizes = {})
      : files_(std::move(files)), how_(how), sizes_(std::move(sizes)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  /// Its path and number.
  Sample operator[](std::int64_t index) const override;

  /// A file's pixels, by TestTime::photo. Throws DataError. Any thread.
  Sample read(std::int64_t index) const;

  /// Reads the file of a sample. If it cannot be used, the returned sample has no pixels and the
  /// outcome has the reason; does not throw. Any thread.
  Sample decoded(Sample sample) const;

  const std::filesystem::path& file(std::int64_t index) const {
    return files_[static_cast<std::size_t>(index)];
  }

  /// The outcome of a file that was decoded, which is then forgotten.
  Photo take(std::int64_t index) const;

 private:
  const std::vector<std::filesystem::path> files_;
  const TestTime how_;
  const std::vector<cv::Size> sizes_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, Photo> outcomes_;  // not taken yet
};

}  // namespace millrace
