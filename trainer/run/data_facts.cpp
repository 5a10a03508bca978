#include "millrace/trainer/run/data_facts.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/coco/data/annotation_cache.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/models/weights/formats.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

/// Returns a file's name and size, and a digest of its bytes unless it has `most` bytes or more.
ordered_json file_facts(const std::string& file, std::uint64_t most = UINT64_MAX) {
  if (file.empty() || !std::filesystem::is_regular_file(file)) return nullptr;
  const auto bytes = map_file(file);
  ordered_json facts = {{"file", file}, {"bytes", bytes.size}, {"digest", nullptr}};
  if (bytes.size >= most) return facts;
  const auto all = wide_digest(bytes.data.get(), bytes.size);
  facts["digest"] = hex(all.high) + hex(all.low);
  return facts;
}

/// Returns a digest of what is known about a sample before its image is read.
std::uint64_t digest_about(const Source<Sample>& source, std::int64_t index) try {
  const auto sample = source.about(index);
  const auto sum = digest(sample.width, digest(sample.height, digest(sample.image_id, 0)));
  return digest(sample.objects, sum);
} catch (const DataError&) {  // reported by the flow, according to data.on_error
  return 0;
}

ordered_json facts_of(const Source<Sample>& source, const std::vector<std::string>& classes,
                      const std::string& annotations) {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(source.size()));
  tbb::parallel_for(std::int64_t{0}, source.size(), [&](std::int64_t i) {
    sums[static_cast<std::size_t>(i)] = digest_about(source, i);
  });
  const auto all = digest(sums, digest(source.repeats(), digest(joined(classes, "\n"))));
  return {{"annotations", file_facts(annotations, coco::kLeastTrusted)},
          {"samples", source.size()},
          {"classes", classes.size()},
          {"digest", hex(all)}};
}

/// Returns a value of a split's facts; null if it is missing.
ordered_json value_of(const ordered_json& facts, const char* split, const char* pointer) {
  const auto found = facts.find(split);
  return found == facts.end() || !found->is_object()
             ? nullptr
             : found->value(ordered_json::json_pointer(pointer), ordered_json());
}

}  // namespace

ordered_json data_facts(const Recipe& recipe, const TrainData& train, const EvalData* validation) {
  ordered_json facts = {{"train", nullptr}, {"val", nullptr}};
  if (train.source) {
    const auto file = recipe.sources.empty()
                          ? find_split(recipe.data, recipe.data.train).annotations.string()
                          : "";
    facts["train"] = facts_of(*train.source, train.classes, file);
  }
  if (validation) {
    const auto& split = validation->split;
    facts["val"] = facts_of(DetectionSource(split, /*filter_empty=*/false), split.classes,
                            split.annotations->source);
  }
  return facts;
}

void check_same_data(const ordered_json& last_start, const ordered_json& now) {
  const auto recorded = last_start.find("data");
  if (recorded == last_start.end()) return;  // record of an older version
  const auto& before = *recorded;
  const auto changed = [&](const char* split, const char* pointer) {
    const auto was = value_of(before, split, pointer), is = value_of(now, split, pointer);
    return !was.is_null() && !is.is_null() && was != is;
  };
  const auto file = [&](const char* split) {
    const auto name = value_of(now, split, "/annotations/file");
    return name.is_string() ? name.get<std::string>() : "data.sources";
  };
  if (changed("train", "/digest"))
    throw ConfigError(
        fmt::format("{}: the samples, sizes, boxes or classes have changed since the last start of "
                    "the run (digest {} in record.json, now {}), so its checkpoint cannot continue "
                    "them; restore them, or start a new run without --resume; model.weights can be "
                    "this checkpoint's model.safetensors",
                    file("train"), value_of(before, "train", "/digest").get<std::string>(),
                    value_of(now, "train", "/digest").get<std::string>()));
  if (changed("train", "/annotations/digest"))
    log_warning(
        "{} has changed since the last start of the run; samples, boxes and classes are the same, "
        "but masks or keypoints may differ",
        file("train"));
  if (changed("val", "/digest"))
    log_warning(
        "{} has changed since the last start of the run; scores before and after cannot be "
        "compared",
        file("val"));
}

ordered_json weights_facts(const std::string& weights) {
  try {
    return weights.empty() ? nullptr : file_facts(weight_file(weights).string());
  } catch (const Error&) {  // a resumed run does not need them
    return nullptr;
  }
}

}  // namespace millrace
