#include "millrace/plugins/loader.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/registry.h"
#include "millrace/base/text.h"
#include "millrace/plugins/object_file.h"
#include "millrace/plugins/plugin.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

fs::path find_plugin(const fs::path& named, const Origin& by) {
  const auto folder = by.line > 0 ? fs::path(by.source).parent_path() : fs::path();
  const auto file = fs::absolute(folder / named).lexically_normal();
  if (fs::exists(file)) return file;
  if (named.has_parent_path()) throw Error(fmt::format("there is no {}", file.string()));
  const auto installed = fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
                         "lib/millrace/plugins" / named;
  if (fs::exists(installed)) return installed;
  throw Error(fmt::format("there is neither {} nor {}", file.string(), installed.string()));
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

/// Throws Error unless the object says that it was built like this program.
void check_abi(const fs::path& file) {
  const auto section = section_of(file, MILLRACE_PLUGIN_SECTION);
  if (!section)
    throw Error(
        "it is no Millrace plug-in: build it with millrace_add_plugin, or put MILLRACE_PLUGIN into "
        "one of its sources");
  const std::string theirs = section->c_str(), ours = MILLRACE_ABI;
  if (theirs == ours) return;
  std::vector<std::string> they_have, we_have;
  const auto their_lines = lines(theirs), our_lines = lines(ours);
  for (std::size_t i = 0; i < our_lines.size(); ++i) {
    const auto line = i < their_lines.size() ? their_lines[i] : "nothing";
    if (line == our_lines[i]) continue;
    they_have.push_back(line);
    we_have.push_back(our_lines[i]);
  }
  throw Error(fmt::format("it was built with {}, this trainer with {}: build it again",
                          joined(they_have), joined(we_have)));
}

/// Opens what the object says it needs. Throws Error naming what is missing.
void open_needs(const fs::path& file) {
  const auto section = section_of(file, MILLRACE_PLUGIN_NEEDS_SECTION);
  if (!section) return;
  for (const auto& line : lines(section->c_str())) {
    const auto colon = line.find(": ");
    const auto library = line.substr(0, colon);
    if (!dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL))
      throw Error(
          fmt::format("it needs {}, and there is none: {}", line.substr(colon + 2), dlerror()));
  }
}

/// What dlopen complained of, with the names of functions as people write them.
std::string readable_reason(const std::string& reason) {
  static const std::string before = "undefined symbol: ";
  const auto at = reason.find(before);
  if (at == std::string::npos) return reason;
  const auto begin = at + before.size();
  const auto symbol = reason.substr(begin, reason.find_first_of(" \t,(", begin) - begin);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return fmt::format(
      "it uses {}, which neither the trainer has nor a library that the plug-in is linked to",
      name ? name.get() : symbol);
}

/// Its constants register themselves in here. Symbols stay private to the plug-in; it finds ours in
/// the executable.
void open(const fs::path& file) {
  // What a constant of the plug-in throws comes out of here, though <dlfcn.h> declares that nothing
  // does: the call goes through a pointer that does not say so.
  void* (*volatile const open_object)(const char*, int) = dlopen;
  registering_plugin() = file.string();
  const std::unique_ptr<std::string, void (*)(std::string*)> end(&registering_plugin(),
                                                                 [](auto* name) { name->clear(); });
  try {
    if (!open_object(file.c_str(), RTLD_NOW | RTLD_LOCAL)) throw Error(readable_reason(dlerror()));
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    throw Error("one of its constants threw something that is no std::exception");
  }
}

}  // namespace

void load_plugins(Config& tree) {
  Config* list = tree.find("plugins");
  if (!list) return;
  auto* files = std::get_if<Config::Array>(&list->data);
  if (!files) throw ConfigError(list->origin.text() + ": plugins takes a list of files");
  for (auto& entry : *files) {
    auto* named = std::get_if<std::string>(&entry.data);
    if (!named)
      throw ConfigError(entry.origin.text() + ": plugins takes a list of files, each a string");
    try {
      const auto file = find_plugin(*named, entry.origin);
      check_abi(file);
      open_needs(file);
      open(file);
      spdlog::debug("loaded the plug-in {}", file.string());
      *named = file.string();
    } catch (const std::exception& problem) {
      throw ConfigError(fmt::format("{}: cannot load the plug-in '{}': {}", entry.origin.text(),
                                    *named, problem.what()));
    }
  }
}

}  // namespace millrace
