#include "base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/errors.h"
#include "base/registry.h"
#include "base/text.h"

namespace millrace {
namespace {

using Entry = Options::Entry;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

std::string number_text(double v) { return fmt::format("{}", v); }

/// "0 .. 1", ">= 1 px", "" where everything is allowed.
std::string range_text(const Limits& limits) {
  const bool low = limits.min > Limits{}.min, high = limits.max < Limits{}.max;
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
  if (!(number >= entry.limits.min && number <= entry.limits.max))
    throw ConfigError(fmt::format("{}: {} = {} is out of range ({})", value.origin.text(),
                                  entry.name, number_text(number), range_text(entry.limits)));
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
  into = std::move(result);
}

template <class T>
Config as_config(const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t> ||
                std::is_same_v<T, double> || std::is_same_v<T, std::string>) {
    return {Config::Data(value), {}};
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

}  // namespace

Entry& Options::add(std::string name, bool& value, std::string doc) {
  return entries_.emplace_back(Entry{std::move(name), &value, std::move(doc), {}, {}});
}
Entry& Options::add(std::string name, std::int64_t& value, std::string doc, Limits limits) {
  return entries_.emplace_back(
      Entry{std::move(name), &value, std::move(doc), std::move(limits), {}});
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
      Entry{std::move(name), &value, std::move(doc), std::move(limits), {}});
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
    std::visit([&, &given = value](auto* target) { read_value(*entry, given, *target); },
               entry->target);
  }
}

std::vector<WeightOption> Options::weight_options() const {
  std::vector<WeightOption> found;
  for (const auto& entry : entries_)
    if (entry.decided != OfWeights::nothing)
      found.push_back({entry.name, entry.decided, entry.alike});
  return found;
}

void Options::complete(Config& table) const {
  for (const auto& entry : entries_)
    if (!table.find(entry.name)) table.set(entry.name, value(entry));
}

Config Options::value(const Entry& entry) {
  return std::visit([](const auto* target) { return as_config(*target); }, entry.target);
}

std::vector<std::string> option_help(const Options& options) {
  std::vector<std::string> lines;
  for (const auto& entry : options.entries()) {
    const auto shown = entry.name + " = " + value_text(Options::value(entry));
    const auto legal =
        entry.choices.empty() ? range_text(entry.limits) : joined(entry.choices, " | ");
    lines.push_back(
        fmt::format("{:<36} {}{}", shown, entry.doc, legal.empty() ? "" : " (" + legal + ")"));
  }
  return lines;
}

}  // namespace millrace
