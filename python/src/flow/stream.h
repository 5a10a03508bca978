// A stream of batches in Python: what flows and data servers' batches have in common.
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

/// Throws Error in a child that was forked from a process with a stream: oneTBB's and ZeroMQ's
/// threads do not live there.
void check_process();
/// From now on this process has one.
void note_process();

/// Starts with the first batch. Any thread of Python may call it.
class Stream {
 public:
  explicit Stream(const nanobind::list& functions);
  Stream(const Stream&) = delete;
  virtual ~Stream() { close(); }

  /// The next batch, or None at the end. Other threads run meanwhile; a signal's exception ends the
  /// waiting. Throws Python's exceptions, as all that follow.
  nanobind::object next();
  /// Where the next batch comes from, which is that of `number` to the caller; what runs, ends.
  void seek(std::int64_t next, std::vector<std::int64_t> pending, std::int64_t number);
  void close();
  nanobind::dict report();
  /// What decides the bytes of the batches, besides the seed.
  virtual serving::Facts facts() = 0;
  /// Of an epoch over all ranks; nothing while only data servers know.
  virtual std::optional<std::int64_t> samples() = 0;

  static int traverse(PyObject* self, visitproc visit, void* arg);
  static int clear(PyObject* self);

 protected:
  virtual std::unique_ptr<DataFlow<Batch>> start(const Cursor& cursor) = 0;

  const FunctionsPtr functions_;
  std::mutex mutex_;  // never waited for with the GIL
  std::unique_ptr<DataFlow<Batch>> flow_;

 private:
  bool take(std::optional<Delivery<Batch>>& delivery);
  void end();
  [[noreturn]] void raise_with_cause(nanobind::python_error& error);

  std::atomic<bool> is_closed_ = false;
  Cursor start_;
  std::int64_t first_number_ = 0;
  std::optional<Delivery<Batch>> kept_;  // taken when a signal came
  std::exception_ptr failure_;           // of every later call, too
};

void add_stream(nanobind::module_& module);

}  // namespace millrace::python
