#include "millrace/dataflow/detection_flows.h"

#include <cmath>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/check_messages.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/test_time.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/serving/facts.h"
#include "millrace/dataflow/serving/remote_flow.h"
#include "millrace/dataflow/serving/server.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/stage_tables.h"

namespace millrace {
namespace {

FlowOptions flow_options(const DataOptions& data, Share share) {
  return {.rank = share.rank,
          .ranks = share.ranks,
          .threads = static_cast<int>(data.threads),
          .in_flight = data.in_flight,
          .in_flight_bytes = data.memory << 20,
          .on_error = data.on_error,
          .max_skipped = data.max_skipped};
}

Plan train_plan(const TrainData& train, const DataOptions& data, std::span<const Config> stages) {
  if (data.batch_size > train.source->size())
    log_warning("batches of {} (data.batch_size) from {}: images repeat within a batch",
                counted(data.batch_size, "image"), counted(train.source->size(), "image"));
  const auto tables = complete_stages(data, stages);
  check_fit(*train.source, tables);
  auto plan = plan_of(train.source);
  plan.stages =
      build_stages(detection_stages(), tables, DetectionContext{train.source, train.classes});
  for (auto& stage : plan.stages) stage = checked(std::move(stage), train.classes.size());
  return plan;
}

FlowOptions train_options(const DataOptions& data, std::uint64_t seed, Share share,
                          const Cursor& start) {
  auto how = flow_options(data, share);
  how.seed = seed;
  how.shuffle = {true, data.shuffle_window};
  how.epochs = 0;
  how.partial = Partial::wrap;
  how.start = start;
  return how;
}

/// Starts a flow that resizes and batches decoded images as detection needs them.
std::unique_ptr<DataFlow<Batch>> start_test_flow(Pipeline<Sample> decoded, const TestTime& prepared,
                                                 std::int64_t batch, const FlowOptions& how) {
  return std::move(decoded)
      .map(prepared.resize)
      .group(static_cast<std::size_t>(batch))
      .map(prepared.pad)
      .start(how);
}

/// Connects to the servers of data.source and returns the flow that they make.
std::unique_ptr<DataFlow<Batch>> served_flow(const DataOptions& data,
                                             std::span<const Config> stages, const TrainData& train,
                                             const serving::Stream& stream) {
  std::optional<serving::LinkKeys> keys;
  if (!data.source_key.empty())
    keys = {serving::read_public_key(data.source_server_key),
            serving::read_secret_key(data.source_key)};
  return serving::connect_flow(
      {.servers = data.source,
       .keys = std::move(keys),
       .stream = stream,
       .facts = serving::batch_facts(data, stages, train),
       .timeout = std::chrono::milliseconds(std::llround(data.source_timeout.seconds * 1000)),
       .memory = data.memory << 20,
       .max_skipped = data.max_skipped});
}

}  // namespace

std::optional<cv::Size> largest_slot(const DataOptions& options, std::span<const Config> stages) {
  std::optional<cv::Size> largest;
  for (const auto& table : complete_stages(options, stages)) {
    const auto& factory =
        detection_stages().at(component_type(table, detection_stages().kind())).create;
    if (factory.largest_output)
      largest = factory.largest_output(without(table, {"until"}), largest);
  }
  return largest;
}

std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const TrainData& train, std::uint64_t seed,
                                                  Share share, const Cursor& start) {
  if (!options.source.empty()) return served_flow(options, stages, train, {seed, share, start});
  return start_flow<Batch>(train_plan(train, options, stages),
                           train_options(options, seed, share, start));
}

std::unique_ptr<NumberedFlow<Batch>> start_numbered_train_flow(const DataOptions& options,
                                                               std::span<const Config> stages,
                                                               const TrainData& train,
                                                               std::uint64_t seed, Share share,
                                                               const Cursor& start, WakeUp wake) {
  return start_numbered_flow<Batch>(train_plan(train, options, stages),
                                    train_options(options, seed, share, start), std::move(wake));
}

std::unique_ptr<serving::BatchServer> start_data_server(const DataOptions& options,
                                                        std::span<const Config> stages,
                                                        const TrainData& train,
                                                        const serving::ListenOptions& listen,
                                                        std::size_t most_consumers) {
  const auto memory = std::make_shared<serving::SharedMemory>();
  set_batch_memory(BufferPool(memory->source()));
  const auto start = [&options, stages, &train](const serving::Stream& stream, WakeUp ready) {
    return start_numbered_train_flow(options, stages, train, stream.seed, stream.share,
                                     stream.start, std::move(ready));
  };
  return std::make_unique<serving::BatchServer>(
      start, serving::batch_facts(options, stages, train),
      Order(train.source->size(), train.source->repeats(), 0, {}).size(),
      serving::ServerOptions{.listen = listen, .most_consumers = most_consumers, .memory = memory});
}

std::unique_ptr<DataFlow<Batch>> start_eval_flow(const DataOptions& options, const DataSplit& split,
                                                 Share share, const Cursor& start) {
  const TestTime prepared(options);
  auto how = flow_options(options, share);
  how.start = start;
  if (how.on_error == OnError::replace) how.on_error = OnError::skip;
  return start_test_flow(
      from(std::make_shared<const DetectionSource>(split, /*filter_empty=*/false))
          .map(prepared.decode),
      prepared, options.test_batch_size, how);
}

Batch test_batch(const DataOptions& options, Sample decoded) {
  const TestTime prepared(options);
  std::vector<Sample> alone;
  alone.push_back(prepared.resized(std::move(decoded)));
  return prepared.pad(std::move(alone));
}

PhotoFlow start_photo_flow(const DataOptions& options, std::vector<std::filesystem::path> files,
                           const Cursor& start, std::vector<cv::Size> sizes) {
  const TestTime prepared(options);
  const auto photos = std::make_shared<const Photos>(std::move(files), prepared, std::move(sizes));
  auto how = flow_options(options, {});
  how.start = start;
  how.on_error = OnError::skip;
  how.max_skipped = 1;
  auto usable =
      from(photos)
          .map("decode", [photos](Sample sample) { return photos->decoded(std::move(sample)); })
          .filter([](const Sample& sample) { return !sample.image.empty(); });
  return {photos, start_test_flow(std::move(usable), prepared, options.test_batch_size, how)};
}

}  // namespace millrace
