#include "millrace/trainer/optimizer/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

/// Parses the length of a warm-up; nullopt if it is invalid.
std::optional<Quantity> parse_warmup(const std::string& text) {
  auto length = parse_quantity(text);
  if (!length || (length->unit != "step" && length->unit != "epoch" && length->unit != "image"))
    return std::nullopt;
  if (length->unit != "epoch" && length->count != std::floor(length->count)) return std::nullopt;
  return length;
}

}  // namespace

void ScheduleOptions::describe(Options& o) {
  o.add("type", type, "learning rate schedule; warmup_cosine starts after the warm-up");
  o.add("milestones", milestones, "epochs at which type = \"step\" multiplies the rate by gamma",
        {.min = 0, .unit = "epochs"});
  o.add("gamma", gamma, "factor per milestone, or per epoch with type = \"exponential\"",
        {.min = 0, .max = 1});
  o.add("power", power, "exponent of the remaining fraction of the run, with type = \"poly\"",
        {.min = 0});
  o.add("end_factor", end_factor,
        "final rate as a fraction of the peak, with type = \"warmup_cosine\"",
        {.min = 0, .max = 1});
  o.add("end_epochs", end_epochs,
        "number of final epochs at end_factor, with type = \"warmup_cosine\"",
        {.min = 0, .unit = "epochs"});
  o.add("warmup", warmup, "length of the warm-up: \"500 steps\", \"2 epochs\" or \"64000 images\"");
  o.add("warmup_factor", warmup_factor, "rate at step 0 as a fraction of the full rate",
        {.min = 0, .max = 1});
  o.add("warmup_power", warmup_power, "exponent of the warm-up: 1 = linear, 2 = quadratic",
        {.min = 0.01, .max = 100});
}

void ScheduleOptions::check(const Config& table, double epochs) const {
  const auto refuse = [&](std::string_view key, const std::string& why) {
    refuse_unused<ScheduleOptions>(table, {key}, why);
  };
  const auto with = fmt::format("with type = \"{}\"", value_name(type));
  const auto length = parse_warmup(warmup);
  require(table, "warmup", length.has_value(),
          fmt::format("= \"{}\" is not a warm-up length; expected e.g. \"500 steps\", \"2 epochs\" "
                      "or \"64000 images\"",
                      warmup));
  if (type != ScheduleType::step) refuse("milestones", with);
  if (type != ScheduleType::step && type != ScheduleType::exponential) refuse("gamma", with);
  if (type != ScheduleType::poly) refuse("power", with);
  if (length->count == 0) {
    refuse("warmup_factor", "without a warm-up");
    refuse("warmup_power", "without a warm-up");
  }
  if (type != ScheduleType::warmup_cosine) {
    refuse("end_factor", with);
    refuse("end_epochs", with);
  } else {
    require(table, "warmup", length->count == 0 || length->unit == "epoch",
            "must be in epochs with type = \"warmup_cosine\", which starts after it");
    require(table, "end_epochs", length->count + end_epochs < epochs,
            fmt::format("and the warm-up must be shorter than the run, train.epochs = {}", epochs));
  }
  if (type == ScheduleType::step) {
    require(table, "milestones", std::ranges::is_sorted(milestones, std::ranges::less_equal()),
            fmt::format("must be ascending: {}", fmt::join(milestones, ", ")));
    require(table, "milestones", milestones.empty() || milestones.back() < epochs,
            fmt::format("contains {}, but must end before the run, train.epochs = {}",
                        milestones.empty() ? 0 : milestones.back(), epochs));
  }
  if (length->unit != "epoch") return;
  const auto why = objection(length->count, epochs);
  require(table, "warmup", why.empty(), fmt::format("= \"{}\" {}", warmup, why));
}

std::string ScheduleOptions::objection(double length, double epochs) const {
  if (length == 0) return {};
  if (length >= epochs)
    return fmt::format("is not shorter than the run, train.epochs = {}; shorten the warm-up",
                       epochs);
  if (type == ScheduleType::step && !milestones.empty() && milestones.front() < length)
    return fmt::format(
        "ends after the first of schedule.milestones, {}; shorten the warm-up or move the "
        "milestone",
        milestones.front());
  return {};
}

void ScheduleOptions::check_warmup(double epochs, std::int64_t epoch_images,
                                   std::int64_t images_per_step) const {
  auto [length, unit] = parse_warmup(warmup).value();
  if (unit == "step") length *= static_cast<double>(images_per_step);
  if (unit != "epoch") length /= static_cast<double>(epoch_images);
  if (const auto why = objection(length, epochs); !why.empty())
    throw ConfigError(fmt::format("schedule.warmup = \"{}\", {:.4g} epochs of {} images, {}",
                                  warmup, length, epoch_images, why));
}

Schedule::Schedule(ScheduleOptions options, double peak, double epochs)
    : options_(std::move(options)),
      warmup_(parse_warmup(options_.warmup).value()),
      peak_(peak),
      epochs_(epochs) {}

double Schedule::rate(const ScheduleTime& time) const {
  return peak_ * warmup(time) * decay(time.progress);
}

std::string Schedule::text() const {
  const auto& o = options_;
  auto text = fmt::format("{:.4g}", peak_);
  if (warmup_.count > 0)
    text += fmt::format(", after a{} warm-up from {:.4g} over {}",
                        o.warmup_power == 1   ? " linear"
                        : o.warmup_power == 2 ? " quadratic"
                                              : "",
                        peak_ * o.warmup_factor, o.warmup);
  if (o.type == ScheduleType::warmup_cosine)
    return text + fmt::format(", along a cosine to {:.4g} at epoch {}", peak_ * o.end_factor,
                              epochs_ - o.end_epochs);
  if (o.type == ScheduleType::cosine)
    return text + fmt::format(", along a cosine to 0 at epoch {}", epochs_);
  if (o.type == ScheduleType::poly)
    return text + fmt::format(", times (1 - epoch / {})^{}", epochs_, o.power);
  if (o.type == ScheduleType::exponential) return text + fmt::format(", times {}^epoch", o.gamma);
  if (o.type == ScheduleType::step && !o.milestones.empty())
    return text + fmt::format(", times {} at {} {}", o.gamma,
                              o.milestones.size() == 1 ? "epoch" : "epochs",
                              fmt::join(o.milestones, ", "));
  return text + ", constant";
}

double Schedule::warmup(const ScheduleTime& time) const {
  const auto done = warmup_.unit == "epoch"   ? time.progress
                    : warmup_.unit == "image" ? static_cast<double>(time.images)
                                              : static_cast<double>(time.step);
  if (done >= warmup_.count) return 1;
  const auto power = options_.warmup_power;
  const auto risen = power == 1 ? done : warmup_.count * std::pow(done / warmup_.count, power);
  return options_.warmup_factor + (1 - options_.warmup_factor) * risen / warmup_.count;
}

double Schedule::decay(double progress) const {
  const double passed = std::min(progress / epochs_, 1.0);
  if (options_.type == ScheduleType::cosine) return 0.5 * (1 + std::cos(std::numbers::pi * passed));
  if (options_.type == ScheduleType::warmup_cosine) {
    const double begin = warmup_.count, end = epochs_ - options_.end_epochs;
    const double done = std::clamp((progress - begin) / (end - begin), 0.0, 1.0);
    const double left = 0.5 * (1 + std::cos(std::numbers::pi * done));
    return options_.end_factor + (1 - options_.end_factor) * left;
  }
  if (options_.type == ScheduleType::poly) return std::pow(1 - passed, options_.power);
  if (options_.type == ScheduleType::exponential) return std::pow(options_.gamma, progress);
  if (options_.type == ScheduleType::constant) return 1;
  const auto milestones = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                        [&](double milestone) { return progress >= milestone; });
  return std::pow(options_.gamma, static_cast<double>(milestones));
}

}  // namespace millrace
