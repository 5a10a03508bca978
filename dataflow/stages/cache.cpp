// The stage "cache": the stages before it run once per sample.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/options.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/store/sample_cache.h"

namespace millrace {
namespace {

/// Must be increased whenever a stage yields other bytes for the same options.
constexpr std::uint64_t kEdition = 2;

enum class Where { memory, disk };
std::vector<std::string> value_names(Where) { return {"memory", "disk"}; }

struct CacheOptions {
  Where where = Where::memory;
  std::int64_t max_mb = 4096;
  std::string folder;

  void describe(Options& o) {
    o.add("where", where, "memory = for this run; disk = for later runs and other processes too");
    o.add("max_mb", max_mb, "maximum size; a full cache keeps its contents and takes no more",
          {.min = 1, .max = 1 << 30, .unit = "MiB"});
    o.add("folder", folder, "folder of a cache on disk; created if missing");
  }

  void check(const Config& table) const {
    if (where == Where::disk)
      require(table, "folder", !folder.empty(), "is required for a cache on disk");
    else
      refuse_unused<CacheOptions>(table, {"folder"}, "with where = \"memory\"");
  }
};

/// Returns a digest of all options of the stages before the cache, in whatever order the tables
/// list them.
std::uint64_t pipeline_digest(std::span<const Config> in_front) {
  std::string text;
  for (const auto& table : in_front) {
    auto members = table.table();
    std::ranges::sort(members, {}, &Config::Table::value_type::first);
    for (const auto& [option, value] : members)
      text += fmt::format("{} = {}\n", option, value_text(value));
  }
  return digest(text.data(), text.size(), kEdition);
}

/// Replaces a cache that cannot be opened.
struct NoCache final : SampleCache {
  std::optional<Sample> find(std::int64_t) override { return std::nullopt; }
  void keep(std::int64_t, const Sample&) override {}
};

std::shared_ptr<SampleCache> open(const CacheOptions& options, const Config& table,
                                  const DetectionContext& context) {
  const auto max_bytes = static_cast<std::size_t>(options.max_mb) << 20;
  if (options.where == Where::memory || context.only_checked) return memory_cache(max_bytes);
  try {
    return disk_cache(options.folder, pipeline_digest(context.in_front), context.source, max_bytes);
  } catch (const Error& problem) {
    log_warning("{}: cache: {}; continuing without a cache", table.origin.text(), problem.what());
    return std::make_shared<NoCache>();
  }
}

MILLRACE_REGISTER(detection_stages().add<CacheOptions>(
    "cache", "caches the output of the stages before it, none of which may draw at random",
    {[](const Config& table, const DetectionContext& context) {
      const auto options = read_options<CacheOptions>(table, {"type"});
      return cache_stage<Sample>("cache", open(options, table, context));
    }}));

}  // namespace
}  // namespace millrace
