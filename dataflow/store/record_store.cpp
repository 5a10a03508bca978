#include "millrace/dataflow/store/record_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/store/sample_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns true if a component of the name is "..". Servers and libcurl treat "%2e" as a dot.
bool leads_up(std::string name) {
  for (std::size_t at = 0; (at = name.find('%', at)) != name.npos; ++at)
    if (name.compare(at, 3, "%2e") == 0 || name.compare(at, 3, "%2E") == 0)
      name.replace(at, 3, ".");
  return std::ranges::count(fs::path(name), fs::path("..")) > 0;
}

bool lies_in(const std::string& name, std::string folder) {
  if (leads_up(name) || is_url(name) != is_url(folder)) return false;
  if (!is_url(name)) folder = fs::absolute(folder).lexically_normal().string();
  if (!folder.ends_with('/')) folder += '/';
  return name.starts_with(folder);
}

/// Returns the path or URL of the shard `name` in the header of `store` (a folder or its URL).
/// Headers are not trusted: a relative name must stay below the store, and an absolute path or a
/// URL must be in one of the `allowed` folders and URLs. Throws ConfigError.
std::string shard_place(const std::string& store, const std::string& name,
                        std::span<const std::string> allowed) {
  const bool is_elsewhere = is_url(name) || fs::path(name).is_absolute();
  if (is_elsewhere) {
    if (std::ranges::any_of(allowed, [&](const auto& folder) { return lies_in(name, folder); }))
      return name;
  } else if (!leads_up(name)) {
    return is_url(store) ? fmt::format("{}{}{}", store, store.ends_with('/') ? "" : "/", name)
                         : (fs::path(store) / name).string();
  }
  auto text = fmt::format("{}: its shard '{}' is outside the store", store, name);
  if (is_elsewhere && !leads_up(name))
    text += fmt::format("; if you trust the store, add shards = [\"{}\"] to its [[data.sources]]",
                        shard_folder(name));
  throw ConfigError(text);
}

constexpr std::uint64_t kPiece = 4 << 20;  // bytes of annotations per request

[[noreturn]] void throw_no_store(const std::string& folder) {
  throw ConfigError(
      fmt::format("{}: not a record store, '{}' not found; make one with `trainer pack` (a folder "
                  "that ends in .part is an unfinished pack)",
                  folder, header_file("").string()));
}

/// Reads a remote header, at every start since the store may have been replaced. Reads in pieces,
/// since the timeout applies to each piece.
std::string whole_header(const ByteSource& file) {
  std::string bytes;
  for (int attempt = 0; attempt < 3; ++attempt) {
    bytes.clear();
    while (bytes.size() < file.size())
      bytes += file.read({bytes.size(), std::min(kPiece, file.size() - bytes.size())}).bytes;
    if (is_whole_header(bytes)) break;
  }
  return bytes;
}

/// Opens the files of a store by their path or URL.
class Files {
 public:
  explicit Files(const RemoteReading& reading) : reading_(reading) {}

  RecordHeader header(const std::string& store) {
    const auto name = shard_place(store, header_file("").string(), {});
    if (!is_url(name)) {
      if (!fs::exists(name)) throw_no_store(store);
      return read_header(read_file(name, {.max_bytes = kMostHeaderBytes}), name);
    }
    try {
      const auto file = remote().file(name);
      if (file->size() > kMostHeaderBytes)
        throw Error(fmt::format("{}: is {} bytes; the maximum for a header is {}", name,
                                file->size(), kMostHeaderBytes));
      return read_header(whole_header(*file), name);
    } catch (const FileNotFound&) {
      throw_no_store(store);
    }
  }

  /// Opens a file and checks that it has its packed length.
  std::unique_ptr<const ByteSource> open(const std::string& name, std::uint64_t packed) {
    if (is_url(name)) return remote().file(name, packed);
    std::error_code missing;
    const auto bytes = fs::file_size(name, missing);
    if (missing || bytes != packed)
      throw Error(
          fmt::format("{}: is {} bytes, but {} were packed; it is truncated or belongs to another "
                      "store; pack it again",
                      name, missing ? 0 : bytes, packed));
    return open_local_file(name);
  }

 private:
  Remote& remote() {
    if (!remote_) remote_ = Remote::open(reading_);
    return *remote_;
  }

  const RemoteReading& reading_;
  std::shared_ptr<Remote> remote_;
};

/// Returns ranges, of some MiB each, of the values in the records' file other than images.
std::vector<ByteRange> annotation_ranges(const RecordHeader& header) {
  std::vector<ByteRange> ranges;
  const auto values = 2 * header.records();
  std::uint64_t begin = 0;
  for (std::size_t first = 0, last = 0; first < values; first = last) {
    do ++last;
    while (last < values && header.ends[last] - begin <= kPiece);
    const auto valid = [&header, begin, first, last](std::string_view bytes) {
      auto from = begin;
      for (auto k = first; k < last; from = header.ends[k++])
        if (digest(bytes.substr(from - begin, header.ends[k] - from)) != header.digests[k])
          return false;
      return true;
    };
    ranges.push_back({begin, header.ends[last - 1] - begin, valid});
    begin = header.ends[last - 1];
  }
  return ranges;
}

}  // namespace

std::string shard_folder(const std::string& shard) {
  return shard.substr(0, std::max<std::size_t>(shard.rfind('/'), 1));
}

RecordStore::RecordStore(const std::string& place, const RemoteReading& remote,
                         std::span<const std::string> shards) {
  Files files(remote);
  header_ = files.header(place);
  records_ = files.open(shard_place(place, records_file("").string(), {}), header_.file_bytes());
  annotations_ = records_->local(annotation_ranges(header_));
  for (const auto& [name, bytes, records] : header_.shards) {
    shards_.push_back(files.open(shard_place(place, name, shards), bytes));
    shard_ends_.push_back((shard_ends_.empty() ? 0 : shard_ends_.back()) + records);
  }
}

Sample RecordStore::operator[](std::int64_t index) const {
  auto sample = decoded(RecordValue::sample, index);
  const auto [file, range, written] = image(index);
  auto bytes = file.read(range);
  sample.encoded = {std::move(bytes.owner), bytes.bytes, written};
  return sample;
}

Sample RecordStore::about(std::int64_t index) const { return decoded(RecordValue::about, index); }

void RecordStore::expect(std::int64_t index) const {
  const auto [file, range, written] = image(index);
  file.expect(range);
}

std::size_t RecordStore::position(RecordValue kind, std::int64_t index) const {
  return static_cast<std::size_t>(kind) * header_.records() + static_cast<std::size_t>(index);
}

std::uint64_t RecordStore::begin(std::size_t position) const {
  return position == 0 ? 0 : header_.ends[position - 1];
}

RecordStore::Place RecordStore::image(std::int64_t index) const {
  const auto at = position(RecordValue::image, index);
  const auto written = header_.digests[at];
  ByteRange range{begin(at), header_.ends[at] - begin(at),
                  [written](std::string_view bytes) { return digest(bytes) == written; }};
  if (shards_.empty()) return {*records_, std::move(range), written};
  const auto record = static_cast<std::size_t>(index);
  const auto shard = std::ranges::upper_bound(shard_ends_, record) - shard_ends_.begin();
  range.begin = header_.image_begins[record];
  return {*shards_[static_cast<std::size_t>(shard)], std::move(range), written};
}

Sample RecordStore::decoded(RecordValue kind, std::int64_t index) const {
  const auto where = fmt::format("{} record {}", records_->name(), index);
  const auto at = position(kind, index);
  const auto held = annotations_->read({begin(at), header_.ends[at] - begin(at)});
  const auto bytes = held.bytes;
  if (digest(bytes) != header_.digests[at])
    throw DataError(where, "its annotations are damaged (checksum mismatch)");
  auto sample = decode_sample(bytes, where);
  for (const auto label : sample.objects.classes)
    if (label < 0 || label >= std::ssize(classes()))
      throw DataError(where, fmt::format("has an object of class {}, but the store has {} classes",
                                         label, classes().size()));
  sample.path = fmt::format("{} ({})", where, sample.path);
  return sample;
}

}  // namespace millrace
