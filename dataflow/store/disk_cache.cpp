#include <fmt/format.h>
#include <lmdb.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/dataflow/store/sample_cache.h"
#include "millrace/dataflow/store/sample_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// Samples are written in batches, since each write waits for the disk. A killed process loses the
// samples not yet written, and a batch that does not fit is lost.
constexpr std::size_t kBatchBytes = 32 << 20;
constexpr std::size_t kBatches = 16;  // minimum number that fit into a small file

/// Returns the digest of a value, then the value.
std::string sealed(const std::string& value) {
  const auto sum = digest(value);
  std::string bytes(sizeof(sum), '\0');
  std::memcpy(bytes.data(), &sum, sizeof(sum));
  return bytes + value;
}

/// Returns the value; nullopt if it is damaged or has another version.
std::optional<Sample> unsealed(std::string_view bytes) {
  std::uint64_t sum = 0;
  if (bytes.size() < sizeof(sum)) return {};
  std::memcpy(&sum, bytes.data(), sizeof(sum));
  const auto value = bytes.substr(sizeof(sum));
  if (digest(value) != sum) return {};
  try {
    return decode_sample(value, "the cache");
  } catch (const DataError&) {  // has another schema
    return {};
  }
}

using UniqueEnvironment = std::unique_ptr<MDB_env, decltype([](MDB_env* e) { mdb_env_close(e); })>;
using UniqueTransaction = std::unique_ptr<MDB_txn, decltype([](MDB_txn* t) { mdb_txn_abort(t); })>;

MDB_val value_of(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }

/// One LMDB file: values by key, memory-mapped, shared with other processes. Thread-safe. A process
/// must open a file only once. A truncated file is rejected, since access to a missing mapped page
/// would kill the process. A child of fork() must open it itself.
class LmdbFile {
 public:
  /// Opens the file, which may grow to `map_bytes`. Throws Error with the file and the reason.
  LmdbFile(fs::path file, std::size_t map_bytes) : file_(std::move(file)) {
    constexpr unsigned kReaders = 1024;  // maximum concurrent transactions over all processes
    constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD;
    MDB_env* env = nullptr;
    check(mdb_env_create(&env), "cannot open");
    env_.reset(env);
    check(mdb_env_set_maxreaders(env, kReaders), "cannot open");
    check(mdb_env_set_mapsize(env, map_bytes), "cannot open");
    check(mdb_env_open(env, file_.c_str(), kFlags, 0644), "cannot open");
    check_length();
    auto transaction = begin(0, "cannot read");
    check(mdb_dbi_open(transaction.get(), nullptr, 0, &table_), "cannot read");
    check(mdb_txn_commit(transaction.release()), "cannot read");
  }

  /// Returns the sample of a key; nullopt if it is missing or damaged.
  std::optional<Sample> find(std::string_view key) const {
    const auto transaction = begin(MDB_RDONLY, "cannot read");
    auto wanted = value_of(key);
    MDB_val found;
    const int status = mdb_get(transaction.get(), table_, &wanted, &found);
    if (status == MDB_NOTFOUND) return std::nullopt;
    check(status, "cannot read");
    return unsealed({static_cast<const char*>(found.mv_data), found.mv_size});
  }

  /// Writes all values to the file, or none. Returns false if there is no space.
  bool put(const auto& values) {
    auto transaction = begin(0, "cannot write");
    for (const auto& [key, value] : values) {
      auto name = value_of(key), content = value_of(*value);
      const int status = mdb_put(transaction.get(), table_, &name, &content, 0);
      if (status == MDB_MAP_FULL) return false;
      check(status, "cannot write");
    }
    const int status = mdb_txn_commit(transaction.release());
    if (status == MDB_MAP_FULL) return false;
    check(status, "cannot write");
    return true;
  }

 private:
  UniqueTransaction begin(unsigned flags, std::string_view what) const {
    MDB_txn* transaction = nullptr;
    check(mdb_txn_begin(env_.get(), nullptr, flags, &transaction), what);
    return UniqueTransaction(transaction);
  }

  void check_length() const {
    const auto length = fs::file_size(file_);
    if (length == 0) return;  // a new file
    MDB_envinfo info;
    MDB_stat stat;
    check(mdb_env_info(env_.get(), &info), "cannot read");
    check(mdb_env_stat(env_.get(), &stat), "cannot read");
    if (const auto used = (info.me_last_pgno + 1) * stat.ms_psize; length < used)
      throw Error(fmt::format("{}: truncated: it is {} bytes, but {} are in use", file_.string(),
                              length, used));
  }

  void check(int status, std::string_view what) const {
    if (status != MDB_SUCCESS)
      throw Error(fmt::format("{}: {}: {}", file_.string(), what, mdb_strerror(status)));
  }

  const fs::path file_;
  UniqueEnvironment env_;
  unsigned table_ = 0;
};

/// A cache file, shared by all flows of the process, since LMDB forbids opening one twice. Writes
/// in batches; lookups include values not yet written.
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

  ~CacheFile() { commit(); }

  std::optional<Sample> find(const std::string& key) {
    if (const auto value = waiting(key)) return unsealed(*value);
    if (is_unreadable_) return std::nullopt;
    try {
      return file_->find(key);
    } catch (const Error& problem) {
      give_up(is_unreadable_, problem);
      return std::nullopt;
    }
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
      log_warning("{}; creating it anew", problem.what());
    }
    std::error_code stays;
    fs::remove(name, stays);
    fs::remove(name.string() + "-lock", stays);
    return std::make_unique<LmdbFile>(name, max_bytes);
  }

  std::shared_ptr<const std::string> waiting(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(key);
    return found == waiting_.end() ? nullptr : found->second;
  }

  /// Writes the waiting values to the file. REQUIRES: the lock.
  void commit() {
    try {
      if (!full_ && !file_->put(waiting_)) {
        full_ = true;
        log_info("the cache {} is full; images not in it are processed anew each time",
                 name_.string());
      }
    } catch (const Error& problem) {
      give_up(full_, problem);
    }
    waiting_.clear();
    waiting_bytes_ = 0;
  }

  /// Warns about the first failure only; later samples are computed as without a cache.
  static void give_up(std::atomic<bool>& given_up, const Error& problem) {
    if (!given_up.exchange(true)) log_warning("{}; continuing without the cache", problem.what());
  }

  const fs::path name_;
  const std::unique_ptr<LmdbFile> file_;
  const std::size_t batch_bytes_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> waiting_;  // not yet written
  std::size_t waiting_bytes_ = 0;
  std::atomic<bool> full_ = false;           // nothing more is written
  std::atomic<bool> is_unreadable_ = false;  // nothing more is read
};

class DiskCache final : public SampleCache {
 public:
  DiskCache(std::shared_ptr<CacheFile> file, SourcePtr<Sample> source)
      : file_(std::move(file)), source_(std::move(source)) {}

  std::optional<Sample> find(std::int64_t index) override { return file_->find(key(index)); }
  void keep(std::int64_t index, const Sample& sample) override { file_->keep(key(index), sample); }

 private:
  /// Returns 128 bits that identify the input of the stages before the cache.
  std::string key(std::int64_t index) const {
    auto input = (*source_)[index];
    const auto file = std::exchange(input.encoded, {});
    std::uint64_t about[2] = {file.digest, file.bytes.size()};
    if (!file.owner) {
      std::error_code missing;  // the stages before the cache report it
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
