// A data server answers authorised status requests, and silent servers do not delay the answers of
// other servers.
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "millrace/dataflow/serving/status.h"
#include "tests/dataflow/serving/servers.h"

namespace millrace::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;
using Kind = StatusAnswer::Kind;

constexpr auto kLong =
    100s;  // timeout if an answer is expected; a silent server would use up all of it

/// Creates a key pair by writing and reading key files.
KeyPair new_keys() {
  const Scratch folder;
  make_keys(folder / "a");
  return read_secret_key(folder / "a.key");
}

StatusAnswer ask(const std::string& endpoint, const std::optional<LinkKeys>& keys = {},
                 std::chrono::milliseconds timeout = kLong) {
  return ask_status({endpoint}, keys, timeout).at(0);
}

/// A TCP socket that accepts connections and sends nothing, like a stopped process.
class Mute {
 public:
  Mute() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_.get(), 8), 0);
    socklen_t size = sizeof(address);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& endpoint() const { return endpoint_; }

 private:
  const UniqueFd fd_;
  std::string endpoint_;
};

TEST(ServerStatus, ContainsConsumersAndBytes) {
  const ThreadServer server;
  const auto answered = [&] {
    const auto answer = ask(server.endpoint());
    EXPECT_EQ(answer.kind, Kind::answered) << answer.why;
    return answer.status;
  };
  auto status = answered();
  EXPECT_EQ(status.at("batches"), 0);
  EXPECT_EQ(status.at("consumers"), nlohmann::ordered_json::array());
  EXPECT_GT(status.at("memory_bytes"), 0);
  EXPECT_EQ(status.at("process"), ::getpid());

  const auto flow = connect({server.endpoint()}, {.share = {1, 2}});
  next_digests(*flow, 10);
  status = answered();
  EXPECT_GE(status.at("batches"), 10);
  EXPECT_GT(status.at("sent_bytes"), 0);
  ASSERT_EQ(status.at("consumers").size(), 1);
  EXPECT_EQ(status.at("consumers")[0].at("rank"), 1);
  EXPECT_EQ(status.at("consumers")[0].at("ranks"), 2);
  EXPECT_GT(received_bytes(), 0);
}

TEST(ServerStatus, IsRefusedForUnknownKeys) {
  const auto own = new_keys(), allowed = new_keys(), others = new_keys();
  const ThreadServer server(
      {}, {.listen = {.bind = "tcp://127.0.0.1:*", .keys = own, .allowed = {allowed.public_key}}});
  EXPECT_EQ(ask(server.endpoint(), LinkKeys{own.public_key, allowed}).kind, Kind::answered);
  const auto refused = ask(server.endpoint(), LinkKeys{own.public_key, others});
  EXPECT_EQ(refused.kind, Kind::refused);
  EXPECT_THAT(refused.why, HasSubstr("key"));
  EXPECT_NE(ask(server.endpoint(), {}, 1s).kind, Kind::answered);
}

TEST(ServerStatus, ReportsStoppedServer) {
  auto server = std::make_unique<ThreadServer>();
  const auto endpoint = server->endpoint();
  EXPECT_EQ(ask(endpoint).kind, Kind::answered);
  server.reset();
  EXPECT_EQ(ask(endpoint).kind, Kind::gone);
}

TEST(ServerStatus, IsReturnedDespiteSilentServers) {
  const Mute mute;
  const ThreadServer server;
  const auto answers = ask_status({mute.endpoint(), server.endpoint()}, {}, 1s);
  EXPECT_EQ(answers[0].kind, Kind::silent);
  EXPECT_EQ(answers[0].why, "no answer");
  EXPECT_EQ(answers[1].kind, Kind::answered);
}

}  // namespace
}  // namespace millrace::testing
