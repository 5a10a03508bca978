// Typed options. A struct with defaults describes its options once; reading, checking, listing and
// printing use that description.
//
//   struct FlipOptions {
//     double probability = 0.5;
//     void describe(Options& o) {
//       o.add("probability", probability, "chance to mirror an image", {.min = 0, .max = 1});
//     }
//   };
//   const auto options = read_options<FlipOptions>(table);
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"

namespace millrace {

/// A length of time, written as "30 seconds", "5 minutes" or "2 hours".
struct Duration {
  double seconds = 0;
};

/// A finite non-negative number and its unit without a final s: "500 steps" is {500, "step"}.
struct Quantity {
  double count = 0;
  std::string unit;
};

/// Parses a number followed by a word; nullopt for any other text.
std::optional<Quantity> parse_quantity(std::string_view text);

/// Converts hours, minutes or seconds to seconds; nullopt for other units.
std::optional<double> seconds_of(const Quantity& quantity);
std::optional<Duration> parse_duration(std::string_view text);

/// Returns "5 minutes", "1 hour" or "0.5 seconds": the largest unit that gives a whole number,
/// otherwise seconds.
std::string duration_in_words(double seconds);

/// The legal range of a number (of each element of a list), its unit, and the minimum length of a
/// list. Integers without explicit limits are limited to +-kMaxOptionInteger, so that sums and
/// products of options fit 64 bits.
struct Limits {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::string unit = {};
  std::size_t least = 0;
};
constexpr double kMaxOptionInteger = 1e9;
/// `Limits::max` of a seed.
constexpr double kAnySeed = 9223372036854775807.0;

/// An enum whose values have names. `value_names`, declared beside the enum, returns the names in
/// the order of the values 0, 1, ...
///   enum class Direction { horizontal, vertical };
///   inline std::vector<std::string> value_names(Direction) { return {"horizontal", "vertical"}; }
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { value_names(value) } -> std::convertible_to<std::vector<std::string>>;
};

/// Returns the name of a value.
template <NamedEnum E>
std::string value_name(E value) {
  return value_names(value).at(static_cast<std::size_t>(value));
}

/// Returns the value with this name; nullopt if not found.
template <NamedEnum E>
std::optional<E> named_value(std::string_view name) {
  const auto names = value_names(E{});
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

/// The results that an option affects. Values can be combined: `Affects::batches |
/// Affects::evaluation`.
enum class Affects : unsigned {
  batches = 1,     // the bytes of training batches
  evaluation = 2,  // the bytes of evaluation batches
  run = 4,         // only the location of data, speed or reporting
};
constexpr Affects operator|(Affects a, Affects b) {
  return static_cast<Affects>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(Affects all, Affects one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

/// The effect of an option on the weights trained with it.
enum class WeightEffect {
  nothing,  // none; the option concerns only training or detection and may change
  tensors,  // the names and shapes of the tensors
  meaning,  // the computation done with the same tensors
};

/// An option that affects trained weights. The values in `alike` are equivalent.
struct WeightOption {
  std::string name;
  WeightEffect effect;
  std::vector<std::string> alike;
};

/// The description of a struct's options. Holds references into that struct.
class Options {
 public:
  using Ints = std::vector<std::int64_t>;
  using Reals = std::vector<double>;
  using Strings = std::vector<std::string>;
  using Table = std::vector<std::pair<std::string, double>>;  // numbers by name

  /// A value of any NamedEnum.
  struct Choice {
    void* value;
    std::string (*name)(const void* value);
    void (*set)(void* value, const std::string& name);
    // Same syntax as the pointers of other targets.
    const Choice& operator*() const { return *this; }
  };
  using Target = std::variant<bool*, std::int64_t*, double*, Duration*, std::string*, Ints*, Reals*,
                              Strings*, Table*, Choice>;

  struct Entry {
    std::string name;
    Target target;
    std::string doc;
    Limits limits;
    std::vector<std::string> choices;  // values of a string or enum, keys of a table; empty = any
    Affects affected = Affects::batches;
    WeightEffect weight_effect = WeightEffect::nothing;
    std::vector<std::string> alike;
    std::string followed;  // key that the option follows, see follows(); empty = none
    Config (*converted)(const Config& value) = nullptr;

    /// Sets what the option affects; the default is training batches.
    void affects(Affects what) { affected = what; }

    /// Declares that trained weights depend on the option. Checkpoints store its value, and using
    /// them with another value is an error unless the user insists. The values in `same` are
    /// equivalent.
    void affects(WeightEffect what, std::vector<std::string> same = {}) {
      weight_effect = what;
      alike = std::move(same);
    }

    /// Declares that the option takes the value of `key`, a key of another table such as
    /// "data.flip", if its own table does not set it. `conversion` converts the key's value;
    /// nullptr = unchanged.
    Entry& follows(std::string key, Config (*conversion)(const Config& value) = nullptr) {
      followed = std::move(key);
      converted = conversion;
      return *this;
    }
  };

  /// Returns the value of a key of another table, such as "data.flip".
  using ValueOfKey = std::function<Config(const std::string& key)>;

  /// Adds an option and returns its entry, which is valid until the next call. A `name` with dots
  /// is a path from this table: "rpn.nms_thresh" in [model] is nms_thresh of [model.rpn]. A
  /// Duration is written as "5 minutes", its limits are in seconds. A list with one element may be
  /// written as that element.
  template <class T>
  Entry& add(std::string name, T& value, std::string doc, Limits limits = {}) {
    if constexpr (NamedEnum<T>)
      return add({std::move(name), choice_of(value), std::move(doc), {}, value_names(value)});
    else
      return add({std::move(name), &value, std::move(doc), std::move(limits), {}});
  }
  /// Adds an option that accepts only the values `taken` of its enum.
  template <NamedEnum E>
  Entry& add(std::string name, E& value, std::string doc, std::initializer_list<E> taken) {
    Strings names;
    for (const auto one : taken) names.push_back(value_name(one));
    return add({std::move(name), choice_of(value), std::move(doc), {}, std::move(names)});
  }
  Entry& add(std::string name, std::string& value, std::string doc, Strings choices = {});
  Entry& add(std::string name, Strings& value, std::string doc, Strings choices = {});
  Entry& add(std::string name, Table& value, std::string doc, Strings keys, Limits limits = {});

  const std::vector<Entry>& entries() const { return entries_; }

  /// Returns the options that affect trained weights.
  std::vector<WeightOption> weight_options() const;

  /// Reads every described value from the table. Throws ConfigError with file, line and column for
  /// a value of the wrong type or out of range, and for a key that is neither described nor in
  /// `others` (with a suggestion of the nearest key).
  void read(const Config& table, std::initializer_list<std::string_view> others = {}) const;

  /// Adds every described value that the table lacks, with origin "default".
  void complete(Config& table) const;

  /// Sets the values of options that follow a key, unless the table sets them itself (see
  /// Config::follows).
  void follow(Config& table, const ValueOfKey& value_of) const;

  /// Throws ConfigError if the table sets one of `keys` to a value other than the described
  /// (default) one: "file:4:14: milestones changes nothing with type = "cosine": ...". `why`
  /// follows "changes nothing".
  void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                     std::string_view why) const;

  /// Returns the current value of an entry.
  static Config value(const Entry& entry);

 private:
  class Reader;

  template <NamedEnum E>
  static Choice choice_of(E& value) {
    return {&value,
            [](const void* enumerator) { return value_name(*static_cast<const E*>(enumerator)); },
            [](void* enumerator, const std::string& name) {
              *static_cast<E*>(enumerator) = *named_value<E>(name);
            }};
  }
  Entry& add(Entry entry);

  std::vector<Entry> entries_;
};

/// Returns the defaults of a struct: `T{}`, or the result of `template <class T> static T
/// defaults_for(const Config& table)` if the struct or its base has one, for defaults that depend
/// on a key of the table (such as a named style).
template <class T>
T default_options(const Config& table) {
  if constexpr (requires { T::template defaults_for<T>(table); }) {
    return T::template defaults_for<T>(table);
  } else {
    static_assert(
        !requires { T::defaults_for(table); }, "defaults_for is a template: see above");
    return T{};
  }
}

/// Returns the description of a struct. `value` must outlive it.
template <class T>
Options described(T& value) {
  Options options;
  value.describe(options);
  return options;
}

/// Returns a struct of options read from a table, starting from its defaults (see default_options).
/// `others` are keys that the caller reads elsewhere. Then calls the struct's `check(const Config&
/// table)`, which throws ConfigError for contradicting values, or `check()`, which throws
/// std::invalid_argument, if it has one.
template <class T>
T read_options(const Config& table, std::initializer_list<std::string_view> others = {}) {
  T result = default_options<T>(table);
  described(result).read(table, others);
  if constexpr (requires { result.check(table); }) {
    result.check(table);
  } else if constexpr (requires { result.check(); }) {
    try {
      result.check();
    } catch (const std::invalid_argument& problem) {
      throw ConfigError(table.origin.text() + ": " + problem.what());
    }
  }
  return result;
}

/// Reads the keys of a table that `T` describes and ignores the rest.
template <class T>
T read_part(const Config& table) {
  T part;
  const auto options = described(part);
  Config own(Config::Table{}, table.origin);
  for (const auto& entry : options.entries())
    if (const auto* value = table.find(entry.name)) own.set(entry.name, *value);
  return read_options<T>(own);
}

/// Returns the options of `T` that affect trained weights.
template <class T>
std::vector<WeightOption> weight_options() {
  T value;
  return described(value).weight_options();
}

/// Adds the defaults of `T` that a table lacks.
template <class T>
void complete_options(Config& table) {
  T value = default_options<T>(table);
  described(value).complete(table);
}

/// Reads the section `name` as a `T` (except `others`), completes it with defaults and stores it in
/// `tree`. Throws ConfigError.
template <class T>
T take_section(const Config& from, const char* name, Config& tree,
               std::initializer_list<std::string_view> others = {}) {
  auto table = from.section(name);
  auto options = read_options<T>(table, others);
  complete_options<T>(table);
  tree.set(name, std::move(table));
  return options;
}

/// Calls Options::refuse_unused with the defaults of `T`.
template <class T>
void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                   std::string_view why) {
  T value = default_options<T>(table);
  described(value).refuse_unused(table, keys, why);
}

/// Returns whether two values are read as the same value of an option: 1 and 1.0 are the same, and
/// so are a list with one element and that element.
bool same_value(const Config& a, const Config& b);

/// Sets an option that follows `key` (such as "data.flip"), unless the table has a value of its
/// own.
void follow(Config& table, std::string_view option, Config value, std::string key);

/// Throws ConfigError unless `holds`. The message contains the place of `key` (or of the table, if
/// it lacks the key), the key, and `why`. `key` may be a path such as "rpn.nms_thresh".
void require(const Config& table, std::string_view key, bool holds, std::string_view why);

}  // namespace millrace
