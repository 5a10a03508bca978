// Results of many photos, appended to files as they are made, so that memory use is constant and
// the same command can resume a killed run.
//
//   OUT/detections.json.part   the beginning of detections.json
//   OUT/predict.part           a digest of the inputs, then a JSON line for each finished file
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/detections.h"

namespace millrace::cli {

/// The result of one file.
struct PhotoResult {
  std::filesystem::path file;  // absolute
  std::int64_t id = 0;         // image id; 0 if not a picture
  int width = 0, height = 0;   // pixels; 0 if not a picture
  bool is_drawn = false;       // a picture with its name was written
  std::string fault;           // error message; empty = none
};

/// The number of files that failed, and the first few of them.
struct FailedPhotos {
  static constexpr std::size_t kShown = 5;
  std::int64_t count = 0;
  std::vector<std::string> first;

  void add(const std::filesystem::path& file);
  /// Returns "2 of 9 images WHAT: a.jpg, b.jpg".
  std::string text(std::size_t all, std::string_view noun, std::string_view what) const;
};

class PhotoResults {
 public:
  /// Resumes the results in `folder` if their digest is `made_from`, after a number of files that
  /// is a multiple of `batch`; otherwise starts anew. Throws Error if the folder is not writable or
  /// another process writes to it.
  PhotoResults(std::filesystem::path folder, std::uint64_t made_from, std::int64_t batch);

  /// Returns the number of finished files.
  std::int64_t count() const { return count_; }
  /// Returns the number of finished files that are pictures.
  std::int64_t pictures() const { return pictures_; }
  const FailedPhotos& failed() const { return failed_; }

  /// Returns the path at which the picture for the next photo is to be written: the photo's name,
  /// with a number if that name is taken by a photo of another folder.
  std::filesystem::path picture_of(const std::filesystem::path& photo) const;

  /// Adds the next file with its detections.
  void add(const PhotoResult& result, const coco::Detections& found);
  /// Writes to disk what was added since the last call.
  void save();

  /// Calls `use` for each finished file in order. `detections`: its part of detections.json as
  /// text, including separators. REQUIRES: save() was called, finish() was not. Throws Error.
  using Use = std::function<void(const PhotoResult&, std::string_view detections)>;
  void each(const Use& use) const;

  /// Completes detections.json and writes images.json. Throws Error.
  void finish(const coco::Dataset& categories);

 private:
  bool resume(std::uint64_t made_from, std::int64_t batch);
  void count(const PhotoResult& result);

  const std::filesystem::path folder_, lines_file_, detections_file_;
  const FileLock lock_;
  std::int64_t count_ = 0, pictures_ = 0;
  FailedPhotos failed_;
  std::map<std::string, int> taken_;  // names of written pictures, without extension
  std::uint64_t written_ = 0;         // bytes of detections, including those not yet saved
  std::string lines_, detections_;    // not yet saved
};

}  // namespace millrace::cli
