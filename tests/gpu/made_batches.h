// A flow of generated batches.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::testing {

/// Yields batches that `make` returns, without end.
class Made final : public DataFlow<Batch> {
 public:
  explicit Made(std::function<Batch()> make) : make_(std::move(make)) {}
  std::optional<Delivery<Batch>> next() override { return Delivery<Batch>{make_(), {}, 0, 0, 1}; }
  std::int64_t epoch_size() const override { return 2; }
  FlowReport report() const override { return {}; }

 private:
  const std::function<Batch()> make_;
};

}  // namespace millrace::testing
