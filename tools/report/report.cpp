#include "millrace/tools/report/report.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/evaluation/matching.h"
#include "millrace/tools/report/analysis_view.h"
#include "millrace/tools/report/run_view.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 1000, kLeastPoints = 200;  // limits of the points per curve
constexpr std::size_t kMostBytes = 4'850'000;                  // maximum of the whole JSON

/// The scores of a run, or the reason why they are missing.
struct Scored {
  std::optional<RunScores> scores;
  std::string why_not;  // a sentence without its full stop
};

Scored scored(const RunFiles& run, const ReportOptions& options, const Scored* reference) {
  Scored result;
  if (!run.newest_results()) {
    result.why_not =
        "no detections yet; [callbacks.evaluate] writes them to detections/ at each evaluation";
    return result;
  }
  const RunScores* with = reference && reference->scores ? &*reference->scores : nullptr;
  try {
    Truth truth = options.truth(run);
    if (with && same_truth(*truth.annotations, *with->truth.annotations))
      truth.annotations = with->truth.annotations;
    else
      with = nullptr;
    result.scores = score(run, std::move(truth), options.draws, options.threads, with);
  } catch (const std::exception& problem) {
    result.why_not = fmt::format("cannot score the detections: {}", problem.what());
  }
  return result;
}

/// Returns the AP that the run logged and the AP now, if they differ; otherwise null.
ordered_json contradiction(const RunFiles& run, const RunScores& scores) {
  const std::string prefix = scores.results.weights.empty() ? "" : scores.results.weights + "/";
  for (const MetricValue& one : run.metrics.of(prefix + "bbox/AP")) {
    const double ap = scores.boxes.evaluation.stats[0];
    if (one.step == scores.results.step && std::abs(one.value - ap) >= 1e-9)
      return {{"logged", one.value}, {"now", ap}};
  }
  return nullptr;
}

/// Returns the scores without pictures.
ordered_json scores_json(const RunFiles& run, const RunScores& scores) {
  return {{"step", scores.results.step},
          {"weights", scores.results.weights},
          {"detections", scores.found.size()},
          {"contradiction", contradiction(run, scores)},
          {"boxes", analysis_view(scores.boxes, coco::IouType::box)},
          {"masks", scores.masks ? analysis_view(*scores.masks, coco::IouType::mask) : nullptr}};
}

ordered_json class_names(const RunScores& scores) {
  auto names = ordered_json::object();
  for (const auto& category : scores.truth.annotations->categories)
    names[std::to_string(category.id)] = scores.truth.annotations->text(category.name);
  return names;
}

/// Returns the verdicts on the difference of a run's boxes and masks from the first run's.
ordered_json verdicts(const RunScores& scores, const std::string& run,
                      const std::string& reference) {
  auto all = ordered_json::array();
  const auto add = [&](const coco::Analysis& analysis, const char* of) {
    if (!analysis.versus) return;
    const auto& versus = *analysis.versus;
    all.push_back({{"of", of},
                   {"text", verdict(versus, run, reference)},
                   {"leaning", !versus.significant()            ? ""
                               : versus.difference.ap.value > 0 ? "better"
                                                                : "worse"}});
  };
  add(scores.boxes, "boxes");
  if (scores.masks) add(*scores.masks, "masks");
  return all;
}

ordered_json pictures_json(const RunScores& scores, const PictureLimits& limits) {
  const auto [gallery, problem] = run_pictures(scores, limits);
  auto pictures = to_json(gallery);
  pictures["problem"] = problem;
  return pictures;
}

ordered_json view_of(std::span<const RunFiles> runs, const ReportOptions& options) {
  std::vector<Scored> all;
  for (const RunFiles& run : runs)
    all.push_back(scored(run, options, all.empty() ? nullptr : &all.front()));
  auto views = ordered_json::array();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    auto& view =
        views.emplace_back(run_view(runs[r], std::max(kMostPoints / runs.size(), kLeastPoints)));
    const auto& scores = all[r].scores;
    view["no_scores"] = all[r].why_not;
    view["scores"] = scores ? scores_json(runs[r], *scores) : nullptr;
    view["class_names"] = scores ? class_names(*scores) : ordered_json::object();
    view["verdicts"] =
        scores ? verdicts(*scores, runs[r].name, runs[0].name) : ordered_json::array();
  }
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  const std::size_t used = views.dump(-1, ' ', false, kReplace).size();
  PictureLimits limits = options.pictures;
  limits.bytes = std::min(limits.bytes, kMostBytes - std::min(used, kMostBytes)) / runs.size();
  limits.images = std::max<std::size_t>(1, limits.images / runs.size());
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (all[r].scores) views[r]["scores"]["pictures"] = pictures_json(*all[r].scores, limits);
  return {{"runs", std::move(views)}};
}

constexpr auto kStudyFile = "study.json";

/// Returns the name "VARIANT-seed-1/NAME-1" of a run folder, relative to the study's folder.
std::string name_in_study(const fs::path& run) {
  return (run.parent_path().filename() / run.filename()).string();
}

}  // namespace

std::string verdict(const coco::Comparison& comparison, const std::string& run,
                    const std::string& reference) {
  if (comparison.a.ap < 0) return "Nothing to compare: there are no annotated objects.";
  const auto& ap = comparison.difference.ap;
  const std::string figures =
      fmt::format("{:+.2f} AP ({:.2f} versus {:.2f}), 95 % interval {:+.2f} to {:+.2f}, p = {:.3f}",
                  100 * ap.value, 100 * comparison.a.ap, 100 * comparison.b.ap, 100 * ap.low,
                  100 * ap.high, comparison.p);
  if (ap.low == 0 && ap.high == 0)
    return fmt::format("{}: no difference in any sample of the images.", figures);
  if (!comparison.significant())
    return fmt::format(
        "{}: within noise. Other images of the same kind could show the opposite; do not conclude "
        "that either run is better.",
        figures);
  return fmt::format("{}: {} is {} than {} by more than the choice of images explains.", figures,
                     run, ap.value > 0 ? "better" : "worse", reference);
}

ordered_json runs_view(std::span<const RunFiles> runs, const ReportOptions& options) {
  // Reading files uses the same threads.
  return coco::in_arena(options.threads, [&] { return view_of(runs, options); });
}

bool is_study(const fs::path& folder) { return fs::exists(folder / kStudyFile); }

ordered_json study_view(const fs::path& folder) {
  const auto file = folder / kStudyFile;
  try {
    const auto study = ordered_json::parse(read_file(file));
    if (!study.contains("result"))
      throw Error(fmt::format(
          "{}: no result yet; `trainer study` writes it after all runs have ended", file.string()));
    ordered_json result = study.at("result");
    for (auto& variant : result.at("variants"))
      for (auto& run : variant.at("folders")) run = name_in_study(run.get<std::string>());
    return {{"study", std::move(result)}};
  } catch (const nlohmann::json::exception& problem) {
    throw Error(fmt::format("{}: not a study: {}", file.string(), problem.what()));
  }
}

}  // namespace millrace::report
