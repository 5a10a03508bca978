#include "millrace/study/study_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "millrace/base/text.h"

namespace millrace::study {
namespace {

using nlohmann::ordered_json;

template <class... Arguments>
void put(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

std::string percent(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.2f}", 100 * share);
}

void put_variant(std::string& out, const VariantResult& variant) {
  put(out, "\n{}\n", variant.name);
  if (variant.seeds.empty()) {
    out += "  no run is done\n";
    return;
  }
  const auto seconds = moments(variant.seconds).mean;
  put(out, "  {}, {}{}\n", counted(std::ssize(variant.seeds), "seed"), duration_text(seconds),
      variant.seeds.size() == 1 ? "" : " each");
  put(out, "  {:<13}{:>6}{:>7}   {:>6} .. {:<6}   {}\n", "", "mean", "sd", "min", "max",
      "95 % of the mean");
  for (const Figure& figure : variant.figures) {
    const auto [low, high] = std::ranges::minmax(figure.values);
    put(out, "  {:<13}{:>6}{:>7}   {:>6} .. {:<6}   {}\n", title_of(figure.name),
        percent(figure.moments.mean), percent(figure.moments.deviation), percent(low),
        percent(high),
        std::isnan(figure.low)
            ? "-"
            : fmt::format("{:>6} .. {}", percent(figure.low), percent(figure.high)));
  }
}

void put_difference(std::string& out, const Difference& it, const StudyResult& result) {
  put(out, "  {}: {}\n", title_of(it.figure), sentence(it, result.images));
  if (it.has_several_seeds())
    put(out, "    bootstrap over seeds and images: {:+.2f} .. {:+.2f}, p = {:.3f}\n",
        100 * it.bootstrap.low, 100 * it.bootstrap.high, it.bootstrap_p);
}

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : nullptr; }

ordered_json to_json(const coco::Interval& interval) {
  return {{"low", number(interval.low)}, {"high", number(interval.high)}};
}

ordered_json to_json(const VariantResult& variant) {
  auto figures = ordered_json::object();
  for (const Figure& figure : variant.figures) {
    const auto [low, high] = std::ranges::minmax(figure.values);
    figures[figure.name] = {{"mean", figure.moments.mean},
                            {"sd", number(figure.moments.deviation)},
                            {"min", low},
                            {"max", high},
                            {"mean_low", number(figure.low)},
                            {"mean_high", number(figure.high)},
                            {"values", figure.values}};
  }
  std::vector<std::string> folders;
  for (const auto& folder : variant.folders) folders.push_back(folder.string());
  return {{"name", variant.name},
          {"seeds", variant.seeds},
          {"folders", folders},
          {"seconds", variant.seconds},
          {"figures", figures}};
}

ordered_json to_json(const Difference& it, const StudyResult& result) {
  ordered_json json = {{"variant", result.variants[it.variant].name},
                       {"against", result.variants[0].name},
                       {"figure", it.figure},
                       {"seeds", it.seeds},
                       {"by_seed", it.by_seed},
                       {"difference", it.interval.value}};
  json.update(to_json(it.interval));
  json.update({{"p", it.p},
               {"real", it.has_several_seeds() ? ordered_json(it.is_real()) : nullptr},
               {"bootstrap", to_json(it.bootstrap)},
               {"seeds_sd", number(it.noise.seeds)},
               {"images_sd", it.noise.images}});
  json["bootstrap"]["p"] = it.bootstrap_p;
  json["detectable"] = nullptr;
  json["seeds_needed"] = nullptr;
  if (it.has_several_seeds()) {
    json["detectable"] = detectable(it.noise, it.by_seed.size());
    if (const auto needed = seeds_needed(it.interval.value, it.noise);
        needed && it.interval.value != 0)
      json["seeds_needed"] = *needed;
  }
  json["sentence"] = sentence(it, result.images);
  return json;
}

}  // namespace

std::string title_of(const std::string& figure) {
  const auto slash = figure.find('/');
  return (figure.starts_with("segm") ? "mask " : "box ") + figure.substr(slash + 1);
}

std::string outlook_text(const VariantResult& only) {
  const Figure* ap = only.find("bbox/AP");
  if (!ap || ap->values.size() < 2) return "";
  const Noise noise{std::numbers::sqrt2 * ap->moments.deviation, 0};
  return fmt::format(
      "A variant with the same seeds can be told from this one on these images if its box AP "
      "differs by {:.2f} or more (power 80 %, alpha 5 %), and its runs vary as much as these.",
      100 * detectable(noise, ap->values.size()));
}

std::string study_text(const StudyResult& result) {
  std::string out = fmt::format("{}: {} of {} done{}; {}, {}\n", result.name, result.done,
                                counted(static_cast<long long>(result.runs), "run"),
                                result.failed > 0 ? fmt::format(", {} failed", result.failed) : "",
                                counted(static_cast<long long>(result.images), "image"),
                                counted(result.maths_threads, "maths thread"));
  for (const auto& variant : result.variants) put_variant(out, variant);
  std::size_t last = 0;
  for (const Difference& it : result.differences) {
    if (it.variant != last)
      put(out, "\n{} against {}\n", result.variants[it.variant].name, result.variants[0].name);
    last = it.variant;
    put_difference(out, it, result);
  }
  if (const auto text = outlook_text(result.variants[0]);
      result.variants.size() == 1 && !text.empty())
    put(out, "\n{}\n", text);
  if (!result.remarks.empty()) out += "\nLeft out\n";
  for (const auto& remark : result.remarks) put(out, "  {}\n", remark);
  return out;
}

ordered_json study_json(const StudyResult& result) {
  auto variants = ordered_json::array(), differences = ordered_json::array();
  for (const auto& variant : result.variants) variants.push_back(to_json(variant));
  for (const auto& it : result.differences) differences.push_back(to_json(it, result));
  return {{"name", result.name},
          {"runs", result.runs},
          {"done", result.done},
          {"failed", result.failed},
          {"maths_threads", result.maths_threads},
          {"images", result.images},
          {"draws", result.draws},
          {"variants", variants},
          {"differences", differences},
          {"left_out", result.remarks}};
}

}  // namespace millrace::study
