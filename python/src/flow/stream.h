// A stream of batches in Python: the base class of local flows and of batches from data servers.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/serving/messages.h"
#include "python/src/flow/stage.h"

namespace millrace::python {

/// Throws Error in a child forked from a process with a stream, since threads of oneTBB and ZeroMQ
/// do not survive a fork.
void check_process();
/// Records that this process has a stream.
void note_process();

/// Starts when the first batch is requested. Thread-safe for Python threads.
class Stream {
 public:
  explicit Stream(const nanobind::list& functions);
  Stream(const Stream&) = delete;
  virtual ~Stream() { close(); }

  /// Returns the next batch, or None at the end. Releases the GIL while waiting; a signal's
  /// exception ends the wait. Like the following methods, throws Python exceptions.
  nanobind::object next();
  /// Ends the running flow and sets the cursor of the next batch; `number` becomes the number of
  /// that batch.
  void seek(std::int64_t next, std::vector<std::int64_t> pending, std::int64_t number);
  void close();
  nanobind::dict report();
  /// Returns the facts that determine the bytes of the batches, except the seed.
  virtual serving::Facts facts() = 0;
  /// Returns the number of samples per epoch over all ranks; nullopt if no data server has reported
  /// it.
  virtual std::optional<std::int64_t> samples() = 0;

  static int traverse(PyObject* self, visitproc visit, void* arg);
  static int clear(PyObject* self);

 protected:
  virtual std::unique_ptr<DataFlow<Batch>> start(const Cursor& cursor) = 0;

  const FunctionsPtr functions_;
  std::mutex mutex_;  // never waited for while holding the GIL
  std::unique_ptr<DataFlow<Batch>> flow_;

 private:
  bool take(std::optional<Delivery<Batch>>& delivery);
  void end();
  [[noreturn]] void raise_with_cause(nanobind::python_error& error);

  std::atomic<bool> is_closed_ = false;
  Cursor start_;
  std::int64_t first_number_ = 0;
  std::optional<Delivery<Batch>> kept_;  // batch taken when a signal arrived
  std::exception_ptr failure_;           // also rethrown by later calls
};

}  // namespace millrace::python
