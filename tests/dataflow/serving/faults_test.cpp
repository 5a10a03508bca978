// Messages that are lost, damaged, doubled and late: a consumer sees the batches of its stream,
// each once and in order, all the same.
#include <deque>
#include <map>

#include "millrace/dataflow/serving/faulty_wire.h"
#include "tests/dataflow/serving/servers.h"

namespace millrace::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;

/// Batches of two servers, one of which shares its memory, over links with these faults.
struct ServingFaults : Test {
  const Sockets sockets_;
  const ServerProcess sharing_{sockets_.endpoint(0), {}};
  const ThreadServer sending_;

  std::unique_ptr<ServedFlow> with(const InjectedFaults& faults) const {
    return connect_flow({.servers = {sockets_.endpoint(0), sending_.endpoint()},
                         .facts = made_facts(),
                         .faults = &faults});
  }
  void expect_all(const std::string& text, int count) const {
    const auto faults = parse_faults(text);
    EXPECT_EQ(seen(*with(faults), count), expected_digests({}, count)) << text;
  }
};

TEST_F(ServingFaults, LostMessagesAreAskedForAgain) { expect_all("server.drop=0.03", 300); }

TEST_F(ServingFaults, DamagedMessagesAreNoticed) { expect_all("seed=3,server.corrupt=0.01", 300); }

TEST_F(ServingFaults, LateMessagesCount) { expect_all("server.delay=0.2:50ms", 300); }

TEST_F(ServingFaults, DoubledMessagesCountOnce) { expect_all("server.duplicate=0.5", 300); }

TEST_F(ServingFaults, AllAtOnceChangeNothing) {
  expect_all(
      "seed=5,server.drop=0.01,server.corrupt=0.005,server.delay=0.05:20ms,server.duplicate=0.1",
      400);
}

TEST_F(ServingFaults, ADoubledAnswerLeavesTheMemoryOfTheFirstAlone) {
  const auto faults = parse_faults("server.duplicate=1");
  const auto flow = with(faults);
  std::deque<Delivery<Batch>> held;
  int first = 0;
  for (int k = 0; k < 200; ++k) {
    held.push_back(*flow->next());
    if (held.size() < 12) continue;
    // Long after the second answer has come, and batches after it.
    ASSERT_EQ(digest_of(held.front()), digest_of(*made_batch({}, first).item)) << first;
    held.pop_front();
    ++first;
  }
}

TEST(ServingFaultyWire, IsAFunctionOfTheSeedAndTheMessage) {
  const auto what_comes = [](const std::string& text, std::int64_t link, std::vector<int> order) {
    const auto faults = parse_faults(text);
    FaultyWire wire(faults, 0, link);
    std::map<int, std::string> outcome;  // by number
    const auto now = FaultyWire::Clock::now();
    for (const int number : order) {
      const auto bytes = encode(Ask{{number}});
      Frames frames;
      frames.emplace_back(bytes.data(), bytes.size());
      wire.enter(FaultyWire::Way::out, std::move(frames), now);
      outcome[number] = "";
      while (const auto left = wire.leave(FaultyWire::Way::out, now))
        outcome[number] += left->front().to_string_view() == bytes ? "whole " : "damaged ";
    }
    return outcome;
  };
  std::vector<int> up, down;
  for (int number = 0; number < 200; ++number) {
    up.push_back(number);
    down.insert(down.begin(), number);
  }
  const std::string text = "server.drop=0.2,server.corrupt=0.2,server.duplicate=0.2";
  const auto outcome = what_comes(text, 1, up);
  EXPECT_EQ(outcome, what_comes(text, 1, down));
  EXPECT_NE(outcome, what_comes("seed=2," + text, 1, up));
  EXPECT_NE(outcome, what_comes(text, 2, up));
  std::map<std::string, int> kinds;
  for (const auto& [number, what] : outcome) ++kinds[what];
  for (const auto* kind : {"", "whole ", "damaged ", "whole whole ", "damaged damaged "})
    EXPECT_GT(kinds[kind], 0) << kind;
}

TEST(ServingFaultyWire, DamageIsAlwaysNoticedAsSuch) {
  const auto faults = parse_faults("server.corrupt=1");
  FaultyWire wire(faults, 0, 1);
  const auto now = FaultyWire::Clock::now();
  for (int number = 0; number < 500; ++number) {
    const auto bytes = number % 2 == 0 ? encode(Ask{{number}}) : encode(Ping{number});
    Frames frames;
    frames.emplace_back(bytes.data(), bytes.size());
    wire.enter(FaultyWire::Way::out, std::move(frames), now);
    const auto left = wire.leave(FaultyWire::Way::out, now);
    ASSERT_TRUE(left);
    EXPECT_THROW(decode(left->front().to_string_view(), "message"), DamagedMessage);
  }
}

TEST(ServingFaultyWire, WhatIsLateComesAfterWhatIsNot) {
  const auto faults = parse_faults("server.delay=1:10s");
  const auto none = parse_faults("seed=1");
  FaultyWire late(faults, 0, 1), early(none, 0, 1);
  const auto now = FaultyWire::Clock::now();
  const auto bytes = encode(Ping{});
  for (auto* wire : {&late, &early}) {
    Frames frames;
    frames.emplace_back(bytes.data(), bytes.size());
    wire->enter(FaultyWire::Way::in, std::move(frames), now);
  }
  EXPECT_TRUE(early.leave(FaultyWire::Way::in, now));
  EXPECT_FALSE(late.leave(FaultyWire::Way::in, now + 9s));
  EXPECT_FALSE(late.leave(FaultyWire::Way::out, now + 11s));
  EXPECT_TRUE(late.leave(FaultyWire::Way::in, now + 11s));
  EXPECT_FALSE(late.leave(FaultyWire::Way::in, now + 11s));
}

}  // namespace
}  // namespace millrace::testing
