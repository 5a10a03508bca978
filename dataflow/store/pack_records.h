// Packs images and annotations into a record store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// Resizes images whose longer side exceeds `max_side` to it (by area averages) and encodes them as
/// JPEG, with colours at half the resolution in each direction; other images are copied unchanged.
struct SmallerImages {
  int max_side = 0;                      // pixels; 0 = all stay unchanged
  int quality = 90;                      // JPEG quality, 1 .. 100
  bool strict = true;                    // see decode_rgb
  std::int64_t max_pixels = kMaxPixels;  // see decode_rgb

  /// Returns the size at which an image of `size` is stored.
  cv::Size stored_size(cv::Size size) const;

  /// Returns the sample as stored: its size, and its objects in pixels of that size.
  Sample stored(Sample sample) const;

  /// Returns the bytes of an image file as stored, for a `sample` of the file's own size. Throws
  /// DataError if an image to be shrunk cannot be decoded. Thread-safe.
  std::string stored_image(std::string bytes, const Sample& sample) const;
};

struct PackOptions {
  SmallerImages images = {};
  int threads = 1;  // threads that shrink images
  /// Size at which the next tar file of images starts; 0 = all images go into the records' file.
  std::uint64_t shard_bytes = 0;
};

struct PackReport {
  std::int64_t images = 0;
  std::int64_t smaller = 0;      // images that were shrunk
  std::int64_t unreadable = 0;   // to be shrunk, but cannot be decoded: packed unchanged
  std::string first_unreadable;  // the reason
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the image files
  std::size_t shards = 0;
};

/// Packs the samples of `source` and their image files' bytes into the new folder `folder`; the
/// name of class k is classes[k]. With `shard_bytes`, the images go into tar files in WebDataset's
/// layout, each beside its annotations (sample_json.h). Yields the same bytes for any number of
/// threads. Uses a PartFolder, so a pack that is killed leaves no folder that opens. Throws Error
/// with a file that cannot be read or written, ConfigError if the folder exists or the source
/// repeats samples.
PackReport pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                        const std::filesystem::path& folder, const PackOptions& options = {});

}  // namespace millrace
