// use = "cache": the stages in front run once for each sample.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/require.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/store/sample_cache.h"

namespace millrace {
namespace {

constexpr std::uint64_t kEdition =
    1;  // raised whenever a stage makes something else of the same options

struct CacheOptions {
  std::string where = "memory";
  std::int64_t max_mb = 4096;
  std::string folder;

  void describe(Options& o) {
    o.add("where", where, "memory: for this run; disk: for later runs and other processes, too",
          {"memory", "disk"});
    o.add("max_mb", max_mb, "kept at most; once that is reached, the cache stays as it is",
          {.min = 1, .max = 1 << 30, .unit = "MiB"});
    o.add("folder", folder, "of a cache on disk; made where it is missing");
  }

  void check(const Config& table) const {
    if (where == "disk") require(table, "folder", !folder.empty(), "is wanted by a cache on disk");
    if (where == "memory")
      refuse_unused<CacheOptions>(table, {"folder"}, "with where = \"memory\"");
  }
};

/// Whether what becomes of one image may depend on a key of `[data]`. Those named here say which images there are,
/// which a cache tells by the images, or how the flow runs.
bool shapes_images(std::string_view key) {
  constexpr std::string_view kOthers[] = {"root",           "train",           "val",
                                          "classes",        "filter_empty",    "batch_size",
                                          "threads",        "in_flight",       "memory",
                                          "shuffle_window", "on_error",        "max_skipped",
                                          "source",         "source_key",      "source_server_key",
                                          "source_timeout", "test_batch_size", "test_short_side",
                                          "test_max_side",  "aspect_grouping", "shape_buckets"};
  return std::ranges::count(kOthers, key) == 0;
}

/// A digest of what the stages in front are made from: their tables and the `[data]` that gives their defaults.
std::uint64_t pipeline_digest(const DetectionContext& context) {
  auto data = context.data;
  Options options;
  data.describe(options);
  Config made_from;
  for (const auto& entry : options.entries())
    if (shapes_images(entry.name)) made_from.set(entry.name, Options::value(entry));
  Config::Array stages(context.in_front.begin(), context.in_front.end());
  for (auto& table : stages)  // written out or left to the default, an option is the same
    detection_stages().at(used_name(table, "stage"), table.origin).complete(table);
  made_from.set("stages", {std::move(stages), {}});
  const auto text = to_toml(made_from);
  return digest(text.data(), text.size(), kEdition);
}

std::shared_ptr<SampleCache> open(const CacheOptions& options, const Config& table,
                                  const DetectionContext& context) {
  const auto max_bytes = static_cast<std::size_t>(options.max_mb) << 20;
  if (options.where == "memory" || context.only_checked) return memory_cache(max_bytes);
  try {
    return disk_cache(options.folder, pipeline_digest(context), context.source, max_bytes);
  } catch (const Error& problem) {
    throw ConfigError(fmt::format("{}: cache: {}", table.origin.text(), problem.what()));
  }
}

MILLRACE_REGISTER(detection_stages().add<CacheOptions>(
    "cache", "keeps what the stages in front made of each image; none of them may draw at random",
    [](const Config& table, const DetectionContext& context) {
      const auto options = configured<CacheOptions>(table, context.data);
      return cache_stage<Sample>("cache", open(options, table, context));
    }));

}  // namespace
}  // namespace millrace
