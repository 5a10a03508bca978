// What comes while a connection gathers is told of later, all of it.
#include "millrace/dataflow/serving/gathering.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <string>

#include "tests/dataflow/serving/servers.h"

namespace millrace::testing {
namespace {

using namespace std::chrono_literals;

/// Both ends of a TCP connection.
struct Connection {
  Connection() {
    const UniqueFd listening(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* at = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listening.get(), at, size), 0);
    EXPECT_EQ(::listen(listening.get(), 1), 0);
    EXPECT_EQ(::getsockname(listening.get(), at, &size), 0);
    here = UniqueFd(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(here.get(), at, size), 0);
    there = UniqueFd(::accept(listening.get(), nullptr, nullptr));
  }

  /// Sends bytes, and waits until the kernel has them here.
  void receive(const std::string& bytes) const {
    const auto wanted = waiting() + static_cast<int>(bytes.size());
    ASSERT_EQ(::send(there.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
    ASSERT_TRUE(comes_to([&] { return waiting() == wanted; }));
  }
  int waiting() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(here.get(), FIONREAD, &bytes), 0);
    return bytes;
  }
  bool is_told() const {
    pollfd item{here.get(), POLLIN, 0};
    return ::poll(&item, 1, 0) == 1;
  }

  UniqueFd here, there;
};

TEST(Gathering, TellsOfWhatCameOnceItIsOver) {
  const Connection connection;
  const auto now = Clock::now();
  Gathering gathering;
  gathering.begin(1 << 20, now);
  EXPECT_FALSE(gathering.is_on());  // there is no connection

  gathering.open(connection.here.get());
  gathering.begin(1 << 20, now);
  connection.receive("a batch");
  EXPECT_FALSE(connection.is_told());
  EXPECT_FALSE(gathering.is_over(now + Gathering::kFor / 2));
  EXPECT_TRUE(gathering.is_over(now + Gathering::kFor));
  gathering.end();
  EXPECT_TRUE(connection.is_told());
  EXPECT_FALSE(gathering.is_over(now + Gathering::kFor));
}

TEST(Gathering, EndsWithTheConnectionThatItWasToldOf) {
  const Connection connection;
  Gathering gathering;
  gathering.open(connection.here.get());
  gathering.begin(1 << 20, Clock::now());
  connection.receive("a batch");
  gathering.close();
  EXPECT_TRUE(connection.is_told());
  gathering.begin(1 << 20, Clock::now());
  EXPECT_TRUE(connection.is_told());
}

TEST(Gathering, AConsumerThatLetsBatchesWaitSeesThoseOfItsStream) {
  const ThreadServer server({.side = 256});
  const auto flow = connect({server.endpoint()});
  constexpr int kAll = 16, kBatches = 60;
  for (int k = 0; k < kBatches; ++k) {
    // As many as may wait: with each that is taken, one is asked for that may gather.
    ASSERT_TRUE(comes_to([&] { return flow->report().stages.at(0).items == k + kAll; }));
    EXPECT_EQ(digest_of(*flow->next()), digest_of(*made_batch({}, k, {.side = 256}).item));
  }
}

}  // namespace
}  // namespace millrace::testing
