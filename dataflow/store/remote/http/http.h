// What http.so does: parts of files over HTTP and HTTPS, by libcurl. It is an object of its own,
// opened on first use, so that programs start without libcurl and its dependencies. It uses no
// other part of Millrace.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

struct S3Keys {
  std::string region, id, secret;
  std::string token;  // of a session; empty: none
};

struct HttpRequest {
  std::string url;
  std::optional<S3Keys> keys;               // signs the request; redirects are then not followed
  std::uint64_t begin = 0, size = 0;        // the bytes asked for; size > 0
  long patience = 10;                       // seconds to connect, and without a kilobyte a second
  double timeout = 120;                     // seconds for the whole answer; > 0
  const std::atomic<bool>* stop = nullptr;  // gives up once it is true
};

struct HttpAnswer {
  long status = 0;   // of HTTP; 0: none came
  std::string body;  // at most the bytes asked for; of an error, the page's beginning
  std::uint64_t begin = 0, end = 0;  // of the body in the file, as stated; end = 0: not stated
  std::uint64_t file_bytes = 0;      // of the whole file, as stated; 0: not stated
  std::string version;               // the file's ETag, else its Last-Modified; empty: neither
  std::string problem;               // of the connection; empty: none
};

/// Any thread; each keeps a connection of its own from call to call. Never throws.
using HttpGet = HttpAnswer(const HttpRequest& request);

/// The name of the function in the object, of type HttpGet.
inline constexpr const char* kHttpGet = "millrace_http_get";

/// The function in the object, which the first call opens, with libcurl. For programs. Throws Error
/// if it cannot be opened. Any thread.
HttpGet& http_get();

}  // namespace millrace
