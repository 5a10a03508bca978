// Messages round-trip, and invalid bytes are rejected.
#include "millrace/dataflow/serving/messages.h"

#include <gmock/gmock.h>

#include <cmath>

#include <msgpack.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/random.h"
#include "tests/support/thrown.h"

namespace millrace::serving {
namespace {

std::vector<Message> every_kind() {
  return {Hello{"abc",
                {.seed = ~std::uint64_t{0}, .share = {1, 4}, .start = {40, {3, 17}}},
                {{"classes", "cat, dog"}, {"data.flip", "0.5"}}},
          Ask{{0, 5, INT64_MAX}, 17},
          Release{{1, 2}},
          Ping{},
          Ping{8},
          Bye{{4}},
          Welcome{{{"a", "b"}}, 118287, SharedFile{12, 7, 99}},
          Refusal{"no", true},
          Stranger{},
          Pong{},
          Pong{8, {5, 17}},
          BatchHead{7,
                    {9, {1}},
                    2,
                    2.5,
                    {{2, 9, 5, "picture.jpg: torn"}},
                    {'\x81', '\xff', 0},
                    SharedPiece{1, 2, 3, 5, 4}},
          Failure{8, Failure::kConfig, "why"},
          AskStatus{3},
          Status{3, R"({"step": 12})"}};
}

std::string rejection(std::string_view bytes) {
  return testing::message_of<DataError>([&] { decode(bytes, "message"); });
}

TEST(ServingMessages, RoundTrip) {
  for (const auto& message : every_kind()) {
    const auto bytes = encode(message);
    const auto back = decode(bytes, "message");
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(encode(back), bytes) << "message " << message.index();
  }
  const auto hello = std::get<Hello>(decode(encode(every_kind()[0]), "message"));
  EXPECT_EQ(hello.stream.start, (Cursor{40, {3, 17}}));
  EXPECT_EQ(hello.facts.at("classes"), "cat, dog");
}

TEST(ServingMessages, RejectTruncatedOrChangedBytes) {
  for (const auto& message : every_kind()) {
    const auto bytes = encode(message);
    for (std::size_t end = 0; end < bytes.size(); ++end)
      EXPECT_NE(rejection(std::string_view(bytes).substr(0, end)), "");
    EXPECT_NE(rejection(bytes + "x"), "");
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      auto changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      EXPECT_NE(rejection(changed), "") << "message " << message.index() << ", bit " << bit;
    }
  }
}

TEST(ServingMessages, AcceptMissingChecksum) {
  const auto with = encode(Refusal{"no"});
  const std::string head = with.substr(0, 11);
  const auto body = with.substr(with.find("\xc4"));
  EXPECT_EQ(std::get<Refusal>(decode(head + "\xc0" + body, "message")).why, "no");
}

TEST(ServingMessages, OmitMembersOfLaterVersions) {
  const auto has = [](const Message& message, const char* member) {
    return encode(message).find(member) != std::string::npos;
  };
  EXPECT_FALSE(has(Ping{}, "number") || has(Pong{}, "owed"));
  EXPECT_TRUE(has(Ping{1}, "number") && has(Pong{1, {2}}, "owed"));
  EXPECT_EQ(std::get<Pong>(decode(encode(Pong{1, {2, 3}}), "message")).owed,
            (std::vector<std::int64_t>{2, 3}));
}

TEST(ServingMessages, RejectInvalidValues) {
  const Message wrong[] = {Hello{"abc", {.share = {2, 2}}, {}},
                           Hello{"abc", {.share = {0, 0}}, {}},
                           Hello{"", {}, {}},
                           Hello{"a\nb", {}, {}},
                           Hello{"abc", {.start = {5, {4, 4}}}, {}},
                           Hello{"abc", {.start = {5, {5}}}, {}},
                           Hello{"abc", {.start = {-1, {}}}, {}},
                           Ask{{-1}},
                           Ask{std::vector<std::int64_t>(kMostCredit + 1)},
                           BatchHead{-1, {}, 0, 0, {}, {}, {}},
                           BatchHead{1, {}, 0, std::nan(""), {}, {}, {}},
                           Failure{1, static_cast<Failure::Kind>(9), ""}};
  for (const auto& message : wrong) EXPECT_NE(rejection(encode(message)), "");
}

TEST(ServingMessages, RejectRandomBytesAndOlderVersions) {
  Rng rng{1};
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes(rng.below(200), ' ');
    for (auto& byte : bytes) byte = static_cast<char>(rng());
    EXPECT_NE(rejection(bytes), "");
  }
  auto older = encode(Ping{});
  older[10] = 1;  // version byte, after the list header and the name
  EXPECT_THAT(rejection(older), ::testing::HasSubstr("protocol than 2"));
  // Decoding must not allocate 4 GB if a message declares a body of 4 GB that is missing.
  EXPECT_THAT(rejection("\x94\xa8millrace\x01\xcf" + std::string(8, 'x') + "\xc6\xff\xff\xff\xff"),
              ::testing::HasSubstr("truncated"));
}

}  // namespace
}  // namespace millrace::serving
