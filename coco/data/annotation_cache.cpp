#include "millrace/coco/data/annotation_cache.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>

#include "millrace/base/digest.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/coco/data/readers.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".annotations";  // follows the digest in a file name
constexpr std::string_view kSeen = ".seen";           // follows kSuffix
constexpr std::size_t kDigits = 32;
constexpr auto kKept = std::chrono::days(90);     // time since its last use
constexpr auto kWriting = std::chrono::hours(1);  // longer than writing takes
constexpr auto kTick = std::chrono::seconds(2);   // resolution of the coarsest file system clock

/// Returns the digest of all block digests `block(offset, size)`, computed on all threads of the
/// caller's arena.
template <typename F>
WideDigest digest_of_blocks(std::uint64_t size, F block) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
  std::vector<WideDigest> digests((size + kBlock - 1) / kBlock);
  tbb::parallel_for(std::size_t{0}, digests.size(), [&](std::size_t i) {
    digests[i] = block(i * kBlock, std::min(kBlock, size - i * kBlock));
  });
  return wide_digest(digests.data(), digests.size() * sizeof(WideDigest));
}

/// Identifies the state of a file without reading it.
struct FileStamp {
  std::uint64_t device = 0, node = 0, size = 0;
  std::int64_t written = 0;  // mtime, ns since 1970; programs may set it
  // ctime, ns since 1970; changes with bytes, times and names, and programs cannot set it.
  std::int64_t changed = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Returns the stamp of a file; nullopt if it does not exist.
std::optional<FileStamp> stamp_of(const fs::path& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return {};
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return FileStamp{about.st_dev, about.st_ino, static_cast<std::uint64_t>(about.st_size),
                   ns(about.st_mtim), ns(about.st_ctim)};
}

/// The identity of a JSON text.
struct Key {
  WideDigest digest;
  std::uint64_t size = 0;
  friend bool operator==(const Key&, const Key&) = default;

  std::string name() const { return hex(digest.high) + hex(digest.low).append(kSuffix); }
};

Key key_of(const InputFile& file) {
  tbb::enumerable_thread_specific<std::vector<char>> buffers;
  const auto block = [&](std::uint64_t offset, std::uint64_t size) {
    auto& bytes = buffers.local();
    bytes.resize(size);
    file.read(offset, bytes);
    return wide_digest(bytes.data(), size);
  };
  return {digest_of_blocks(file.size(), block), file.size()};
}

template <typename T>
std::string_view as_text(const T* data, std::size_t count) {
  return {reinterpret_cast<const char*>(data), count * sizeof(T)};
}

/// The beginning of a cache file. The arrays of the data set follow in the order of `each_array`,
/// aligned and without gaps. The checksum is the only protection of the arrays, since the program
/// relies on everything that the JSON reader checks (such as ascending ids and runs that fill their
/// image). It does not protect against someone who can write to the folder.
struct Header {
  std::array<char, 8> magic = {'m', 'i', 'l', 'l', 'A', 'N', 'N', '\n'};
  std::uint32_t byte_order = 0x01020304;
  // Increment when these structs or the rules of the reader change.
  std::uint32_t version = 4;
  std::array<std::uint32_t, 4> sizes = {sizeof(Header), sizeof(Image), sizeof(Annotation),
                                        sizeof(Category)};
  Key key;
  std::array<std::uint64_t, 9> lengths = {};  // lengths of the arrays

  WideDigest checksum;  // over the arrays and the members above

  /// Returns the checksum for these arrays. `done` receives each block after it was hashed.
  template <typename F>
  WideDigest sum(const Dataset& data, F done) const {
    std::vector<WideDigest> digests;
    each_array(
        [&](auto array) {
          const auto bytes = as_text(array.data(), array.size());
          digests.push_back(
              digest_of_blocks(bytes.size(), [&](std::uint64_t offset, std::uint64_t size) {
                const auto block = bytes.substr(offset, size);
                const auto one = wide_digest(block.data(), block.size());
                done(block);
                return one;
              }));
        },
        data);
    digests.push_back(wide_digest(this, offsetof(Header, checksum)));
    return wide_digest(digests.data(), digests.size() * sizeof(WideDigest));
  }
};
static_assert(std::has_unique_object_representations_v<Header> && sizeof(Header) % 16 == 0 &&
                  std::has_unique_object_representations_v<Image> &&
                  std::has_unique_object_representations_v<Category> && sizeof(Annotation) == 96,
              "no padding that a digest would read, and arrays after the header are aligned");

/// Opens the data set of a cache file. Reads and verifies all bytes unless they are `known` to be
/// valid. Throws Error with the reason if the cache cannot be used.
std::shared_ptr<Dataset> open_cache(const fs::path& file, const Key& key, bool known) {
  const auto mapped = map_file(file);
  const Header expected;
  if (mapped.size < sizeof(Header)) throw Error("truncated");
  const auto& header = *reinterpret_cast<const Header*>(mapped.data.get());
  if (header.magic != expected.magic) throw Error("not an annotation cache");
  if (header.byte_order != expected.byte_order)
    throw Error("written on a machine with another byte order");
  if (header.version != expected.version || header.sizes != expected.sizes)
    throw Error("written by another version of this program");
  if (!(header.key == key)) throw Error("belongs to other content");

  auto data = std::make_shared<Dataset>();
  data->memory = mapped.data;
  const std::byte* at = mapped.data.get() + sizeof(Header);
  std::size_t left = mapped.size - sizeof(Header), i = 0;
  each_array(
      [&]<typename T>(std::span<const T>& array) {
        const std::uint64_t count = header.lengths[i++];
        if (count > left / sizeof(T)) throw Error("wrong length");
        array = {reinterpret_cast<const T*>(at), static_cast<std::size_t>(count)};
        at += array.size_bytes();
        left -= array.size_bytes();
      },
      *data);
  if (left > 0) throw Error("wrong length");
  if (!known && !(header.checksum == header.sum(*data, release_pages)))
    throw Error("wrong checksum");
  return data;
}

/// The folder of caches. `named` is true if the user chose it.
struct Folder {
  fs::path path;
  bool named = false;
};

/// Returns the folder of caches; nullopt if caching is off or no folder is known.
std::optional<Folder> cache_folder() {
  if (const auto named = environment("MILLRACE_CACHE"); named == "off")
    return {};
  else if (!named.empty())
    return Folder{named, true};
  if (const fs::path caches = environment("XDG_CACHE_HOME"); caches.is_absolute())
    return Folder{caches / "millrace"};
  if (const auto home = environment("HOME"); !home.empty())
    return Folder{fs::path(home) / ".cache" / "millrace"};
  return {};
}

/// A record that a large file and its cache were read and verified once. They are not verified
/// again while both are unchanged.
struct VerifiedRecord {
  FileStamp json;
  Key key;
  FileStamp cache;

  /// Returns the file of the record.
  static fs::path file(const fs::path& folder, const FileStamp& json) {
    const auto name = wide_digest(&json, sizeof(json));
    return folder / (hex(name.high) + hex(name.low).append(kSuffix).append(kSeen));
  }
  /// Ignores ctime, since recording the last use changes it.
  static std::optional<FileStamp> stamp_of_cache(const fs::path& file) {
    auto stamp = stamp_of(file);
    if (stamp) stamp->changed = 0;
    return stamp;
  }
};

/// Returns the record for a file in its current state; nullopt if not recorded.
std::optional<VerifiedRecord> find_verified_record(const fs::path& folder, const FileStamp& json) {
  const auto file = VerifiedRecord::file(folder, json);
  std::error_code none;
  if (fs::file_size(file, none) != sizeof(VerifiedRecord) || none) return {};
  try {
    const auto bytes = read_file(file, {.max_bytes = sizeof(VerifiedRecord)});
    VerifiedRecord one;
    if (bytes.size() != sizeof(one)) return {};
    std::memcpy(&one, bytes.data(), sizeof(one));
    if (one.json == json) return one;
  } catch (const Error&) {  // removed by another process
  }
  return {};
}

/// Returns the stamp of a file; nullopt if it changed so recently that the next change could get
/// the same time on a clock with a resolution of two seconds.
std::optional<FileStamp> settled_stamp_of(const fs::path& file) {
  const auto stamp = stamp_of(file);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const bool is_settled = stamp && now - std::chrono::nanoseconds(stamp->changed) > kTick;
  return is_settled ? stamp : std::nullopt;
}

struct Cache {
  Folder folder;
  Key key;
  std::optional<FileStamp> json = {};  // stamp of a large file, taken before its key
  fs::path file = folder.path / key.name();

  /// Returns the cached data set. Returns nullptr if not found, or with a warning if it is
  /// unusable.
  std::shared_ptr<const Dataset> load(const std::string& source, bool known = false) const {
    std::error_code unknown;  // reported by `can_store`
    if (!fs::exists(file, unknown)) return nullptr;
    try {
      auto data = open_cache(file, key, known);
      // Marks the last use; see kKept.
      fs::last_write_time(file, fs::file_time_type::clock::now(), unknown);
      keep_sighting();
      data->source = source;
      return data;
    } catch (const Error& problem) {
      log_warning("cannot use the cached annotations {}; rebuilding them: {}", file.string(),
                  problem.what());
      return nullptr;
    }
  }

  /// Returns whether the folder is writable. If not, warns, or throws ConfigError if the user named
  /// the folder.
  bool can_store() const {
    try {
      make_writable_folder(folder.path);
      return true;
    } catch (const Error& problem) {
      if (folder.named)
        throw ConfigError(fmt::format(
            "MILLRACE_CACHE: {}; choose a writable folder or set it to 'off'", problem.what()));
      warn_of(problem);
      return false;
    }
  }

  /// Writes the cache, unless the file changed after its key was computed. Warns on failure.
  void store(const Dataset& data) const {
    try {
      if (!(key_of(InputFile(data.source)) == key)) return;
      remove_forgotten();
      Header header{.key = key};
      std::size_t i = 0;
      std::vector<std::string_view> parts{{as_text(&header, 1)}};
      each_array(
          [&](auto array) {
            header.lengths[i++] = array.size();
            parts.push_back(as_text(array.data(), array.size()));
          },
          data);
      header.checksum = header.sum(data, [](std::string_view) {});
      replace_file(file, parts);
      keep_sighting();
      log_info("{}: cached in {} for the next start", data.source, file.string());
    } catch (const std::exception& problem) {
      warn_of(problem);
    }
  }

  void keep_sighting() const {
    const auto cache = VerifiedRecord::stamp_of_cache(file);
    if (!json || !cache) return;
    const VerifiedRecord one{*json, key, *cache};
    try {
      replace_file(VerifiedRecord::file(folder.path, *json), {{as_text(&one, 1)}});
    } catch (const Error&) {  // the next start verifies everything
    }
  }

  static void warn_of(const std::exception& problem) {
    static std::atomic_flag said;
    if (!said.test_and_set())
      log_warning(
          "cannot cache annotations, so each start reads them again: {}; set MILLRACE_CACHE to "
          "another folder",
          problem.what());
  }

  /// Removes files left by a killed writer, and caches unused for kKept.
  void remove_forgotten() const {
    const auto now = fs::file_time_type::clock::now();
    for (const auto& entry : fs::directory_iterator(folder.path)) {
      const auto name = entry.path().filename().string();
      const auto digits = name.find_first_not_of("0123456789abcdef");
      if (digits != kDigits || name.compare(digits, kSuffix.size(), kSuffix) != 0)
        continue;            // not a cache file
      std::error_code gone;  // removed by another process
      const auto unused = now - fs::last_write_time(entry, gone);
      if (!gone && unused > (name.ends_with(".part") ? kWriting : kKept)) fs::remove(entry, gone);
    }
  }
};

/// Threads that write caches. The program waits for them at its end.
struct Writers {
  std::mutex mutex;
  std::vector<std::jthread> threads;
};

Writers& writers() {
  static const auto logger = spdlog::default_logger();  // must outlive the threads
  static Writers all;
  return all;
}

}  // namespace

std::shared_ptr<const Dataset> read_dataset_cached(const fs::path& json,
                                                   std::uint64_t least_trusted) {
  const auto folder = cache_folder();
  std::error_code no_size;
  const auto size = fs::file_size(json, no_size);
  if (!folder || no_size || size < kLeastCached) return read_dataset(json);
  const auto stamp = size < least_trusted ? std::nullopt : settled_stamp_of(json);
  if (stamp)
    if (const auto seen = find_verified_record(folder->path, *stamp)) {
      const Cache cache{*folder, seen->key, stamp};
      if (VerifiedRecord::stamp_of_cache(cache.file) == seen->cache)
        if (auto data = cache.load(json.string(), /*known=*/true)) return data;
    }
  const Cache cache{*folder, key_of(open_json(json, '{')), stamp};
  if (auto data = cache.load(json.string())) return data;
  if (!cache.can_store()) return read_dataset(json);
  auto data = read_dataset(json, folder->path);
  const std::lock_guard lock(writers().mutex);
  writers().threads.emplace_back([=] {
    // One core, to leave the other cores to training.
    tbb::task_arena(1).execute([&] { cache.store(*data); });
  });
  return data;
}

void finish_caching() {
  std::vector<std::jthread> threads;  // joined here
  const std::lock_guard lock(writers().mutex);
  threads.swap(writers().threads);
}

}  // namespace millrace::coco
