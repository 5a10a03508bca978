// RUN/fleet.json: where the ranks of a run and its data servers answer, and what they said last.
//
//   {"format": 1, "start": 1, "written": 1790000000.5,
//    "ranks": [{"name": "rank 0", "host": "a", "process": 4711,
//               "endpoints": ["tcp://10.0.0.1:40001"],  // ipc:// if all are on one host
//               "heard": 1790000000.2, "status": {"rank": 0, "step": 12, ...}}, ...],
//    "servers": [{"name": "tcp://c:5555", "endpoints": ["tcp://c:5555"], ...}],
//    "server_keys": {"own": "/home/a/trainer.key", "server": "/home/a/server.pub"}}
//
// Times are seconds since 1970, by the chief's clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/serving/status_links.h"

namespace millrace {

inline constexpr auto kFleetFile = "fleet.json";
/// The secret key of a run: who can read it may ask its ranks.
inline constexpr auto kFleetKey = "fleet.key";

/// A rank, or a data server.
struct FleetMember {
  std::string name = {};     // "rank 2", or a server's endpoint
  std::string host = {};     // of a rank
  std::int64_t process = 0;  // of a rank
  std::vector<std::string> endpoints = {};
  double heard = 0;                    // when `status` came; 0: never
  nlohmann::ordered_json status = {};  // null: none has come
};

struct FleetFile {
  std::int64_t start = 0;  // of the run, from 1, as record.json counts them
  double written = 0;
  std::vector<FleetMember> ranks, servers;
  std::string server_key_own, server_key_of_server;  // files; empty: servers without keys
};

/// Seconds since 1970.
double wall_clock();

std::string to_json(const FleetFile& fleet);
/// Nothing without the file. Throws Error for one that cannot be read.
std::optional<FleetFile> read_fleet_file(const std::filesystem::path& run);

/// Whom to ask: ranks, then servers. Throws ConfigError for keys that cannot be read.
std::vector<serving::StatusSource> rank_sources(const FleetFile& fleet,
                                                const serving::KeyPair& keys);
std::vector<serving::StatusSource> server_sources(const FleetFile& fleet);

}  // namespace millrace
