// Objects in S3 and in compatible stores.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "millrace/dataflow/store/remote/http/http.h"

namespace millrace {

/// Endpoint and credentials of S3, from the environment variables of Amazon's programs:
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or AWS_DEFAULT_REGION,
/// else us-east-1), and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for other stores.
struct S3Account {
  std::optional<S3Keys> keys;  // nullopt = unsigned requests, for public buckets
  std::string region;
  std::string endpoint;  // empty = Amazon's

  static S3Account of_environment();
};

/// Returns the URL of s3://BUCKET/KEY: below the endpoint, or on the bucket's host at Amazon.
/// Throws ConfigError for other text.
std::string s3_url(std::string_view place, const S3Account& account);

}  // namespace millrace
