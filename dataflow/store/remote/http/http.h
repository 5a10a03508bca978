// The interface of http.so, which reads parts of files over HTTP and HTTPS with libcurl. It is a
// separate shared object, opened on first use, so that programs start without libcurl and its
// dependencies. It uses no other part of Millrace.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

struct S3Keys {
  std::string region, id, secret;
  std::string token;  // session token; empty = none
};

struct HttpRequest {
  std::string url;
  std::optional<S3Keys> keys;               // sign the request; redirects are then not followed
  std::uint64_t begin = 0, size = 0;        // requested bytes; size > 0
  long stall_timeout = 10;                  // seconds to connect, and below a kilobyte per second
  double timeout = 120;                     // seconds for the whole response; > 0
  const std::atomic<bool>* stop = nullptr;  // the request stops once it is true
};

struct HttpAnswer {
  long status = 0;   // HTTP status; 0 = no response
  std::string body;  // at most the requested bytes; for an error, the beginning of the page
  std::uint64_t begin = 0, end = 0;  // range of the body in the file, as stated; end 0 = not stated
  std::uint64_t file_bytes = 0;      // size of the whole file as stated; 0 = not stated
  std::string version;               // ETag of the file, else its Last-Modified; empty = neither
  std::string problem;               // connection error; empty = none
};

/// Thread-safe; each thread reuses its own connection. Never throws.
using HttpGet = HttpAnswer(const HttpRequest& request);

/// Name of the function in the shared object, of type HttpGet.
inline constexpr const char* kHttpGet = "millrace_http_get";

/// Returns the function in the shared object, which the first call opens, with libcurl. For
/// programs. Throws Error if it cannot be opened. Thread-safe.
HttpGet& http_get();

}  // namespace millrace
