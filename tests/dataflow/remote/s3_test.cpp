// S3 URLs and signed requests.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/process/child_process.h"
#include "millrace/dataflow/store/remote/http/http.h"
#include "millrace/dataflow/store/remote/s3_place.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

/// A server that answers signed requests with the object's path and the session token.
class SignedRequests : public Test {
 protected:
  SignedRequests() {
    EXPECT_TRUE(wait_until([&] {
      return std::filesystem::exists(scratch_ / "port") || server_.has_ended();
    })) << server_.output();
    account_.endpoint = "http://127.0.0.1:" + read_file(scratch_ / "port");
  }
  HttpAnswer get(const std::string& place) const {
    return http_get()({.url = s3_url(place, account_), .keys = account_.keys, .size = 200});
  }

  S3Account account_{
      .keys = S3Keys{"us-east-1", "AKIDEXAMPLE", "", ""}, .region = "", .endpoint = ""};

 private:
  const Scratch scratch_;
  ChildProcess server_{fmt::format("exec {} tests/dataflow/remote/signed_server.py '{}'", python(),
                                   (scratch_ / "port").string()),
                       {}};
};

TEST_F(SignedRequests, SignsOddKeysRegionsAndTokens) {
  for (int i = 0; i < 6; ++i) account_.keys->secret += "a/secret+key=";
  for (const std::string region : {"us-east-1", "eu-central-1"})
    for (const std::string token : {"", "a+token/of=a session"})
      for (const std::string name :
           {"plain.tar", "of a/train 01+é=(x)~.tar", "a%20b", "a//b/../c/./d", "a&b=c?d#e"}) {
        account_.keys->region = region;
        account_.keys->token = token;
        const auto answer = get("s3://bucket/" + region + "/" + name);
        EXPECT_EQ(answer.status, 206) << answer.body << answer.problem;
        EXPECT_EQ(answer.body, "/bucket/" + region + "/" + name + " " + token);
      }
}

TEST_F(SignedRequests, RejectsWrongSecret) {
  account_.keys->secret = "another";
  EXPECT_EQ(get("s3://bucket/us-east-1/a").status, 403);
}

TEST(S3Place, ReturnsUrlOfKey) {
  S3Account account{.keys = {}, .region = "eu-west-3", .endpoint = ""};
  EXPECT_EQ(s3_url("s3://b/x/y z", account), "https://b.s3.eu-west-3.amazonaws.com/x/y%20z");
  EXPECT_EQ(s3_url("s3://b.c/x", account), "https://s3.eu-west-3.amazonaws.com/b.c/x");
  account.endpoint = "http://store:9000";
  EXPECT_EQ(s3_url("s3://b/x", account), "http://store:9000/b/x");
  for (const auto* bad : {"s3://", "s3://b", "s3:///x", "s3://b/", "s4://b/x"})
    EXPECT_THROW(s3_url(bad, account), ConfigError) << bad;
}

TEST(S3Account, ReadsEnvironment) {
  const std::pair<const char*, const char*> variables[] = {
      {"AWS_ACCESS_KEY_ID", "an id"},      {"AWS_SECRET_ACCESS_KEY", "a secret"},
      {"AWS_SESSION_TOKEN", "a token"},    {"AWS_DEFAULT_REGION", "eu-west-3"},
      {"AWS_ENDPOINT_URL", "http://a:1/"}, {"AWS_ENDPOINT_URL_S3", "http://b:2/"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  const auto account = S3Account::of_environment();
  for (const auto& [name, value] : variables) ::unsetenv(name);
  ASSERT_TRUE(account.keys);
  EXPECT_EQ(account.keys->id, "an id");
  EXPECT_EQ(account.keys->secret, "a secret");
  EXPECT_EQ(account.keys->token, "a token");
  EXPECT_EQ(account.keys->region, "eu-west-3");
  EXPECT_EQ(account.endpoint, "http://b:2");
  EXPECT_FALSE(S3Account::of_environment().keys);
  EXPECT_EQ(S3Account::of_environment().region, "us-east-1");
}

}  // namespace
}  // namespace millrace
