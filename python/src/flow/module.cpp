// The Python module millrace._flow, which implements millrace.data and millrace.serving.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <string>
#include <vector>

#include "millrace/base/log.h"
#include "millrace/base/registry.h"
#include "millrace/coco/sample/sample.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/sources/detection_sources.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

/// Logs warnings to standard error, since standard output belongs to the user's program.
void log_to_stderr() {
  auto logger = std::make_shared<spdlog::logger>("millrace",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::warn);
  logger->set_formatter(log_formatter("millrace: %l: %P"));
  spdlog::set_default_logger(std::move(logger));
}

std::string lines_of(const std::vector<OptionHelp>& options) {
  std::string text;
  for (const auto& option : options) text += "  " + option.text() + "\n";
  return text;
}

template <class R>
std::string components_of(const R& registry) {
  std::string text;
  for (const auto& [name, entry] : registry.entries())
    text +=
        fmt::format("\n{} {}: {}\n{}", registry.kind(), name, entry.doc, lines_of(entry.help()));
  return text;
}

std::string describe() {
  return "options of [data]\n" + lines_of(help_of<DataOptions>()) +
         components_of(detection_stages()) + components_of(detection_sources());
}

void make_sample(const nb::handle folder, std::int64_t train, std::int64_t val,
                 std::int64_t seed) try {
  const auto path = path_of(folder, "make_sample(folder)");
  Config table(Config::Table{}, {"make_sample"});
  for (const auto& [name, value] : {std::pair{"train", train}, {"val", val}, {"seed", seed}})
    table.set(name, {value, {fmt::format("make_sample({}=...)", name)}});
  const auto options = read_options<coco::SampleOptions>(table);
  without_gil([&] { coco::make_sample(path, options); });
} catch (...) {
  raise_in_python();
}

}  // namespace
}  // namespace millrace::python

NB_MODULE(_flow, module) {
  using namespace millrace::python;
  module.doc() = "Data flows for detection in C++.";
  log_to_stderr();
  millrace::prepare_opencv();
  add_data_error(module);
  add_batch(module);
  add_sample(module);
  add_stream(module);
  add_flow(module);
  add_served(module);
  add_server(module);
  module.def("make_sample", &make_sample, nb::arg("folder"), nb::arg("train"), nb::arg("val"),
             nb::arg("seed"));
  module.def("describe", &describe);
  module.def("pool_bytes", [] { return millrace::batch_memory().bytes(); });
}
