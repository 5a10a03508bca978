#include "plugins/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <string>

#include "base/errors.h"
#include "base/log.h"
#include "plugins/plugin.h"

namespace millrace {
namespace {

/// dlopen, with the reason where it fails. Symbols stay private to the plug-in; it finds ours in the
/// executable.
void* open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw Error(dlerror());
  return handle;
}

void load_plugin(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) throw Error("there is no such file");
  void* handle = open(std::filesystem::absolute(file).string());
  using Abi = int (*)();
  const auto abi = reinterpret_cast<Abi>(dlsym(handle, "millrace_plugin_abi"));
  if (!abi) throw Error("it is no Millrace plug-in (MILLRACE_PLUGIN is missing)");
  if (abi() != MILLRACE_ABI)
    throw Error(fmt::format("it is built for plug-in ABI {}, this trainer has {}; build it again",
                            abi(), MILLRACE_ABI));
  spdlog::debug("loaded the plug-in {}", file.string());
}

}  // namespace

void load_plugins(const Config& tree) {
  const Config* list = tree.find("plugins");
  if (!list) return;
  const auto* files = std::get_if<Config::Array>(&list->data);
  if (!files) throw ConfigError(list->origin.text() + ": plugins takes a list of files");
  for (const auto& entry : *files) {
    const auto* file = std::get_if<std::string>(&entry.data);
    if (!file)
      throw ConfigError(entry.origin.text() + ": plugins takes a list of files, each a string");
    try {
      load_plugin(*file);
    } catch (const std::exception& problem) {
      throw ConfigError(fmt::format("{}: cannot load the plug-in '{}': {}", entry.origin.text(),
                                    *file, problem.what()));
    }
  }
}

}  // namespace millrace
