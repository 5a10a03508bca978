// A training flow through data servers yields the same bytes as a local flow.
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/serving/facts.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/serving/servers.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace::testing {
namespace {

using namespace ::testing;

/// Starts a server of a data set in a thread.
std::unique_ptr<ThreadServer> serve(const DataOptions& options,
                                    std::string bind = "tcp://127.0.0.1:*") {
  const auto train = open_train_data(options, {});
  const auto start = [=](const Stream& stream, WakeUp ready) {
    return start_numbered_train_flow(options, {}, train, stream.seed, stream.share, stream.start,
                                     std::move(ready));
  };
  return std::make_unique<ThreadServer>(start, batch_facts(options, {}, train),
                                        train.source->size(),
                                        ServerOptions{.listen = {.bind = std::move(bind)},
                                                      .memory = std::make_shared<SharedMemory>()});
}

TEST(ServedTrainFlow, MatchesLocalFlow) {
  const TinyCoco coco(17);
  const auto one = serve(coco), other = serve(coco);
  DataOptions remote = coco;
  remote.source = {one->endpoint(), other->endpoint()};
  const auto train = open_train_data(coco, {});
  for (const std::int64_t ranks : {1, 2})
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto here = start_train_flow(coco, {}, train, 5, {rank, ranks});
      const auto there = start_train_flow(remote, {}, train, 5, {rank, ranks});
      EXPECT_EQ(there->epoch_size(), here->epoch_size());
      EXPECT_EQ(next_digests(*there, 30), next_digests(*here, 30));
      const auto cursor = here->next()->cursor;
      EXPECT_EQ(next_digests(*start_train_flow(remote, {}, train, 5, {rank, ranks}, cursor), 10),
                next_digests(*start_train_flow(coco, {}, train, 5, {rank, ranks}, cursor), 10));
    }
}

TEST(ServedTrainFlow, MatchesLocalFlowDespiteRestarts) {
  const TinyCoco coco(17);
  const Sockets sockets;
  DataOptions remote = coco;
  remote.source = {sockets.endpoint(0), sockets.endpoint(1)};
  const auto train = open_train_data(coco, {});
  std::unique_ptr<ThreadServer> servers[] = {serve(coco, sockets.endpoint(0)),
                                             serve(coco, sockets.endpoint(1))};
  const auto here = start_train_flow(coco, {}, train, 1);
  const auto there = start_train_flow(remote, {}, train, 1);
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(next_digests(*there, 10), next_digests(*here, 10));
    servers[k % 2].reset();
    servers[k % 2] = serve(coco, sockets.endpoint(static_cast<int>(k % 2)));
  }
}

TEST(ServedTrainFlow, RunsWithoutLocalData) {
  const TinyCoco coco(17);
  const auto server = serve(coco);
  DataOptions remote = coco;
  remote.source = {server->endpoint()};
  remote.root = "nowhere";
  EXPECT_THROW(open_train_data(remote, {}), ConfigError) << "class names are required";
  remote.classes = {"cat", "dog"};
  const auto train = open_train_data(remote, {});
  EXPECT_FALSE(train.source);
  const auto here = start_train_flow(coco, {}, open_train_data(coco, {}), 1);
  EXPECT_EQ(next_digests(*start_train_flow(remote, {}, train, 1), 10), next_digests(*here, 10));
}

TEST(ServedTrainFlow, RejectsDifferentDataSet) {
  const TinyCoco coco(17), larger(18);
  const auto server = serve(coco);
  DataOptions remote = larger;
  remote.source = {server->endpoint()};
  const auto flow = start_train_flow(remote, {}, open_train_data(larger, {}), 1);
  EXPECT_THAT([&] { flow->next(); }, ThrowsMessage<Error>(HasSubstr("samples is ")));
}

TEST(ServedTrainFlow, ReportsAndLimitsSkippedSamples) {
  const TinyCoco coco(17);
  for (int i = 0; i < 6; ++i) std::ofstream(coco.image(i)) << "no picture";
  DataOptions options = coco;
  options.max_skipped = 1;
  const auto server = serve(options);
  const auto train = open_train_data(options, {});
  auto remote = options;
  remote.source = {server->endpoint()};
  const auto here = start_train_flow(options, {}, train, 1);
  const auto there = start_train_flow(remote, {}, train, 1);
  EXPECT_EQ(next_digests(*there, 12), next_digests(*here, 12));
  EXPECT_GT(there->report().skipped, 0);
  EXPECT_THAT(there->report().skipped_reasons.at(0), HasSubstr("picture"));

  options.max_skipped = remote.max_skipped = 0.1;
  const auto strict = serve(options);
  remote.source = {strict->endpoint()};
  const auto limited = start_train_flow(remote, {}, train, 1);
  EXPECT_THROW(while (limited->next()) continue, Error);
}

TEST(ServedTrainFlow, ComparesOnlyOptionsThatChangeBytes) {
  const TinyCoco coco(5);
  const auto train = open_train_data(coco, {});
  DataOptions other = coco;
  other.threads = 7;
  other.memory = 5;
  other.source = {"tcp://a:1"};
  other.test_batch_size = 3;
  other.max_skipped = 0.5;  // an option of the consumer only
  EXPECT_EQ(difference(batch_facts(other, {}, train), batch_facts(coco, {}, train)), "");
  other.flip = 0.25;
  other.short_side = {48};
  const auto differs = difference(batch_facts(other, {}, train), batch_facts(coco, {}, train));
  EXPECT_THAT(differs, ContainsRegex("data.flip .*0.25 .*0.5 "));
  EXPECT_THAT(differs, HasSubstr("data.short_side"));
}

}  // namespace
}  // namespace millrace::testing
