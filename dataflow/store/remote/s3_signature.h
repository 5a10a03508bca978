// Amazon's Signature Version 4, for reading from S3 and what is compatible with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct S3Keys {
  std::string id, secret;
  std::string token;  // of a session; empty: none
};

/// Where S3 is and who asks, by the environment variables of Amazon's own programs:
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or AWS_DEFAULT_REGION,
/// else us-east-1) and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a store that is not Amazon's.
struct S3Account {
  std::optional<S3Keys> keys;  // none: requests are not signed, as for public buckets
  std::string region;
  std::string endpoint;  // empty: Amazon's

  static S3Account of_environment();
};

/// The URL of s3://BUCKET/KEY: below the endpoint, or of the bucket's host at Amazon. Throws
/// ConfigError for what is no such place.
std::string s3_url(std::string_view place, const S3Account& account);

/// The headers of a signed GET of such a URL without a query; `time` as 20130524T000000Z; `more`
/// are signed too, in lower case and sorted: {"range", "bytes=0-9"}.
std::vector<std::string> s3_headers(
    const std::string& url, const S3Account& account, const std::string& time,
    const std::vector<std::pair<std::string, std::string>>& more = {});

/// This moment for `s3_headers`.
std::string s3_time();

}  // namespace millrace
