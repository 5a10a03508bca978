// Objects in S3 and in stores that are compatible with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "millrace/dataflow/store/remote/http/http.h"

namespace millrace {

/// Endpoint and credentials of S3, from the environment variables of Amazon's own programs:
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (or AWS_DEFAULT_REGION,
/// else us-east-1) and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a store that is not Amazon's.
struct S3Account {
  std::optional<S3Keys> keys;  // nullopt: requests are not signed, as for public buckets
  std::string region;
  std::string endpoint;  // empty: Amazon's

  static S3Account of_environment();
};

/// The URL of s3://BUCKET/KEY: below the endpoint, or of the bucket's host at Amazon. Throws
/// ConfigError if it is not such a place.
std::string s3_url(std::string_view place, const S3Account& account);

}  // namespace millrace
