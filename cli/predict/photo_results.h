// Results of many photos, written as they come, so that memory stays flat and a run that was killed
// is continued by the same command.
//
//   OUT/detections.json.part   the beginning of detections.json
//   OUT/predict.part           what it was made from, then a JSON line for each file that is done
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

/// What became of one file.
struct PhotoResult {
  std::filesystem::path file;  // absolute
  std::int64_t id = 0;         // of the picture; 0 if it is none
  int width = 0, height = 0;   // pixels; 0: it is no picture, and has no id
  bool is_drawn = false;       // its name among the pictures is taken
  std::string fault;           // empty: nothing failed
};

/// Files that failed: how many, and the first few.
struct FailedPhotos {
  static constexpr std::size_t kShown = 5;
  std::int64_t count = 0;
  std::vector<std::string> first;

  void add(const std::filesystem::path& file);
  /// "2 of 9 images WHAT: a.jpg, b.jpg"
  std::string text(std::size_t all, std::string_view noun, std::string_view what) const;
};

class PhotoResults {
 public:
  /// Goes on with what is in `folder` if that was made from the same, told by a digest, rounded
  /// down to a multiple of `batch` files; else begins anew. Throws Error if the folder cannot be
  /// written to, or another process writes into it.
  PhotoResults(std::filesystem::path folder, std::uint64_t made_from, std::int64_t batch);

  /// Files that are done.
  std::int64_t count() const { return count_; }
  /// Files that are pictures.
  std::int64_t pictures() const { return pictures_; }
  const FailedPhotos& failed() const { return failed_; }

  /// The file for the picture of a photo that is about to be added: its own name, with its number
  /// among the pictures where two folders have the same.
  std::filesystem::path picture_of(const std::filesystem::path& photo) const;

  /// Adds the next file, with what was found in it.
  void add(const PhotoResult& result, const coco::Detections& found);
  /// Writes what was added since the last call.
  void save();

  /// Calls `use` with each file that is done, in their order, and its detections as text: those of
  /// detections.json with what parts them. REQUIRES: saved, not finished. Throws Error.
  using Use = std::function<void(const PhotoResult&, std::string_view detections)>;
  void each(const Use& use) const;

  /// Makes detections.json and images.json, whole, of all files. Throws Error.
  void finish(const coco::Dataset& categories);

 private:
  bool resume(std::uint64_t made_from, std::int64_t batch);
  void count(const PhotoResult& result);

  const std::filesystem::path folder_, lines_file_, detections_file_;
  const FileLock lock_;
  std::int64_t count_ = 0, pictures_ = 0;
  FailedPhotos failed_;
  std::map<std::string, int> taken_;  // names of pictures
  std::uint64_t written_ = 0;         // bytes of detections, those not saved yet among them
  std::string lines_, detections_;    // not saved yet
};

}  // namespace millrace::cli
