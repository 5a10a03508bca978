#include "millrace/dataflow/store/index_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/image/image_head.h"
#include "millrace/dataflow/store/new_file.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/dataflow/store/remote/tar.h"
#include "millrace/dataflow/store/remote/tf_record.h"
#include "millrace/dataflow/store/sample_codec.h"
#include "millrace/dataflow/store/sample_json.h"
#include "millrace/dataflow/store/tf_example.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Writes a store's records in the order of reading; finish() groups the values by kind.
class ShardIndex {
 public:
  explicit ShardIndex(const fs::path& folder)
      : file_(records_file(folder)),
        samples_file_(folder / "samples"),
        abouts_(file_),
        samples_(samples_file_) {}

  ClassNames& classes() { return classes_; }

  void begin_shard(const ByteSource& shard) {
    header_.shards.push_back({shard.name(), shard.size(), 0});
  }

  /// Adds a sample of the current shard, whose image starts there at byte `begin`.
  void add(Sample sample, std::string_view image, std::uint64_t begin) {
    ++report_.images;
    ++header_.shards.back().records;
    if (sample.image_id == 0) sample.image_id = report_.images;
    const cv::Size size(sample.width, sample.height);
    std::vector<bool> stays;
    for (auto& box : sample.objects.boxes) {
      box = clipped(box, size);
      stays.push_back(box.has_area());
    }
    report_.without_area += std::ranges::count(stays, false);
    filter_objects(sample.objects, stays);
    note(RecordValue::about, encode(without_outlines(sample)));
    note(RecordValue::sample, encode(sample));
    note(RecordValue::image, image);
    header_.image_begins.push_back(begin);
  }
  void count_without_annotations() { ++report_.without_annotations; }

  /// Writes the header; must be called last.
  ShardReport finish(const fs::path& header) {
    abouts_.add(read_file(samples_file_));
    fs::remove(samples_file_);
    sync_path(file_);
    std::uint64_t end = 0;
    for (const auto& kind : sizes_)
      for (const auto size : kind) header_.ends.push_back(end += size);
    for (const auto& kind : digests_)
      header_.digests.insert(header_.digests.end(), kind.begin(), kind.end());
    report_.classes = header_.classes = classes_.names();
    write_header(header, header_);
    return report_;
  }

 private:
  void note(RecordValue kind, std::string_view value) {
    const auto k = static_cast<std::size_t>(kind);
    sizes_[k].push_back(value.size());
    digests_[k].push_back(digest(value));
    if (kind == RecordValue::about) abouts_.add(value);
    if (kind == RecordValue::sample) samples_.add(value);
  }

  const fs::path file_, samples_file_;
  NewFile abouts_, samples_;
  ClassNames classes_;
  RecordHeader header_;
  std::array<std::vector<std::uint64_t>, kRecordValues> sizes_, digests_;
  ShardReport report_;
};

/// Sets the size of an image without annotated size.
void settle_size(Sample& sample, std::string_view image, const std::string& where) {
  if (sample.width > 0 && sample.height > 0) return;
  const auto of_jpeg = upright_size(image, where);
  const auto size = of_jpeg ? *of_jpeg : decode_rgb(image, where).size();
  sample.width = size.width;
  sample.height = size.height;
}

/// WebDataset: the members of one sample are consecutive, and their names differ only after the
/// first dot of the last path component.
class TarSamples {
 public:
  TarSamples(const ByteSource& file, ShardIndex& index) : file_(file), index_(index) {}

  void add(const TarMember& member) {
    const auto slash = member.name.rfind('/');
    const auto dot = member.name.find('.', slash == member.name.npos ? 0 : slash + 1);
    if (dot == member.name.npos) return;
    const auto key = member.name.substr(0, dot), extension = member.name.substr(dot + 1);
    if (key != key_) finish();
    key_ = key;
    if (extension == "json") json_ = member;
    if (extension.find('.') == extension.npos && is_image_name(member.name)) image_ = member;
    if (member.size > INT32_MAX && (json_ || image_))
      throw DataError(fmt::format("{} ({})", file_.name(), member.name),
                      fmt::format("is {} bytes; the maximum is {}", member.size, INT32_MAX));
  }

  void finish() {
    const auto json = std::exchange(json_, {});
    const auto image = std::exchange(image_, {});
    if (!image) return;
    const auto where = fmt::format("{} ({})", file_.name(), json ? json->name : image->name);
    Sample sample;
    if (json) {
      const auto text = file_.read({json->begin, json->size});
      sample = read_sample_json(text.bytes, where, index_.classes());
    } else {
      index_.count_without_annotations();
    }
    if (sample.path.empty()) sample.path = fs::path(image->name).filename().string();
    const auto bytes = file_.read({image->begin, image->size});
    settle_size(sample, bytes.bytes, where);
    index_.add(std::move(sample), bytes.bytes, image->begin);
  }

 private:
  const ByteSource& file_;
  ShardIndex& index_;
  std::string key_;
  std::optional<TarMember> json_, image_;
};

void index_tar(const ByteSource& file, ShardIndex& index) {
  TarSamples samples(file, index);
  read_tar(file, [&](const TarMember& member) { samples.add(member); });
  samples.finish();
}

void index_tf_records(const ByteSource& file, ShardIndex& index) {
  read_tf_records(file, [&](std::string_view message, std::uint64_t begin) {
    const auto where = fmt::format("{} (record at byte {})", file.name(), begin);
    auto example = read_tf_example(message, where, index.classes());
    const auto offset = static_cast<std::uint64_t>(example.image.data() - message.data());
    index.add(std::move(example.sample), example.image, begin + offset);
  });
}

}  // namespace

ShardReport index_shards(std::span<const std::string> shards, const OpenShard& open,
                         const fs::path& folder) {
  PartFolder part(folder, PartFolder::Existing::refuse);
  ShardIndex index(part.path());
  for (const auto& name : shards) {
    const auto file = open(name);
    index.begin_shard(*file);
    if (is_tar(*file))
      index_tar(*file, index);
    else
      index_tf_records(*file, index);
  }
  const auto report = index.finish(header_file(part.path()));
  if (report.images == 0) throw ConfigError("no image found in these shards");
  part.publish();
  return report;
}

}  // namespace millrace
