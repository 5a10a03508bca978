// MILLRACE_FAULTS: faults on purpose, to see what a training makes of them (docs/faults.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace millrace {

/// Probabilities, of each message between a trainer and a data server.
struct MessageFaults {
  double drop = 0, corrupt = 0, duplicate = 0, delay = 0;
  double delay_s = 0;
};

/// Probabilities, of each exchange between ranks that a rank comes to.
struct RankFaults {
  double drop = 0;   // it comes no further
  double delay = 0;  // it comes so much later
  double delay_s = 0;
};

struct InjectedFaults {
  std::string text;  // as written
  std::uint64_t seed = 1;
  MessageFaults server = {};
  RankFaults ranks = {};                            // of all
  std::map<std::int64_t, RankFaults> by_rank = {};  // of these instead

  const RankFaults& of_rank(std::int64_t rank) const;
};

/// "seed=7,server.drop=0.01,server.delay=0.05:0.2s,rank1.delay=0.02:500ms". Throws ConfigError that
/// names the part that is wrong.
InjectedFaults parse_faults(std::string_view text);

/// Those of the environment variable, read once; nullptr: it is not set, or empty. Throws as
/// parse_faults.
const InjectedFaults* injected_faults();

/// Warns of them, once in a process.
void tell_of_faults();

}  // namespace millrace
