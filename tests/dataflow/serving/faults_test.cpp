// A consumer receives each batch of its stream once and in order, even if the network drops,
// corrupts, duplicates and delays messages.
#include <deque>

#include "tests/dataflow/serving/servers.h"
#include "tests/support/faulty_proxy.h"

namespace millrace::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;

/// Two servers, one with shared memory, each behind a faulty proxy.
class ServingFaults : public Test {
 protected:
  std::unique_ptr<ServedFlow> with(const WireFaults& faults) {
    auto others = faults;
    others.seed += 100;
    proxies_.emplace_back(sockets_.endpoint(1), sockets_.endpoint(0), faults);
    proxies_.emplace_back(sockets_.endpoint(2), sending_.endpoint(), others);
    return connect({sockets_.endpoint(1), sockets_.endpoint(2)});
  }
  void expect_all(const WireFaults& faults, int count) {
    EXPECT_EQ(next_digests(*with(faults), count), expected_digests({}, count));
    // One server may have sent almost all batches before the other server started.
    EXPECT_GT(proxies_.front().faults() + proxies_.back().faults(), 0);
  }

 private:
  const Sockets sockets_;
  const ServerProcess sharing_{sockets_.endpoint(0), {}};
  const ThreadServer sending_;
  std::deque<FaultyProxy> proxies_;
};

TEST_F(ServingFaults, RequestsLostMessagesAgain) { expect_all({.drop = 0.03}, 300); }

TEST_F(ServingFaults, RejectsDamagedMessages) { expect_all({.corrupt = 0.01, .seed = 3}, 300); }

TEST_F(ServingFaults, WaitsForLateMessages) { expect_all({.delay = 0.2}, 300); }

TEST_F(ServingFaults, CountsDuplicateMessagesOnce) { expect_all({.duplicate = 0.5}, 300); }

TEST_F(ServingFaults, DeliversUnderAllFaults) {
  expect_all({.drop = 0.01,
              .corrupt = 0.005,
              .duplicate = 0.1,
              .delay = 0.05,
              .delay_by = 20ms,
              .seed = 5},
             400);
}

TEST_F(ServingFaults, KeepsMemoryOfFirstAnswer) {
  const auto flow = with({.duplicate = 1});
  std::deque<Delivery<Batch>> held;
  int first = 0;
  for (int k = 0; k < 200; ++k) {
    held.push_back(*flow->next());
    if (held.size() < 12) continue;
    // By now the second answer and later batches have arrived.
    ASSERT_EQ(digest_of(held.front()), digest_of(*made_batch({}, first).item)) << first;
    held.pop_front();
    ++first;
  }
}

}  // namespace
}  // namespace millrace::testing
