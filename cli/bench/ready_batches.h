// Prepared batches for measuring a model alone.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::cli {

/// Repeats a fixed list of prepared batches, so that no step waits for data.
class ReadyBatches final : public DataFlow<Batch> {
 public:
  ReadyBatches(DataFlow<Batch>& from, std::int64_t count) : epoch_size_(from.epoch_size()) {
    while (std::ssize(batches_) < count) {
      auto delivery = from.next();
      if (!delivery) break;
      batches_.push_back(std::move(*delivery));
    }
    if (batches_.empty()) throw Error("the data set yields no batch to measure");
  }

  std::optional<Delivery<Batch>> next() override { return batches_[next_++ % batches_.size()]; }
  std::int64_t epoch_size() const override { return epoch_size_; }
  FlowReport report() const override { return {}; }

 private:
  std::int64_t epoch_size_;
  std::vector<Delivery<Batch>> batches_;
  std::size_t next_ = 0;
};

}  // namespace millrace::cli
