#include "millrace/trainer/optimizer/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "millrace/base/options.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

/// Throws ConfigError for values that the type does not use.
void refuse_the_rest(const ScheduleOptions& options, const Config& table) {
  const auto with = fmt::format("with type = \"{}\"", options.type);
  const auto refuse = [&](std::string_view key, const std::string& why) {
    refuse_unused<ScheduleOptions>(table, {key}, why);
  };
  if (options.type != "step") refuse("milestones", with);
  if (options.type != "step" && options.type != "exponential") refuse("gamma", with);
  if (options.type != "poly") refuse("power", with);
  if (options.warmup_epochs == 0 && options.warmup_images == 0 && options.warmup_steps == 0)
    refuse("warmup_factor", "without a warm-up");
}

}  // namespace

void ScheduleOptions::describe(Options& o) {
  o.add("type", type, "how the rate falls", {"step", "cosine", "poly", "exponential", "constant"});
  o.add("milestones", milestones, "where type = \"step\" multiplies by gamma",
        {.min = 0, .unit = "epochs"});
  o.add("gamma", gamma, "factor at each milestone, or of an epoch where type = \"exponential\"",
        {.min = 0, .max = 1});
  o.add("power", power, "of the share that is left, where type = \"poly\"", {.min = 0});
  o.add("warmup_epochs", warmup_epochs, "linear warm-up", {.min = 0, .unit = "epochs"});
  o.add("warmup_images", warmup_images, "linear warm-up", {.min = 0, .unit = "images"});
  o.add("warmup_steps", warmup_steps,
        "linear warm-up where neither warmup_epochs nor warmup_images says how long",
        {.min = 0, .unit = "steps"});
  o.add("warmup_factor", warmup_factor, "share of the rate at step 0", {.min = 0, .max = 1});
}

void ScheduleOptions::check(const Config& table, double epochs) const {
  require(table, "warmup_images", warmup_epochs == 0 || warmup_images == 0,
          "and warmup_epochs are two lengths of one warm-up: set one to 0");
  if (warmup_epochs > 0)
    require(
        table, "warmup_epochs", warmup_epochs < epochs,
        fmt::format("= {} is not shorter than the run, train.epochs = {}", warmup_epochs, epochs));
  refuse_the_rest(*this, table);
  if (type != "step") return;
  require(table, "milestones", std::ranges::is_sorted(milestones, std::ranges::less_equal()),
          fmt::format("must rise: {}", fmt::join(milestones, ", ")));
  if (milestones.empty()) return;
  require(table, "milestones", milestones.back() < epochs,
          fmt::format("has {}, which is not before the end of the run, train.epochs = {}",
                      milestones.back(), epochs));
  if (warmup_epochs > 0)
    require(table, "milestones", milestones.front() >= warmup_epochs,
            fmt::format("begin at {}, before warmup_epochs = {} have passed", milestones.front(),
                        warmup_epochs));
}

double ScheduleOptions::warmup_length(std::int64_t epoch_images,
                                      std::int64_t images_per_step) const {
  if (warmup_epochs > 0) return warmup_epochs;
  const auto images = warmup_images > 0 ? warmup_images : warmup_steps * images_per_step;
  return static_cast<double>(images) / static_cast<double>(epoch_images);
}

void ScheduleOptions::check_warmup(double epochs, std::int64_t epoch_images,
                                   std::int64_t images_per_step) const {
  const auto length = warmup_length(epoch_images, images_per_step);
  if (length == 0) return;
  const auto text = warmup_epochs > 0   ? fmt::format("schedule.warmup_epochs = {}", warmup_epochs)
                    : warmup_images > 0 ? fmt::format("schedule.warmup_images = {}", warmup_images)
                                        : fmt::format("schedule.warmup_steps = {}", warmup_steps);
  if (length >= epochs)
    throw ConfigError(
        fmt::format("{}, {:.4g} epochs of {} images, is not shorter than the run, train.epochs = "
                    "{}: shorten the warm-up",
                    text, length, epoch_images, epochs));
  if (type == "step" && !milestones.empty() && milestones.front() < length)
    throw ConfigError(
        fmt::format("{}, {:.4g} epochs of {} images, ends behind the first of schedule.milestones, "
                    "{}: shorten the warm-up or move the milestone",
                    text, length, epoch_images, milestones.front()));
}

Schedule::Schedule(ScheduleOptions options, double peak, double epochs)
    : options_(std::move(options)), peak_(peak), epochs_(epochs) {}

double Schedule::rate(const ScheduleTime& time) const {
  return peak_ * warmup(time) * decay(time.progress);
}

std::string Schedule::text() const {
  const auto& o = options_;
  auto text = fmt::format("{:.4g}", peak_);
  const auto warmup = o.warmup_epochs > 0   ? fmt::format("{} epochs", o.warmup_epochs)
                      : o.warmup_images > 0 ? counted(o.warmup_images, "image")
                      : o.warmup_steps > 0  ? counted(o.warmup_steps, "step")
                                            : "";
  if (!warmup.empty())
    text += fmt::format(", after a linear warm-up from {:.4g} over {}", peak_ * o.warmup_factor,
                        warmup);
  if (o.type == "cosine") return text + fmt::format(", along a cosine to 0 at epoch {}", epochs_);
  if (o.type == "poly") return text + fmt::format(", times (1 - epoch / {})^{}", epochs_, o.power);
  if (o.type == "exponential") return text + fmt::format(", times {}^epoch", o.gamma);
  if (o.type == "step" && !o.milestones.empty())
    return text + fmt::format(", times {} at {} {}", o.gamma,
                              o.milestones.size() == 1 ? "epoch" : "epochs",
                              fmt::join(o.milestones, ", "));
  return text + ", constant";
}

double Schedule::warmup(const ScheduleTime& time) const {
  double length = static_cast<double>(options_.warmup_steps);
  double done = static_cast<double>(time.step);
  if (options_.warmup_epochs > 0) {
    length = options_.warmup_epochs;
    done = time.progress;
  } else if (options_.warmup_images > 0) {
    length = static_cast<double>(options_.warmup_images);
    done = static_cast<double>(time.images);
  }
  if (done >= length) return 1;
  return options_.warmup_factor + (1 - options_.warmup_factor) * done / length;
}

double Schedule::decay(double progress) const {
  const double passed = std::min(progress / epochs_, 1.0);
  if (options_.type == "cosine") return 0.5 * (1 + std::cos(std::numbers::pi * passed));
  if (options_.type == "poly") return std::pow(1 - passed, options_.power);
  if (options_.type == "exponential") return std::pow(options_.gamma, progress);
  if (options_.type == "constant") return 1;
  const auto milestones = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                        [&](double milestone) { return progress >= milestone; });
  return std::pow(options_.gamma, static_cast<double>(milestones));
}

}  // namespace millrace
