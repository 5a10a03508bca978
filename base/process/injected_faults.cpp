#include "millrace/base/process/injected_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"

namespace millrace {
namespace {

constexpr auto kVariable = "MILLRACE_FAULTS";
constexpr double kMostDelayS = 3600;

[[noreturn]] void refuse(std::string_view part, const std::string& why) {
  throw ConfigError(fmt::format("{}: '{}': {}", kVariable, part, why));
}

/// The number that the whole text is.
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

double probability(std::string_view part, std::string_view text) {
  const auto value = number<double>(text);
  if (!value || !(*value >= 0 && *value <= 1))
    refuse(part, fmt::format("'{}' is no probability from 0 to 1", text));
  return *value;
}

/// "0.2s", "200ms"
double seconds(std::string_view part, std::string_view text) {
  const bool is_ms = text.ends_with("ms");
  std::optional<double> value;
  if (text.ends_with('s')) value = number<double>(text.substr(0, text.size() - (is_ms ? 2 : 1)));
  const auto length = value.value_or(-1) * (is_ms ? 1e-3 : 1);
  if (!(length > 0 && length <= kMostDelayS))
    refuse(part, fmt::format("'{}' is no time such as 0.2s or 200ms, of an hour at most", text));
  return length;
}

/// "0.05:0.2s"
void read_delay(std::string_view part, std::string_view text, double& chance, double& length) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos)
    refuse(part, "a delay is a probability and a time, such as 0.05:0.2s");
  chance = probability(part, text.substr(0, colon));
  length = seconds(part, text.substr(colon + 1));
}

void read_server(std::string_view part, std::string_view fault, std::string_view value,
                 MessageFaults& faults) {
  if (fault == "drop")
    faults.drop = probability(part, value);
  else if (fault == "corrupt")
    faults.corrupt = probability(part, value);
  else if (fault == "duplicate")
    faults.duplicate = probability(part, value);
  else if (fault == "delay")
    read_delay(part, value, faults.delay, faults.delay_s);
  else
    refuse(part, "messages of data servers have drop, corrupt, duplicate and delay");
}

void read_rank(std::string_view part, std::string_view fault, std::string_view value,
               RankFaults& faults) {
  if (fault == "drop")
    faults.drop = probability(part, value);
  else if (fault == "delay")
    read_delay(part, value, faults.delay, faults.delay_s);
  else if (fault == "corrupt")
    refuse(part,
           "gradients carry no checksum over MPI and NCCL, so that nobody could tell changed ones "
           "from right ones: the training would go on with wrong weights, which tests nothing");
  else if (fault == "duplicate")
    refuse(part, "MPI and NCCL deliver a message once: there is nothing to be tested");
  else
    refuse(part, "exchanges between ranks have drop and delay");
}

void read_part(std::string_view part, InjectedFaults& faults) {
  constexpr std::string_view kExample =
      "a part is such as server.drop=0.01 or rank1.delay=0.1:0.5s";
  const auto equals = part.find('=');
  if (equals == std::string_view::npos) refuse(part, std::string(kExample));
  const auto name = part.substr(0, equals), value = part.substr(equals + 1);
  if (name == "seed") {
    const auto seed = number<std::uint64_t>(value);
    if (!seed) refuse(part, "a seed is a whole number from 0 on");
    faults.seed = *seed;
    return;
  }
  const auto dot = name.find('.');
  const auto of = name.substr(0, dot);
  const auto fault = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  if (of == "server") return read_server(part, fault, value, faults.server);
  if (of == "rank") return read_rank(part, fault, value, faults.ranks);
  const auto rank = of.starts_with("rank") ? number<std::int64_t>(of.substr(4)) : std::nullopt;
  if (!rank || *rank < 0)
    refuse(part, fmt::format("there is no '{}'; known: seed, server.FAULT, rank.FAULT (of every "
                             "rank), rank1.FAULT (of rank 1)",
                             name));
  read_rank(part, fault, value, faults.by_rank[*rank]);
}

}  // namespace

const RankFaults& InjectedFaults::of_rank(std::int64_t rank) const {
  const auto own = by_rank.find(rank);
  return own == by_rank.end() ? ranks : own->second;
}

InjectedFaults parse_faults(std::string_view text) {
  InjectedFaults faults{.text = std::string(text)};
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    read_part(text.substr(begin, end - begin), faults);
    begin = end + 1;
  }
  return faults;
}

const InjectedFaults* injected_faults() {
  static const auto read = []() -> std::optional<InjectedFaults> {
    const auto* text = std::getenv(kVariable);
    return text && *text ? std::optional(parse_faults(text)) : std::nullopt;
  }();
  return read ? &*read : nullptr;
}

void tell_of_faults() {
  const auto* faults = injected_faults();
  if (!faults) return;
  static const bool told = [&] {
    spdlog::warn("{}: messages and exchanges get faults on purpose: {}", kVariable, faults->text);
    return true;
  }();
  static_cast<void>(told);
}

}  // namespace millrace
