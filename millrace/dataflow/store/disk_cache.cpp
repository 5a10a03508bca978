#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/store/lmdb_file.h"
#include "millrace/dataflow/store/sample_cache.h"
#include "millrace/dataflow/store/sample_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// Samples are written in batches, since the file waits for the disk after each. What a killed
// process has not written is lost, and so is the batch for which there is no room.
constexpr std::size_t kBatchBytes = 32 << 20;
constexpr std::size_t kBatches = 16;  // that fill a small file

/// The digest of a value, then the value.
std::string sealed(const std::string& value) {
  const auto sum = digest(value);
  std::string bytes(sizeof(sum), '\0');
  std::memcpy(bytes.data(), &sum, sizeof(sum));
  return bytes + value;
}

/// The value, or nothing where it is damaged or another version's.
std::optional<Sample> unsealed(std::string_view bytes) {
  std::uint64_t sum = 0;
  if (bytes.size() < sizeof(sum)) return {};
  std::memcpy(&sum, bytes.data(), sizeof(sum));
  const auto value = bytes.substr(sizeof(sum));
  if (digest(value) != sum) return {};
  try {
    return decode_sample(value, "the cache");
  } catch (const DataError&) {  // of another schema
    return {};
  }
}

/// A file of the process, however many flows use it: LMDB forbids to open one twice. Writes in
/// batches, and finds what waits to be written, too.
class CacheFile {
 public:
  static std::shared_ptr<CacheFile> open(const fs::path& file, std::size_t max_bytes) {
    static std::mutex mutex;
    static std::map<fs::path, std::weak_ptr<CacheFile>> all;
    const std::lock_guard lock(mutex);
    auto& known = all[fs::weakly_canonical(file)];
    auto shared = known.lock();
    if (!shared) known = shared = std::make_shared<CacheFile>(file, max_bytes);
    return shared;
  }

  CacheFile(fs::path file, std::size_t max_bytes)
      : name_(std::move(file)),
        file_(opened(name_, max_bytes)),
        batch_bytes_(std::min(kBatchBytes, max_bytes / kBatches)) {}

  ~CacheFile() {
    try {
      commit();
    } catch (const Error& problem) {
      spdlog::warn("{}", problem.what());
    }
  }

  std::optional<Sample> find(const std::string& key) {
    if (const auto value = waiting(key)) return unsealed(*value);
    std::optional<Sample> found;
    file_->find(key, [&](std::string_view bytes) { found = unsealed(bytes); });
    return found;
  }

  void keep(const std::string& key, const Sample& sample) {
    if (full_) return;
    auto value = std::make_shared<const std::string>(sealed(encode(sample)));
    const std::lock_guard lock(mutex_);
    waiting_bytes_ += value->size();
    waiting_.insert_or_assign(key, std::move(value));
    if (waiting_bytes_ >= batch_bytes_) commit();
  }

 private:
  static std::unique_ptr<LmdbFile> opened(const fs::path& name, std::size_t max_bytes) {
    try {
      return std::make_unique<LmdbFile>(name, max_bytes);
    } catch (const Error& problem) {
      spdlog::warn("{}; it is made anew", problem.what());
    }
    fs::remove(name);
    fs::remove(name.string() + "-lock");
    return std::make_unique<LmdbFile>(name, max_bytes);
  }

  std::shared_ptr<const std::string> waiting(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(key);
    return found == waiting_.end() ? nullptr : found->second;
  }

  /// Puts what waits into the file. Under the lock.
  void commit() {
    std::vector<std::pair<std::string, std::string_view>> pairs;
    for (const auto& [key, value] : waiting_) pairs.emplace_back(key, *value);
    if (!full_ && !file_->put(pairs)) {
      full_ = true;
      spdlog::info("the cache {} is full: what is not in it is made anew each time",
                   name_.string());
    }
    waiting_.clear();
    waiting_bytes_ = 0;
  }

  const fs::path name_;
  const std::unique_ptr<LmdbFile> file_;
  const std::size_t batch_bytes_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> waiting_;  // to be written
  std::size_t waiting_bytes_ = 0;
  std::atomic<bool> full_ = false;
};

class DiskCache final : public SampleCache {
 public:
  DiskCache(std::shared_ptr<CacheFile> file, SourcePtr<Sample> source)
      : file_(std::move(file)), source_(std::move(source)) {}

  std::optional<Sample> find(std::int64_t index) override { return file_->find(key(index)); }
  void keep(std::int64_t index, const Sample& sample) override { file_->keep(key(index), sample); }

 private:
  /// 128 bits of what goes into the stages before the cache.
  std::string key(std::int64_t index) const {
    auto input = (*source_)[index];
    const auto file = std::exchange(input.encoded, {});
    std::uint64_t about[2] = {file.digest, file.bytes.size()};
    if (!file.owner) {
      std::error_code missing;  // the stages before the cache will say so
      about[0] = fs::file_size(input.path, missing);
      about[1] = static_cast<std::uint64_t>(
          fs::last_write_time(input.path, missing).time_since_epoch().count());
    }
    const auto bytes = encode(input);
    std::string key;
    for (const std::uint64_t seed : {1, 2}) {
      const auto part = digest(about, sizeof(about), digest(bytes, seed));
      key.append(reinterpret_cast<const char*>(&part), sizeof(part));
    }
    return key;
  }

  std::shared_ptr<CacheFile> file_;
  SourcePtr<Sample> source_;
};

}  // namespace

std::shared_ptr<SampleCache> disk_cache(const fs::path& folder, std::uint64_t pipeline,
                                        SourcePtr<Sample> source, std::size_t max_bytes) {
  make_writable_folder(folder);
  return std::make_shared<DiskCache>(CacheFile::open(folder / (hex(pipeline) + ".mdb"), max_bytes),
                                     std::move(source));
}

}  // namespace millrace
