#include "millrace/study/study_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <ranges>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/coco/analysis/analysis.h"
#include "millrace/coco/evaluation/summary.h"
#include "millrace/report/run_scores.h"
#include "millrace/study/seed_bootstrap.h"

namespace millrace::study {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDraws = 1000;  // as many as `coco-eval --versus` takes
constexpr coco::IouType kTypes[] = {coco::IouType::box, coco::IouType::mask};

std::string prefix(coco::IouType iou) { return iou == coco::IouType::box ? "bbox/" : "segm/"; }

/// A run that is done, evaluated.
struct Measured {
  std::int64_t seed = 0;
  fs::path detections;
  std::map<coco::IouType, std::vector<double>> stats;  // without masks if detections have none
  std::map<coco::IouType, ApDraws> ap;
};

struct MeasuredVariant {
  std::vector<Measured> seeds;  // ascending
  std::shared_ptr<const coco::Dataset> truth;
};

/// Whether a run's detections have masks; if there are none, whether masks were scored.
bool has_masks(const coco::Detections& found, const report::RunFiles& run) {
  if (found.empty())
    return std::ranges::any_of(
        run.metrics.by_name, [](const auto& metric) { return metric.first.ends_with("segm/AP"); });
  const auto positions = std::views::iota(std::size_t{0}, found.size());
  return std::ranges::all_of(
      positions, [&](std::size_t i) { return found[i].mask != coco::Detections::kNoMask; });
}

Measured measured(const report::RunFiles& run, const fs::path& detections,
                  const coco::Dataset& truth) {
  Measured result;
  result.detections = detections;
  const auto found = coco::read_detections(detections, &truth);
  for (const auto iou : kTypes) {
    if (iou == coco::IouType::mask && !has_masks(found, run)) continue;
    const coco::Plan plan(truth, {.iou = iou});
    const auto matches = coco::match(plan, found, {});
    const coco::Matches* alone[] = {&matches};
    result.stats[iou] = coco::accumulate(plan, matches).stats;
    result.ap[iou] =
        ap_draws(coco::resample(coco::WeightedAp(plan, alone), truth.images.size(), kDraws));
  }
  return result;
}

/// The runs of a variant that are done, evaluated and described in `result`.
MeasuredVariant measure(const fs::path& folder, const Study& study, std::size_t variant,
                        StudyResult& result) {
  MeasuredVariant all;
  VariantResult& described = result.variants[variant];
  std::vector<const StudyRun*> runs;
  for (const auto& run : study.runs)
    if (run.variant == variant && run.state == RunState::done) runs.push_back(&run);
  std::ranges::sort(runs, {}, &StudyRun::seed);
  for (const auto* run : runs) try {
      const auto own = own_folder(folder, study, *run);
      const auto files = report::read_run_files(own);
      const auto newest = files.newest_results();
      if (!newest) {
        result.remarks.push_back(fmt::format(
            "{} has no detections: [callbacks.evaluate] with results = true writes them, of the "
            "split data.val",
            study.title(*run)));
        continue;
      }
      if (!all.truth) all.truth = report::find_truth(files).annotations;
      all.seeds.push_back(measured(files, newest->file, *all.truth));
      all.seeds.back().seed = run->seed;
      described.seeds.push_back(run->seed);
      described.folders.push_back(own);
      described.seconds.push_back(report::trained_seconds(files, files.metrics.last_time));
    } catch (const Error& problem) {
      result.remarks.push_back(
          fmt::format("{} cannot be measured: {}", study.title(*run), problem.what()));
    }
  return all;
}

/// Those that all seeds have.
std::vector<Figure> figures_of(const std::vector<Measured>& seeds) {
  std::vector<Figure> all;
  for (const auto iou : kTypes)
    for (std::size_t i = 0; i < coco::kStatNames.size(); ++i) {
      Figure figure;
      figure.name = prefix(iou) + coco::kStatNames[i];
      for (const auto& one : seeds)
        if (const auto at = one.stats.find(iou); at != one.stats.end() && at->second[i] >= 0)
          figure.values.push_back(at->second[i]);
      if (figure.values.size() != seeds.size() || seeds.empty()) continue;
      figure.moments = moments(figure.values);
      const double half = seeds.size() < 2
                              ? std::numeric_limits<double>::quiet_NaN()
                              : half_width({figure.moments.deviation, 0}, seeds.size());
      figure.low = std::max(figure.moments.mean - half, 0.);
      figure.high = std::min(figure.moments.mean + half, 1.);
      all.push_back(std::move(figure));
    }
  return all;
}

/// p of two runs, as `coco-eval --versus` has it.
double permutation_p(const coco::Dataset& truth, coco::IouType iou, const fs::path& a,
                     const fs::path& b) {
  const auto found = coco::read_detections(a, &truth), others = coco::read_detections(b, &truth);
  return coco::analyze(truth, found, {.iou = iou}, kDraws, &others).versus->p;
}

/// A variant against the first one: boxes and, where both have them, masks.
void compare(std::size_t variant, const MeasuredVariant& one, const MeasuredVariant& first,
             StudyResult& result) {
  if (one.seeds.empty() || first.seeds.empty()) return;
  if (!report::same_truth(*one.truth, *first.truth)) {
    result.remarks.push_back(
        fmt::format("{} cannot be compared with {}: they were evaluated on other images or classes",
                    result.variants[variant].name, result.variants[0].name));
    return;
  }
  for (const auto iou : kTypes) {
    std::vector<ApDraws> left, right;
    std::vector<std::int64_t> seeds;
    const Measured *last = nullptr, *last_of_first = nullptr;
    for (const auto& mine : one.seeds) {
      const auto other = std::ranges::find(first.seeds, mine.seed, &Measured::seed);
      if (other == first.seeds.end() || !mine.ap.contains(iou) || !other->ap.contains(iou))
        continue;
      left.push_back(mine.ap.at(iou)), right.push_back(other->ap.at(iou));
      seeds.push_back(mine.seed);
      last = &mine, last_of_first = &*other;
    }
    if (seeds.empty() || left[0].whole < 0) continue;
    const double p = seeds.size() > 1 ? 1
                                      : permutation_p(*first.truth, iou, last->detections,
                                                      last_of_first->detections);
    Difference difference = difference_of(left, right, p);
    difference.variant = variant;
    difference.figure = prefix(iou) + "AP";
    difference.seeds = std::move(seeds);
    result.differences.push_back(std::move(difference));
  }
}

}  // namespace

const Figure* VariantResult::find(const std::string& figure) const {
  const auto at = std::ranges::find(figures, figure, &Figure::name);
  return at == figures.end() ? nullptr : &*at;
}

StudyResult study_result(const fs::path& folder, const Study& study) {
  StudyResult result{.name = study.plan.name(),
                     .runs = study.runs.size(),
                     .done = study.count(RunState::done),
                     .failed = study.count(RunState::failed),
                     .maths_threads = study.plan.maths_threads,
                     .draws = kDraws};
  for (const auto& variant : variants_of(study.plan))
    result.variants.push_back({.name = variant.name});
  std::optional<MeasuredVariant> first;
  for (std::size_t v = 0; v < result.variants.size(); ++v) {
    const auto one = measure(folder, study, v, result);
    result.variants[v].figures = figures_of(one.seeds);
    if (one.truth && result.images == 0) result.images = one.truth->images.size();
    if (v == 0)
      first = one;
    else
      compare(v, one, *first, result);
  }
  for (const auto& run : study.runs)
    if (run.state == RunState::failed)
      result.remarks.push_back(fmt::format("{} failed: {}", study.title(run), run.why));
  return result;
}

}  // namespace millrace::study
