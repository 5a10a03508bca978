// What a start of a run is made with, for its record: who repeats the run, or asks why it differs
// from another one, looks there.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Command line, working directory, program and libraries with their versions, processor, and those
/// environment variables that change what is computed or where. Names that sound like secrets are
/// left out.
nlohmann::ordered_json process_facts(const std::string& program);

/// The git repository that a file lies in: its folder, its revision, whether tracked files differ
/// from that; the differences go into `diff`, a file that is made where there are some. Null where
/// the file lies in none, there is no git, or that takes longer than ten seconds.
nlohmann::ordered_json repository_facts(const std::filesystem::path& of,
                                        const std::filesystem::path& diff);

/// Where each rank runs, and on what: an array by rank. `device` is this one's. Every rank calls
/// it.
nlohmann::ordered_json rank_facts(const Cluster& cluster, const std::string& device);

}  // namespace millrace
