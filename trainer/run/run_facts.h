// Facts about the start of a run for its record, to repeat the run or compare it with another.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Returns the command line, the working directory, versions of the program and its libraries, and
/// the environment variables that affect results or devices, except names that suggest secrets.
nlohmann::ordered_json process_facts(const std::string& program);

/// Returns facts about the git repository of the file `of`: folder, revision, and the diff of
/// tracked files, which is written to `diff` if not empty. Null if there is no repository or no
/// git, or after ten seconds.
nlohmann::ordered_json repository_facts(const std::filesystem::path& of,
                                        const std::filesystem::path& diff);

/// Returns host and hardware of all ranks, as an array by rank. `device`: device of this rank.
/// Every rank calls it.
nlohmann::ordered_json rank_facts(const Cluster& cluster, const std::string& device);

}  // namespace millrace
