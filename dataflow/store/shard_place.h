// The places that shards of a record store are read from.
#pragma once

#include <span>
#include <string>

namespace millrace {

/// The path or URL of the shard that the header of `store` (a folder or its URL) calls `name`. A
/// header is not trusted: a relative name stays below the store, and an absolute path or a URL must
/// be in one of the `allowed` folders and URLs. Throws ConfigError.
std::string shard_place(const std::string& store, const std::string& name,
                        std::span<const std::string> allowed);

/// The folder or URL of a shard, as `allowed` has it.
std::string shard_folder(const std::string& shard);

}  // namespace millrace
