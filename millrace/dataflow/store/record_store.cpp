#include "millrace/dataflow/store/record_store.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/part_folder.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/store/sample_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Writes values one after the other, and down where they end.
class ValueWriter {
 public:
  ValueWriter(fs::path file, RecordHeader& header)
      : file_(std::move(file)),
        out_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)),
        header_(header) {
    if (!out_)
      throw Error(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
  }

  void add(std::string_view value) {
    write_all(out_, value, file_);
    header_.ends.push_back(header_.file_bytes() + value.size());
    header_.digests.push_back(digest(value));
  }

 private:
  const fs::path file_;
  const UniqueFd out_;
  RecordHeader& header_;
};

std::string encoded(Sample sample) {
  sample.path = fs::path(sample.path).filename().string();
  return encode(sample);
}

void write_records(const Source<Sample>& source, const fs::path& file, RecordHeader& header) {
  ValueWriter values(file, header);
  for (std::int64_t i = 0; i < source.size(); ++i)
    values.add(encoded(without_outlines(source.about(i))));
  for (std::int64_t i = 0; i < source.size(); ++i) values.add(encoded(source[i]));
  for (std::int64_t i = 0; i < source.size(); ++i)
    values.add(read_image_file(source.about(i).path));
}

}  // namespace

void pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                  const fs::path& folder) {
  PartFolder part(folder, PartFolder::Existing::refuse);
  RecordHeader header{.classes = classes};
  write_records(source, records_file(part.path()), header);
  sync_path(records_file(part.path()));
  write_header(header_file(part.path()), header);
  part.publish();
}

RecordStore::RecordStore(fs::path folder)
    : file_(records_file(folder)), header_(read_header(header_file(folder))) {
  std::error_code missing;
  const auto bytes = fs::file_size(file_, missing);
  if (missing || bytes != header_.file_bytes())
    throw Error(fmt::format(
        "{}: is {} bytes, but {} were packed: it was cut short or is another's; pack it again",
        file_.string(), missing ? 0 : bytes, header_.file_bytes()));
  records_ = map_file(file_);
}

Sample RecordStore::operator[](std::int64_t index) const {
  auto sample = decoded(RecordValue::sample, index);
  const auto image = header_.place(RecordValue::image, static_cast<std::size_t>(index));
  sample.encoded = {records_.data, value(RecordValue::image, index), header_.digests[image]};
  return sample;
}

Sample RecordStore::about(std::int64_t index) const { return decoded(RecordValue::about, index); }

std::string_view RecordStore::value(RecordValue kind, std::int64_t index) const {
  const std::string_view all(reinterpret_cast<const char*>(records_.data.get()), records_.size);
  return header_.bytes(all, header_.place(kind, static_cast<std::size_t>(index)));
}

Sample RecordStore::decoded(RecordValue kind, std::int64_t index) const {
  const auto bytes = value(kind, index);
  if (digest(bytes) != header_.digests[header_.place(kind, static_cast<std::size_t>(index))])
    throw DataError(where(index), "its annotations are damaged: their checksum is wrong");
  auto sample = decode_sample(bytes, where(index));
  for (const auto label : sample.objects.classes)
    if (label >= std::ssize(classes()))
      throw DataError(where(index),
                      fmt::format("has an object of class {}, but the store has {} classes", label,
                                  classes().size()));
  sample.path = fmt::format("{} ({})", where(index), sample.path);
  return sample;
}

std::string RecordStore::where(std::int64_t index) const {
  return fmt::format("{} record {}", file_.string(), index);
}

}  // namespace millrace
