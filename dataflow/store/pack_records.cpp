#include "millrace/dataflow/store/pack_records.h"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/picture/encode.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/store/new_file.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/dataflow/store/remote/tar.h"
#include "millrace/dataflow/store/sample_codec.h"
#include "millrace/dataflow/store/sample_json.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kImagesPerThread = 8;  // images processed before they are written

std::string encoded(Sample sample) {
  sample.path = fs::path(sample.path).filename().string();
  sample.encoded = {};  // packed separately
  return encode(sample);
}

/// Returns the file name extension that other programs expect for this image.
std::string_view extension_of(std::string_view image) {
  if (image.starts_with("\x89PNG")) return "png";
  if (image.starts_with("RIFF")) return "webp";
  return image.starts_with("II") || image.starts_with("MM") ? "tiff" : "jpg";
}

/// An image in packed form.
struct PackedImage {
  std::string bytes;
  std::uint64_t bytes_before = 0;
  bool smaller = false;
  std::string fault;           // reason why it could not be shrunk
  std::exception_ptr failure;  // reason why it cannot be packed; nullptr = none
};

std::string image_file(const Sample& sample) {
  if (!sample.image.empty())
    throw DataError(sample.path, "is a generated image; only images in files can be packed");
  if (!sample.encoded.owner) return read_image_file(sample.path);
  return std::string(checked_bytes(sample.encoded, sample.path));
}

PackedImage packed_image(const Sample& sample, const SmallerImages& images) {
  if (images.max_side > 0 && sample.width == 0)
    throw DataError(sample.path,
                    "its size is unknown until it is decoded, so it cannot be packed smaller");
  PackedImage image{.bytes = image_file(sample)};
  image.bytes_before = image.bytes.size();
  const cv::Size size(sample.width, sample.height);
  if (images.stored_size(size) == size) return image;
  try {
    image.bytes = images.stored_image(image.bytes, sample);
    image.smaller = true;
  } catch (const DataError& problem) {
    image.fault = problem.what();
  }
  return image;
}

/// Calls `add` with all images in order. Rethrows the exception of the first that fails, for any
/// number of threads.
template <class Add>
void pack_images(const Source<Sample>& source, const PackOptions& options, const Add& add) {
  oneapi::tbb::task_arena arena(options.threads);
  const auto at_once = options.threads * kImagesPerThread;
  for (std::int64_t first = 0; first < source.size(); first += at_once) {
    std::vector<PackedImage> images(
        static_cast<std::size_t>(std::min(at_once, source.size() - first)));
    arena.execute([&] {
      oneapi::tbb::parallel_for(std::size_t{0}, images.size(), [&](std::size_t i) {
        try {
          images[i] = packed_image(source[first + static_cast<std::int64_t>(i)], options.images);
        } catch (...) {
          images[i].failure = std::current_exception();
        }
      });
    });
    for (const auto& image : images) {
      if (image.failure) std::rethrow_exception(image.failure);
      add(image);
    }
  }
}

/// The tar files of a store.
class Shards {
 public:
  Shards(fs::path folder, std::uint64_t most, RecordHeader& header)
      : folder_(std::move(folder)), most_(most), header_(header) {}

  void add(const std::string& image, const std::string& json) {
    auto& shard = open_shard();
    const auto key = fmt::format("{:09}", header_.image_begins.size());
    header_.image_begins.push_back(
        add_member(shard, fmt::format("{}.{}", key, extension_of(image)), image));
    add_member(shard, key + ".json", json);
    ++header_.shards.back().records;
    if (shard.bytes() >= most_) close_shard();
  }

  void close_shard() {
    if (!file_) return;
    file_->add(tar_end());
    header_.shards.back().bytes = file_->bytes();
    file_.reset();
    sync_path(folder_ / header_.shards.back().name);
  }

 private:
  NewFile& open_shard() {
    if (file_) return *file_;
    header_.shards.push_back({.name = fmt::format("{:06}.tar", header_.shards.size())});
    return file_.emplace(folder_ / header_.shards.back().name);
  }

  /// Returns the offset of the member's bytes.
  static std::uint64_t add_member(NewFile& shard, const std::string& name,
                                  const std::string& bytes) {
    shard.add(tar_header(name, bytes.size()));
    const auto begin = shard.bytes();
    shard.add(bytes);
    shard.add(tar_padding(bytes.size()));
    return begin;
  }

  const fs::path folder_;
  const std::uint64_t most_;
  RecordHeader& header_;
  std::optional<NewFile> file_;
};

void count(const PackedImage& image, PackReport& report) {
  ++report.images;
  report.smaller += image.smaller;
  report.bytes_before += image.bytes_before;
  report.bytes_after += image.bytes.size();
  if (image.fault.empty()) return;
  if (++report.unreadable == 1) report.first_unreadable = image.fault;
}

}  // namespace

cv::Size SmallerImages::stored_size(cv::Size size) const {
  if (max_side == 0 || std::max(size.width, size.height) <= max_side) return size;
  return fitted_size(size, max_side, max_side);
}

Sample SmallerImages::stored(Sample sample) const {
  const cv::Size from(sample.width, sample.height), to = stored_size(from);
  if (to == from) return sample;
  resize(sample.objects, to.width, to.height,
         static_cast<float>(to.width) / static_cast<float>(from.width),
         static_cast<float>(to.height) / static_cast<float>(from.height));
  sample.width = to.width;
  sample.height = to.height;
  return sample;
}

std::string SmallerImages::stored_image(std::string bytes, const Sample& sample) const {
  const cv::Size from(sample.width, sample.height), to = stored_size(from);
  if (to == from) return bytes;
  const auto image = decode_rgb(bytes, sample.path, from, strict, /*enough=*/to, max_pixels);
  cv::Mat smaller;
  cv::resize(image, smaller, to, 0, 0, cv::INTER_AREA);
  return coco::encode_jpeg(smaller, quality);
}

PackReport pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                        const fs::path& folder, const PackOptions& options) {
  if (!source.repeats().empty())
    throw ConfigError(
        "the sources give images unequal shares of an epoch, which a store cannot represent; pack "
        "[[data.sources]] without mix, repeat, repeat_factor and fixed_size, and declare these "
        "over the store");
  PartFolder part(folder, PartFolder::Existing::refuse);
  const auto file = records_file(part.path());
  NewFile records(file);
  RecordHeader header{.classes = classes};
  const auto note = [&](std::string_view value) {
    header.ends.push_back((header.ends.empty() ? 0 : header.ends.back()) + value.size());
    header.digests.push_back(digest(value));
  };
  const auto add = [&](const std::string& value) {
    records.add(value);
    note(value);
  };
  const auto stored = [&](Sample sample) { return options.images.stored(std::move(sample)); };
  for (std::int64_t i = 0; i < source.size(); ++i)
    add(encoded(without_outlines(stored(source.about(i)))));
  for (std::int64_t i = 0; i < source.size(); ++i) add(encoded(stored(source[i])));
  PackReport report;
  Shards shards(part.path(), options.shard_bytes, header);
  pack_images(source, options, [&](const PackedImage& image) {
    if (options.shard_bytes == 0) {
      add(image.bytes);
    } else {
      note(image.bytes);
      shards.add(image.bytes, sample_json(stored(source[report.images]), classes));
    }
    count(image, report);
  });
  shards.close_shard();
  report.shards = header.shards.size();
  sync_path(file);
  write_header(header_file(part.path()), header);
  part.publish();
  return report;
}

}  // namespace millrace
