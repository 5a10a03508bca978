// Whoever is asked for its status answers, if it can and may; who cannot keeps nobody waiting.
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "millrace/base/clock.h"
#include "millrace/dataflow/serving/status.h"
#include "millrace/dataflow/serving/status_door.h"
#include "millrace/dataflow/serving/status_links.h"
#include "tests/dataflow/serving/servers.h"

namespace millrace::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;
using Kind = StatusAnswer::Kind;

constexpr auto kLong = 100s;  // for answers that come; a silent one is waited for as long as this

/// New keys, by way of files.
KeyPair new_keys() {
  const Scratch folder;
  make_keys(folder / "a");
  return read_secret_key(folder / "a.key");
}

struct StatusDoors : Test {
  const KeyPair keys_ = new_keys();
  const std::string json_ = R"({"step": 12, "photo": "p.jpg"})";
  const std::string events_ = R"({"traceEvents": []})";
  const StatusDoor door_{
      {.bind = "tcp://127.0.0.1:*", .keys = keys_, .allowed = {keys_.public_key}},
      "rank 1",
      [this] { return json_; },
      [this] { return events_; }};

  StatusSource source(const std::string& name = "rank 1") const {
    return {name, {door_.endpoint()}, LinkKeys{keys_.public_key, keys_}};
  }
  static StatusAnswer ask(const StatusSource& source, std::chrono::milliseconds most = kLong) {
    return StatusLinks({source}).ask(most).at(0);
  }
};

/// A TCP socket that takes connections and says nothing, as a stopped process does.
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

TEST_F(StatusDoors, AnswerAsOftenAsTheyAreAsked) {
  StatusLinks links({source(), source()});
  for (int times = 0; times < 3; ++times)
    for (const auto& answer : links.ask(kLong)) {
      ASSERT_EQ(answer.kind, Kind::answered) << answer.why;
      EXPECT_EQ(answer.status.dump(), R"({"step":12,"photo":"p.jpg"})");
    }
}

TEST_F(StatusDoors, TellTheirEventsWhereTheseAreAskedFor) {
  const auto answer = StatusLinks({source()}, Question::events).ask(kLong).at(0);
  EXPECT_EQ(answer.status.dump(), R"({"traceEvents":[]})");
}

TEST_F(StatusDoors, TellNobodyWithAnotherKey) {
  const auto others = new_keys();
  const auto answer = ask({"rank 1", {door_.endpoint()}, LinkKeys{keys_.public_key, others}});
  EXPECT_EQ(answer.kind, Kind::refused);
  EXPECT_EQ(answer.why, "does not allow our key");
  EXPECT_NE(ask({"rank 1", {door_.endpoint()}, {}}, 1s).kind, Kind::answered);
}

TEST_F(StatusDoors, AnswerForThemselvesAlone) {
  const auto answer = ask(source("rank 2"));
  EXPECT_EQ(answer.kind, Kind::refused);
  EXPECT_EQ(answer.why, "this is rank 1");
}

TEST_F(StatusDoors, ThatHaveGoneKeepNobodyWaiting) {
  auto gone = std::make_unique<StatusDoor>(
      DoorOptions{.bind = "tcp://127.0.0.1:*", .keys = keys_, .allowed = {keys_.public_key}},
      "rank 2", [] { return "{}"; }, [] { return "{}"; });
  StatusSource other{"rank 2", {gone->endpoint()}, LinkKeys{keys_.public_key, keys_}};
  StatusLinks links({source(), other});
  EXPECT_EQ(links.ask(kLong)[1].kind, Kind::answered);
  gone.reset();
  EXPECT_TRUE(comes_to([&] { return links.ask(kLong)[1].kind == Kind::gone; }));
  EXPECT_EQ(links.ask(kLong)[0].kind, Kind::answered);
  EXPECT_EQ(ask(other).kind, Kind::gone);
}

TEST_F(StatusDoors, AreAskedBesideThoseThatAreSilent) {
  const Mute mute;
  StatusSource silent{"rank 2", {mute.endpoint()}, LinkKeys{keys_.public_key, keys_}};
  const auto answers = StatusLinks({silent, source()}).ask(1s);
  EXPECT_EQ(answers[0].kind, Kind::silent);
  EXPECT_EQ(answers[0].why, "no answer");
  EXPECT_EQ(answers[1].kind, Kind::answered);
}

TEST_F(StatusDoors, AreFoundAtAnyOfTheirAddresses) {
  const Mute mute;
  auto at_all = source();
  at_all.endpoints = {mute.endpoint(), "tcp://127.0.0.1:1", door_.endpoint()};
  EXPECT_EQ(ask(at_all).kind, Kind::answered);
}

TEST(ServerStatus, TellsOfConsumersAndBytesAndNeedsNoHello) {
  const ThreadServer server;
  StatusLinks links({{"", {server.endpoint()}, {}}});
  const auto ask = [&] {
    const auto answer = links.ask(kLong).at(0);
    EXPECT_EQ(answer.kind, Kind::answered) << answer.why;
    return answer.status;
  };
  auto status = ask();
  EXPECT_EQ(status.at("batches"), 0);
  EXPECT_EQ(status.at("consumers"), nlohmann::ordered_json::array());
  EXPECT_GT(status.at("memory_bytes"), 0);
  EXPECT_EQ(status.at("process"), ::getpid());

  const auto flow = connect({server.endpoint()}, {.share = {1, 2}});
  seen(*flow, 10);
  status = ask();
  EXPECT_GE(status.at("batches"), 10);
  EXPECT_GT(status.at("sent_bytes"), 0);
  ASSERT_EQ(status.at("consumers").size(), 1);
  EXPECT_EQ(status.at("consumers")[0].at("rank"), 1);
  EXPECT_EQ(status.at("consumers")[0].at("ranks"), 2);
  EXPECT_GT(received_bytes(), 0);
}

}  // namespace
}  // namespace millrace::testing
