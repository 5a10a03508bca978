// type = "print": what comes by, in the log.
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <memory>

#include "millrace/base/log.h"
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

}  // namespace
}  // namespace millrace
