// trainer diff: what two runs were made with and what came of it, beside each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/cli/terminal_text.h"
#include "millrace/report/run_facts_diff.h"
#include "millrace/report/run_outcome_diff.h"
#include "millrace/trainer/run/deciding_keys.h"

namespace millrace::cli {
namespace {

using report::Difference;

struct DiffArguments {
  std::vector<std::filesystem::path> runs;
  bool json = false;
};

struct RunsDiff {
  std::vector<report::RunFiles> runs;  // two
  report::FactsDiff facts;
  report::MetricsDiff metrics;
  std::optional<report::WeightsDiff> weights;
  std::vector<report::Figure> figures;

  bool has_other_results() const { return metrics.first || (weights && weights->a != weights->b); }
};

/// Why equal settings need not give equal bytes; empty: they do.
std::string excuse(const RunsDiff& diff) {
  for (const auto& run : diff.runs) {
    const auto* same =
        run.config.is_table() ? run.config.find_path("train.deterministic") : nullptr;
    const auto* is_same = same ? std::get_if<bool>(&same->data) : nullptr;
    if (!is_same) return run.name + " has no configuration that says what it was made with";
    if (!*is_same) return "train.deterministic = false";
    if (run.config.find_path("callbacks.live_edit"))
      return "[callbacks.live_edit] lets a training be changed while it runs";
  }
  return "";
}

std::string verdict(const RunsDiff& diff) {
  if (!diff.facts.deciding.empty()) {
    std::vector<std::string> names;
    for (const auto& one : diff.facts.deciding) names.push_back(one.what);
    return fmt::format("they differ in what decides results: {}", joined(names));
  }
  if (!diff.has_other_results())
    return diff.metrics.compared == 0 && !diff.weights
               ? "all that decides results is the same; there are no results to compare yet"
               : "all that decides results is the same, and so are the results";
  if (const auto why = excuse(diff); !why.empty())
    return "all that decides results is the same, the results are not: " + why;
  return "all that decides results is the same, yet the results differ: this is a bug of Millrace; "
         "report it with this output, both record.json and config.toml";
}

std::string number_text(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.6g}", value);
}

std::string metrics_text(const report::MetricsDiff& metrics) {
  if (metrics.compared == 0) return "metrics: none of the same steps yet";
  if (!metrics.first)
    return fmt::format("metrics: the same to step {}, all {}", metrics.same_to,
                       counted(metrics.compared, "value"));
  const auto& [step, name, a, b] = *metrics.first;
  const auto before = metrics.same_to > 0
                          ? fmt::format("the same to step {}, then ", metrics.same_to)
                          : std::string("from the first on ");
  return fmt::format("metrics: {}{} differs at step {} by {:.3g}: {} | {}", before, name, step,
                     std::abs(a - b), number_text(a), number_text(b));
}

std::string weights_text(const std::optional<report::WeightsDiff>& weights) {
  if (!weights) return "weights: no checkpoint of the same step";
  return weights->a == weights->b
             ? fmt::format("weights: the same bytes after step {} (SHA-256 {})", weights->step,
                           weights->a)
             : fmt::format("weights: others after step {}", weights->step);
}

void print_differences(const char* title, const std::vector<Difference>& all) {
  std::string text = fmt::format("{}{}\n", title, all.empty() ? ": no difference" : "");
  for (const auto& [what, a, b] : all) text += fmt::format("  {}: {} | {}\n", what, a, b);
  print_lines(text, "      ");
}

void print_diff(const RunsDiff& diff) {
  const auto &a = diff.runs[0], &b = diff.runs[1];
  print_formatted("{} ({}) | {} ({})\n\n", a.name, a.standing_text, b.name, b.standing_text);
  for (const auto& run : diff.runs)
    for (const auto& remark : run.remarks) print_formatted("{}: {}\n", run.name, remark);
  print_differences("what decides results", diff.facts.deciding);
  print_differences("what does not", diff.facts.others);
  const auto width = std::max({a.name.size(), b.name.size(), std::size_t{12}}) + 2;
  print_formatted("\n{}\n{}\n\n{:<30}{:>{}}{:>{}}\n", metrics_text(diff.metrics),
                  weights_text(diff.weights), "", a.name, width, b.name, width);
  for (const auto& figure : diff.figures)
    print_formatted("{:<30}{:>{}}{:>{}}\n", figure.name, number_text(figure.a), width,
                    number_text(figure.b), width);
  print_formatted("\n{}\n", verdict(diff));
}

Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json to_json(const std::vector<Difference>& all) {
  Json list = Json::array();
  for (const auto& [what, a, b] : all) list.push_back({{"what", what}, {"a", a}, {"b", b}});
  return list;
}

Json to_json(const RunsDiff& diff) {
  Json metrics = {
      {"compared", diff.metrics.compared}, {"same_to", diff.metrics.same_to}, {"first", nullptr}};
  if (const auto& first = diff.metrics.first)
    metrics["first"] = {{"step", first->step},
                        {"name", first->name},
                        {"a", json_of(first->a)},
                        {"b", json_of(first->b)}};
  Json weights;
  if (diff.weights)
    weights = {{"step", diff.weights->step}, {"a", diff.weights->a}, {"b", diff.weights->b}};
  Json figures = Json::array();
  for (const auto& [name, a, b] : diff.figures)
    figures.push_back({{"name", name}, {"a", json_of(a)}, {"b", json_of(b)}});
  return {
      {"a", diff.runs[0].folder.string()},
      {"b", diff.runs[1].folder.string()},
      {"deciding", to_json(diff.facts.deciding)},
      {"others", to_json(diff.facts.others)},
      {"metrics", std::move(metrics)},
      {"weights", std::move(weights)},
      {"figures", std::move(figures)},
      {"is_bug", diff.facts.deciding.empty() && diff.has_other_results() && excuse(diff).empty()},
      {"verdict", verdict(diff)}};
}

int diff(const DiffArguments& arguments) {
  RunsDiff diff{.runs = report::read_runs(arguments.runs)};
  const auto &a = diff.runs[0], &b = diff.runs[1];
  diff.facts = report::facts_diff(a, b, decides_results);
  diff.metrics = report::metrics_diff(a.metrics, b.metrics);
  diff.weights = report::weights_diff(a, b);
  diff.figures = report::figures(a, b);
  if (arguments.json)
    print(to_json(diff));
  else
    print_diff(diff);
  return kDone;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "diff",
                     "Tell what differs between two runs, and whether it decides results", diff);
  command
      .add_option("run", arguments.runs,
                  "two folders of runs; also of one that trains or was killed")
      ->required()
      ->expected(2)
      ->type_name("RUN");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer diff runs/maskrcnn-1 runs/maskrcnn-2"});
}

}  // namespace millrace::cli
