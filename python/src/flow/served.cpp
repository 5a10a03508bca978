// Batches from data servers in Python: the module's class Served.

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/serving/remote_flow.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/flow.h"
#include "python/src/flow/stream.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

/// The [data] keys of a consumer without a configuration file.
struct ServedOptions : RemoteOptions {
  std::int64_t memory = PaceOptions{}.memory;
  double max_skipped = FaultOptions{}.max_skipped;

  void describe(Options& o) {
    RemoteOptions::describe(o);
    o.add("memory", memory, "maximum memory of prefetched batches; 0 = unlimited",
          {.min = 0, .max = 1 << 24, .unit = "MiB"});
    o.add("max_skipped", max_skipped, "maximum share of unusable images per epoch",
          {.min = 0, .max = 1});
  }
  void check(const Config& table) const {
    DataOptions all;
    static_cast<RemoteOptions&>(all) = *this;
    all.check(table);
    require(table, "source", !source.empty(), "is empty; expected at least one data server");
  }
};

class Served final : public Stream {
 public:
  Served(const nb::dict& options, std::int64_t seed, std::int64_t rank, std::int64_t ranks)
      : Stream({}) {
    try {
      check_process();
      stream_ = {checked_seed(seed, "Batches(seed=...)"), {rank, ranks}, {}};
      check_share(stream_.share);
      options_ = read_options<ServedOptions>(given_options(options, "Batches"));
      if (!options_.source_key.empty())
        keys_ = {serving::read_public_key(options_.source_server_key),
                 serving::read_secret_key(options_.source_key)};
      note_process();
    } catch (...) {
      raise_in_python();
    }
  }
  ~Served() override { close(); }

  serving::Facts facts() override {
    return without_gil([&] {
      check_process();
      const std::lock_guard lock(mutex_);
      if (flow_)
        if (auto known = static_cast<const serving::ServedFlow&>(*flow_).facts())
          known_ = *std::move(known);
      return known_;
    });
  }
  /// Sets the facts that the servers must report. REQUIRES: called before `seek`.
  void expect(serving::Facts facts) {
    without_gil([&] {
      check_process();
      const std::lock_guard lock(mutex_);
      known_ = std::move(facts);
    });
  }
  std::optional<std::int64_t> samples() override {
    if (facts().empty()) return std::nullopt;
    return without_gil([&]() -> std::optional<std::int64_t> {
      const std::lock_guard lock(mutex_);
      if (!flow_ || !static_cast<const serving::ServedFlow&>(*flow_).facts()) return std::nullopt;
      return flow_->epoch_size();  // known once a server has answered
    });
  }
  std::uint64_t seed() const { return stream_.seed; }

 private:
  std::unique_ptr<DataFlow<Batch>> start(const Cursor& cursor) override {
    auto stream = stream_;
    stream.start = cursor;
    return serving::connect_flow(
        {.servers = options_.source,
         .keys = keys_,
         .stream = std::move(stream),
         .facts = known_,
         .timeout = std::chrono::milliseconds(std::llround(options_.source_timeout.seconds * 1000)),
         .memory = options_.memory << 20,
         .max_skipped = options_.max_skipped});
  }

  serving::Stream stream_;
  ServedOptions options_;
  std::optional<serving::LinkKeys> keys_;
  serving::Facts known_;
};

void make_keys(nb::handle name) try {
  serving::make_keys(path_of(name, "make_keys(name)"));
} catch (...) {
  raise_in_python();
}

}  // namespace

void add_served(nb::module_& module) {
  nb::class_<Served, Stream>(module, "Served")
      .def(nb::init<const nb::dict&, std::int64_t, std::int64_t, std::int64_t>(),
           nb::arg("options"), nb::arg("seed"), nb::arg("rank"), nb::arg("world_size"))
      .def("expect", &Served::expect, nb::arg("facts"))
      .def_prop_ro("seed", &Served::seed);
  module.def("make_keys", &make_keys, nb::arg("name"));
}

}  // namespace millrace::python
