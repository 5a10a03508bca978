// Typed options: a struct with defaults describes itself once; reading, checking, listing and
// printing all follow from that description.
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

/// A length of time: "30 seconds", "5 minutes", "2 hours".
struct Duration {
  double seconds = 0;
};

/// A finite number that is not negative, and its unit without an s at its end: {500, "step"} of
/// "500 steps".
struct Quantity {
  double count = 0;
  std::string unit;
};

/// nullopt unless the text is a number and a word.
std::optional<Quantity> parse_quantity(std::string_view text);

/// nullopt for other units.
std::optional<double> seconds_of(const Quantity& quantity);
std::optional<Duration> parse_duration(std::string_view text);

/// "5 minutes", "1 hour", "0.5 seconds": in the largest unit in which it is a whole number, else in
/// seconds.
std::string duration_in_words(double seconds);

/// The legal values of a number (each element of a list), its unit, and the fewest elements of a
/// list. Integers without limits of their own lie within +-kMostOfAnything, so that sums and
/// products of options fit 64 bits.
struct Limits {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::string unit = {};
  std::size_t least = 0;
};
constexpr double kMostOfAnything = 1e9;
/// The `max` of a seed.
constexpr double kAnySeed = 9223372036854775807.0;

/// An enum whose values have names, given by `value_names`, declared beside it, in the order 0, 1,
/// ...
///   enum class Direction { horizontal, vertical };
///   inline std::vector<std::string> value_names(Direction) { return {"horizontal", "vertical"}; }
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { value_names(value) } -> std::convertible_to<std::vector<std::string>>;
};

/// The name of a value.
template <NamedEnum E>
std::string value_name(E value) {
  return value_names(value).at(static_cast<std::size_t>(value));
}

/// The value of a name; nullopt for others.
template <NamedEnum E>
std::optional<E> named_value(std::string_view name) {
  const auto names = value_names(E{});
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

/// What an option decides, several at once: `Decides::batches | Decides::evaluation`.
enum class Decides : unsigned {
  batches = 1,     // the bytes of the batches that training gets
  evaluation = 2,  // the bytes of those that evaluation gets
  run = 4,         // where data is, how fast it comes, what is reported
};
constexpr Decides operator|(Decides a, Decides b) {
  return static_cast<Decides>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(Decides all, Decides one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

/// What an option decides about weights trained with it.
enum class OfWeights {
  nothing,  // it may change: it concerns training or detection only
  tensors,  // which tensors there are, and their shapes
  meaning,  // what the same tensors compute
};

/// An option that decides something about trained weights. The values in `alike` decide the same.
struct WeightOption {
  std::string name;
  OfWeights decides;
  std::vector<std::string> alike;
};

/// What a struct has described about itself. Holds references into that struct.
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
    const Choice& operator*() const { return *this; }  // as the pointers to other targets
  };
  using Target = std::variant<bool*, std::int64_t*, double*, Duration*, std::string*, Ints*, Reals*,
                              Strings*, Table*, Choice>;

  struct Entry {
    std::string name;
    Target target;
    std::string doc;
    Limits limits;
    std::vector<std::string> choices;  // values of a string or enum, keys of a table; empty: any
    Decides decided = Decides::batches;
    OfWeights of_weights = OfWeights::nothing;
    std::vector<std::string> alike;
    std::string followed;  // see follows(); empty: no key
    Config (*converted)(const Config& value) = nullptr;

    /// Declares what the option decides, by default training's batches.
    void decides(Decides what) { decided = what; }

    /// Declares that trained weights depend on the option: checkpoints keep its value, and using
    /// them with another one is an error unless the user insists. The values in `same` decide the
    /// same.
    void decides(OfWeights what, std::vector<std::string> same = {}) {
      of_weights = what;
      alike = std::move(same);
    }

    /// Declares that a table without the option has the value of `key`, which is in another table:
    /// "data.flip". `conversion` makes the option's value of the key's; nullptr: they are the same.
    Entry& follows(std::string key, Config (*conversion)(const Config& value) = nullptr) {
      followed = std::move(key);
      converted = conversion;
      return *this;
    }
  };

  /// The value of a key of another table, "data.flip".
  using ValueOfKey = std::function<Config(const std::string& key)>;

  /// Describes an option and returns its entry, which is valid until the next one is added. A
  /// `name` with dots is a path from this table: "rpn.nms_thresh" in [model] is nms_thresh of
  /// [model.rpn]. A Duration is written as "5 minutes", with limits in seconds; a list of one may
  /// be written as that value alone.
  template <class T>
  Entry& add(std::string name, T& value, std::string doc, Limits limits = {}) {
    if constexpr (NamedEnum<T>)
      return add({std::move(name), choice_of(value), std::move(doc), {}, value_names(value)});
    else
      return add({std::move(name), &value, std::move(doc), std::move(limits), {}});
  }
  /// An option that takes some of the values of its enum.
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

  /// Those that decide something about trained weights.
  std::vector<WeightOption> weight_options() const;

  /// Reads every described value in the table. Throws ConfigError with file, line and column for a
  /// key that is neither described nor in `others` (with its new name, or the nearest), a wrong
  /// type or a value out of range.
  void read(const Config& table, std::initializer_list<std::string_view> others = {}) const;

  /// Adds every described value that the table lacks, marked "default".
  void complete(Config& table) const;

  /// Adds the values of options that follow a key and that the table lacks, or that it followed
  /// before (see Config::follows).
  void follow(Config& table, const ValueOfKey& value_of) const;

  /// Throws ConfigError if the table sets one of `keys` to another value than the described
  /// (default) one: "file:4:14: milestones changes nothing with type = "cosine": ...". `why`
  /// follows "changes nothing".
  void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                     std::string_view why) const;

  /// The present value of an entry.
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

/// The defaults of a struct: `T{}`, unless it or its base has `template <class T> static T
/// defaults_for(const Config& table)`, for those that a key of the table chooses (a named style).
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

/// What a struct describes. `value` must outlive it.
template <class T>
Options described(T& value) {
  Options options;
  value.describe(options);
  return options;
}

/// A struct of options read from a table over its defaults (see default_options); `others` are keys
/// that someone else reads. If the struct has one, calls `check(const Config& table)`, which throws
/// ConfigError for values that contradict each other, or `check()`, which throws
/// std::invalid_argument.
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

/// Reads the part of a table that `T` describes; the rest is not read.
template <class T>
T read_part(const Config& table) {
  T part;
  const auto options = described(part);
  Config own(Config::Table{}, table.origin);
  for (const auto& entry : options.entries())
    if (const auto* value = table.find(entry.name)) own.set(entry.name, *value);
  return read_options<T>(own);
}

/// The options of `T` that decide something about trained weights.
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

/// Reads a section that `T` describes except `others`, and puts it, complete, into `tree`. Throws
/// ConfigError.
template <class T>
T take_section(const Config& from, const char* name, Config& tree,
               std::initializer_list<std::string_view> others = {}) {
  auto table = from.section(name);
  auto options = read_options<T>(table, others);
  complete_options<T>(table);
  tree.set(name, std::move(table));
  return options;
}

/// Options::refuse_unused for the defaults of `T`.
template <class T>
void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                   std::string_view why) {
  T value = default_options<T>(table);
  described(value).refuse_unused(table, keys, why);
}

/// Writes an option into a table, following `key` ("data.flip"), unless the table has a value of
/// its own.
void follow(Config& table, std::string_view option, Config value, std::string key);

/// Throws ConfigError unless `holds`: the place of `key` (or of the table, if that has no such
/// key), the key, and `why`. `key` may be a path, "rpn.nms_thresh".
void require(const Config& table, std::string_view key, bool holds, std::string_view why);

}  // namespace millrace
