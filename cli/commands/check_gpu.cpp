// trainer check-gpu: everything that needs a GPU, checked and measured in one go. Each part runs in
// a process of its own; this one starts them, and writes down what they find.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/cli/check_gpu/page.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/cli/command.h"
#include "millrace/cli/program.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastSeconds = 5;  // a part is not begun with less left
constexpr auto kPrefix = "trainer: error: ";

struct CheckGpuArguments {
  CheckGpuOptions options;
  std::vector<std::string> only;
  double minutes = 25;
  // Of a process that runs one part:
  std::string part;
  fs::path result;
  double seconds = 600;
};

/// The whole report, in DIR/check-gpu.json and DIR/check-gpu.md.
class WholeReport {
 public:
  explicit WholeReport(const CheckGpuArguments& arguments)
      : folder_(arguments.options.out),
        began_(Clock::now()),
        content_{
            {"version", program_version()},
            {"started", fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)))},
            {"device", arguments.options.device},
            {"small", arguments.options.small},
            {"seconds", 0.0},
            {"result", "running"},
            {"parts", Json::array()}} {
    make_writable_folder(folder_ / "parts");
  }

  void begin(const Part& part) {
    content_["parts"].push_back({{"name", part.name}, {"title", part.title}, {"state", "running"}});
    write();
  }

  /// Ends the part that was begun last.
  void end(const std::string& state, double seconds, const std::string& why, const Json& found) {
    auto& part = content_["parts"].back();
    part["state"] = state;
    part["seconds"] = seconds;
    part["why"] = why;
    for (const auto& [name, value] : found.items()) part[name] = value;
    ok_ = ok_ && (state == "ok" || state == "skipped" || state == "not begun");
    write();
  }

  /// Prints the part that ended last.
  void print_last() const {
    cli::print_text(part_lines(content_.at("parts").back()));
    output_fault();  // flushes
  }

  void finish(const std::string& result) {
    content_["result"] = result;
    write();
  }

  void print_end() const {
    cli::print_text(fmt::format("{}: {} and {}\n", content_.at("result").get<std::string>(),
                                (folder_ / "check-gpu.md").string(),
                                (folder_ / "check-gpu.json").string()));
  }

  bool ok() const { return ok_; }
  double seconds() const { return seconds_since(began_); }

 private:
  void write() {
    content_["seconds"] = seconds();
    const auto json = content_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    write_file_atomically(folder_ / "check-gpu.json", json);
    write_file_atomically(folder_ / "check-gpu.md", check_gpu_page(content_));
  }

  const fs::path folder_;
  const Clock::time_point began_;
  Json content_;
  bool ok_ = true;
};

/// What a part has written so far; an empty object: nothing that can be read.
Json found_by(const fs::path& result) {
  try {
    auto found = Json::parse(read_file(result), nullptr, /*allow_exceptions=*/false);
    return found.is_object() ? found : Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

std::string without_prefix(const std::string& words) {
  return words.starts_with(kPrefix) ? words.substr(std::string_view(kPrefix).size()) : words;
}

std::vector<std::string> command_of(const CheckGpuArguments& arguments, const Part& part,
                                    const fs::path& result, double seconds) {
  std::vector<std::string> words{trainer_program().string(),
                                 "check-gpu",
                                 "--part",
                                 part.name,
                                 "--result",
                                 result.string(),
                                 "--seconds",
                                 fmt::format("{:.0f}", seconds),
                                 "--device",
                                 arguments.options.device,
                                 "--plugin",
                                 arguments.options.plugin,
                                 "--out",
                                 arguments.options.out.string()};
  if (!arguments.options.data.empty())
    words.insert(words.end(), {"--data", arguments.options.data});
  if (arguments.options.small) words.emplace_back("--small");
  return words;
}

/// Runs one part in a process of its own. Throws ConfigError if that could not begin at all, which
/// is so for every part.
void run_in_child(const CheckGpuArguments& arguments, const Part& part, double seconds,
                  WholeReport& report) {
  const auto folder = arguments.options.out / "parts";
  const auto result = folder / (std::string(part.name) + ".json"),
             log = folder / (std::string(part.name) + ".log");
  fs::remove(result);
  report.begin(part);
  spdlog::info("{}: {} (at most {:.0f} s)", part.name, part.title, seconds);
  ProgramEnd end;
  std::string why;
  try {
    Program program(command_of(arguments, part, result, seconds), log,
                    {.seconds = seconds, .own_group = true});
    end = program.wait([] { return !StopSignals::received().empty(); });
    why = end.failure();
  } catch (const Error& problem) {
    end.exit_code = kFailed;
    why = problem.what();
  }
  const auto words = without_prefix(last_words(log.string() + ".err"));
  const auto found = found_by(result);
  if (end.exit_code == kWrongUse) {
    report.end("failed", end.seconds, words, found);
    throw ConfigError(words);
  }
  std::string state = "ok";
  if (end.timed_out)
    state = "timed out";
  else if (end.signal != 0)
    state = "crashed";
  else if (end.exit_code != kDone)
    state = "failed";
  else if (found.contains("skipped"))
    state = "skipped", why = found.at("skipped").get<std::string>();
  const auto& checks = found.value("checks", Json::array());
  const bool has_failed_check =
      std::ranges::any_of(checks, [](const Json& check) { return !check.at("ok").get<bool>(); });
  if (state == "failed" && has_failed_check)
    why.clear();
  else if (state != "ok" && state != "skipped" && !words.empty())
    why += ": " + words;
  report.end(state, end.seconds, why, found);
  report.print_last();
}

/// Whether the device is there at all is settled by the first part.
int run_parts(const CheckGpuArguments& arguments) {
  const StopSignals signals;
  release_stop_signals();
  std::vector<const Part*> parts;
  for (const auto& part : all_parts())
    if (!part.hidden &&
        (arguments.only.empty() || std::ranges::count(arguments.only, std::string(part.name)) > 0))
      parts.push_back(&part);
  WholeReport report(arguments);
  const double seconds = 60 * arguments.minutes;
  for (const auto* part : parts) {
    const double left = seconds - report.seconds();
    if (left < kLeastSeconds) {
      report.begin(*part);
      report.end("not begun", 0, "the minutes were over", Json::object());
      report.print_last();
      continue;
    }
    try {
      run_in_child(arguments, *part, std::min(part->seconds, left), report);
    } catch (const ConfigError&) {
      report.finish("cannot run");
      throw;
    }
    if (!StopSignals::received().empty()) {
      report.finish("stopped by " + StopSignals::received());
      report.print_end();
      return kStoppedEarly;
    }
  }
  report.finish(report.ok() ? "ok" : "failed");
  report.print_end();
  suggest_next("docs/check-gpu.md says what each part means, and what to do about one that fails");
  return report.ok() ? kDone : kFailed;
}

int run_part(const CheckGpuArguments& arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  release_stop_signals();
  for (const auto& part : all_parts()) {
    if (part.name != arguments.part) continue;
    PartReport report(arguments.result);
    PartRun run(arguments.options, part.name, report, arguments.seconds);
    try {
      part.work(run);
    } catch (const ConfigError& problem) {
      throw Error(problem.what());  // of this part's own recipe: the others may do
    }
    return report.ok() ? kDone : kFailed;
  }
  throw ConfigError("there is no part '" + arguments.part + "'");
}

int check_gpu(const CheckGpuArguments& arguments) {
  std::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would hide how a part ends
  return arguments.part.empty() ? run_parts(arguments) : run_part(arguments);
}

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const auto& part : all_parts())
    if (!part.hidden) names.emplace_back(part.name);
  return names;
}

}  // namespace

void add_check_gpu(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "check-gpu", check_gpu, /*handles_signals=*/true);
  auto& options = arguments.options;
  command.add_option("--out", options.out, "folder of the report, check-gpu.md and check-gpu.json")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_option("--only", arguments.only, "these parts alone, of " + joined(part_names()))
      ->type_name("PART")
      ->check(CLI::Validator(
          [](const std::string& word) -> std::string {
            const auto names = part_names();
            if (std::ranges::count(names, word) > 0) return {};
            return fmt::format("there is no part '{}'{}", word, suggestion(word, names));
          },
          ""));
  command
      .add_option("--minutes", arguments.minutes,
                  "what is not begun by then is left out; the most telling parts come first")
      ->check(positive())
      ->capture_default_str();
  command
      .add_option("--data", options.data,
                  "data set in COCO's layout for the part `flow`; without it, pictures are made")
      ->type_name("DIR");
  command.add_flag("--small", options.small,
                   "tiny models and few steps: whether everything runs at all, on any device");
  command.add_option("--device", options.device, "the kind of device, as train.device names it")
      ->capture_default_str();
  command.add_option("--plugin", options.plugin, "the plug-in with the device's operators")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--part", arguments.part)->group("");
  command.add_option("--result", arguments.result)->group("");
  command.add_option("--seconds", arguments.seconds)->group("");
  add_examples(command,
               {"trainer check-gpu", "trainer check-gpu --minutes 10 --out runs/first-hour",
                "trainer check-gpu --only operators steps", "trainer check-gpu --small"});
}

}  // namespace millrace::cli
