#include "millrace/dataflow/serving/facts.h"

#include <fmt/format.h>

#include <vector>

#include "millrace/base/digest.h"
#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/sources/detection_source.h"

namespace millrace::serving {
namespace {

std::uint64_t digest_of(const Source<Sample>& source) {
  std::uint64_t sum = digest(source.size(), 0);
  sum = digest(source.repeats(), sum);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const auto sample = source[i];
    sum = digest(sample.image_id, sum);
    sum = digest(sample.width, digest(sample.height, sum));
    sum = digest(sample.objects, digest(sample.encoded.digest, sum));
  }
  return sum;
}

std::string samples_text(const Source<Sample>& source) {
  return fmt::format("{} with digest {}", source.size(), hex(digest_of(source)));
}

/// Returns the options that affect `what`.
Facts option_facts(DataOptions options, Affects what) {
  Facts facts;
  const auto all = described(options);
  for (const auto& entry : all.entries())
    if (includes(entry.affected, what))
      facts["data." + entry.name] = value_text(Options::value(entry));
  return facts;
}

}  // namespace

Facts batch_facts(const DataOptions& options, std::span<const Config> stages,
                  const TrainData& train) {
  auto facts = option_facts(options, Affects::batches);
  facts["classes"] = joined(train.classes);
  std::vector<std::string> tables;
  for (const auto& stage : stages) tables.push_back(value_text(stage));
  facts["data.stages"] = joined(tables);
  if (train.source) facts["samples"] = samples_text(*train.source);
  return facts;
}

Facts eval_facts(const DataOptions& options, const DataSplit& split) {
  auto facts = option_facts(options, Affects::evaluation);
  facts["classes"] = joined(split.classes);
  facts["samples"] = samples_text(DetectionSource(split, /*filter_empty=*/false));
  return facts;
}

std::string difference(const Facts& consumer, const Facts& server) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : consumer) {
    const auto found = server.find(name);
    if (found == server.end())
      lines.push_back(
          fmt::format("{} is {} for the training and unknown to the server", name, value));
    else if (found->second != value)
      lines.push_back(fmt::format("{} is {} for the training and {} for the server", name,
                                  value.empty() ? "empty" : value,
                                  found->second.empty() ? "empty" : found->second));
  }
  return joined(lines);
}

}  // namespace millrace::serving
