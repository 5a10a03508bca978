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

#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// Nothing where a text is something else than a number and a word.
std::optional<Quantity> parse_quantity(std::string_view text);

/// Nothing where it is no length of time.
std::optional<double> seconds_of(const Quantity& quantity);
std::optional<Duration> parse_duration(std::string_view text);

/// "5 minutes", "1 hour", "0.5 seconds": in the largest unit in which it is a whole number, else in
/// seconds.
std::string duration_in_words(double seconds);

/// The legal values of a number (each element of a list), its unit, and the fewest elements of a
/// list. An integer whose description gives no bound lies within kMostOfAnything either way, so
/// that sums and products of options fit 64 bits.
struct Limits {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::string unit = {};
  std::size_t least = 0;
};
constexpr double kMostOfAnything = 1e9;
/// The `max` of a seed, of which every value is as good as another.
constexpr double kAnySeed = 9223372036854775807.0;

/// An enum whose values have names, which `value_names`, declared beside it, gives in the order 0,
/// 1, ...:
///   enum class Direction { horizontal, vertical };
///   inline std::vector<std::string> value_names(Direction) { return {"horizontal", "vertical"}; }
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { value_names(value) } -> std::convertible_to<std::vector<std::string>>;
};

/// What a configuration calls a value of such an enum.
template <NamedEnum E>
std::string value_name(E value) {
  return value_names(value).at(static_cast<std::size_t>(value));
}

/// What an option decides, several at once: `Decides::batches | Decides::evaluation`.
enum class Decides : unsigned {
  batches = 1,     // the bytes of the batches that training gets
  evaluation = 2,  // the bytes of those that evaluation gets
  run = 4,         // how the run goes: where data lies, how fast it comes, what is reported
};
constexpr Decides operator|(Decides a, Decides b) {
  return static_cast<Decides>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(Decides all, Decides one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

/// What an option decides about weights that were trained with it.
enum class OfWeights {
  nothing,  // it belongs to the training, or to how one detects with them: it may change
  tensors,  // which tensors there are, and their shapes
  meaning,  // what the same tensors compute
};

/// An option that decides something about trained weights. Values among `alike` decide the same.
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
    void (*set)(void* value, std::size_t number);
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

    /// Says what the option decides. One that does not say so counts as deciding training's
    /// batches.
    void decides(Decides what) { decided = what; }

    /// Says that trained weights depend on the option: checkpoints keep its value, and to use them
    /// with another is an error unless it is asked for. Values among `same` decide the same.
    void decides(OfWeights what, std::vector<std::string> same = {}) {
      of_weights = what;
      alike = std::move(same);
    }
  };

  /// Each describes one option and returns its entry, which is valid until the next one is added. A
  /// `name` with dots is the path of an option in a table of this one: "rpn.nms_thresh" is
  /// nms_thresh of [model.rpn] where this is [model].
  Entry& add(std::string name, bool& value, std::string doc);
  Entry& add(std::string name, std::int64_t& value, std::string doc, Limits limits = {});
  Entry& add(std::string name, double& value, std::string doc, Limits limits = {});
  /// Written as "5 minutes"; its limits are numbers of seconds.
  Entry& add(std::string name, Duration& value, std::string doc, Limits limits = {});
  Entry& add(std::string name, std::string& value, std::string doc,
             std::vector<std::string> choices = {});
  /// A choice among the named values of an enum.
  template <NamedEnum E>
  Entry& add(std::string name, E& value, std::string doc) {
    const Choice choice{
        &value,
        [](const void* enumerator) { return value_name(*static_cast<const E*>(enumerator)); },
        [](void* enumerator, std::size_t number) {
          *static_cast<E*>(enumerator) = static_cast<E>(number);
        }};
    return entries_.emplace_back(
        Entry{std::move(name), choice, std::move(doc), {}, value_names(value)});
  }
  /// Lists: one value alone is read as a list of one.
  Entry& add(std::string name, Ints& value, std::string doc, Limits limits = {});
  Entry& add(std::string name, Reals& value, std::string doc, Limits limits = {});
  Entry& add(std::string name, Strings& value, std::string doc,
             std::vector<std::string> choices = {});
  /// A table of numbers; `keys` are those that it may have.
  Entry& add(std::string name, Table& value, std::string doc, std::vector<std::string> keys,
             Limits limits = {});

  const std::vector<Entry>& entries() const { return entries_; }

  /// Those that decide something about trained weights.
  std::vector<WeightOption> weight_options() const;

  /// Reads every described value that the table has. Throws ConfigError with file, line and column
  /// for a key that is neither described nor in `others` (naming its new name, or the nearest), a
  /// wrong type, a value out of range.
  void read(const Config& table, std::initializer_list<std::string_view> others = {}) const;

  /// Writes every described value that the table lacks into it, marked "default".
  void complete(Config& table) const;

  /// Throws ConfigError where the table sets one of `keys` to something else than its described
  /// (default) value: "file:4:14: milestones changes nothing with type = "cosine": ...". `why` goes
  /// on after "changes nothing".
  void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                     std::string_view why) const;

  /// The present value of an entry as TOML: `[640, 800]`, `"sgd"`.
  static Config value(const Entry& entry);

 private:
  class Reader;

  std::vector<Entry> entries_;
};

/// The defaults of a struct: `T{}`, unless it has `static T defaults_for(const Config& table)`, for
/// those that a key of the table itself chooses (a named style).
template <class T>
T default_options(const Config& table) {
  if constexpr (requires { T::defaults_for(table); })
    return T::defaults_for(table);
  else
    return T{};
}

/// A struct of options read from a table over its defaults (see default_options); `others` are keys
/// that someone else reads. Values that contradict each other are found by the struct's
/// `check(const Config& table)`, which throws ConfigError, or its `check()`, which throws
/// std::invalid_argument, if it has one.
template <class T>
T read_options(const Config& table, std::initializer_list<std::string_view> others = {}) {
  T result = default_options<T>(table);
  Options options;
  result.describe(options);
  options.read(table, others);
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

/// The options of `T` that decide something about trained weights.
template <class T>
std::vector<WeightOption> weight_options() {
  T value;
  Options options;
  value.describe(options);
  return options.weight_options();
}

/// Fills a table with the defaults of `T` that it lacks.
template <class T>
void complete_options(Config& table) {
  T value = default_options<T>(table);
  Options options;
  value.describe(options);
  options.complete(table);
}

/// Throws ConfigError where the table sets one of `keys` to something else than the default of `T`,
/// although it changes nothing; see Options::refuse_unused.
template <class T>
void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                   std::string_view why) {
  T value = default_options<T>(table);
  Options options;
  value.describe(options);
  options.refuse_unused(table, keys, why);
}

/// Throws ConfigError where `holds` is false: the place of `key` in the table (the table's own
/// place without such a key), the key, and `why`. `key` may be a path, "rpn.nms_thresh".
void require(const Config& table, std::string_view key, bool holds, std::string_view why);

}  // namespace millrace
