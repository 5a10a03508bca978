#include "millrace/dataflow/data_server.h"

#include <utility>

#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/serving/facts.h"

namespace millrace {

std::unique_ptr<serving::BatchServer> start_data_server(const DataOptions& options,
                                                        std::span<const Config> stages,
                                                        const TrainData& train,
                                                        const serving::DoorOptions& door,
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
      serving::ServerOptions{.door = door, .most_consumers = most_consumers, .memory = memory});
}

}  // namespace millrace
