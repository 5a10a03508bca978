// Typed options: a struct with defaults describes itself once; reading, checking, listing and
// printing all follow from that description.
//
//   struct FlipOptions {
//     double probability = 0.5;
//     void describe(Options& o) { o.add("probability", probability, "chance to mirror an image", {.min = 0, .max = 1}); }
//   };
//   const auto options = read_options<FlipOptions>(table);
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"

namespace millrace {

/// The legal values of a number (each element of a list), its unit, and the fewest elements of a list. An integer whose
/// description gives no bound lies within kMostOfAnything either way, so that sums and products of options fit 64 bits.
struct Limits {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::string unit = {};
  std::size_t least = 0;
};
constexpr double kMostOfAnything = 1e9;
/// The `max` of a seed, of which every value is as good as another.
constexpr double kAnySeed = 9223372036854775807.0;

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
  using Target =
      std::variant<bool*, std::int64_t*, double*, std::string*, Ints*, Reals*, Strings*, Table*>;

  struct Entry {
    std::string name;
    Target target;
    std::string doc;
    Limits limits;
    std::vector<std::string> choices;  // of a string, of a table's keys; empty: any
    OfWeights decided = OfWeights::nothing;
    std::vector<std::string> alike;
    std::string follows;  // the key whose value is the default, "data.flip"; empty: none

    /// Says that trained weights depend on the option: checkpoints keep its value, and to use them with another is an
    /// error unless it is asked for. Values among `same` decide the same.
    void decides(OfWeights what, std::vector<std::string> same = {}) {
      decided = what;
      alike = std::move(same);
    }

    /// Says that the option's default is the value of a key elsewhere, "data.flip" (see default_options).
    void follow(std::string key) { follows = std::move(key); }
  };

  /// Each describes one option and returns its entry, which is valid until the next one is added.
  Entry& add(std::string name, bool& value, std::string doc);
  Entry& add(std::string name, std::int64_t& value, std::string doc, Limits limits = {});
  Entry& add(std::string name, double& value, std::string doc, Limits limits = {});
  Entry& add(std::string name, std::string& value, std::string doc,
             std::vector<std::string> choices = {});
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

  /// Reads every described value that the table has. Throws ConfigError with file, line and column for a
  /// key that is neither described nor in `others` (naming the nearest), a wrong type, a value out of range.
  void read(const Config& table, std::initializer_list<std::string_view> others = {}) const;

  /// Writes every described value that the table lacks into it, marked "default"; not those that follow another key,
  /// which would no longer do so.
  void complete(Config& table) const;

  /// Throws ConfigError where the table sets one of `keys` to something else than its described (default) value:
  /// "file:4:14: milestones changes nothing with kind = "cosine": ...". `why` goes on after "changes nothing".
  void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                     std::string_view why) const;

  /// The present value of an entry as TOML: `[640, 800]`, `"sgd"`.
  static Config value(const Entry& entry);

 private:
  std::vector<Entry> entries_;
};

/// The defaults of a struct: `T{}`, unless it has `static T from(const Given&...)`, for defaults that other options
/// give, or `static T defaults_for(const Config& table)`, for those that a key of the table itself chooses (a named style).
template <class T, class... Given>
T default_options(const Config& table, const Given&... given) {
  if constexpr (sizeof...(Given) > 0 && requires { T::from(given...); })
    return T::from(given...);
  else if constexpr (requires { T::defaults_for(table); })
    return T::defaults_for(table);
  else
    return T{};
}

/// A struct of options read from a table over its defaults (see default_options). Values that contradict each other are
/// found by the struct's `check(const Config& table)`, which throws ConfigError, or its `check()`, which throws
/// std::invalid_argument, if it has one.
template <class T, class... Given>
T read_options(const Config& table, std::initializer_list<std::string_view> others = {},
               const Given&... given) {
  T result = default_options<T>(table, given...);
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

/// Throws ConfigError where the table sets one of `keys` to something else than the default of `T`, although it changes
/// nothing; see Options::refuse_unused.
template <class T>
void refuse_unused(const Config& table, std::initializer_list<std::string_view> keys,
                   std::string_view why) {
  T value = default_options<T>(table);
  Options options;
  value.describe(options);
  options.refuse_unused(table, keys, why);
}

}  // namespace millrace
