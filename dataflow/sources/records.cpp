// The source "records": a store made by `trainer pack`.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/sources/detection_sources.h"
#include "millrace/dataflow/store/record_store.h"

namespace millrace {
namespace {

struct RecordOptions {
  std::string folder;
  std::vector<std::string> shards;
  bool filter_empty = true;
  std::string cache;
  std::int64_t cache_mb = 10000;
  Duration timeout = {120};

  void describe(Options& o) {
    o.add("folder", folder,
          "store made by `trainer pack` or `trainer index`, or its URL: http://, https:// or "
          "s3://BUCKET/FOLDER");
    o.add("shards", shards,
          "folders and URLs of shards outside `folder`, as `trainer index` prints them; empty = "
          "all shards in `folder`");
    o.add("filter_empty", filter_empty, "leave out images without a usable object")
        .follows("data.filter_empty");
    o.add("cache", cache, "folder that caches what is read from a URL; empty = no cache");
    o.add("cache_mb", cache_mb, "maximum size of the cache folder",
          {.min = 1, .max = 1 << 30, .unit = "MiB"});
    o.add("timeout", timeout, "total time to retry a failed read from a URL",
          {.min = 1, .max = 1e6});
  }

  void check(const Config& table) const {
    require(table, "folder", !folder.empty(), "is required: the output folder of `trainer pack`");
    for (const auto& place : shards)
      require(table, "shards", !has_credentials(place), kNoCredentials);
    require(table, "folder", !has_credentials(folder), kNoCredentials);
  }
};

/// Renumbers the records' objects by the names of the classes; objects of other classes are left
/// out.
class Renumbered final : public Source<Sample> {
 public:
  Renumbered(std::shared_ptr<const RecordStore> store, const std::vector<std::string>& classes)
      : store_(std::move(store)) {
    std::unordered_map<std::string_view, std::int32_t> numbers;
    for (std::int32_t k = 0; const auto& name : classes) numbers.try_emplace(name, k++);
    for (const auto& name : store_->classes()) {
      const auto found = numbers.find(name);
      number_.push_back(found == numbers.end() ? -1 : found->second);
    }
    if (std::ranges::count(number_, -1) == std::ssize(number_))
      throw std::invalid_argument("the store has none of the classes " + joined(classes) +
                                  "; it has " + joined(store_->classes()));
  }

  std::int64_t size() const override { return store_->size(); }

  Sample operator[](std::int64_t index) const override { return renumbered((*store_)[index]); }
  Sample about(std::int64_t index) const override { return renumbered(store_->about(index)); }
  void expect(std::int64_t index) const override { store_->expect(index); }

 private:
  Sample renumbered(Sample sample) const {
    auto& classes = sample.objects.classes;
    std::vector<bool> counts;
    for (auto& label : classes) {
      label = number_.at(static_cast<std::size_t>(label));
      counts.push_back(label >= 0);
    }
    filter_objects(sample.objects, counts);
    return sample;
  }

  std::shared_ptr<const RecordStore> store_;
  std::vector<std::int32_t> number_;  // of the store's class k; -1 = left out
};

SourcePtr<Sample> open_records(const RecordOptions& options, const SourceContext& context) {
  const SourcePtr<Sample> all = std::make_shared<const Renumbered>(
      std::make_shared<const RecordStore>(
          options.folder,
          RemoteReading{.timeout = options.timeout.seconds,
                        .cache = options.cache,
                        .cache_bytes = static_cast<std::uint64_t>(options.cache_mb) << 20},
          options.shards),
      context.classes);
  if (!options.filter_empty) return all;
  return select(all, [&](std::int64_t index) {
    const auto crowd = all->about(index).objects.crowd;
    return std::ranges::count(crowd, 0) > 0;
  });
}

MILLRACE_REGISTER(register_source<RecordOptions>(
    "records", "a store made by `trainer pack` or `trainer index`, local or behind a URL",
    open_records));

}  // namespace
}  // namespace millrace
