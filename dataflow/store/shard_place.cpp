#include "millrace/dataflow/store/shard_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "millrace/base/errors.h"
#include "millrace/dataflow/store/remote/remote.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns true if a component of the name is "..". Servers and libcurl treat "%2e" as a dot.
bool leads_up(std::string name) {
  for (std::size_t at = 0; (at = name.find('%', at)) != name.npos; ++at)
    if (name.compare(at, 3, "%2e") == 0 || name.compare(at, 3, "%2E") == 0)
      name.replace(at, 3, ".");
  return std::ranges::count(fs::path(name), fs::path("..")) > 0;
}

bool lies_in(const std::string& name, std::string folder) {
  if (leads_up(name) || is_url(name) != is_url(folder)) return false;
  if (!is_url(name)) folder = fs::absolute(folder).lexically_normal().string();
  if (!folder.ends_with('/')) folder += '/';
  return name.starts_with(folder);
}

}  // namespace

std::string shard_place(const std::string& store, const std::string& name,
                        std::span<const std::string> allowed) {
  const bool is_elsewhere = is_url(name) || fs::path(name).is_absolute();
  if (is_elsewhere) {
    if (std::ranges::any_of(allowed, [&](const auto& folder) { return lies_in(name, folder); }))
      return name;
  } else if (!leads_up(name)) {
    return is_url(store) ? fmt::format("{}{}{}", store, store.ends_with('/') ? "" : "/", name)
                         : (fs::path(store) / name).string();
  }
  auto text = fmt::format("{}: its shard '{}' is outside the store", store, name);
  if (is_elsewhere && !leads_up(name))
    text += fmt::format("; if you trust the store, add shards = [\"{}\"] to its [[data.sources]]",
                        shard_folder(name));
  throw ConfigError(text);
}

std::string shard_folder(const std::string& shard) {
  return shard.substr(0, std::max<std::size_t>(shard.rfind('/'), 1));
}

}  // namespace millrace
