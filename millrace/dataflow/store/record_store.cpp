#include "millrace/dataflow/store/record_store.h"

#include <fmt/format.h>

#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/store/sample_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCommitBytes = 64 << 20;  // written at a time

/// The values of a new store, a batch at a time.
class Batches {
 public:
  Batches(const fs::path& file, std::size_t map_bytes) : file_(file, LmdbUse::write, map_bytes) {}

  void add(std::string key, std::string value) {
    bytes_ += value.size();
    pairs_.emplace_back(std::move(key), std::move(value));
    if (bytes_ >= kCommitBytes) commit();
  }

  /// Returns the bytes of a page.
  std::size_t finish() {
    commit();
    file_.sync();
    return file_.page_bytes();
  }

 private:
  void commit() {
    const std::vector<std::pair<std::string, std::string_view>> pairs(pairs_.begin(), pairs_.end());
    if (!file_.put(pairs)) throw Error("a record store has outgrown the size that it was given");
    pairs_.clear();
    bytes_ = 0;
  }

  LmdbFile file_;
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::size_t bytes_ = 0;
};

/// Address space for all values; the file takes only what is written.
std::size_t room_for(const Source<Sample>& source) {
  constexpr std::size_t kRecord = 64 << 10;  // pages begun, keys, all but the largest annotations
  std::size_t room = std::size_t{64} << 20;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const auto sample = source[i];
    std::error_code unreadable;  // told when the file is read
    const auto bytes = fs::file_size(sample.path, unreadable);
    room += kRecord + encode(sample).size() + (unreadable ? 0 : bytes);
  }
  return room;
}

RecordHeader write_records(const Source<Sample>& source, const fs::path& file) {
  RecordHeader header;
  Batches batches(file, room_for(source));
  for (std::int64_t i = 0; i < source.size(); ++i) {
    auto sample = source[i];
    sample.path = fs::path(sample.path).filename().string();
    auto bytes = encode(sample);
    header.annotations.push_back(digest(bytes));
    batches.add(annotations_key(i), std::move(bytes));
  }
  for (std::int64_t i = 0; i < source.size(); ++i) {
    auto bytes = read_image_file(source[i].path);
    header.images.push_back(digest(bytes));
    batches.add(image_key(i), std::move(bytes));
  }
  header.page_bytes = batches.finish();
  return header;
}

}  // namespace

void pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                  const fs::path& folder) {
  if (fs::exists(folder))
    throw ConfigError(folder.string() + ": is there already; name a new folder or remove it");
  auto part = folder;
  part += ".part";
  make_writable_folder(part);
  try {
    for (const auto& left_over : {records_file(part), header_file(part)}) fs::remove(left_over);
    auto header = write_records(source, records_file(part));
    header.classes = classes;
    seal(records_file(part), header.page_bytes, header);
    write_header(header_file(part), header);
    sync_path(part);
    fs::rename(part, folder);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    throw;
  }
}

RecordStore::RecordStore(fs::path folder)
    : folder_(std::move(folder)), header_(read_header(header_file(folder_))) {
  check_seal(records_file(folder_), header_);
  records_ = std::make_shared<const LmdbFile>(records_file(folder_), LmdbUse::read);
}

Sample RecordStore::operator[](std::int64_t index) const {
  const auto k = static_cast<std::size_t>(index);
  const auto annotations = value(annotations_key(index), index);
  if (digest(annotations) != header_.annotations[k])
    throw DataError(where(index), "its annotations are damaged: their checksum is wrong");
  auto sample = decode_sample(annotations, where(index));
  for (const auto label : sample.objects.classes)
    if (label >= std::ssize(classes()))
      throw DataError(where(index),
                      fmt::format("has an object of class {}, but the store has {} classes", label,
                                  classes().size()));
  sample.path = fmt::format("{} ({})", where(index), sample.path);
  sample.encoded = {records_, value(image_key(index), index), header_.images[k]};
  return sample;
}

std::string_view RecordStore::value(const std::string& key, std::int64_t index) const {
  std::string_view bytes;
  if (!records_->find(key, [&](std::string_view found) { bytes = found; }))
    throw DataError(where(index), "is missing");
  return bytes;
}

std::string RecordStore::where(std::int64_t index) const {
  return fmt::format("{} record {}", records_file(folder_).string(), index);
}

}  // namespace millrace
