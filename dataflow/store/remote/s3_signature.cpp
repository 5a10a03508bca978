#include "millrace/dataflow/store/remote/s3_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/sha256.h"

namespace millrace {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string bytes_of_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

/// HMAC-SHA256 (RFC 2104) in hexadecimal digits.
std::string hmac(std::string key, std::string_view text) {
  constexpr std::size_t kBlock = 64;
  if (key.size() > kBlock) key = bytes_of_hex(sha256(key));
  key.resize(kBlock, '\0');
  std::string inner = key, outer = key;
  for (auto& c : inner) c = static_cast<char>(c ^ 0x36);
  for (auto& c : outer) c = static_cast<char>(c ^ 0x5c);
  return sha256(outer + bytes_of_hex(sha256(inner.append(text))));
}

/// A path in which all but letters, digits and -_.~/ is %XX.
std::string escaped(std::string_view path) {
  std::string text;
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string_view("-_.~/").find(c) != std::string_view::npos)
      text += c;
    else
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace

S3Account S3Account::of_environment() {
  S3Account account;
  auto id = environment("AWS_ACCESS_KEY_ID"), secret = environment("AWS_SECRET_ACCESS_KEY");
  if (!id.empty() && !secret.empty())
    account.keys = S3Keys{std::move(id), std::move(secret), environment("AWS_SESSION_TOKEN")};
  account.region = environment("AWS_REGION");
  if (account.region.empty()) account.region = environment("AWS_DEFAULT_REGION");
  if (account.region.empty()) account.region = "us-east-1";
  account.endpoint = environment("AWS_ENDPOINT_URL_S3");
  if (account.endpoint.empty()) account.endpoint = environment("AWS_ENDPOINT_URL");
  while (account.endpoint.ends_with('/')) account.endpoint.pop_back();
  return account;
}

std::string s3_url(std::string_view place, const S3Account& account) {
  constexpr std::string_view kScheme = "s3://";
  const auto path = place.substr(std::min(kScheme.size(), place.size()));
  const auto slash = path.find('/');
  if (!place.starts_with(kScheme) || slash == 0 || slash == path.npos || slash + 1 == path.size())
    throw ConfigError(fmt::format("'{}' is no place in S3: write s3://BUCKET/KEY", place));
  const auto bucket = path.substr(0, slash);
  const auto key = escaped(path.substr(slash + 1));
  if (!account.endpoint.empty()) return fmt::format("{}/{}/{}", account.endpoint, bucket, key);
  // A dot in a bucket's name does not fit the certificate of its host.
  if (bucket.find('.') != bucket.npos)
    return fmt::format("https://s3.{}.amazonaws.com/{}/{}", account.region, bucket, key);
  return fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, account.region, key);
}

std::vector<std::string> s3_headers(const std::string& url, const S3Account& account,
                                    const std::string& time,
                                    const std::vector<std::pair<std::string, std::string>>& more) {
  if (!account.keys) return {};
  const auto host_begin = url.find("://") + 3, path_begin = url.find('/', host_begin);
  const auto payload = sha256("");
  std::vector<std::pair<std::string, std::string>> headers = more;
  headers.emplace_back("host", url.substr(host_begin, path_begin - host_begin));
  headers.emplace_back("x-amz-content-sha256", payload);
  headers.emplace_back("x-amz-date", time);
  if (!account.keys->token.empty())
    headers.emplace_back("x-amz-security-token", account.keys->token);
  std::ranges::sort(headers);

  std::string names, lines;
  for (const auto& [name, value] : headers) {
    names += (names.empty() ? "" : ";") + name;
    lines += fmt::format("{}:{}\n", name, value);
  }
  const auto request =
      fmt::format("GET\n{}\n\n{}\n{}\n{}", url.substr(path_begin), lines, names, payload);
  const auto day = time.substr(0, 8);
  const auto scope = fmt::format("{}/{}/s3/aws4_request", day, account.region);
  const auto text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, sha256(request));
  auto key = "AWS4" + account.keys->secret;
  for (const auto& part : {day, account.region, std::string("s3"), std::string("aws4_request")})
    key = bytes_of_hex(hmac(key, part));

  std::vector<std::string> sent;
  for (const auto& [name, value] : headers)
    if (name.starts_with("x-amz-")) sent.push_back(fmt::format("{}: {}", name, value));
  sent.push_back(
      fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                  account.keys->id, scope, names, hmac(key, text)));
  return sent;
}

std::string s3_time() {
  const auto now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

}  // namespace millrace
