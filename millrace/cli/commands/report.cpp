// trainer report: one page of one or several runs.
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/report/report.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<fs::path> runs;
  fs::path out;  // empty: report.html of the first run
  std::size_t draws = 1000;
  bool json = false;
};

int report(const ReportArguments& arguments) {
  const auto runs = report::read_runs(arguments.runs);
  const auto file = arguments.out.empty() ? arguments.runs.front() / "report.html" : arguments.out;
  const auto page = report::report_page(runs, {.draws = arguments.draws});
  write_file_atomically(file, page);
  if (arguments.json) {
    print({{"file", file.string()}, {"bytes", page.size()}});
  } else {
    print_formatted("{} ({})\n", file.string(), byte_text(static_cast<double>(page.size())));
    suggest_next(fmt::format("open {}{}", file.string(),
                             runs.size() == 1 ? "; trainer report RUN RUN compares runs" : ""));
  }
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "report",
                     "Write one page of one or several runs, to draw conclusions from", report);
  command.add_option("run", arguments.runs, "folders of runs; also of one that trains or crashed")
      ->required()
      ->type_name("RUN");
  command
      .add_option("--out", arguments.out,
                  "the page; without it report.html in the first run's folder")
      ->type_name("FILE");
  command
      .add_option("--bootstrap", arguments.draws,
                  "resamples of the images for intervals and verdicts; 0: none")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer report runs/maskrcnn-1",
                         "trainer report runs/before-1 runs/after-1 --out compared.html"});
}

}  // namespace millrace::cli
