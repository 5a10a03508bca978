// Record stores over HTTP and from S3 yield the same batches as the local folder, despite network
// faults.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/process/child_process.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/store/index_shards.h"
#include "millrace/dataflow/store/pack_records.h"
#include "millrace/dataflow/store/record_store.h"
#include "millrace/dataflow/store/remote/remote.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/python.h"
#include "tests/support/shell.h"
#include "tests/support/thrown.h"
#include "tests/support/wait.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

constexpr int kBatches = 10;

/// A store in a folder, optionally in shards, and the digests of batches from the files that were
/// packed.
struct Stored {
  TinyCoco files{13};
  fs::path folder = fs::path(files.root) / "store", state = fs::path(files.root) / "state";
  std::vector<std::uint64_t> expected = digests(*train_flow(files), kBatches);

  explicit Stored(std::uint64_t shard_bytes) {
    const DetectionSource source(open_split(files, files.train), false);
    pack_records(source, {"cat", "dog"}, folder, {.shard_bytes = shard_bytes});
    fs::create_directories(state);
  }

  TrainData open(const std::string& place, const std::string& more = "") const {
    return open_train_data(
        files, tables_of("sources = [{ type = 'records', folder = '" + place + "'" + more + " }]"));
  }
  std::vector<std::uint64_t> batches(const TrainData& train, int threads = 2) const {
    DataOptions data = files;
    data.threads = threads;
    return digests(*start_train_flow(data, {}, train, 1), kBatches);
  }
  /// Starts a Python program of tests/dataflow and waits until it is ready, which it shows by
  /// writing STATE/`file`.
  std::unique_ptr<ChildProcess> serve(const std::string& program, const std::string& file) const {
    auto child =
        std::make_unique<ChildProcess>(fmt::format("exec {} tests/dataflow/{} '{}' '{}'", python(),
                                                   program, folder.string(), state.string()),
                                       std::vector<std::string>());
    EXPECT_TRUE(wait_until([&] { return fs::exists(state / file) || child->has_ended(); }));
    EXPECT_FALSE(child->has_ended()) << child->output();
    return child;
  }
};

/// A store behind a server with configurable faults.
struct Served : Stored {
  std::unique_ptr<ChildProcess> server = serve("range_server.py", "port");
  std::string url = "http://127.0.0.1:" + read_file(state / "port");

  explicit Served(std::uint64_t shard_bytes = 0) : Stored(shard_bytes) {}

  void fail(const std::string& fault) const {
    std::ofstream(state / "fault.part") << fault;
    fs::rename(state / "fault.part", state / "fault");
  }
  std::vector<std::string> requests() const {
    std::vector<std::string> lines;
    std::ifstream file(state / "requests");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
};

TEST(RemoteStore, YieldsSameBatchesForAnyThreadCount) {
  MILLRACE_NEEDS_PYTHON("http.server");
  for (const std::uint64_t shard_bytes : {0, 8192}) {
    const Served store(shard_bytes);
    for (const int threads : {1, 8})
      EXPECT_EQ(store.batches(store.open(store.url), threads), store.expected) << threads;
  }
}

TEST(RemoteStore, ResumesExactly) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store(8192);
  const auto train = store.open(store.url + "/");
  const auto whole = start_train_flow(store.files, {}, train, 1);
  Cursor cursor;
  for (int i = 0; i < 7; ++i) cursor = whole->next()->cursor;
  const auto resumed =
      digests(*start_train_flow(store.files, {}, store.open(store.url), 1, {}, cursor), 3);
  EXPECT_EQ(resumed, (std::vector(store.expected.end() - 3, store.expected.end())));
}

TEST(RemoteStore, RetriesTemporaryFaults) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store(8192);
  for (const std::string fault : {"error 2 0 9", "cut 1 0 99", "wrong 2 0 9", "away 1 0 9"}) {
    store.fail(fault);
    EXPECT_EQ(store.batches(store.open(store.url)), store.expected) << fault;
  }
  store.fail("slow 1 4 2");
  EXPECT_EQ(store.batches(store.open(store.url, ", timeout = '8 seconds'")), store.expected);
}

TEST(RemoteStore, FailsIfServerStaysUnavailable) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  const auto short_patience = ", timeout = '1 second'";
  // Opens the store again each time, because the ranges that a failed flow requested in advance
  // have failed, too.
  const auto message_with = [&](const std::string& fault) {
    store.fail("error 0 0 0");
    const auto train = store.open(store.url, short_patience);
    store.fail(fault);
    return message_of([&] { store.batches(train); });
  };
  for (const std::string kind : {"error", "cut", "away"})
    EXPECT_THAT(message_with(kind + " 999 3 99"),
                AllOf(HasSubstr(store.url + "/records.bin: bytes "),
                      ContainsRegex(" attempts? in "), HasSubstr("resume")));
  EXPECT_THAT(message_with("denied 999 3 99"),
              AllOf(HasSubstr("records.bin: bytes "), HasSubstr("HTTP 403"), HasSubstr("not you")));
  EXPECT_THAT(message_with("whole 999 3 99"), HasSubstr("range requests"));
  store.fail("error 999 0 99");
  EXPECT_THAT(message_of([&] { store.open(store.url, short_patience); }),
              AllOf(HasSubstr(store.url + "/header: bytes "), HasSubstr("HTTP 500")));
}

TEST(RemoteStore, SkipsImagesWithWrongBytes) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  auto data = store.files.options();
  data.max_skipped = 0.5;
  const auto train = store.open(store.url);
  store.fail("wrong 999 2 1");
  const auto flow = start_train_flow(data, {}, train, 1);
  for (int i = 0; i < kBatches; ++i) flow->next();
  EXPECT_GE(flow->report().skipped, 1);  // once in each epoch that reached it
}

TEST(RemoteStore, ReportsMissingFiles) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  EXPECT_THAT(message_of([&] { store.open(store.url + "/no"); }),
              AllOf(HasSubstr(store.url + "/no: "), HasSubstr("trainer pack")));
  fs::resize_file(records_file(store.folder), fs::file_size(records_file(store.folder)) + 1);
  EXPECT_THAT(message_of([&] { store.open(store.url); }), HasSubstr("were packed"));
}

TEST(RemoteStore, RequestsNothingThatIsCached) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store(8192);
  const auto cache = fs::path(store.files.root) / "cache";
  const auto with_cache = ", cache = '" + cache.string() + "'";
  EXPECT_EQ(store.batches(store.open(store.url, with_cache)), store.expected);
  const auto before = store.requests().size();
  EXPECT_EQ(store.batches(store.open(store.url, with_cache)), store.expected);
  const auto requests = store.requests();
  for (auto i = before; i < requests.size(); ++i)
    EXPECT_THAT(requests[i], StartsWith("/header ")) << "the header may have changed";

  for (const auto& entry : fs::recursive_directory_iterator(cache))
    if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::app) << "damage";
  EXPECT_EQ(store.batches(store.open(store.url, with_cache)), store.expected);
}

TEST(RemoteStore, PrefetchesRecords) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  auto data = store.files.options();
  data.threads = 1;
  data.in_flight = 9;
  const auto train = store.open(store.url, ", timeout = '2 seconds'");
  const auto before = store.requests().size();
  store.fail("slow 999 0 1");  // delays the first image, which the only thread waits for
  const auto flow = start_train_flow(data, {}, train, 1);
  EXPECT_TRUE(wait_until([&] { return store.requests().size() >= before + 9; }));
}

TEST(RemoteStore, IndexesRemoteShards) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store(8192);
  std::vector<std::string> urls;
  for (const auto& entry : fs::directory_iterator(store.folder))
    if (entry.path().extension() == ".tar")
      urls.push_back(store.url + "/" + entry.path().filename().string());
  std::ranges::sort(urls);
  const auto index = fs::path(store.files.root) / "index";
  const auto remote = Remote::open({});
  index_shards(
      urls, [&](const std::string& name) { return in_large_pieces(remote->file(name)); }, index);
  EXPECT_EQ(store.batches(store.open(index.string(), ", shards = ['" + store.url + "']")),
            store.expected);
}

TEST(RemoteStore, RejectsUrlsWithCredentials) {
  const Stored store(0);
  const std::string url = "http://me:secret@127.0.0.1:9/store";
  EXPECT_THAT(message_of<ConfigError>([&] { store.open(url); }),
              AllOf(HasSubstr("folder"), Not(HasSubstr("secret"))));
  EXPECT_THAT(
      message_of<ConfigError>([&] { store.open(store.folder, ", shards = ['" + url + "']"); }),
      AllOf(HasSubstr("shards"), Not(HasSubstr("secret"))));
  EXPECT_THAT(message_of<ConfigError>([&] { Remote::open({})->file(url); }),
              AllOf(Not(IsEmpty()), Not(HasSubstr("secret"))));
  EXPECT_FALSE(has_credentials("https://host/a@b.tar"));
}

TEST(RemoteStore, RejectsResponsesSlowerThanTimeout) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  const auto size = fs::file_size(records_file(store.folder));
  store.fail("drip 999 0 99");
  const auto file = Remote::open({.timeout = 1})->file(store.url + "/records.bin", size);
  EXPECT_THAT(message_of([&] {
                file->read({0, 6000});
              }),
              HasSubstr("/records.bin: bytes 0 to 5999"));
}

TEST(RemoteStore, RejectsEndlessHeaders) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  store.fail("header 999 0 99");
  const auto file = Remote::open({.timeout = 5})->file(store.url + "/records.bin", 6000);
  EXPECT_THAT(message_of([&] {
                file->read({0, 6000});
              }),
              HasSubstr("/records.bin: bytes 0 to 5999"));
  const auto taken = store.state / "header";
  ASSERT_TRUE(wait_until([&] { return fs::exists(taken) && fs::file_size(taken) > 0; }));
  std::ifstream lines(taken);
  for (std::int64_t bytes = 0; lines >> bytes;)
    EXPECT_LT(bytes, 16 << 20) << "the size of socket buffers, and a little more";
}

TEST(RemoteStore, RejectsUnrequestedBytes) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store;
  const auto file = Remote::open({})->file(store.url + "/records.bin");
  store.fail("shifted 999 0 99");
  EXPECT_THAT(message_of([&] { file->read({10, 90}); }), HasSubstr("11 to 100"));
}

TEST(RemoteStore, RejectsShardsChangedDuringIndexing) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Served store(8192);
  const auto remote = Remote::open({});
  const auto open = [&](const std::string& name) { return in_large_pieces(remote->file(name)); };
  const std::vector shards = {store.url + "/000000.tar"};
  store.fail("other 999 1 99");  // the first range request only determines the size
  EXPECT_THAT(message_of([&] { index_shards(shards, open, store.state / "index"); }),
              AllOf(HasSubstr(shards[0]), HasSubstr("one"), HasSubstr("two")));
  EXPECT_FALSE(fs::exists(store.state / "index"));
}

/// Two servers of the same folder. The first server, at `url`, redirects to the second.
struct Redirected : Served {
  fs::path elsewhere = fs::path(files.root) / "elsewhere";
  std::unique_ptr<ChildProcess> second;

  Redirected() {
    fs::create_directories(elsewhere);
    second = std::make_unique<ChildProcess>(
        fmt::format("exec {} tests/dataflow/range_server.py '{}' '{}'", python(), folder.string(),
                    elsewhere.string()),
        std::vector<std::string>());
    EXPECT_TRUE(wait_until([&] { return fs::exists(elsewhere / "port") || second->has_ended(); }));
    redirect_to("http://127.0.0.1:" + read_file(elsewhere / "port"));
    fail("moved 999 0 999");
  }
  void redirect_to(const std::string& place) const { std::ofstream(state / "elsewhere") << place; }
  bool has_reached_second() const { return fs::exists(elsewhere / "requests"); }
};

TEST(RemoteStore, SendsNoSignedRequestsToOtherHosts) {
  MILLRACE_NEEDS_PYTHON("http.server");
  const Redirected store;
  ::setenv("AWS_ENDPOINT_URL", store.url.c_str(), 1);
  ::setenv("AWS_ACCESS_KEY_ID", "an id", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "a secret", 1);
  ::setenv("AWS_SESSION_TOKEN", "a token", 1);
  EXPECT_THAT(message_of([&] { store.open("s3://bucket/store"); }), HasSubstr("HTTP 307"));
  EXPECT_FALSE(store.has_reached_second());
  for (const auto* name :
       {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
    ::unsetenv(name);
  EXPECT_EQ(store.batches(store.open(store.url)), store.expected)
      << "unsigned requests may be redirected";
}

TEST(RemoteStore, RejectsRedirectsFromHttpsToHttp) {
  MILLRACE_NEEDS_PYTHON("http.server, ssl");
  if (!shell("openssl version")) GTEST_SKIP() << "openssl is not installed";
  Redirected store;
  ASSERT_TRUE(
      shell(fmt::format("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
                        "-addext subjectAltName=DNS:localhost -keyout {0}/key -out {0}/cert",
                        store.state.string())));
  fs::remove(store.state / "port");
  store.server = store.serve("range_server.py", "port");
  ::setenv("CURL_CA_BUNDLE", (store.state / "cert").c_str(), 1);
  const auto url = "https://localhost:" + read_file(store.state / "port");
  EXPECT_THAT(message_of([&] { store.open(url); }), HasSubstr("HTTP 307"));
  EXPECT_FALSE(store.has_reached_second());
  store.fail("error 0 0 0");
  EXPECT_EQ(store.batches(store.open(url)), store.expected);
  ::unsetenv("CURL_CA_BUNDLE");
}

/// Returns a port that no process listens on.
int free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

TEST(RemoteStore, ReadsFromNginx) {
  const std::string nginx = "PATH=$PATH:/usr/sbin nginx";
  if (!shell(nginx + " -v")) GTEST_SKIP() << "nginx is not installed";
  if (!shell("openssl version")) GTEST_SKIP() << "openssl is not installed";
  const Stored store(8192);
  const auto state = store.state.string();
  ASSERT_TRUE(
      shell(fmt::format("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
                        "-addext subjectAltName=DNS:localhost -keyout {0}/key -out {0}/cert",
                        state)));
  const int http = free_port(), https = free_port();
  std::ofstream(store.state / "conf") << fmt::format(
      R"(daemon off; pid {0}/pid; error_log {0}/log; worker_processes 1;{3}
events {{}}
http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;
  uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
  server {{ listen 127.0.0.1:{1}; listen 127.0.0.1:{2} ssl; ssl_certificate {0}/cert;
    ssl_certificate_key {0}/key; root {4}; }} }}
)",
      state, http, https, ::geteuid() == 0 ? " user root;" : "", store.folder.string());
  ChildProcess server(fmt::format("{} -c {}/conf -e {}/log", nginx, state, state), {});
  ASSERT_TRUE(wait_until([&] {
    return server.has_ended() || shell(fmt::format("bash -c '</dev/tcp/127.0.0.1/{}'", https));
  }));
  ASSERT_FALSE(server.has_ended()) << server.output() << read_file(store.state / "log");
  EXPECT_EQ(store.batches(store.open(fmt::format("http://localhost:{}", http))), store.expected);
  const auto secure = fmt::format("https://localhost:{}", https);
  EXPECT_THAT(message_of([&] { store.open(secure, ", timeout = '1 second'"); }),
              HasSubstr("certificate"));
  ::setenv("CURL_CA_BUNDLE", (state + "/cert").c_str(), 1);
  EXPECT_EQ(store.batches(store.open(secure)), store.expected);
  ::unsetenv("CURL_CA_BUNDLE");
}

TEST(RemoteStore, ReadsFromS3WithSignedRequests) {
  MILLRACE_NEEDS_PYTHON("moto.server, boto3, flask");
  const Stored store(8192);
  const auto server = store.serve("s3_store.py", "store");
  std::istringstream lines(read_file(store.state / "store"));
  std::string endpoint, id, secret;
  lines >> endpoint >> id >> secret;
  ::setenv("AWS_ENDPOINT_URL", endpoint.c_str(), 1);
  ::setenv("AWS_ACCESS_KEY_ID", id.c_str(), 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", secret.c_str(), 1);
  EXPECT_EQ(store.batches(store.open("s3://shards/of a")), store.expected);
  EXPECT_THAT(message_of([&] { store.open("s3://shards/elsewhere"); }),
              HasSubstr("not a record store"));
  ::setenv("AWS_SECRET_ACCESS_KEY", "another", 1);
  EXPECT_THAT(message_of([&] { store.open("s3://shards/of a"); }),
              AllOf(HasSubstr("HTTP 403"), HasSubstr("Signature")));
  for (const auto* name : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace millrace
