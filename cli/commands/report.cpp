// trainer report: writes one page on one or several runs, or on a study.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/tools/report/report.h"
#include "millrace/tools/report/view.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<fs::path> runs;
  fs::path out;  // empty = report.html in the first run's folder
  std::size_t draws = 1000;
  bool json = false;
};

/// Writes the page of runs or of a study.
void write_page(const ReportArguments& arguments, const fs::path& file) {
  constexpr auto kMadeBy = "trainer report";
  if (!std::ranges::any_of(arguments.runs, report::is_study))
    return report::write_view(
        file, "runs", kMadeBy,
        report::runs_view(report::read_runs(arguments.runs), {.draws = arguments.draws}));
  if (arguments.runs.size() > 1)
    throw ConfigError("a study cannot be combined with other folders; give one study, or runs");
  report::write_view(file, "study", kMadeBy, report::study_view(arguments.runs.front()));
}

int report(const ReportArguments& arguments) {
  const auto file = arguments.out.empty() ? arguments.runs.front() / "report.html" : arguments.out;
  write_page(arguments, file);
  const auto bytes = fs::file_size(file);
  if (arguments.json) {
    print({{"file", file.string()}, {"bytes", bytes}});
  } else {
    print_formatted("{} ({})\n", file.string(), byte_text(bytes));
    suggest_next("open {}{}", file.string(),
                 arguments.runs.size() == 1 ? "; trainer report RUN RUN compares runs" : "");
  }
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "report", report);
  add_option(command, "run", arguments.runs, "RUN",
             "run folders, also of running or crashed runs; or the folder of a study")
      ->required();
  add_option(command, "--out", arguments.out, "FILE",
             "page to write; default: report.html in the first folder");
  add_option(command, "--bootstrap", arguments.draws, "N",
             "number of resamples of the images for intervals and verdicts; 0 = none")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer report runs/maskrcnn-1",
                         "trainer report runs/before-1 runs/after-1 --out compared.html",
                         "trainer report studies/lr-width"});
}

}  // namespace millrace::cli
