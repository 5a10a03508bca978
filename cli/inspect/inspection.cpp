#include "millrace/cli/inspect/inspection.h"

#include <utility>

#include "millrace/cli/inspect/histogram_pictures.h"
#include "millrace/cli/inspect/split_json.h"

namespace millrace::cli {
namespace {

/// Adds what a chart needs of its distribution.
void add_charts(Json& histograms, const std::vector<Distribution>& all) {
  for (const auto& one : all) {
    auto bins = closed_bins(one);
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
  json["learned"] = to_json(found.learned(), found.distributions);
  if (found.sampled && found.train) json["train"] = to_json(found.train->view, {});
  if (found.val) json["val"] = to_json(found.val->view, distributions(found.val->view, {}));
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
