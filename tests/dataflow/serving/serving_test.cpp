// A consumer receives each batch of its stream once and in order, whatever happens to the servers.
#include <fstream>
#include <random>

#include "millrace/dataflow/serving/assignment.h"
#include "tests/dataflow/serving/servers.h"

#if defined(__SANITIZE_THREAD__)
// The distribution's libzmq is not instrumented, so ThreadSanitizer has to ignore it.
extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
#endif
#if defined(__SANITIZE_ADDRESS__)
// libzmq 4.3.4 leaks the first part of a message if a socket with linger is closed before the rest
// arrives.
extern "C" const char* __lsan_default_suppressions() { return "leak:libzmq.so"; }
#endif

namespace millrace::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;

TEST(Serving, ReturnsBatchesInOrder) {
  const ThreadServer server;
  const Stream stream{.seed = 7, .share = {1, 2}, .start = {20, {3, 5}}};
  const auto flow = connect({server.endpoint()}, stream);
  EXPECT_EQ(next_digests(*flow, 100), expected_digests(stream, 100));
  EXPECT_EQ(flow->epoch_size(), 100);
}

TEST(Serving, AcceptsDuplicateServer) {
  const ThreadServer server;
  EXPECT_EQ(next_digests(*connect({server.endpoint(), server.endpoint()}), 100),
            expected_digests({}, 100));
}

TEST(Serving, SurvivesKilledAndRestartedServers) {
  const Sockets sockets;
  const Making making{.time = 500us};
  constexpr int kServers = 3, kBatches = 800;
  std::vector<ServerProcess> servers;
  std::vector<std::string> endpoints;
  for (int k = 0; k < kServers; ++k) {
    endpoints.push_back(sockets.endpoint(k));
    servers.emplace_back(endpoints.back(), making);
  }
  std::atomic<int> done = 0, batches = 0;
  std::vector<std::thread> consumers;
  for (std::int64_t rank = 0; rank < 2; ++rank)
    consumers.emplace_back([&, rank] {
      const Stream stream{.share = {rank, 2}};
      const auto flow = connect(endpoints, stream);
      for (int k = 0; k < kBatches; ++k, ++batches)
        EXPECT_EQ(digest_of(*flow->next()), digest_of(*made_batch(stream, k).item));
      ++done;
    });
  // Each kill waits for a number of batches rather than a time, so that a server has started before
  // it is killed.
  std::mt19937 random(1);
  int kills = 0;
  while (done < 2) {
    const auto enough = batches + std::uniform_int_distribution(5, 100)(random);
    while (done < 2 && batches < enough) ::usleep(1'000);
    const auto k = random() % kServers;
    servers[k].end();
    servers[k] = ServerProcess(endpoints[k], making);
    ++kills;
  }
  for (auto& consumer : consumers) consumer.join();
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 10);
}

TEST(Serving, GivesUpOnFrozenServer) {
  const Sockets sockets;
  ServerProcess frozen(sockets.endpoint(0), {});
  const ThreadServer other({.time = 1ms});
  const auto flow = connect({sockets.endpoint(0), other.endpoint()});
  int taken = 0;
  for (; flow->report().stages.at(0).items < 3; ++taken) ASSERT_TRUE(flow->next());
  frozen.signal(SIGSTOP);
  EXPECT_EQ(next_digests(*flow, 100), expected_digests({}, 100, {}, taken));
}

TEST(Serving, PrefetchesWithinMemoryLimit) {
  const ThreadServer server;
  const auto bytes = static_cast<std::int64_t>(made_batch({}, 0).item->value.bytes());
  const auto expect_ahead = [&](serving::ConnectOptions options, std::int64_t most) {
    options.servers = {server.endpoint()};
    const auto flow = serving::connect_flow(std::move(options));
    const auto come = [&flow] { return flow->report().stages.at(0).items; };
    flow->next();
    EXPECT_TRUE(wait_until([&] { return come() == 1 + most; }));
    for (std::int64_t taken = 2; taken < 20; ++taken) {
      flow->next();
      EXPECT_LE(come(), taken + most);
    }
  };
  expect_ahead({}, serving::Assignment::kCredit);
  expect_ahead({.memory = 3 * bytes + 1}, 3);
  expect_ahead({.memory = 1}, 1);
}

TEST(Serving, UsesServersThatJoinLate) {
  const Sockets sockets;
  const auto endpoint = sockets.endpoint(0);
  const ThreadServer first({.time = 2ms});
  const auto flow = connect({first.endpoint(), endpoint});
  next_digests(*flow, 20);
  EXPECT_EQ(flow->report().stages.at(1).items, 0);
  const ServerProcess late(endpoint, {.time = 2ms});
  for (int k = 20; k < 10'000 && flow->report().stages.at(1).items < 10; ++k)
    ASSERT_EQ(digest_of(*flow->next()), digest_of(*made_batch({}, k).item));
  EXPECT_GE(flow->report().stages.at(1).items, 10);
}

TEST(Serving, RequiresSameDataAsFirstServer) {
  const ThreadServer first;
  auto facts = made_facts();
  facts["samples"] = "101";
  const Sockets sockets;
  const auto late = sockets.endpoint(0);
  const auto flow = connect({first.endpoint(), late}, {}, {});
  EXPECT_EQ(next_digests(*flow, 20), expected_digests({}, 20));
  EXPECT_EQ(flow->facts(), made_facts());
  const ThreadServer other(make_batches({}), facts, 100, {.listen = {.bind = late}});
  EXPECT_TRUE(other.wait_for_consumers(1));
  EXPECT_EQ(next_digests(*flow, 100), expected_digests({}, 100, {}, 20));
  EXPECT_EQ(flow->report().stages.at(1).items, 0);
}

TEST(Serving, ReportsFailureInOrder) {
  const ThreadServer server({.broken = 7});
  const auto flow = connect({server.endpoint()});
  EXPECT_EQ(next_digests(*flow, 7), expected_digests({}, 7));
  EXPECT_THAT([&] { flow->next(); }, ThrowsMessage<DataError>("picture.jpg: not a readable JPEG"));
  EXPECT_FALSE(flow->next());
}

TEST(Serving, BoundsServerMemoryDuringPause) {
  const Sockets sockets;
  const Making making{.side = 600};  // 2 MB per batch
  const ServerProcess server(sockets.endpoint(0), making);
  const auto resident = [&] {
    std::ifstream file("/proc/" + std::to_string(server.pid()) + "/statm");
    std::int64_t all = 0, pages = 0;
    file >> all >> pages;
    return pages * ::sysconf(_SC_PAGESIZE);
  };
  const auto flow = connect({sockets.endpoint(0)});
  next_digests(*flow, 40);
  const auto before = resident();
  EXPECT_TRUE(wait_until([&] {
    return flow->report().stages.at(0).items == 40 + std::int64_t{Assignment::kCredit};
  })) << "all requested batches must have arrived";
  EXPECT_LT(resident(), before + (20 << 20)) << "the server grows while its consumer pauses";
  EXPECT_EQ(next_digests(*flow, 20), expected_digests({}, 20, making, 40));
}

TEST(Serving, DropsConsumersThatExited) {
  const ThreadServer server;
  {
    const auto flow = connect({server.endpoint()});
    next_digests(*flow, 3);
    EXPECT_TRUE(server.wait_for_consumers(1));
  }
  EXPECT_TRUE(server.wait_for_consumers(0));
}

TEST(Serving, ReportsDifferingData) {
  const ThreadServer server;
  const auto mine = connect({server.endpoint()});
  next_digests(*mine, 3);
  auto facts = made_facts();
  facts["data.batch_size"] = "4";
  const auto other = connect({server.endpoint()}, {}, facts);
  EXPECT_THAT([&] { other->next(); },
              ThrowsMessage<Error>(
                  AllOf(ContainsRegex("data.batch_size .*4 .*2 "), HasSubstr(server.endpoint()))));
  EXPECT_EQ(next_digests(*mine, 3).size(), 3U);
}

TEST(Serving, ReportsAllUnreachableServers) {
  const Sockets sockets;
  const auto flow = connect({sockets.endpoint(0), "tcp://127.0.0.1:1"}, {}, made_facts(), 1s);
  EXPECT_THAT([&] { flow->next(); }, ThrowsMessage<Error>(AllOf(HasSubstr(sockets.endpoint(0)),
                                                                HasSubstr("tcp://127.0.0.1:1: "),
                                                                HasSubstr("data.source_timeout"))));
  EXPECT_THROW(flow->epoch_size(), Error);
}

TEST(Serving, QueuesConsumersAboveMaximum) {
  const ThreadServer server({}, {.listen = {.bind = "tcp://127.0.0.1:*"}, .most_consumers = 1});
  auto first = connect({server.endpoint()});
  next_digests(*first, 3);
  const auto second = connect({server.endpoint()});
  EXPECT_FALSE(second->is_ready(300ms));
  first.reset();
  EXPECT_EQ(next_digests(*second, 3), expected_digests({}, 3));
}

/// Returns how many bytes of batches this process has mapped from anonymous memory files.
std::int64_t mapped_shared_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:millrace-batch") == std::string::npos) continue;
    unsigned long begin = 0, end = 0;
    EXPECT_EQ(std::sscanf(line.c_str(), "%lx-%lx", &begin, &end), 2);
    bytes += static_cast<std::int64_t>(end - begin);
  }
  return bytes;
}

TEST(SharedMemory, TransfersBatchesOnSameHost) {
  const Sockets sockets;
  const Making making{.side = 300};
  const ServerProcess server(sockets.endpoint(0), making);
  {
    const auto flow = connect({sockets.endpoint(0)});
    EXPECT_EQ(next_digests(*flow, 200), expected_digests({}, 200, making));
    EXPECT_GT(mapped_shared_bytes(), 0);
  }
  EXPECT_EQ(mapped_shared_bytes(), 0) << "nothing must stay mapped";
}

TEST(SharedMemory, KeepsHeldBatchesUnchanged) {
  const Sockets sockets;
  const Making making{.side = 100};
  auto server = ServerProcess(sockets.endpoint(0), making);
  auto flow = connect({sockets.endpoint(0)});
  std::vector<Delivery<Batch>> held;
  for (int k = 0; k < 20; ++k) held.push_back(*flow->next());
  next_digests(*flow, 200);  // buffers are reused, but not those of the held batches
  const auto check = [&] {
    for (int k = 0; k < 20; ++k)
      EXPECT_EQ(digest_of(held[static_cast<std::size_t>(k)]),
                digest_of(*made_batch({}, k, making).item));
  };
  check();
  server.end();
  server = ServerProcess(sockets.endpoint(0), making);
  next_digests(*flow, 50);
  check();
  flow.reset();
  check();
}

TEST(SharedMemory, FallsBackToConnectionIfFull) {
  const Sockets sockets;
  const Making making{.side = 32};
  const ServerProcess server(sockets.endpoint(0), making);
  const auto flow = connect({sockets.endpoint(0)});
  std::vector<Delivery<Batch>> held;
  for (int k = 0; k < 150; ++k) {
    held.push_back(*flow->next());
    ASSERT_EQ(digest_of(held.back()), digest_of(*made_batch({}, k, making).item));
  }
}

}  // namespace
}  // namespace millrace::testing
