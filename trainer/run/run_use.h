// What a run has used: time by part, energy, memory, money.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// Where the time of a training goes. They do not overlap; what is left is bookkeeping.
enum class RunPart : std::size_t {
  start,        // from the process's first line to the first step: libraries, data, weights
  data,         // waiting for batches
  forward,      // up to the losses, other ranks' totals included
  backward,     // from the losses to the gradients
  sync,         // waiting for other ranks: their gradients, and what is agreed on before a step
  optimizer,    // the rest of steps: norms, clipping, new values
  evaluation,   // callbacks `evaluate` and `validation_loss`
  checkpoints,  // copying them, and waiting for the one before
  callbacks,    // all others
};
std::vector<std::string> value_names(RunPart);
inline constexpr std::size_t kRunParts = 9;

/// Of one start, or of several.
struct RunUse {
  struct Part {
    double wall_s = 0;
    double cpu_s = 0;  // of all threads of the process meanwhile
  };

  double wall_s = 0;
  double cpu_s = 0;                           // of all ranks
  std::array<Part, kRunParts> parts = {};     // of the chief
  std::optional<double> energy_j;             // of all hosts' processors; nothing: not told
  std::optional<double> price;                // nothing: no rate was given
  std::vector<std::int64_t> peak_memory_mib;  // by rank; 0: not known

  Part& operator[](RunPart part) { return parts[static_cast<std::size_t>(part)]; }
  const Part& operator[](RunPart part) const { return parts[static_cast<std::size_t>(part)]; }

  /// Energy and price are known if they are of both; memory is the larger.
  RunUse& operator+=(const RunUse& more);

  /// "1:02:03, 2:31:04 of CPU time, 0.41 kWh of the processors, price 3.12"
  std::string text() const;
};

nlohmann::ordered_json to_json(const RunUse& use);
/// Throws nlohmann::json::exception for anything else.
RunUse run_use(const nlohmann::ordered_json& json);

}  // namespace millrace
