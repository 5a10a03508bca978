#include "python/src/flow_flow.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/data_recipe.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/serving/facts.h"
#include "millrace/engine/order.h"
#include "python/src/flow_batch.h"
#include "python/src/flow_stage.h"
#include "python/src/flow_values.h"

namespace millrace::python {
namespace {

constexpr std::chrono::milliseconds kBetweenSignals{50};

/// The process whose threads make batches; 0: none does. oneTBB's threads do not live in a child.
std::atomic<pid_t> working_process = 0;

/// Throws Error in a child that was forked from a process with a flow.
void check_process() {
  const auto process = working_process.load();
  if (process == 0 || process == ::getpid()) return;
  throw Error(fmt::format(
      "this process was forked from process {}, which has made a flow; the threads of flows do not "
      "live on in a child. Make the flow in the child alone, or start processes with "
      "multiprocessing's \"spawn\" or \"forkserver\"",
      process));
}

struct SeedOptions {
  std::int64_t seed = 1;
  void describe(Options& o) {
    o.add("seed", seed, "of the order and all random draws", {.min = 0, .max = kAnySeed});
  }
};

/// The seed of [train], as the trainer reads it.
std::uint64_t seed_of(const Config& tree) {
  Config own;
  if (const auto* seed = tree.find_path("train.seed")) own.set("seed", *seed);
  return static_cast<std::uint64_t>(read_options<SeedOptions>(own).seed);
}

/// A flow in Python: its data, opened; and, from the first batch on, the flow.
class PythonFlow {
 public:
  /// Reads and checks `file` (empty: none) and `options`, a dict of keys of [data], and opens the
  /// data. Throws Python's exceptions.
  PythonFlow(const std::string& file, const nb::dict& options, std::optional<std::int64_t> seed,
             bool training, std::int64_t rank, std::int64_t ranks, const nb::list& functions)
      : training_(training), share_{rank, ranks}, functions_(std::make_shared<Functions>()) {
    for (const auto function : functions) functions_->all.push_back(nb::borrow(function));
    try {
      check_process();
      if (ranks < 1 || rank < 0 || rank >= ranks)
        throw ConfigError(fmt::format("rank {} of {} ranks: there is no such rank", rank, ranks));
      Config given(Config::Table{}, {"Flow"});
      for (const auto item : options) {
        const auto key = nb::cast<std::string>(item.first);
        given.set(key, to_config(item.second, fmt::format("Flow({}=...)", key)));
      }
      if (seed) given_seed(*seed);
      without_gil([&] { open(file, given); });
    } catch (...) {
      raise_in_python();
    }
  }
  PythonFlow(const PythonFlow&) = delete;
  ~PythonFlow() { close(); }

  /// The next batch, or None at the end. Other threads run meanwhile; a signal's exception ends it.
  nb::object next() {
    try {
      check_process();
      while (true) {
        std::optional<Delivery<Batch>> delivery;
        const auto is_over = without_gil([&] { return take(delivery); });
        if (PyErr_CheckSignals() != 0) {
          if (delivery) kept_ = std::move(delivery);  // the next call's
          throw nb::python_error();
        }
        if (delivery) {
          const auto number = first_number_ + delivery->number;
          return nb::cast(PythonBatch(std::move(*delivery), number));
        }
        if (is_over) return nb::none();
      }
    } catch (const Error& problem) {
      raise_with_cause(problem.what());
    } catch (...) {
      raise_in_python();
    }
  }

  /// Where the next batch comes from; ends the flow that runs.
  void seek(std::int64_t next, std::vector<std::int64_t> pending, std::int64_t number) {
    without_gil([&] {
      check_process();
      const std::lock_guard lock(mutex_);
      end();
      start_ = {next, std::move(pending)};
      first_number_ = number;
    });
  }

  void close() {
    if (working_process != ::getpid()) {  // a child: waiting for the parent's threads would hang
      static_cast<void>(flow_.release());
      return;
    }
    is_closed_ = true;
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    end();
  }

  /// What decides the bytes of the batches, besides the seed.
  serving::Facts facts() {
    return without_gil([&] {
      const std::lock_guard lock(mutex_);
      if (facts_.empty())
        facts_ = training_ ? serving::batch_facts(recipe_.data, recipe_.stages, train_)
                           : serving::eval_facts(recipe_.data, *split_);
      return facts_;
    });
  }

  nb::dict report() {
    FlowReport report;
    without_gil([&] {
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

  std::uint64_t seed() const { return seed_; }
  const std::vector<std::string>& classes() const {
    return training_ ? train_.classes : split_->classes;
  }
  std::vector<std::int64_t> category_ids() const {
    return split_ ? split_->category_ids : std::vector<std::int64_t>();
  }
  /// Of an epoch over all ranks; nothing where data servers alone know.
  std::optional<std::int64_t> samples() const { return samples_; }
  std::string config() const { return to_toml(tree_); }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const auto* flow = nb::inst_ptr<PythonFlow>(self);
    for (const auto& function : flow->functions_->all) Py_VISIT(function.ptr());
    for (const auto& [text, exception] : flow->functions_->raised) Py_VISIT(exception.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    auto* flow = nb::inst_ptr<PythonFlow>(self);
    flow->close();
    const Functions gone = std::exchange(*flow->functions_, {});
    return 0;
  }

 private:
  void given_seed(std::int64_t seed) {
    Config table;
    table.set("seed", {seed, {"Flow(seed=...)"}});
    Config tree;
    tree.set("train", std::move(table));
    seed_given_ = seed_of(tree);
  }

  void open(const std::string& file, const Config& given) {
    auto tree = file.empty() ? Config(Config::Table{}, {"Flow"}) : load_config(file);
    Config over(Config::Table{}, {"Flow"});
    over.set("data", given);
    merge(tree, over);
    seed_ = seed_given_ ? *seed_given_ : seed_of(tree);
    Config complete(Config::Table{}, tree.origin);
    recipe_ = resolve_data(tree, complete);
    tree_ = std::move(complete);
    working_process = ::getpid();
    const auto threads = recipe_.data.threads > 0 ? static_cast<int>(recipe_.data.threads)
                                                  : oneapi::tbb::info::default_concurrency();
    // One more, since the consumer's thread counts and does no work.
    limit_.emplace(oneapi::tbb::global_control::max_allowed_parallelism,
                   static_cast<std::size_t>(threads) + 1);
    if (training_) {
      train_ = open_train_data(recipe_.data, recipe_.sources);
      if (train_.source)
        samples_ = Order(train_.source->size(), train_.source->repeats(), 0, {}).size();
    } else {
      split_ = open_split(recipe_.data, recipe_.data.val);
      samples_ = std::ssize(split_->annotations->images);
    }
  }

  /// Waits a little for a batch. True at the end.
  bool take(std::optional<Delivery<Batch>>& delivery) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) throw Error("this flow has been closed");
    if (kept_) {
      delivery = std::exchange(kept_, std::nullopt);
      return false;
    }
    if (failure_) std::rethrow_exception(failure_);
    try {
      if (!flow_) start();
      if (!flow_->is_ready(kBetweenSignals)) return false;
      delivery = flow_->next();
      return !delivery;
    } catch (...) {
      failure_ = std::current_exception();  // of every later call, too
      throw;
    }
  }

  void start() {
    const TheirFunctions theirs(functions_);
    flow_ = training_
                ? start_train_flow(recipe_.data, recipe_.stages, train_, seed_, share_, start_)
                : start_eval_flow(recipe_.data, *split_, share_, start_);
  }

  void end() {
    flow_.reset();
    kept_.reset();
    failure_ = nullptr;
  }

  /// A RuntimeError or millrace.data.DataError, from what a function has raised.
  [[noreturn]] void raise_with_cause(const std::string& what) {
    nb::object cause;
    for (const auto& [text, exception] : functions_->raised)
      if (what.find(text) != std::string::npos) cause = exception;
    try {
      raise_in_python();
    } catch (nb::python_error& error) {
      if (cause.is_valid()) PyException_SetCause(error.value().ptr(), cause.release().ptr());
      throw;
    }
  }

  const bool training_;
  const Share share_;
  const FunctionsPtr functions_;
  std::optional<std::uint64_t> seed_given_;
  std::uint64_t seed_ = 1;
  Config tree_;  // [data], complete
  DataRecipe recipe_;
  std::optional<oneapi::tbb::global_control> limit_;
  TrainData train_;
  std::optional<DataSplit> split_;  // of an evaluation
  std::optional<std::int64_t> samples_;
  std::atomic<bool> is_closed_ = false;

  std::mutex mutex_;  // never waited for with the GIL
  serving::Facts facts_;
  Cursor start_;
  std::int64_t first_number_ = 0;
  std::unique_ptr<DataFlow<Batch>> flow_;
  std::optional<Delivery<Batch>> kept_;  // taken when a signal came
  std::exception_ptr failure_;
};

PyType_Slot flow_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&PythonFlow::traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(&PythonFlow::clear)},
                            {0, nullptr}};

}  // namespace

void add_flow(nb::module_& module) {
  nb::class_<PythonFlow>(module, "Flow", nb::type_slots(flow_slots))
      .def(nb::init<const std::string&, const nb::dict&, std::optional<std::int64_t>, bool,
                    std::int64_t, std::int64_t, const nb::list&>(),
           nb::arg("file"), nb::arg("options"), nb::arg("seed").none(), nb::arg("training"),
           nb::arg("rank"), nb::arg("world_size"), nb::arg("functions"))
      .def("next", &PythonFlow::next)
      .def("seek", &PythonFlow::seek, nb::arg("next"), nb::arg("pending"), nb::arg("number"))
      .def("close", &PythonFlow::close)
      .def("facts", &PythonFlow::facts)
      .def("report", &PythonFlow::report)
      .def("config", &PythonFlow::config)
      .def_prop_ro("seed", &PythonFlow::seed)
      .def_prop_ro("classes", &PythonFlow::classes)
      .def_prop_ro("category_ids", &PythonFlow::category_ids)
      .def_prop_ro("samples", &PythonFlow::samples);
}

}  // namespace millrace::python
