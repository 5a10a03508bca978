// [callbacks.live_edit]: lets a user change hyper-parameters during training through a file in the
// run folder.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/edit_journal.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, double>;

struct LiveEditOptions {
  Duration interval = {2};
  void describe(Options& o) {
    o.add("interval", interval,
          "interval for reading the run folder's edit.toml; it takes effect when read twice "
          "without change",
          {.min = 0});
  }
};

/// Requests in a file, by full name.
struct EditRequests {
  Values values;
  std::vector<std::string> withdrawn;  // names whose edits are withdrawn
};

constexpr auto kWithdraw = "withdraw";
// Factor of the learning rate; few trainings remain stable beyond it.
constexpr double kLargeFactor = 10;

/// Throws ConfigError for values that are neither a number nor a withdrawal.
EditRequests requests_in(const Config& table) {
  EditRequests requests;
  for (const auto& [name, value] : leaves(table)) {
    const auto* text = std::get_if<std::string>(&value->data);
    if (const auto* real = std::get_if<double>(&value->data))
      requests.values[name] = *real;
    else if (const auto* whole = std::get_if<std::int64_t>(&value->data))
      requests.values[name] = static_cast<double>(*whole);
    else if (text && *text == kWithdraw)
      requests.withdrawn.push_back(name);
    else
      throw ConfigError(fmt::format("{}: {} must be a number, or \"{}\" to withdraw its edits",
                                    value->origin.text(), name, kWithdraw));
  }
  return requests;
}

/// Reads the file when two checks in a row find the same bytes, since it may be incomplete. Values
/// that differ from those of the previous version are written to edits.jsonl and apply from the
/// next step. A resumed training first repeats the edits after its checkpoint at their steps, so
/// that its results equal those of an uninterrupted one. A withdrawal removes edits that are still
/// to be repeated (after a return to an earlier checkpoint), and restores the value from before the
/// first edit.
class LiveEdit final : public Callback {
 public:
  using Options = LiveEditOptions;

  explicit LiveEdit(const Options& options) : interval_(options.interval) {}

  void before_train(const TrainState& state) override {
    run_ = state.folder;
    file_ = run_ / "edit.toml";
    withdraw_at_start(state);
    for (auto& edit : read_edits(run_)) {
      requested_[edit.name] = edit.to;
      if (edit.after_step >= state.at.step) to_repeat_.push_back(std::move(edit));
    }
    std::ranges::stable_sort(to_repeat_, {}, &Edit::after_step);
    repeat_edits(state);
    const auto names = state.hyper.names();
    log_info("to change {} during training, write NAME = VALUE to {}", joined(names),
             file_.string());
  }

  void after_step(const TrainState& state) override {
    if (seconds_since(checked_) >= interval_.seconds) {
      checked_ = Clock::now();
      check_file(state);
    }
    repeat_edits(state);
  }

 private:
  /// Repeats the edits that are due. At a checkpoint's step, the last edit may be newer than the
  /// checkpoint.
  void repeat_edits(const TrainState& state) {
    std::size_t repeated = 0;
    for (; repeated < to_repeat_.size() && to_repeat_[repeated].after_step <= state.at.step;
         ++repeated)
      take(state, to_repeat_[repeated]);
    to_repeat_.erase(to_repeat_.begin(),
                     to_repeat_.begin() + static_cast<std::ptrdiff_t>(repeated));
  }

  static void take(const TrainState& state, const Edit& edit) {
    log_info("edit: {} is {} instead of {} from step {}", edit.name, edit.to,
             state.hyper.at(edit.name), edit.after_step + 1);
    state.hyper.edit(edit.name, edit.to);
  }

  void check_file(const TrainState& state) try {
    std::error_code missing;
    if (!fs::exists(file_, missing)) return seen_.clear();
    auto text = read_file(file_);
    if (text == read_) return;
    if (text != seen_) return seen_.swap(text);
    read_ = text;
    edit(state, text);
  } catch (const Error& problem) {
    log_warning("no edit applied: {}", problem.what());
  }

  /// Applies all requests of a file, or none if any is invalid. Values are applied after all edits
  /// of the journal have been repeated.
  void edit(const TrainState& state, const std::string& text) {
    const auto requests = requests_in(parse_config(text, file_.string()));
    for (const auto& [name, value] : requests.values) state.hyper.check(name, value);
    for (const auto& name : requests.withdrawn) static_cast<void>(state.hyper.at(name));
    for (const auto& name : requests.withdrawn) withdraw(state, name);
    if (!to_repeat_.empty()) return read_.clear();
    std::vector<Edit> edits;
    for (const auto& [name, value] : requests.values)
      if (const auto before = requested_.find(name);
          before == requested_.end() || before->second != value)
        edits.push_back({state.at.step, name, state.hyper.at(name), value});
    append_edits(run_, edits);
    for (const auto& one : edits) {
      requested_[one.name] = one.to;
      take(state, one);
      if (one.name == "lr_factor" && one.to > kLargeFactor)
        log_warning(
            "edit: lr_factor = {} multiplies the schedule's learning rate; few trainings remain "
            "stable with a factor above {}; write lr_factor = \"{}\" to {} to withdraw it",
            one.to, kLargeFactor, kWithdraw, file_.string());
    }
  }

  /// Withdraws edits before the first step, so that they do not affect it either.
  void withdraw_at_start(const TrainState& state) try {
    if (!fs::exists(file_)) return;
    for (const auto& name : requests_in(parse_config(read_file(file_), file_.string())).withdrawn)
      withdraw(state, name);
  } catch (const Error&) {  // the file may be incomplete; the next check reads it
  }

  /// Removes the edits of a name after this step, and restores the value from before the first. If
  /// its last edit set that value again, a resumed training must still repeat all edits.
  void withdraw(const TrainState& state, const std::string& name) {
    auto edits = read_edits(run_), own = edits;
    std::erase_if(own, [&](const Edit& one) { return one.name != name; });
    const auto is_edited = [&] { return !own.empty() && own.back().to != own.front().from; };
    if (!is_edited()) return;
    const auto is_later = [&](const Edit& one) {
      return one.name == name && one.after_step > state.at.step;
    };
    if (const auto later = std::erase_if(edits, is_later); later > 0) {
      write_edits(run_, edits);
      log_info("edit: withdrew {} of {} after step {}",
               counted(static_cast<long long>(later), "edit"), name, state.at.step);
    }
    std::erase_if(own, is_later);
    std::erase_if(to_repeat_, [&](const Edit& one) { return one.name == name; });
    requested_.erase(name);
    if (!is_edited()) return;  // none had taken effect
    const Edit back{state.at.step, name, state.hyper.at(name), own.front().from};
    append_edits(run_, {&back, 1});
    take(state, back);
  }

  Duration interval_;
  fs::path run_, file_;
  Clock::time_point checked_ = Clock::now();
  std::string seen_, read_;      // contents of the file: at the last check, and as applied
  Values requested_;             // values of the file so far
  std::vector<Edit> to_repeat_;  // edits to be repeated, by step
};

MILLRACE_REGISTER(register_callback<LiveEdit>(
    "live_edit", "changes hyper-parameters during training, from a file"));

}  // namespace
}  // namespace millrace
