// trainer serve: its endpoints, keys and shutdown, and a consumer in plain Python.
#include <sys/stat.h>

#include "tests/cli/served.h"
#include "tests/support/python.h"

namespace millrace::testing {
namespace {

class Serve : public Trainer {
 protected:
  fs::path data_ = make_data();
  std::string endpoint_ = "ipc://" + in_folder("socket").string();

  Words serve(const Words& more = {}) const {
    return on(data_, {"serve", "--bind", endpoint_}) + more;
  }
  /// Starts the server in its own process.
  std::unique_ptr<Served> served(const Words& more = {}) const {
    return std::make_unique<Served>(Words{MILLRACE_TRAINER} + serve(more), in_folder("log"));
  }
  Words bench(const Words& overrides = {}) const {
    return on(data_, {"bench", "dataflow", "--batches", "12", "--digest", "--json"}, overrides);
  }
  std::string source() const { return "data.source=[\"" + endpoint_ + "\"]"; }
};

TEST_F(Serve, ServesSameBatchesAsLocalFlow) {
  const auto here = successful(trainer(bench()));
  const auto server = served();
  const auto served = successful(trainer(bench({source()})));
  EXPECT_EQ(served.json()["digests"], here.json()["digests"]);
  EXPECT_THAT(served.err, HasSubstr("shared memory"));
  EXPECT_THAT(server->log(), HasSubstr(endpoint_));
  EXPECT_THAT(served.json()["verdict"].get<std::string>(), HasSubstr("data.source"));

  // Without the data, a consumer needs only the names of the classes.
  auto without = bench({source(), "data.classes=[\"star\"]"});
  const auto refused = trainer(without);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("star"));
}

TEST_F(Serve, StopsCleanlyAtSignal) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto server = served();
    ASSERT_TRUE(server->wait_for_log("serving")) << server->log();
    EXPECT_TRUE(fs::is_socket(in_folder("socket")));
    EXPECT_EQ(server->end(signal), 0) << server->log();
    EXPECT_FALSE(fs::exists(in_folder("socket")));
    fs::remove(in_folder("log"));
  }
}

TEST_F(Serve, RejectsExistingFileOrUsedSocket) {
  const auto command = serve();
  write_text(in_folder("socket"), "mine");
  expect_error(trainer(command), 2, in_folder("socket").string());
  EXPECT_EQ(read_text(in_folder("socket")), "mine");
  fs::remove(in_folder("socket"));
  {
    const auto first = served();
    ASSERT_TRUE(first->wait_for_log("serving")) << first->log();
    expect_error(trainer(command), 2, in_folder("socket").string());
    EXPECT_EQ(first->end(SIGKILL), -1);
  }
  EXPECT_TRUE(fs::is_socket(in_folder("socket"))) << "a killed server leaves its socket";
  fs::remove(in_folder("log"));
  const auto second = served();
  EXPECT_TRUE(second->wait_for_log("serving")) << second->log();
}

TEST_F(Serve, RejectsPublicEndpointWithoutKeys) {
  endpoint_ = "tcp://*:0";
  auto command = serve();
  expect_error(trainer(command), 2, "--insecure");
  command.insert(command.end(), {"--key", in_folder("none.key")});
  expect_error(trainer(command), 2, "none.key");
  endpoint_ = "nowhere";
  command = serve();
  expect_error(trainer(command), 2, "'nowhere'");
}

TEST_F(Serve, RequiresAllowedKeys) {
  for (const auto* name : {"server", "trainer", "stranger"})
    successful(trainer({"serve", "--keygen", in_folder(name).string()}));
  expect_error(trainer({"serve", "--keygen", in_folder("server")}), 1, "server.key");
  struct stat state {};
  ASSERT_EQ(::stat(in_folder("server.key").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600U);

  const auto key = [&](const char* name) { return in_folder(name).string(); };
  const auto server = served({"--key", key("server.key"), "--allow", key("trainer.pub")});
  const auto as = [&](const std::string& who) {
    return trainer(bench({source(), "data.source_timeout='2 seconds'",
                          "data.source_key=\"" + key("") + who + ".key\"",
                          "data.source_server_key=\"" + key("server.pub") + "\""}));
  };
  const auto allowed = successful(as("trainer"));
  const auto refused = as("stranger");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("key"));
  EXPECT_THAT(server->log(), ContainsRegex("warning .*key"));
  expect_error(trainer(bench({source(), "data.source_key=\"a.key\""})), 2,
               "data.source_server_key");
}

TEST_F(Serve, ServesSameBatchesToPython) {
  MILLRACE_NEEDS_PYTHON("zmq");
  MILLRACE_NEEDS_PYTHON("msgpack");
  MILLRACE_NEEDS_PYTHON("numpy");
  const auto server = served();
  const auto read = [&](const std::string& out) {
    return run_python("examples/read_batches.py " + endpoint_ + " --batches 6 > " +
                      in_folder(out).string());
  };
  ASSERT_EQ(read("first"), 0);
  ASSERT_EQ(read("second"), 0);
  const auto first = read_text(in_folder("first"));
  EXPECT_EQ(first, read_text(in_folder("second")));
  EXPECT_EQ(std::ranges::count(first, '\n'), 6);
  EXPECT_THAT(first, HasSubstr("batch 5: epoch "));
}

}  // namespace
}  // namespace millrace::testing
