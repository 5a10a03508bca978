// Resources that a run has used: time by part, energy, memory and price.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// Parts of a training's time. They do not overlap; the rest is bookkeeping.
enum class RunPart : std::size_t {
  start,        // from the process's start to the first step: libraries, data, weights
  data,         // waiting for batches
  forward,      // computing the losses, including the exchange of totals between ranks
  backward,     // computing the gradients from the losses
  sync,         // waiting for other ranks: for gradients and for the agreement before a step
  optimizer,    // the rest of a step: norms, clipping, new values
  evaluation,   // callbacks `evaluate` and `validation_loss`
  checkpoints,  // copying checkpoints and waiting for the previous one
  callbacks,    // all other callbacks
};
std::vector<std::string> value_names(RunPart);
inline constexpr std::size_t kRunParts = 9;

/// Resources of one or several starts.
struct RunUse {
  struct Part {
    double wall_s = 0;
    double cpu_s = 0;  // CPU seconds of all threads of the process during that part
  };

  double wall_s = 0;
  double cpu_s = 0;                        // CPU seconds of all ranks
  std::array<Part, kRunParts> parts = {};  // times of rank 0
  std::optional<double> energy_j;  // energy of the processors of all hosts; nullopt if not reported
  std::optional<double> price;     // price of the run; nullopt if no price per hour is set
  std::vector<std::int64_t> peak_memory_mib;  // peak memory by rank; 0 = unknown

  Part& operator[](RunPart part) { return parts[static_cast<std::size_t>(part)]; }
  const Part& operator[](RunPart part) const { return parts[static_cast<std::size_t>(part)]; }

  /// Adds up, except memory, which is the maximum. Energy and price are known if both are.
  RunUse& operator+=(const RunUse& more);

  /// Returns e.g. "1:02:03, 2:31:04 of CPU time, 0.41 kWh of the processors, price 3.12".
  std::string text() const;
};

nlohmann::ordered_json to_json(const RunUse& use);
/// Reads the JSON of to_json. Throws nlohmann::json::exception for anything else.
RunUse run_use(const nlohmann::ordered_json& json);

}  // namespace millrace
