// Registries of components by name: detectors, stages, callbacks. Each component registers itself
// with a constant in its own source file, so that adding one changes no other file.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"

namespace millrace {

/// The plug-in whose components are being registered; empty = the program.
std::string& registering_plugin();

/// The description of one option in `trainer list` and in the schema of `trainer config --schema`.
struct OptionHelp {
  /// The type of a value, in the order of Options::Target. A list with one element may be written
  /// as that element.
  enum class Type { boolean, integer, number, duration, text, integers, numbers, texts, table };
  std::string name;
  std::string value;  // default as TOML
  std::string doc;
  std::string legal;  // range and unit, or choices; empty = any value
  Type type = Type::text;
  Limits limits = {};
  std::vector<std::string> choices = {};  // values of a text, keys of a table; empty = any
  std::string follows = {};  // key that provides the value if the option is not set; empty = none
  std::string text() const;  // one line with all fields but the type
};
std::vector<OptionHelp> option_help(const Options& options);

/// Returns the descriptions of the options of `T`.
template <class T>
std::vector<OptionHelp> help_of() {
  T value;
  return option_help(described(value));
}

/// Throws ConfigError suggesting the nearest name in `known`.
[[noreturn]] void throw_unknown(const std::string& kind, const std::string& name,
                                const std::vector<std::string>& known, const Origin& where);
/// Throws Error: the plug-in being registered uses a name that the plug-in `first` has registered.
[[noreturn]] void throw_taken(const std::string& kind, const std::string& name,
                              const std::string& first);

/// The factories of one kind of component. Filled while static constants are initialised (and while
/// plug-ins are loaded), read only afterwards. Not safe for concurrent writing.
template <class Factory>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string doc;                        // one line
    std::function<void(Config&)> complete;  // adds the defaults of the component's options
    std::function<void(Config&, const Options::ValueOfKey&)> follow;  // see Options::follow
    // Throws ConfigError for invalid keys or values.
    std::function<void(const Config&)> check;
    std::function<std::vector<OptionHelp>()> help;  // for `trainer list`
    std::function<std::vector<WeightOption>()> weight_options;
    Factory create;
    std::string plugin;  // shared object that registered it; empty = built in
  };

  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Adds a component with the options `T`. Returns true, so that it can initialise a constant.
  /// Throws Error if the name is already registered, naming the plug-in that did so.
  template <class T>
  bool add(const std::string& name, std::string doc, Factory create) {
    const ComponentName who{kind_, name, registering_plugin()};
    const auto in_describe = [who](auto work) {
      return with_component_name(who, "describe", work);
    };
    Entry entry{name,
                std::move(doc),
                [=](Config& table) { in_describe([&] { complete_options<T>(table); }); },
                [=](Config& table, const Options::ValueOfKey& value_of) {
                  T value;
                  in_describe([&] { described(value).follow(table, value_of); });
                },
                [=](const Config& table) { in_describe([&] { read_options<T>(table); }); },
                [=] { return in_describe(help_of<T>); },
                weight_options<T>,
                std::move(create),
                who.plugin};
    const auto [place, is_new] = entries_.emplace(name, std::move(entry));
    if (!is_new) throw_taken(kind_, name, place->second.plugin);
    return true;
  }

  /// Returns the component `name`. If it is unknown, throws ConfigError suggesting the nearest one;
  /// `where` is the place of the name.
  const Entry& at(const std::string& name, const Origin& where = {}) const {
    if (const auto found = entries_.find(name); found != entries_.end()) return found->second;
    throw_unknown(kind_, name, names(), where);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }

  const std::string& kind() const { return kind_; }
  ComponentName title(const Entry& entry) const { return {kind_, entry.name, entry.plugin}; }
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

/// Returns the `type` of a component's table. Throws ConfigError naming the kind if it is missing.
std::string component_type(const Config& table, const std::string& kind);

/// Registers a component when the program starts or the plug-in is loaded. Use at namespace scope:
/// MILLRACE_REGISTER(register_callback<MyCallback>("mine", "one line of doc"));
#define MILLRACE_REGISTER(...) \
  [[maybe_unused]] static const bool MILLRACE_JOINED(registered_, __COUNTER__) = __VA_ARGS__
#define MILLRACE_JOINED(a, b) MILLRACE_JOINED_(a, b)
#define MILLRACE_JOINED_(a, b) a##b

/// For components without options.
struct NoOptions {
  void describe(Options&) {}
};

/// The options of the component class `C`: its member type `Options`, or NoOptions if it has none.
template <class C>
struct OptionsOfClass {
  using type = NoOptions;
};
template <class C>
requires requires { typename C::Options; }
struct OptionsOfClass<C> {
  using type = typename C::Options;
};
template <class C>
using OptionsOf = typename OptionsOfClass<C>::type;

/// Creates a component of class `C` with C(options, context...), or C() if it lacks such a
/// constructor.
template <class C, class O, class... Context>
std::unique_ptr<C> make_component(O options, const Context&... context) {
  if constexpr (std::constructible_from<C, O, const Context&...>)
    return std::make_unique<C>(std::move(options), context...);
  else
    return std::make_unique<C>();
}

}  // namespace millrace
