// What a run was started with, for its record: to repeat it, or to see why it differs from another.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Command line, working directory, versions of the program and its libraries, and the environment
/// variables that change what is computed or where, except names that sound like secrets.
nlohmann::ordered_json process_facts(const std::string& program);

/// The git repository that a file lies in: folder, revision, and the differences of tracked files,
/// written to `diff` if there are any. Null without a repository or git, or after ten seconds.
nlohmann::ordered_json repository_facts(const std::filesystem::path& of,
                                        const std::filesystem::path& diff);

/// Where each rank runs, and on what: an array by rank. `device`: of this rank. Every rank calls
/// it.
nlohmann::ordered_json rank_facts(const Cluster& cluster, const std::string& device);

}  // namespace millrace
