// Image files without annotations, of which some may be broken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/source.h"

namespace millrace {

/// What became of a file.
struct Photo {
  cv::Size size;      // upright, pixels; empty: no decoder gets a picture from it
  std::string fault;  // a sentence that names the file; empty: it was decoded
};

/// Files as samples; image_id is the file's number, from 0. Their sizes are known only once they
/// are decoded, so that a flow may begin at once however many there are.
class Photos final : public Source<Sample> {
 public:
  Photos(std::vector<std::filesystem::path> files, const Decode& decode)
      : files_(std::move(files)), decode_(decode) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  /// Its path and number.
  Sample operator[](std::int64_t index) const override;

  /// Reads and decodes a sample's file. If it cannot be used the sample has no pixels, and the
  /// outcome says why; nothing throws. Any thread.
  Sample decoded(Sample sample) const;

  const std::filesystem::path& file(std::int64_t index) const {
    return files_[static_cast<std::size_t>(index)];
  }

  /// The outcome of a file that was decoded, which is then forgotten.
  Photo take(std::int64_t index) const;

 private:
  const std::vector<std::filesystem::path> files_;
  const Decode decode_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, Photo> outcomes_;  // not taken yet
};

}  // namespace millrace
