#include "millrace/dataflow/store/remote/s3_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

/// Percent-encodes all characters of a path except letters, digits and -_.~/.
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
  account.region = environment("AWS_REGION");
  if (account.region.empty()) account.region = environment("AWS_DEFAULT_REGION");
  if (account.region.empty()) account.region = "us-east-1";
  auto id = environment("AWS_ACCESS_KEY_ID"), secret = environment("AWS_SECRET_ACCESS_KEY");
  if (!id.empty() && !secret.empty())
    account.keys =
        S3Keys{account.region, std::move(id), std::move(secret), environment("AWS_SESSION_TOKEN")};
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
    throw ConfigError(fmt::format("'{}' is not an S3 address; expected s3://BUCKET/KEY", place));
  const auto bucket = path.substr(0, slash);
  const auto key = escaped(path.substr(slash + 1));
  if (!account.endpoint.empty()) return fmt::format("{}/{}/{}", account.endpoint, bucket, key);
  // A bucket name with a dot does not match the certificate of its host.
  if (bucket.find('.') != bucket.npos)
    return fmt::format("https://s3.{}.amazonaws.com/{}/{}", account.region, bucket, key);
  return fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, account.region, key);
}

}  // namespace millrace
