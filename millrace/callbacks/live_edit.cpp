// [callbacks.live_edit]: a person changes hyper-parameters while training runs, through a file in
// the run folder.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/appended_file.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, double>;

struct LiveEditOptions {
  Duration interval = {2};
  void describe(Options& o) {
    o.add("interval", interval,
          "between looks at the run folder's edit.toml; two looks must find the same in it",
          {.min = 0});
  }
};

struct Edit {
  std::int64_t after_step = 0;  // it holds from the next step on
  std::string name;
  double to = 0;
};

/// The numbers of a table by full name. Throws ConfigError for anything else.
Values numbers(const Config& table) {
  Values values;
  for (const auto& [name, value] : leaves(table)) {
    if (const auto* real = std::get_if<double>(&value->data))
      values[name] = *real;
    else if (const auto* whole = std::get_if<std::int64_t>(&value->data))
      values[name] = static_cast<double>(*whole);
    else
      throw ConfigError(fmt::format("{}: {} takes a number", value->origin.text(), name));
  }
  return values;
}

/// The edits of a journal. A last line that is cut short never took effect: it is removed. Throws
/// Error.
std::vector<Edit> read_journal(const fs::path& file) {
  std::vector<Edit> edits;
  if (!fs::exists(file)) return edits;
  auto text = read_file(file);
  text.resize(text.find_last_of('\n') + 1);
  cut_file(file, text.size());
  std::istringstream lines(text);
  std::int64_t number = 1;
  std::size_t begin = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool is_last = begin + line.size() + 1 == text.size();
    if (json.is_discarded() && is_last) {
      spdlog::warn("{}:{}: the line is cut short, so that it never took effect: it is removed",
                   file.string(), number);
      cut_file(file, begin);
      break;
    }
    begin += line.size() + 1;
    try {
      edits.push_back({json.at("after_step"), json.at("name"), json.at("to")});
    } catch (const nlohmann::json::exception&) {
      throw Error(
          fmt::format("{}:{}: not an edit, which has after_step, name and to; the run "
                      "cannot be repeated without it: repair or remove the line",
                      file.string(), number));
    }
  }
  return edits;
}

/// Reads a file when two looks in a row find the same bytes, since it may be half written. Values
/// that differ from what the file said before go into edits.jsonl and take effect from the next
/// step on. A resumed training first repeats the edits after its checkpoint, at their steps, so
/// that it equals one that was never stopped.
class LiveEdit final : public Callback {
 public:
  using Options = LiveEditOptions;

  explicit LiveEdit(const Options& options) : interval_(options.interval) {}

  void before_train(TrainState& state) override {
    file_ = state.folder / "edit.toml";
    journal_ = state.folder / "edits.jsonl";
    for (auto& edit : read_journal(journal_)) {
      said_[edit.name] = edit.to;
      if (edit.after_step > state.at.step) to_repeat_.push_back(std::move(edit));
    }
    std::ranges::stable_sort(to_repeat_, {}, &Edit::after_step);
    const auto names = state.hyper.names();
    spdlog::info("to change {} while training, write NAME = VALUE into {}", joined(names),
                 file_.string());
  }

  void after_step(TrainState& state) override {
    std::size_t repeated = 0;
    for (; repeated < to_repeat_.size() && to_repeat_[repeated].after_step <= state.at.step;
         ++repeated)
      take(state, to_repeat_[repeated]);
    to_repeat_.erase(to_repeat_.begin(),
                     to_repeat_.begin() + static_cast<std::ptrdiff_t>(repeated));
    if (!to_repeat_.empty() || seconds_since(looked_) < interval_.seconds) return;
    looked_ = Clock::now();
    look(state);
  }

 private:
  static void take(TrainState& state, const Edit& edit) {
    spdlog::info("edit: {} is {} instead of {} from step {} on", edit.name, edit.to,
                 state.hyper.at(edit.name), edit.after_step + 1);
    state.hyper.edit(edit.name, edit.to);
  }

  void look(TrainState& state) {
    std::error_code missing;
    if (!fs::exists(file_, missing)) return seen_.clear();
    try {
      auto text = read_file(file_);
      if (text == read_) return;
      if (text != seen_) return seen_.swap(text);
      read_ = text;
      edit(state, text);
    } catch (const Error& problem) {
      spdlog::warn("nothing was changed: {}", problem.what());
    }
  }

  /// Applies all of a file, or nothing if something in it is wrong.
  void edit(TrainState& state, const std::string& text) {
    const auto values = numbers(parse_config(text, file_.string()));
    for (const auto& [name, value] : values) state.hyper.check(name, value);
    std::vector<Edit> edits;
    for (const auto& [name, value] : values)
      if (const auto before = said_.find(name); before == said_.end() || before->second != value)
        edits.push_back({state.at.step, name, value});
    write_down(state, edits);
    for (const auto& one : edits) take(state, one);
    for (const auto& one : edits) said_[one.name] = one.to;
  }

  /// Appends edits to the journal, all or none. Throws Error.
  void write_down(const TrainState& state, const std::vector<Edit>& edits) const {
    if (edits.empty()) return;
    const auto now = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
    std::string lines;
    for (const auto& one : edits)
      lines += nlohmann::ordered_json{{"after_step", one.after_step},
                                      {"name", one.name},
                                      {"from", state.hyper.at(one.name)},
                                      {"to", one.to},
                                      {"time", now}}
                   .dump() +
               "\n";
    std::error_code missing;
    const auto before = fs::file_size(journal_, missing);
    try {
      append_to(journal_, lines);
      sync_path(journal_);
    } catch (const Error&) {  // a part of a line would spoil the next one
      cut_file(journal_, missing ? 0 : before);
      throw;
    }
  }

  Duration interval_;
  fs::path file_, journal_;
  Clock::time_point looked_ = Clock::now();
  std::string seen_, read_;      // bytes: at the last look, taken
  Values said_;                  // so far
  std::vector<Edit> to_repeat_;  // in the order of their steps
};

MILLRACE_REGISTER(register_callback<LiveEdit>(
    "live_edit", "changes hyper-parameters while training runs, as a file says"));

}  // namespace
}  // namespace millrace
