#include "python/src/flow/stream.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/word_wrap.h"
#include "python/src/flow/batch.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

constexpr std::chrono::milliseconds kBetweenSignals{50};

/// The process whose threads make batches; 0 = none.
std::atomic<pid_t> working_process = 0;

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&Stream::traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&Stream::clear)},
                       {0, nullptr}};

}  // namespace

void check_process() {
  const auto process = working_process.load();
  if (process == 0 || process == ::getpid()) return;
  throw Error(fmt::format(
      "this process was forked from process {}, which had created a flow; threads of flows do not "
      "survive a fork. Create the flow in the child only, or start processes with "
      "multiprocessing's \"spawn\" or \"forkserver\"",
      process));
}

void note_process() { working_process = ::getpid(); }

Stream::Stream(const nb::list& functions) : functions_(std::make_shared<Functions>()) {
  for (const auto function : functions) functions_->all.push_back(nb::borrow(function));
}

nb::object Stream::next() {
  try {
    check_process();
    while (true) {
      std::optional<Delivery<Batch>> delivery;
      const auto is_over = without_gil([&] { return take(delivery); });
      if (PyErr_CheckSignals() != 0) {
        const nb::python_error raised;
        if (delivery)  // for the next call
          without_gil([&] {
            const std::lock_guard lock(mutex_);
            kept_ = std::move(delivery);
          });
        throw nb::python_error(raised);
      }
      if (delivery) {
        const auto number = first_number_ + delivery->number;
        return nb::cast(PythonBatch(std::move(*delivery), number));
      }
      if (is_over) return nb::none();
    }
  } catch (nb::python_error& error) {
    raise_with_cause(error);
  } catch (...) {
    raise_in_python();
  }
}

void Stream::seek(std::int64_t next, std::vector<std::int64_t> pending, std::int64_t number) {
  without_gil([&] {
    check_process();
    const std::lock_guard lock(mutex_);
    end();
    start_ = {next, std::move(pending)};
    first_number_ = number;
  });
  functions_->raised.clear();
}

void Stream::close() {
  const auto process = working_process.load();
  if (process != 0 && process != ::getpid()) {  // waiting for the parent's threads would hang
    static_cast<void>(flow_.release());
    const Functions gone = std::exchange(*functions_, {});
    return;
  }
  is_closed_ = true;
  const nb::gil_scoped_release released;
  const std::lock_guard lock(mutex_);
  end();
}

nb::dict Stream::report() {
  FlowReport report;
  without_gil([&] {
    check_process();
    const std::lock_guard lock(mutex_);
    if (flow_) report = flow_->report();
  });
  nb::list stages;
  for (const auto& stage : report.stages) {
    nb::dict dict;
    dict["name"] = stage.name;
    dict["items"] = stage.items;
    dict["busy_s"] = stage.busy_s;
    dict["waiting"] = stage.waiting;
    stages.append(dict);
  }
  nb::dict dict;
  dict["stages"] = stages;
  dict["skipped"] = report.skipped;
  dict["skipped_reasons"] = report.skipped_reasons;
  dict["filtered"] = report.filtered;
  dict["wait_s"] = report.wait_s;
  return dict;
}

int Stream::traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* flow = nb::inst_ptr<Stream>(self);
  for (const auto& function : flow->functions_->all) Py_VISIT(function.ptr());
  for (const auto& [text, exception] : flow->functions_->raised) Py_VISIT(exception.ptr());
  return 0;
}

int Stream::clear(PyObject* self) {
  auto* flow = nb::inst_ptr<Stream>(self);
  flow->close();
  const Functions gone = std::exchange(*flow->functions_, {});
  return 0;
}

/// Waits a short time for a batch. Returns true at the end of the stream.
bool Stream::take(std::optional<Delivery<Batch>>& delivery) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) throw Error("this flow is closed");
  if (kept_) {
    delivery = std::exchange(kept_, std::nullopt);
    return false;
  }
  if (failure_) std::rethrow_exception(failure_);
  try {
    if (!flow_) flow_ = start(start_);
    if (!flow_->is_ready(kBetweenSignals)) return false;
    delivery = flow_->next();
    return !delivery;
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void Stream::end() {
  flow_.reset();
  kept_.reset();
  failure_ = nullptr;
}

/// Rethrows the error. If a Python function's exception ended the flow, it becomes the cause.
void Stream::raise_with_cause(nb::python_error& error) {
  const auto what = nb::cast<std::string>(nb::str(error.value()));
  for (const auto& [text, exception] : functions_->raised)
    if (what.find(printable(text)) != std::string::npos)
      PyException_SetCause(error.value().ptr(), nb::object(exception).release().ptr());
  throw std::move(error);
}

void add_stream(nb::module_& module) {
  nb::class_<Stream>(module, "Stream", nb::type_slots(slots))
      .def("next", &Stream::next)
      .def("seek", &Stream::seek, nb::arg("next"), nb::arg("pending"), nb::arg("number"))
      .def("close", &Stream::close)
      .def("facts", &Stream::facts)
      .def("report", &Stream::report)
      .def_prop_ro("samples", &Stream::samples);
}

}  // namespace millrace::python
