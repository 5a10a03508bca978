#include "millrace/cli/inspect/inspection.h"

#include <utility>

namespace millrace::cli {
namespace {

/// Returns the metrics of a split.
Json split_json(const SplitView& split, const std::vector<Distribution>& all) {
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
                                  {"most", one.max}};
  if (split.coverage.empty()) return json;
  const auto sums = summary(data, split.coverage);
  const auto of_kind = [](const std::string& name, const CoverageCounts& counted) -> Json {
    return {{"size", name},
            {"objects", counted.objects},
            {"foreground", counted.matched[0]},
            {"low_quality", counted.matched[1]},
            {"none", counted.matched[2]},
            {"recall50", counted.recall(0)},
            {"recall70", counted.recall(1)}};
  };
  json["anchors"].push_back(of_kind("all", sums.all));
  const auto names = size_names();
  for (std::size_t k = 0; k < names.size(); ++k)
    json["anchors"].push_back(of_kind(names[k], sums.by_size[k]));
  return json;
}

/// Adds the data of charts to the histograms.
void add_charts(Json& histograms, const std::vector<Distribution>& all) {
  for (const auto& one : all) {
    auto bins = bounded_bins(one);
    histograms[one.id].update(
        {{"title", one.title},
         {"unit", one.unit},
         {"meaning", one.meaning},
         {"bins", {{"edges", std::move(bins.edges)}, {"counts", std::move(bins.counts)}}}});
  }
}

Json split_view(const char* id, const SplitChapter& split) {
  return {{"id", id},
          {"name", split.view.name},
          {"images", split.view.data.images.size()},
          {"seen", split.view.seen},
          {"pictures", report::to_json(split.gallery)}};
}

}  // namespace

Json to_json(const Inspection& found) {
  Json json;
  json["batches"] = {{"count", found.batches.batches},
                     {"images", found.batches.seen.images.size()},
                     {"padding_share", found.batches.padding_share()},
                     {"skipped", found.batches.skipped}};
  json["learned"] = split_json(found.learned(), found.distributions);
  if (found.sampled && found.train) json["train"] = split_json(found.train->view, {});
  if (found.val) json["val"] = split_json(found.val->view, distributions(found.val->view));
  json["remarks"] = Json::array();
  for (const auto& one : found.remarks)
    json["remarks"].push_back({{"name", one.name},
                               {"warning", one.severity == coco::Severity::warning},
                               {"text", one.text}});
  json["notes"] = found.notes;
  return json;
}

Json inspection_view(const Inspection& found) {
  Json json = {{"config", found.config}};
  json.update(to_json(found));
  if (!found.distributions.empty()) add_charts(json["learned"]["histograms"], found.distributions);
  auto& batches = json["batches"];
  batches["skipped_reasons"] = found.batches.skipped_reasons;
  batches["files"] = Json::array();
  for (const auto& file : found.batches.files) batches["files"].push_back(file.filename().string());
  batches["pictures"] = report::to_json(report::Gallery{.categories = found.batches.seen.classes,
                                                        .pictures = found.batches.pictures});
  json["splits"] = Json::array();
  if (found.train) json["splits"].push_back(split_view("photos", *found.train));
  if (found.val) json["splits"].push_back(split_view("validation", *found.val));
  return json;
}

}  // namespace millrace::cli
