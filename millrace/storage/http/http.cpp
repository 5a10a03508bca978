#include "millrace/storage/http/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace {

using namespace millrace;

constexpr std::size_t kErrorPage = 4096;  // bytes of it that are kept

struct Free {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using UniqueHandle = std::unique_ptr<CURL, Free>;
using UniqueList = std::unique_ptr<curl_slist, Free>;

/// An answer on its way.
struct Receiving {
  const HttpRequest& request;
  HttpAnswer& answer;
  CURL* handle;
};

std::size_t receive(char* bytes, std::size_t, std::size_t count, void* to) {
  auto& [request, answer, handle] = *static_cast<Receiving*>(to);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  if (answer.status != 206) {  // the whole file, or an error page
    const auto left = kErrorPage - std::min(kErrorPage, answer.body.size());
    answer.body.append(bytes, std::min(count, left));
    return answer.status == 200 && left == 0 ? 0 : count;
  }
  if (answer.body.size() + count > request.size) return 0;
  answer.body.append(bytes, count);
  return count;
}

/// Content-Range: bytes 0-99/1234
std::size_t read_header(char* bytes, std::size_t, std::size_t count, void* to) {
  auto line = std::string_view(bytes, count);
  constexpr std::string_view kName = "content-range:";
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  if (line.size() < kName.size() || !std::ranges::equal(line.substr(0, kName.size()), kName, same))
    return count;
  const auto slash = line.find('/');
  if (slash != line.npos)
    std::from_chars(line.data() + slash + 1, line.data() + line.size(),
                    static_cast<Receiving*>(to)->answer.file_bytes);
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

}  // namespace

extern "C" [[gnu::visibility("default")]] HttpAnswer millrace_http_get(const HttpRequest& request) {
  HttpAnswer answer;
  auto* handle = handle_of_thread();
  if (!handle) {
    answer.problem = "libcurl does not start";
    return answer;
  }
  curl_easy_reset(handle);  // connections stay
  Receiving receiving{request, answer, handle};
  UniqueList headers;
  for (const auto& header : request.headers)
    headers.reset(curl_slist_append(headers.release(), header.c_str()));
  const auto range =
      std::to_string(request.begin) + "-" + std::to_string(request.begin + request.size - 1);
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, request.patience);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1024L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, request.patience);
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
