#include "millrace/cli/inspect/split_json.h"

#include "millrace/cli/inspect/figure_text.h"

namespace millrace::cli {

Json to_json(const SplitView& split, const std::vector<Distribution>& all) {
  const auto& data = split.data;
  const auto crowds = crowd_count(data);
  Json json = {{"name", split.name},
               {"seen", split.seen},
               {"from_batches", split.is_sampled},
               {"images", data.images.size()},
               {"objects", data.objects.size() - crowds},
               {"crowds", crowds}};
  const auto counts = class_counts(data);
  for (std::size_t k = 0; k < counts.size(); ++k)
    json["classes"].push_back(
        {{"name", data.classes[k]}, {"objects", counts[k].objects}, {"images", counts[k].images}});
  for (const auto& one : all)
    json["histograms"][one.id] = {{"edges", one.histogram.edges},
                                  {"counts", one.histogram.counts},
                                  {"median", one.median},
                                  {"most", one.most}};
  if (split.coverage.empty()) return json;
  const auto sums = summary(data, split.coverage);
  const auto of_kind = [](const std::string& name, const CoverageCounts& counted) -> Json {
    return {{"size", name},
            {"objects", counted.objects},
            {"foreground", counted.reached[0]},
            {"low_quality", counted.reached[1]},
            {"none", counted.reached[2]},
            {"recall50", counted.recall(0)},
            {"recall70", counted.recall(1)}};
  };
  json["anchors"].push_back(of_kind("all", sums.all));
  const auto names = size_names();
  for (std::size_t k = 0; k < names.size(); ++k)
    json["anchors"].push_back(of_kind(names[k], sums.by_size[k]));
  return json;
}

}  // namespace millrace::cli
