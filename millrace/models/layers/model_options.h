// What the options of detectors share: a style that the others start from, and a check for options
// that change nothing.
#pragma once

#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/options.h"

namespace millrace {

/// An option that the other values of its table leave without a use.
struct IdleOption {
  std::string name;
  std::string why;  // "box.type = \"2fc\" has no convolutions"
};

inline std::vector<IdleOption> together(std::vector<IdleOption> some,
                                        const std::vector<IdleOption>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

/// Throws ConfigError where the table sets one of the idle options to something else than its
/// default, telling where and why. `asked` and `defaults` describe the same struct.
void refuse_idle(const Config& table, const std::vector<IdleOption>& idle, const Options& asked,
                 const Options& defaults);

/// Describes the option `style`.
inline void add_style(Options& o, std::string& style) {
  o.add("style", style, "named set of numeric switches that the other options start from",
        {"detectron2", "torchvision"});
}

/// The defaults of a detector's options in the style that the [model] table asks for; the struct's
/// own are detectron2's, `use_torchvision()` turns them into the other set. Throws ConfigError
/// where the table's values contradict each other, which `check(table)` tells by `require`, or have
/// no use, as `idle()` says.
template <class T>
T defaults_in_style(const Config& table) {
  T defaults;
  const Config* style = table.is_table() ? table.find("style") : nullptr;
  const auto* name = style ? std::get_if<std::string>(&style->data) : nullptr;
  if (name && *name == "torchvision") {
    defaults.style = *name;
    defaults.use_torchvision();
  }
  T asked = defaults;
  Options options;
  asked.describe(options);
  options.read(table, {"type", "weights"});
  asked.check(table);
  T unchanged = defaults;
  Options normal;
  unchanged.describe(normal);
  refuse_idle(table, asked.idle(), options, normal);
  return defaults;
}

}  // namespace millrace
