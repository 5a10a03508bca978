// Stages that show what comes by: "print" in the log, "dump" as pictures.
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <memory>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/batch_pictures.h"
#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

struct PrintOptions {
  std::int64_t count = 10;
  void describe(Options& o) {
    o.add("count", count, "how many, at most", {.min = 1, .unit = "images"});
  }
};

/// "image 42 (photos/a.jpg), 640 x 480, now 320 x 240: 2 cat, 1 dog"
std::string line(const Sample& sample, const std::vector<std::string>& classes) {
  auto text = fmt::format("image {} ({}), {} x {}", sample.image_id, sample.path, sample.width,
                          sample.height);
  if (!sample.image.empty())
    text += fmt::format(", now {} x {}", sample.image.size().width, sample.image.size().height);
  std::map<std::int32_t, int> counts;
  for (const auto label : sample.objects.classes) ++counts[label];
  std::vector<std::string> parts;
  for (const auto& [label, count] : counts)
    parts.push_back(fmt::format("{} {}", count, class_name(classes, label)));
  return text + ": " + (parts.empty() ? "no object" : joined(parts));
}

MILLRACE_REGISTER(detection_stages().add<PrintOptions>(
    "print", "tells of the first images that come by, in the log",
    [](const Config& table, const DetectionContext& context) {
      const auto left = std::make_shared<std::atomic<std::int64_t>>(
          read_options<PrintOptions>(table, {"type"}).count);
      return watch_stage<Sample>("print", [left, classes = context.classes](const Sample& sample) {
        if (left->fetch_sub(1, std::memory_order_relaxed) > 0)
          spdlog::info("{}", line(sample, classes));
      });
    }));

struct DumpOptions {
  std::string folder;
  std::int64_t count = 10;
  std::int64_t every = 1;

  void describe(Options& o) {
    o.add("folder", folder, "where the pictures go; made where it is missing");
    o.add("count", count, "how many batches, at most", {.min = 1});
    o.add("every", every, "one batch in so many", {.min = 1});
  }

  void check(const Config& table) const {
    require(table, "folder", !folder.empty(), "is needed: say where the pictures go");
  }
};

/// Batches are numbered as they come by: with several threads, not quite in their order.
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
