#include "millrace/trainer/run/run_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/options.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

/// Truncates to milliseconds or millijoules.
double rounded(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value * 1e3)) / 1e3;
}

ordered_json json_of(const std::optional<double>& value) {
  return value ? ordered_json(rounded(*value)) : ordered_json();
}

std::optional<double> number_of(const ordered_json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

void add(std::optional<double>& sum, const std::optional<double>& more) {
  sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
}

}  // namespace

std::vector<std::string> value_names(RunPart) {
  return {"start",     "data",       "forward",     "backward", "sync",
          "optimizer", "evaluation", "checkpoints", "callbacks"};
}

RunUse& RunUse::operator+=(const RunUse& more) {
  wall_s += more.wall_s;
  cpu_s += more.cpu_s;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].wall_s += more.parts[i].wall_s;
    parts[i].cpu_s += more.parts[i].cpu_s;
  }
  add(energy_j, more.energy_j);
  add(price, more.price);
  peak_memory_mib.resize(std::max(peak_memory_mib.size(), more.peak_memory_mib.size()));
  for (std::size_t i = 0; i < more.peak_memory_mib.size(); ++i)
    peak_memory_mib[i] = std::max(peak_memory_mib[i], more.peak_memory_mib[i]);
  return *this;
}

std::string RunUse::text() const {
  auto text = fmt::format("{}, {} of CPU time", duration_text(wall_s), duration_text(cpu_s));
  if (energy_j) text += fmt::format(", {:.3g} kWh of the processors", *energy_j / 3.6e6);
  if (price) text += fmt::format(", price {:.2f}", *price);
  return text;
}

ordered_json to_json(const RunUse& use) {
  auto parts = ordered_json::object();
  const auto names = value_names(RunPart());
  for (std::size_t i = 0; i < names.size(); ++i)
    parts[names[i]] = {{"wall_s", rounded(use.parts[i].wall_s)},
                       {"cpu_s", rounded(use.parts[i].cpu_s)}};
  return {{"wall_s", rounded(use.wall_s)}, {"cpu_s", rounded(use.cpu_s)},
          {"parts", std::move(parts)},     {"energy_j", json_of(use.energy_j)},
          {"price", json_of(use.price)},   {"peak_memory_mib", use.peak_memory_mib}};
}

RunUse run_use(const ordered_json& json) {
  RunUse use{.wall_s = json.at("wall_s"),
             .cpu_s = json.at("cpu_s"),
             .energy_j = number_of(json.at("energy_j")),
             .price = number_of(json.at("price")),
             .peak_memory_mib = json.at("peak_memory_mib")};
  const auto names = value_names(RunPart());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& part = json.at("parts").at(names[i]);
    use.parts[i] = {part.at("wall_s"), part.at("cpu_s")};
  }
  return use;
}

}  // namespace millrace
