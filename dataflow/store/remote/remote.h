// Files over HTTP, HTTPS and S3: fetched in parts, prefetched and cached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {

/// Thrown if the file does not exist.
struct FileNotFound : Error {
  using Error::Error;
};

struct RemoteReading {
  double timeout = 120;              // seconds per part, over all attempts
  std::filesystem::path cache = {};  // folder where parts are cached; empty = none
  std::uint64_t cache_bytes = 0;     // maximum size of the folder
};

/// Returns true if it begins with http://, https:// or s3://.
bool is_url(std::string_view place);

/// Returns true for a URL with a user name or password, which every copy of the URL would reveal.
bool has_credentials(std::string_view place);
inline constexpr const char* kNoCredentials =
    "must not have a user or a password, since every copy of the URL would show them; put them "
    "into ~/.netrc";

/// The shared state of several files: connections, the prefetch queue, the cache. Thread-safe;
/// lives while a file opened with it exists.
///
/// If bytes have no checksum, e.g. while a store is indexed, all parts of a file must have the same
/// ETag or Last-Modified. A failed attempt (no connection, less than a kilobyte per second, a
/// truncated response, HTTP 408, 429 or 5xx) is repeated after 0.2, 0.4, ... 8 seconds until the
/// timeout; wrong bytes are requested three times.
class Remote {
 public:
  /// Throws Error if the cache's folder cannot be created or libcurl is missing.
  static std::shared_ptr<Remote> open(const RemoteReading& reading);
  virtual ~Remote() = default;

  /// Opens a file by its URL; without `size` the server is asked for it. Throws ConfigError for a
  /// URL with credentials, FileNotFound if the file does not exist, else Error with the URL, the
  /// request and the number of attempts.
  virtual std::unique_ptr<ByteSource> file(const std::string& url,
                                           std::optional<std::uint64_t> size = {}) = 0;
};

/// Wraps a file that is read from beginning to end: reads it in pieces of some MiB and prefetches
/// the next one. For one thread.
std::unique_ptr<ByteSource> in_large_pieces(std::unique_ptr<ByteSource> file);

}  // namespace millrace
