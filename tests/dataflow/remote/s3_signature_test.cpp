// Signatures are those of Amazon's documentation and of botocore.
#include "millrace/dataflow/store/remote/s3_signature.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

TEST(S3Signature, IsThatOfTheDocumentation) {
  // "Authenticating Requests: Using the Authorization Header", example GET Object.
  const S3Account account{
      .keys = S3Keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
      .region = "us-east-1",
      .endpoint = ""};
  const auto headers = s3_headers("https://examplebucket.s3.amazonaws.com/test.txt", account,
                                  "20130524T000000Z", {{"range", "bytes=0-9"}});
  EXPECT_THAT(headers,
              Contains(AllOf(
                  StartsWith("Authorization: AWS4-HMAC-SHA256 "),
                  HasSubstr("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"),
                  HasSubstr("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"),
                  EndsWith("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"))));
}

TEST(S3Signature, IsThatOfBotocoreForOddNamesAndSessions) {
  MILLRACE_NEEDS_PYTHON("botocore");
  const Scratch scratch;
  const auto script = scratch.file("sign.py", R"(
import datetime, sys
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
url, region, token, out = sys.argv[1:]
class Then(datetime.datetime):
    @classmethod
    def utcnow(cls): return cls(2024, 2, 29, 12, 34, 56)
    @classmethod
    def now(cls, tz=None): return cls(2024, 2, 29, 12, 34, 56, tzinfo=tz)
botocore.auth.datetime = type("module", (), {"datetime": Then, "timezone": datetime.timezone})
botocore.auth.get_current_datetime = lambda remove_tzinfo=True: Then(2024, 2, 29, 12, 34, 56)
request = AWSRequest("GET", url, headers={"range": "bytes=5-77"})
keys = Credentials("AKIDEXAMPLE", "a/secret+key=" * 6, token or None)
botocore.auth.S3SigV4Auth(keys, "s3", region).add_auth(request)
open(out, "w").write(request.headers["Authorization"].rsplit("=", 1)[1])
)");
  S3Account account{.keys = S3Keys{"AKIDEXAMPLE", "", ""}, .region = "", .endpoint = ""};
  for (int i = 0; i < 6; ++i) account.keys->secret += "a/secret+key=";
  for (const std::string region : {"us-east-1", "eu-central-1"})
    for (const std::string token : {"", "a+token/of=a session"})
      for (const std::string name : {"plain.tar", "of a/train 01+é=(x)~.tar", "a%20b"}) {
        account.region = region;
        account.keys->token = token;
        account.endpoint = region == "us-east-1" ? "" : "http://127.0.0.1:9000";
        const auto url = s3_url("s3://bucket/" + name, account);
        const auto headers =
            s3_headers(url, account, "20240229T123456Z", {{"range", "bytes=5-77"}});
        const auto out = scratch / "signature";
        ASSERT_EQ(run_python(fmt::format("{} '{}' {} '{}' {}", script.string(), url, region, token,
                                         out.string())),
                  0);
        EXPECT_THAT(headers.back(), EndsWith("Signature=" + read_file(out))) << url;
      }
}

TEST(S3Signature, KnowsItsPlaces) {
  S3Account account{.keys = {}, .region = "eu-west-3", .endpoint = ""};
  EXPECT_EQ(s3_url("s3://b/x/y z", account), "https://b.s3.eu-west-3.amazonaws.com/x/y%20z");
  EXPECT_EQ(s3_url("s3://b.c/x", account), "https://s3.eu-west-3.amazonaws.com/b.c/x");
  account.endpoint = "http://store:9000";
  EXPECT_EQ(s3_url("s3://b/x", account), "http://store:9000/b/x");
  EXPECT_THAT(s3_headers("http://store:9000/b/x", account, "20240229T123456Z"), IsEmpty())
      << "without keys nothing is signed";
  for (const auto* bad : {"s3://", "s3://b", "s3:///x", "s3://b/", "s4://b/x"})
    EXPECT_THROW(s3_url(bad, account), ConfigError) << bad;
}

}  // namespace
}  // namespace millrace
