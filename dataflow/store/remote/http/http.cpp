#include "millrace/dataflow/store/remote/http/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace {

using namespace millrace;

constexpr std::size_t kErrorPage = 4096;  // bytes of an error page that are stored
// SHA-256 of a request without body, which S3 requires and not every libcurl sends by itself.
constexpr const char* kNoContent =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::size_t kMostHeader = std::size_t{1} << 18;  // bytes, over all redirects

struct Free {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using UniqueHandle = std::unique_ptr<CURL, Free>;
using UniqueList = std::unique_ptr<curl_slist, Free>;

/// A response during reception.
struct Receiving {
  const HttpRequest& request;
  HttpAnswer& answer;
  CURL* handle;
  std::size_t header_bytes = 0;
};

std::size_t receive(char* bytes, std::size_t, std::size_t count, void* to) {
  auto& [request, answer, handle, header_bytes] = *static_cast<Receiving*>(to);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  if (answer.status != 206) {  // the whole file or an error page
    const auto left = kErrorPage - std::min(kErrorPage, answer.body.size());
    answer.body.append(bytes, std::min(count, left));
    return answer.status == 200 && left == 0 ? 0 : count;
  }
  if (answer.body.size() + count > request.size) return 0;
  answer.body.append(bytes, count);
  return count;
}

/// Returns the value of a header line with this name, which is in lower case.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  if (line.size() <= name.size() || line[name.size()] != ':' ||
      !std::ranges::equal(line.substr(0, name.size()), name, {}, lower))
    return {};
  line.remove_prefix(name.size() + 1);
  const auto first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r\n");
  return first > last || first == line.npos ? "" : line.substr(first, last - first + 1);
}

/// Parses "bytes 0-99/1234" or "bytes 0-99/*"; other text leaves the response unchanged.
void read_range(std::string_view text, HttpAnswer& answer) {
  unsigned long first = 0, last = 0, bytes = 0;
  if (std::sscanf(std::string(text).c_str(), "bytes %lu-%lu/%lu", &first, &last, &bytes) < 2)
    return;
  answer.begin = first;
  answer.end = last + 1;
  answer.file_bytes = bytes;
}

std::size_t read_header(char* bytes, std::size_t, std::size_t count, void* to) {
  const auto line = std::string_view(bytes, count);
  auto& receiving = *static_cast<Receiving*>(to);
  if ((receiving.header_bytes += count) > kMostHeader) return 0;
  auto& answer = receiving.answer;
  if (line.starts_with("HTTP/")) answer = {};  // earlier lines belong to a redirect
  if (const auto range = value_of(line, "content-range")) read_range(*range, answer);
  if (const auto tag = value_of(line, "etag")) answer.version = *tag;
  if (const auto time = value_of(line, "last-modified"); time && answer.version.empty())
    answer.version = *time;
  return count;
}

int stop_asked(void* request, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* stop = static_cast<const HttpRequest*>(request)->stop;
  return stop && *stop ? 1 : 0;
}

CURL* handle_of_thread() {
  static const auto started = curl_global_init(CURL_GLOBAL_DEFAULT);
  static thread_local const UniqueHandle handle(started == CURLE_OK ? curl_easy_init() : nullptr);
  return handle.get();
}

/// Signs with Amazon's Signature Version 4. Returns the headers of the request.
UniqueList sign(CURL* handle, const std::optional<S3Keys>& keys) {
  if (!keys) return {};
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);  // keys may contain ".."
  const auto scope = "aws:amz:" + keys->region + ":s3";
  curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, scope.c_str());
  curl_easy_setopt(handle, CURLOPT_USERNAME, keys->id.c_str());
  curl_easy_setopt(handle, CURLOPT_PASSWORD, keys->secret.c_str());
  UniqueList headers(curl_slist_append(nullptr, kNoContent));
  if (!keys->token.empty())
    headers.reset(
        curl_slist_append(headers.release(), ("x-amz-security-token: " + keys->token).c_str()));
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  return headers;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] HttpAnswer millrace_http_get(const HttpRequest& request) {
  HttpAnswer answer;
  auto* handle = handle_of_thread();
  if (!handle) {
    answer.problem = "cannot start libcurl";
    return answer;
  }
  curl_easy_reset(handle);  // keeps connections
  Receiving receiving{request, answer, handle};
  const auto range =
      std::to_string(request.begin) + "-" + std::to_string(request.begin + request.size - 1);
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  const auto headers = sign(handle, request.keys);
  // A signature is valid for this host only, and an https request must remain encrypted.
  const bool is_secure = request.url.starts_with("https://");
  const bool is_signed = request.keys.has_value();
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, is_signed ? 0L : 1L);
  curl_easy_setopt(handle, CURLOPT_NETRC,
                   static_cast<long>(is_signed ? CURL_NETRC_IGNORED : CURL_NETRC_OPTIONAL));
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, request.stall_timeout);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(1000 * request.timeout) + 1);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1024L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, request.stall_timeout);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "millrace");
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &receiving);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, read_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &receiving);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, stop_asked);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &request);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
  if (const char* authorities = std::getenv("CURL_CA_BUNDLE"))  // as the curl program does
    curl_easy_setopt(handle, CURLOPT_CAINFO, authorities);
  const auto code = curl_easy_perform(handle);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  if (code != CURLE_OK) answer.problem = why[0] != '\0' ? why : curl_easy_strerror(code);
  return answer;
}
