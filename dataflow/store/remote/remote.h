// Files over HTTP and HTTPS, and in S3: fetched in parts, ahead of their turn, and kept.
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

/// The file does not exist.
struct NotThere : Error {
  using Error::Error;
};

struct RemoteReading {
  double timeout = 120;              // seconds for a part, all attempts together
  std::filesystem::path cache = {};  // the folder where parts are kept; empty: none are
  std::uint64_t cache_bytes = 0;     // of the folder, at most
};

/// Whether it begins with http://, https:// or s3://.
bool is_url(std::string_view place);

/// Whether it is a URL with a user's name or password: every copy of the URL would have it.
bool has_credentials(std::string_view place);
inline constexpr const char* kNoCredentials =
    "must not have a user or a password, which every copy of the URL would show: put them into "
    "~/.netrc";

/// What several files share: connections, the queue of parts that are fetched ahead, the cache.
/// Thread-safe; lives as long as a file that was opened with it.
///
/// If bytes have no checksum, as while a store is indexed, all parts of a file must have one
/// ETag or Last-Modified. An attempt that fails (no connection, less than a kilobyte a second, an
/// answer cut short, HTTP 408, 429 or 5xx) is repeated after 0.2, 0.4, ... 8 seconds, until the
/// timeout is over; wrong bytes are asked for three times.
class Remote {
 public:
  /// Throws Error if the cache's folder cannot be made or libcurl is missing.
  static std::shared_ptr<Remote> open(const RemoteReading& reading);
  virtual ~Remote() = default;

  /// A file by its URL; without `size` the server is asked for it. Throws ConfigError for a URL
  /// with credentials, NotThere if the file does not exist, else Error naming the URL, what was
  /// asked for and how often.
  virtual std::unique_ptr<ByteSource> file(const std::string& url,
                                           std::optional<std::uint64_t> size = {}) = 0;
};

/// Reads a file in pieces of some MiB, the next while this one is worked on: for one that is read
/// from its beginning to its end. For one thread.
std::unique_ptr<ByteSource> in_large_pieces(std::unique_ptr<ByteSource> file);

}  // namespace millrace
