// Image files for detection, some of which may be broken.
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

/// The result of decoding a file.
struct Photo {
  cv::Size size;      // upright, pixels; empty = cannot be decoded at all
  std::string fault;  // a sentence with the file's name; empty = it was decoded
};

/// Files as samples; image_id is the file's index, from 0. Sizes become known only by decoding, so
/// that a flow starts at once for any number of files.
class Photos final : public Source<Sample> {
 public:
  /// `sizes` holds the annotated size of each file, empty = not annotated; or it has no elements.
  Photos(std::vector<std::filesystem::path> files, const TestTime& how,
         std::vector<cv::Size> sizes = {})
      : files_(std::move(files)), how_(how), sizes_(std::move(sizes)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  /// Returns path and index.
  Sample operator[](std::int64_t index) const override;

  /// Decodes a file with TestTime::photo. Throws DataError. Thread-safe.
  Sample read(std::int64_t index) const;

  /// Decodes the file of a sample. If it cannot be used, the returned sample has no pixels and the
  /// outcome has the reason; does not throw. Thread-safe.
  Sample decoded(Sample sample) const;

  const std::filesystem::path& file(std::int64_t index) const {
    return files_[static_cast<std::size_t>(index)];
  }

  /// Returns and erases the outcome of a file that was decoded.
  Photo take(std::int64_t index) const;

 private:
  const std::vector<std::filesystem::path> files_;
  const TestTime how_;
  const std::vector<cv::Size> sizes_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, Photo> outcomes_;  // outcomes not yet taken
};

}  // namespace millrace
