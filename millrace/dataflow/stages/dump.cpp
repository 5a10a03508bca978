// type = "dump": batches as pictures, to look at.
#include <fmt/format.h>

#include <atomic>
#include <memory>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/options.h"
#include "millrace/dataflow/detection/batch_pictures.h"
#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

struct DumpOptions {
  std::string folder;
  std::int64_t count = 10;
  std::int64_t every = 1;

  void describe(Options& o) {
    o.add("folder", folder, "where the pictures go; made where it is missing");
    o.add("count", count, "how many batches, at most", {.min = 1});
    o.add("every", every, "one batch of so many", {.min = 1});
  }

  void check(const Config& table) const {
    require(table, "folder", !folder.empty(), "is wanted: say where the pictures go");
  }
};

/// Batches are numbered as they come by, which with several threads is not quite their order.
Stage dumping(const Config& table, const DetectionContext& context) {
  const auto options = read_options<DumpOptions>(table, {"type"});
  try {
    if (!context.only_checked) make_writable_folder(options.folder);
  } catch (const Error& problem) {
    throw ConfigError(fmt::format("{}: dump: {}", table.origin.text(), problem.what()));
  }
  const auto passed = std::make_shared<std::atomic<std::int64_t>>(0);
  return watch_stage<Batch>("dump", [=, classes = context.classes](const Batch& batch) {
    const auto number = (*passed)++;
    if (number % options.every == 0 && number / options.every < options.count)
      write_batch(options.folder, fmt::format("batch{:06}", number), batch, classes);
  });
}

MILLRACE_REGISTER(detection_stages().add<DumpOptions>(
    "dump", "writes batches as pictures with boxes and masks, and the rest as JSON", dumping));

}  // namespace
}  // namespace millrace
