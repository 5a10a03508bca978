// Options that change nothing beside the others.
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

}  // namespace millrace
