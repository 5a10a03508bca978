// Training's flow through data servers gives the bytes of the flow without them.
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/serving/facts.h"
#include "tests/dataflow/digests.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/serving/servers.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

/// A server of a data set, in a thread.
class DataServer {
 public:
  DataServer(const DataOptions& options, std::string bind)
      : options_(options),
        train_(open_train_data(options, {})),
        memory_(std::make_shared<SharedMemory>()),
        server_(
            [this](const Stream& stream, WakeUp ready) {
              return start_numbered_train_flow(options_, {}, train_, stream.seed, stream.share,
                                               stream.start, std::move(ready));
            },
            batch_facts(options_, {}, train_), train_.source->size(),
            {.door = {.bind = std::move(bind)}, .memory = memory_}),
        thread_([this] { server_.run([this] { return !stop_; }); }) {}
  ~DataServer() {
    stop_ = true;
    thread_.join();
  }
  std::string endpoint() const { return endpoint_; }

 private:
  const DataOptions options_;
  const TrainData train_;
  const std::shared_ptr<SharedMemory> memory_;
  BatchServer server_;
  const std::string endpoint_ = server_.endpoint();
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// A batch with its place.
std::uint64_t whole(const Delivery<Batch>& item) { return digest_of(item); }

std::vector<std::uint64_t> whole(DataFlow<Batch>& flow, int count) {
  std::vector<std::uint64_t> result;
  while (count-- > 0) result.push_back(whole(*flow.next()));
  return result;
}

TEST(ServedTrainFlow, IsTheFlowWithoutServersForEveryRankAndFromEveryCursor) {
  const TinyCoco coco(17);
  const DataServer one(coco.options(), "tcp://127.0.0.1:*"),
      other(coco.options(), "tcp://127.0.0.1:*");
  auto remote = coco.options();
  remote.source = {one.endpoint(), other.endpoint()};
  const auto train = open_train_data(coco.options(), {});
  for (const std::int64_t ranks : {1, 2})
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto here = start_train_flow(coco.options(), {}, train, 5, {rank, ranks});
      const auto there = start_train_flow(remote, {}, train, 5, {rank, ranks});
      EXPECT_EQ(there->epoch_size(), here->epoch_size());
      EXPECT_EQ(whole(*there, 30), whole(*here, 30));
      const auto cursor = here->next()->cursor;
      EXPECT_EQ(whole(*start_train_flow(remote, {}, train, 5, {rank, ranks}, cursor), 10),
                whole(*start_train_flow(coco.options(), {}, train, 5, {rank, ranks}, cursor), 10));
    }
}

TEST(ServedTrainFlow, IsTheSameThoughServersComeAndGo) {
  const TinyCoco coco(17);
  const Sockets sockets;
  auto remote = coco.options();
  remote.source = {sockets.endpoint(0), sockets.endpoint(1)};
  const auto train = open_train_data(coco.options(), {});
  std::unique_ptr<DataServer> servers[] = {
      std::make_unique<DataServer>(coco.options(), sockets.endpoint(0)),
      std::make_unique<DataServer>(coco.options(), sockets.endpoint(1))};
  const auto here = start_train_flow(coco.options(), {}, train, 1);
  const auto there = start_train_flow(remote, {}, train, 1);
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(whole(*there, 10), whole(*here, 10));
    servers[k % 2].reset();
    servers[k % 2] =
        std::make_unique<DataServer>(coco.options(), sockets.endpoint(static_cast<int>(k % 2)));
  }
}

TEST(ServedTrainFlow, NeedsNoDataOfItsOwn) {
  const TinyCoco coco(17);
  const DataServer server(coco.options(), "tcp://127.0.0.1:*");
  auto remote = coco.options();
  remote.source = {server.endpoint()};
  remote.root = "nowhere";
  EXPECT_THROW(open_train_data(remote, {}), ConfigError) << "the names of the classes are wanted";
  remote.classes = {"cat", "dog"};
  const auto train = open_train_data(remote, {});
  EXPECT_FALSE(train.source);
  const auto here = start_train_flow(coco.options(), {}, open_train_data(coco.options(), {}), 1);
  EXPECT_EQ(whole(*start_train_flow(remote, {}, train, 1), 10), whole(*here, 10));
}

TEST(ServedTrainFlow, OfAnotherDataSetIsRefused) {
  const TinyCoco coco(17), larger(18);
  const DataServer server(coco.options(), "tcp://127.0.0.1:*");
  auto remote = larger.options();
  remote.source = {server.endpoint()};
  const auto flow = start_train_flow(remote, {}, open_train_data(larger.options(), {}), 1);
  EXPECT_THAT([&] { flow->next(); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("samples is ")));
}

TEST(ServedTrainFlow, TellsOfSamplesThatAreLeftOutAndEndsWhereTheyAreTooMany) {
  const TinyCoco coco(17);
  for (int i = 0; i < 6; ++i) std::ofstream(coco.image(i)) << "no picture";
  auto options = coco.options();
  options.max_skipped = 1;
  const DataServer server(options, "tcp://127.0.0.1:*");
  const auto train = open_train_data(options, {});
  auto remote = options;
  remote.source = {server.endpoint()};
  const auto here = start_train_flow(options, {}, train, 1);
  const auto there = start_train_flow(remote, {}, train, 1);
  EXPECT_EQ(whole(*there, 12), whole(*here, 12));
  EXPECT_GT(there->report().skipped, 0);
  EXPECT_THAT(there->report().skipped_reasons.at(0), ::testing::HasSubstr("picture"));

  options.max_skipped = remote.max_skipped = 0.1;
  const DataServer strict(options, "tcp://127.0.0.1:*");
  remote.source = {strict.endpoint()};
  const auto limited = start_train_flow(remote, {}, train, 1);
  EXPECT_THROW(while (limited->next()) continue, Error);
}

TEST(ServedTrainFlow, OptionsThatChangeNoByteAreNoFacts) {
  const TinyCoco coco(5);
  const auto train = open_train_data(coco.options(), {});
  auto other = coco.options();
  other.threads = 7;
  other.memory = 5;
  other.source = {"tcp://a:1"};
  other.test_batch_size = 3;
  other.max_skipped = 0.5;  // the consumer's alone
  EXPECT_EQ(difference(batch_facts(other, {}, train), batch_facts(coco.options(), {}, train)), "");
  other.flip = 0.25;
  other.short_side = {48};
  const auto differs =
      difference(batch_facts(other, {}, train), batch_facts(coco.options(), {}, train));
  EXPECT_THAT(differs,
              ::testing::HasSubstr("data.flip is 0.25 for the training and 0.5 for the server"));
  EXPECT_THAT(differs, ::testing::HasSubstr("data.short_side"));
}

}  // namespace
}  // namespace millrace::testing
