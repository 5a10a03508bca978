#include "millrace/base/options.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "millrace/base/registry.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

using Entry = Options::Entry;

/// Returns "0 .. 1" or ">= 1 px"; empty if the limits are the default ones.
std::string range_text(const Limits& limits) {
  const bool low = limits.min > Limits{}.min && limits.min != -kMaxOptionInteger;
  const bool high = limits.max < kMaxOptionInteger;
  std::string text;
  if (low && high) text = fmt::format("{} .. {}", limits.min, limits.max);
  if (low && !high) text = fmt::format(">= {}", limits.min);
  if (!low && high) text = fmt::format("<= {}", limits.max);
  if (!limits.unit.empty()) text += (text.empty() ? "" : " ") + limits.unit;
  return text;
}

/// Throws ConfigError with the value's place, the option's name and `why`.
[[noreturn]] void refuse(const Entry& entry, const Config& value, std::string_view why) {
  throw ConfigError(fmt::format("{}: {} {}", value.origin.text(), entry.name, why));
}

[[noreturn]] void refuse_type(const Entry& entry, const Config& value, std::string_view wanted) {
  refuse(entry, value, fmt::format("takes {}, not {}", wanted, value.type_name()));
}

void check_range(const Entry& entry, const Config& value, double number) {
  const auto& limits = entry.limits;
  if (!std::isfinite(number))
    refuse(entry, value,
           fmt::format("= {} is out of range: not a finite number", value_text(value)));
  if (number >= limits.min && number <= limits.max) return;
  const auto range =
      number > limits.max && limits.max >= kMaxOptionInteger    ? fmt::format("<= {}", limits.max)
      : number < limits.min && limits.min == -kMaxOptionInteger ? fmt::format(">= {}", limits.min)
                                                                : range_text(limits);
  refuse(entry, value, fmt::format("= {} is out of range ({})", value_text(value), range));
}

void read_value(const Entry& entry, const Config& value, bool& into) {
  const auto* v = std::get_if<bool>(&value.data);
  if (!v) refuse_type(entry, value, "true or false");
  into = *v;
}

void read_value(const Entry& entry, const Config& value, std::int64_t& into) {
  const auto* v = std::get_if<std::int64_t>(&value.data);
  if (!v) refuse_type(entry, value, "an integer");
  check_range(entry, value, static_cast<double>(*v));
  into = *v;
}

void read_value(const Entry& entry, const Config& value, double& into) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    into = static_cast<double>(*whole);
  else if (const auto* real = std::get_if<double>(&value.data))
    into = *real;
  else
    refuse_type(entry, value, "a number");
  check_range(entry, value, into);
}

void read_value(const Entry& entry, const Config& value, Duration& into) {
  const auto* text = std::get_if<std::string>(&value.data);
  const auto duration = text ? parse_duration(*text) : std::nullopt;
  if (!duration)
    refuse(entry, value,
           fmt::format(
               "= {} is not a duration; expected e.g. {}, \"30 seconds\" or \"5 minutes\"",
               value_text(value),
               text || value.is_table() ? "\"2 hours\"" : "\"" + value_text(value) + " seconds\""));
  if (duration->seconds < entry.limits.min || duration->seconds > entry.limits.max)
    refuse(entry, value,
           fmt::format("= {} is out of range ({} seconds)", value_text(value),
                       range_text(entry.limits)));
  into = *duration;
}

void read_value(const Entry& entry, const Config& value, std::string& into) {
  const auto* v = std::get_if<std::string>(&value.data);
  if (!v) {
    const auto& place = value.origin.source;
    const auto example = into.empty() ? value_text(value) : into;
    if (place.starts_with("--set "))
      refuse_type(entry, value, fmt::format("a string, e.g. {}='\"{}\"'", place, example));
    refuse_type(entry, value,
                into.empty() ? "a string" : fmt::format("a string, e.g. \"{}\"", into));
  }
  if (!entry.choices.empty() && std::ranges::find(entry.choices, *v) == entry.choices.end())
    refuse(
        entry, value,
        fmt::format("= \"{}\" is not one of {}{}", *v, joined(entry.choices, " | "),
                    nearest_name(*v, entry.choices).empty() ? "" : suggestion(*v, entry.choices)));
  into = *v;
}

void read_value(const Entry& entry, const Config& value, const Options::Choice& into) {
  std::string name;
  read_value(entry, value, name);
  into.set(into.value, name);
}

void read_value(const Entry& entry, const Config& value, Options::Table& into) {
  if (!value.is_table()) refuse_type(entry, value, "a table of numbers");
  Options::Table result;
  for (const auto& [key, member] : value.table()) {
    if (std::ranges::find(entry.choices, key) == entry.choices.end())
      refuse(entry, member, fmt::format("has no key '{}'{}", key, suggestion(key, entry.choices)));
    read_value(entry, member, result.emplace_back(key, 0).second);
  }
  into = std::move(result);
}

template <class T>
Config as_config(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return {Config::Data(value), {}};
  } else if constexpr (std::is_same_v<T, Duration>) {
    return {duration_in_words(value.seconds), {}};
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

OptionHelp::Type type_of(const Options::Target& target) {
  if (std::holds_alternative<Options::Choice>(target)) return OptionHelp::Type::text;
  return static_cast<OptionHelp::Type>(target.index());
}

template <class T>
void read_value(const Entry& entry, const Config& value, std::vector<T>& into) {
  std::vector<T> result;
  const auto* items = std::get_if<Config::Array>(&value.data);
  for (const auto& item : items ? std::span(*items) : std::span(&value, 1))
    read_value(entry, item, result.emplace_back());
  if (result.size() < entry.limits.least)
    refuse(entry, value,
           fmt::format("needs at least {}, e.g. {}",
                       counted(static_cast<long long>(entry.limits.least), "value"),
                       value_text(as_config(into))));
  into = std::move(result);
}

}  // namespace

Entry& Options::add(std::string name, std::string& value, std::string doc, Strings choices) {
  return add({std::move(name), &value, std::move(doc), {}, std::move(choices)});
}

Entry& Options::add(std::string name, Strings& value, std::string doc, Strings choices) {
  return add({std::move(name), &value, std::move(doc), {}, std::move(choices)});
}

Entry& Options::add(std::string name, Table& value, std::string doc, Strings keys, Limits limits) {
  return add({std::move(name), &value, std::move(doc), std::move(limits), std::move(keys)});
}

Entry& Options::add(Entry entry) {
  if (std::holds_alternative<std::int64_t*>(entry.target) ||
      std::holds_alternative<Ints*>(entry.target)) {
    if (entry.limits.min == Limits{}.min) entry.limits.min = -kMaxOptionInteger;
    if (entry.limits.max == Limits{}.max) entry.limits.max = kMaxOptionInteger;
  }
  return entries_.emplace_back(std::move(entry));
}

/// Reads a table and its subtables.
class Options::Reader {
 public:
  Reader(const std::vector<Entry>& entries, std::initializer_list<std::string_view> others)
      : entries_(entries), others_(others.begin(), others.size()) {}

  void read(const Config& table, const std::string& above = "") {
    for (const auto& [key, value] : table.table()) {
      const auto name = above + key;
      if (std::ranges::find(others_, name) != others_.end()) continue;
      const auto* entry = find(name);
      if (entry && key.find('.') == std::string::npos)
        std::visit([&, &given = value](auto target) { read_value(*entry, given, *target); },
                   entry->target);
      else if (value.is_table() && is_table(name))
        read(value, name + ".");
      else
        refuse(name, value, above);
    }
  }

 private:
  const Entry* find(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &Entry::name);
    return found == entries_.end() ? nullptr : &*found;
  }

  bool is_table(const std::string& name) const {
    return std::ranges::any_of(
        entries_, [&](const Entry& entry) { return entry.name.starts_with(name + "."); });
  }

  [[noreturn]] void refuse(const std::string& name, const Config& value,
                           const std::string& above) const {
    if (is_table(name))
      throw ConfigError(fmt::format("{}: {} must be a table, not {}", value.origin.text(), name,
                                    value.type_name()));
    std::vector<std::string> names;  // known names at this level
    if (above.empty()) names.assign(others_.begin(), others_.end());
    for (const auto& entry : entries_)
      if (entry.name.starts_with(above)) {
        auto own = entry.name.substr(0, entry.name.find('.', above.size()));
        if (std::ranges::find(names, own) == names.end()) names.push_back(std::move(own));
      }
    throw ConfigError(fmt::format(
        "{}: unknown key '{}'{}{}", value.origin.text(), name, suggestion(name, names),
        nearest_name(name, names).empty() ? "; if a base sets it, remove it with `unset`" : ""));
  }

  const std::vector<Entry>& entries_;
  std::span<const std::string_view> others_;
};

void Options::read(const Config& table, std::initializer_list<std::string_view> others) const {
  if (!table.is_table())
    throw ConfigError(table.origin.text() + ": expected a table, not " +
                      std::string(table.type_name()));
  Reader(entries_, others).read(table);
}

std::vector<WeightOption> Options::weight_options() const {
  std::vector<WeightOption> found;
  for (const auto& entry : entries_)
    if (entry.weight_effect != WeightEffect::nothing)
      found.push_back({entry.name, entry.weight_effect, entry.alike});
  return found;
}

void Options::complete(Config& table) const {
  for (const auto& entry : entries_)
    if (!table.find_path(entry.name)) table.set_path(entry.name, value(entry));
}

void Options::refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                            std::string_view why) const {
  for (const auto& entry : entries_) {
    const auto* set = table.find_path(entry.name);
    if (!set || std::ranges::find(keys, entry.name) == keys.end()) continue;
    if (same_value(*set, value(entry))) continue;
    refuse(
        entry, *set,
        fmt::format(
            "changes nothing {}: leave it out, or if a base sets it, remove it with `unset`", why));
  }
}

void Options::follow(Config& table, const ValueOfKey& value_of) const {
  for (const auto& entry : entries_) {
    if (entry.followed.empty()) continue;
    auto value = value_of(entry.followed);
    millrace::follow(table, entry.name, entry.converted ? entry.converted(value) : std::move(value),
                     entry.followed);
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
         .legal = entry.choices.empty() ? range_text(entry.limits) : joined(entry.choices, " | "),
         .type = type_of(entry.target),
         .limits = entry.limits,
         .choices = entry.choices,
         .follows = entry.followed});
  return help;
}

bool same_value(const Config& a, const Config& b) {
  const auto number = [](const Config& value) -> std::optional<double> {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data))
      return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value.data)) return *real;
    return std::nullopt;
  };
  const auto *many = std::get_if<Config::Array>(&a.data),
             *others = std::get_if<Config::Array>(&b.data);
  if (many && others) return std::ranges::equal(*many, *others, same_value);
  if (many) return many->size() == 1 && same_value(many->front(), b);
  if (others) return same_value(b, a);
  if (number(a) && number(b)) return number(a) == number(b);
  return value_text(a) == value_text(b);
}

void follow(Config& table, std::string_view option, Config value, std::string key) {
  if (const auto* own = table.find(option); own && !own->follows) return;
  value.origin = {std::move(key), 0, 0};
  value.follows = true;
  table.set(option, std::move(value));
}

void require(const Config& table, std::string_view key, bool holds, std::string_view why) {
  if (holds) return;
  const auto* value = table.find_path(key);
  throw ConfigError(
      fmt::format("{}: {} {}", (value ? value->origin : table.origin).text(), key, why));
}

}  // namespace millrace
