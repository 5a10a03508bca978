// What two runs were made with, compared: what decides their results, and what does not. Pure; any
// thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "millrace/report/run_files.h"

namespace millrace::report {

/// A fact that differs; "nothing" where a run does not have it, "not recorded" where it does not
/// say.
struct Difference {
  std::string what;  // a key of the configuration, or "data of training", "processors" ...
  std::string a, b;
};

struct FactsDiff {
  std::vector<Difference> deciding, others;
};

/// Whether a key of a configuration decides what is computed.
using DecidesResults = std::function<bool(const std::string& key, const Config& config)>;

/// Of several starts of a run all count.
FactsDiff facts_diff(const RunFiles& a, const RunFiles& b, const DecidesResults& decides);

}  // namespace millrace::report
