#include "millrace/base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "millrace/base/errors.h"
#include "millrace/base/registry.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

using Entry = Options::Entry;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

std::string number_text(double v) { return fmt::format("{}", v); }

/// Limits of an integer, which has some in any case.
Limits bounded(Limits limits) {
  if (limits.min == Limits{}.min) limits.min = -kMostOfAnything;
  if (limits.max == Limits{}.max) limits.max = kMostOfAnything;
  return limits;
}

/// "0 .. 1", ">= 1 px", "" where everything is allowed, or as much as anybody could want.
std::string range_text(const Limits& limits) {
  const bool low = limits.min > Limits{}.min && limits.min != -kMostOfAnything;
  const bool high = limits.max < kMostOfAnything;
  std::string text;
  if (low && high) text = number_text(limits.min) + " .. " + number_text(limits.max);
  if (low && !high) text = ">= " + number_text(limits.min);
  if (!low && high) text = "<= " + number_text(limits.max);
  if (!limits.unit.empty()) text += (text.empty() ? "" : " ") + limits.unit;
  return text;
}

[[noreturn]] void refuse(const Entry& entry, const Config& value, const std::string& wanted) {
  throw ConfigError(fmt::format("{}: {} takes {}, not {}", value.origin.text(), entry.name, wanted,
                                value.type_name()));
}

void check_range(const Entry& entry, const Config& value, double number) {
  const auto& limits = entry.limits;
  if (number >= limits.min && number <= limits.max) return;
  const auto range =
      number > limits.max && limits.max >= kMostOfAnything    ? fmt::format("<= {}", limits.max)
      : number < limits.min && limits.min == -kMostOfAnything ? fmt::format(">= {}", limits.min)
                                                              : range_text(limits);
  throw ConfigError(fmt::format("{}: {} = {} is out of range ({})", value.origin.text(), entry.name,
                                value_text(value), range));
}

void read_value(const Entry& entry, const Config& value, bool& into) {
  const auto* v = std::get_if<bool>(&value.data);
  if (!v) refuse(entry, value, "true or false");
  into = *v;
}

void read_value(const Entry& entry, const Config& value, std::int64_t& into) {
  const auto* v = std::get_if<std::int64_t>(&value.data);
  if (!v) refuse(entry, value, "an integer");
  check_range(entry, value, static_cast<double>(*v));
  into = *v;
}

void read_value(const Entry& entry, const Config& value, double& into) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    into = static_cast<double>(*whole);
  else if (const auto* real = std::get_if<double>(&value.data))
    into = *real;
  else
    refuse(entry, value, "a number");
  check_range(entry, value, into);
}

void read_value(const Entry& entry, const Config& value, std::string& into) {
  const auto* v = std::get_if<std::string>(&value.data);
  if (!v) refuse(entry, value, "a string");
  if (!entry.choices.empty() &&
      std::find(entry.choices.begin(), entry.choices.end(), *v) == entry.choices.end())
    throw ConfigError(
        fmt::format("{}: {} = \"{}\" is not one of {}{}", value.origin.text(), entry.name, *v,
                    joined(entry.choices, " | "),
                    nearest_name(*v, entry.choices).empty() ? "" : suggestion(*v, entry.choices)));
  into = *v;
}

void read_value(const Entry& entry, const Config& value, const Options::Choice& into) {
  std::string name;
  read_value(entry, value, name);
  const auto found = std::ranges::find(entry.choices, name) - entry.choices.begin();
  into.set(into.value, static_cast<std::size_t>(found));
}

void read_value(const Entry& entry, const Config& value, Options::Table& into) {
  if (!value.is_table()) refuse(entry, value, "a table of numbers");
  Options::Table result;
  for (const auto& [key, member] : value.table()) {
    if (std::ranges::find(entry.choices, key) == entry.choices.end())
      throw ConfigError(fmt::format("{}: {} does not know '{}'{}", member.origin.text(), entry.name,
                                    key, suggestion(key, entry.choices)));
    read_value(entry, member, result.emplace_back(key, 0).second);
  }
  into = std::move(result);
}

template <class T>
Config as_config(const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t> ||
                std::is_same_v<T, double> || std::is_same_v<T, std::string>) {
    return {Config::Data(value), {}};
  } else if constexpr (std::is_same_v<T, Options::Choice>) {
    return {value.name(value.value), {}};
  } else if constexpr (std::is_same_v<T, Options::Table>) {
    Config table;
    for (const auto& [key, number] : value) table.set(key, as_config(number));
    return table;
  } else {
    Config::Array items;
    for (const auto& item : value) items.push_back(as_config(item));
    return {std::move(items), {}};
  }
}

/// 1 and 1.0 are equal, and so are a value and a list of it alone.
bool is_equal(const Config& a, const Config& b) {
  const auto number = [](const Config& value) -> std::optional<double> {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data))
      return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value.data)) return *real;
    return std::nullopt;
  };
  const auto *many = std::get_if<Config::Array>(&a.data),
             *others = std::get_if<Config::Array>(&b.data);
  if (many && others) return std::ranges::equal(*many, *others, is_equal);
  if (many) return many->size() == 1 && is_equal(many->front(), b);
  if (others) return is_equal(b, a);
  if (number(a) && number(b)) return number(a) == number(b);
  return value_text(a) == value_text(b);
}

template <class T>
void read_value(const Entry& entry, const Config& value, std::vector<T>& into) {
  std::vector<T> result;
  if (const auto* items = std::get_if<Config::Array>(&value.data)) {
    for (const auto& item : *items) {
      T one{};
      read_value(entry, item, one);
      result.push_back(std::move(one));
    }
  } else {
    T one{};
    read_value(entry, value, one);
    result.push_back(std::move(one));
  }
  if (result.size() < entry.limits.least)
    throw ConfigError(fmt::format(
        "{}: {} takes {} at least, such as {}", value.origin.text(), entry.name,
        counted(static_cast<long long>(entry.limits.least), "value"), value_text(as_config(into))));
  into = std::move(result);
}

}  // namespace

Entry& Options::add(std::string name, bool& value, std::string doc) {
  return entries_.emplace_back(Entry{std::move(name), &value, std::move(doc), {}, {}});
}
Entry& Options::add(std::string name, std::int64_t& value, std::string doc, Limits limits) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), bounded(std::move(limits)), {}});
}
Entry& Options::add(std::string name, double& value, std::string doc, Limits limits) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), std::move(limits), {}});
}
Entry& Options::add(std::string name, std::string& value, std::string doc,
                    std::vector<std::string> choices) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), {}, std::move(choices)});
}
Entry& Options::add(std::string name, Ints& value, std::string doc, Limits limits) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), bounded(std::move(limits)), {}});
}
Entry& Options::add(std::string name, Reals& value, std::string doc, Limits limits) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), std::move(limits), {}});
}
Entry& Options::add(std::string name, Strings& value, std::string doc,
                    std::vector<std::string> choices) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), {}, std::move(choices)});
}
Entry& Options::add(std::string name, Table& value, std::string doc, std::vector<std::string> keys,
                    Limits limits) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), std::move(limits), std::move(keys)});
}

void Options::read(const Config& table, std::initializer_list<std::string_view> others) const {
  if (!table.is_table())
    throw ConfigError(table.origin.text() + ": a table is wanted here, not " +
                      std::string(table.type_name()));
  for (const auto& [key, value] : table.table()) {
    if (std::find(others.begin(), others.end(), key) != others.end()) continue;
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [&name = key](const Entry& e) { return e.name == name; });
    if (entry == entries_.end()) {
      std::vector<std::string> known(others.begin(), others.end());
      for (const auto& e : entries_) known.push_back(e.name);
      throw ConfigError(value.origin.text() + ": unknown key '" + key + "'" +
                        suggestion(key, known));
    }
    std::visit([&, &given = value](auto target) { read_value(*entry, given, *target); },
               entry->target);
  }
}

std::vector<WeightOption> Options::weight_options() const {
  std::vector<WeightOption> found;
  for (const auto& entry : entries_)
    if (entry.of_weights != OfWeights::nothing)
      found.push_back({entry.name, entry.of_weights, entry.alike});
  return found;
}

void Options::complete(Config& table) const {
  for (const auto& entry : entries_)
    if (!table.find(entry.name)) table.set(entry.name, value(entry));
}

void Options::refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                            std::string_view why) const {
  for (const auto& entry : entries_) {
    const auto* set = table.find(entry.name);
    if (!set || std::ranges::find(keys, entry.name) == keys.end()) continue;
    if (is_equal(*set, value(entry))) continue;
    throw ConfigError(
        fmt::format("{}: {} changes nothing {}: leave it out, or where a base sets it, take it "
                    "back with `unset`",
                    set->origin.text(), entry.name, why));
  }
}

Config Options::value(const Entry& entry) {
  return std::visit([](auto target) { return as_config(*target); }, entry.target);
}

std::string OptionHelp::text() const {
  return fmt::format("{:<36} {}{}", name + " = " + value, doc,
                     legal.empty() ? "" : " (" + legal + ")");
}

std::vector<OptionHelp> option_help(const Options& options) {
  std::vector<OptionHelp> help;
  for (const auto& entry : options.entries())
    help.push_back(
        {.name = entry.name,
         .value = value_text(Options::value(entry)),
         .doc = entry.doc,
         .legal = entry.choices.empty() ? range_text(entry.limits) : joined(entry.choices, " | ")});
  return help;
}

}  // namespace millrace
