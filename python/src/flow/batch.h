// A batch in Python, as arrays over the memory that the flow's threads filled.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::python {

/// Owns the delivery; its arrays own this object. In a forked child the memory is leaked, since the
/// pool's lock may be held forever there.
class PythonBatch {
 public:
  PythonBatch(Delivery<Batch> delivery, std::int64_t number)
      : delivery_(std::make_unique<Delivery<Batch>>(std::move(delivery))), number_(number) {}
  PythonBatch(PythonBatch&&) = default;
  ~PythonBatch() {
    if (process_ != ::getpid()) static_cast<void>(delivery_.release());
  }

  Batch& batch() const { return delivery_->value; }
  const Delivery<Batch>& delivery() const { return *delivery_; }
  /// Number of the batch, from 0 at the beginning of the training run or evaluation pass.
  std::int64_t number() const { return number_; }

 private:
  std::unique_ptr<Delivery<Batch>> delivery_;
  std::int64_t number_ = 0;
  pid_t process_ = ::getpid();
};

}  // namespace millrace::python
