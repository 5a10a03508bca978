// The locations from which shards of a record store may be read.
#pragma once

#include <span>
#include <string>

namespace millrace {

/// Returns the path or URL of the shard `name` in the header of `store` (a folder or its URL).
/// Headers are not trusted: a relative name must stay below the store, and an absolute path or a
/// URL must be in one of the `allowed` folders and URLs. Throws ConfigError.
std::string shard_place(const std::string& store, const std::string& name,
                        std::span<const std::string> allowed);

/// Returns the folder or URL of a shard, in the form of `allowed`.
std::string shard_folder(const std::string& shard);

}  // namespace millrace
