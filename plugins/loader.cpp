#include "millrace/plugins/loader.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/own_folders.h"
#include "millrace/base/registry.h"
#include "millrace/base/text.h"
#include "millrace/plugins/plugin.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

fs::path find_plugin(const Config& entry) {
  const auto file = named_path(entry);
  if (fs::exists(file)) return file;
  const fs::path named = std::get<std::string>(entry.data);
  if (named.has_parent_path()) throw Error(fmt::format("{} not found", file.string()));
  const auto installed = own_library_folder() / "plugins" / named;
  if (fs::exists(installed)) return installed;
  throw Error(fmt::format("neither {} nor {} found", file.string(), installed.string()));
}

/// Reads ELF structures from bytes that may be unaligned or truncated; throws Error if they are
/// truncated.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes), header_(at<Elf64_Ehdr>(0)) {}

  const Elf64_Ehdr& header() const { return header_; }

  Elf64_Shdr section(std::uint64_t number) const {
    return at<Elf64_Shdr>(header_.e_shoff + number * sizeof(Elf64_Shdr));
  }

  std::string_view bytes(const Elf64_Shdr& section) const {
    if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
      throw Error("the file is truncated or damaged");
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

 private:
  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset)
      throw Error("the file is truncated or damaged");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::string_view bytes_;
  Elf64_Ehdr header_;
};

std::string machine_name(Elf64_Half machine) {
  constexpr std::pair<Elf64_Half, const char*> kNames[] = {{EM_X86_64, "x86-64"},
                                                           {EM_AARCH64, "64-bit ARM"},
                                                           {EM_386, "32-bit x86"},
                                                           {EM_ARM, "32-bit ARM"}};
  for (const auto& [known, name] : kNames)
    if (machine == known) return name;
  return fmt::format("ELF machine {}", machine);
}

Elf64_Half own_machine() {
  Elf64_Ehdr header;
  InputFile("/proc/self/exe").read(0, {reinterpret_cast<char*>(&header), sizeof header});
  return header.e_machine;
}

/// Returns the bytes of a section of an ELF shared object, without running its code; nullopt if it
/// has no such section. Throws Error with the reason if this process cannot open `file`: it is
/// missing, not a shared object, built for another machine, or damaged.
std::optional<std::string> section_of(const std::filesystem::path& file, std::string_view section) {
  const auto text = read_file(file, {.check_head = [](std::string_view head) {
                                if (!head.starts_with(ELFMAG)) throw Error("not a shared object");
                              }});
  const Elf elf(text);
  // e_machine has the same offset in 32-bit and 64-bit files.
  if (const auto own = own_machine(); elf.header().e_machine != own)
    throw Error(fmt::format("built for {}, but this machine is {}",
                            machine_name(elf.header().e_machine), machine_name(own)));
  if (elf.header().e_type != ET_DYN) throw Error("not a shared object but another kind of ELF");
  if (elf.header().e_shnum == 0) return std::nullopt;
  const auto names = elf.bytes(elf.section(elf.header().e_shstrndx));
  for (std::uint64_t i = 0; i < elf.header().e_shnum; ++i) {
    const auto one = elf.section(i);
    if (one.sh_name >= names.size() || one.sh_type == SHT_NOBITS) continue;
    const auto name = names.substr(one.sh_name);
    if (name.substr(0, name.find('\0')) == section) return std::string(elf.bytes(one));
  }
  return std::nullopt;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

/// Throws Error unless the object was built with the same ABI as this program.
void check_abi(const fs::path& file) {
  const auto section = section_of(file, MILLRACE_PLUGIN_SECTION);
  if (!section)
    throw Error(
        "not a Millrace plug-in: build it with millrace_add_plugin, or add MILLRACE_PLUGIN to one "
        "of its sources");
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
  throw Error(fmt::format("built with {}, but this trainer with {}: rebuild it", joined(they_have),
                          joined(we_have)));
}

/// Opens the libraries that the object needs. Throws Error naming a missing one.
void open_needs(const fs::path& file) {
  const auto section = section_of(file, MILLRACE_PLUGIN_NEEDS_SECTION);
  if (!section) return;
  for (const auto& line : lines(section->c_str())) {
    const auto colon = line.find(": ");
    const auto library = line.substr(0, colon);
    if (!dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL))
      throw Error(fmt::format("requires {}, not found: {}", line.substr(colon + 2), dlerror()));
  }
}

/// Returns the error of dlopen, with the symbol demangled.
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
      "undefined symbol {}: neither the trainer nor a library that the plug-in is linked to "
      "defines it",
      name ? name.get() : symbol);
}

/// Opens the object, whose static constants register its components. Its symbols stay private; it
/// resolves Millrace's symbols in the executable.
void open(const fs::path& file) {
  // The plug-in's constants may throw, although <dlfcn.h> declares dlopen as non-throwing; the call
  // through a pointer prevents the compiler from relying on that.
  void* (*volatile const open_object)(const char*, int) = dlopen;
  registering_plugin() = file.string();
  const std::unique_ptr<std::string, void (*)(std::string*)> end(&registering_plugin(),
                                                                 [](auto* name) { name->clear(); });
  try {
    if (!open_object(file.c_str(), RTLD_NOW | RTLD_LOCAL)) throw Error(readable_reason(dlerror()));
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    throw Error("a static initializer threw something other than std::exception");
  }
}

void load(const fs::path& file) {
  check_abi(file);
  open_needs(file);
  open(file);
  log_debug("loaded plug-in {}", file.string());
}

/// Opens the plug-in of one entry of a list. Returns its absolute path.
std::string load_entry(const Config& entry, const std::string& named) {
  try {
    const auto file = find_plugin(entry);
    load(file);
    return file.string();
  } catch (const std::exception& problem) {
    throw ConfigError(fmt::format("{}: cannot load the plug-in '{}': {}", entry.origin.text(),
                                  named, problem.what()));
  }
}

}  // namespace

bool load_own_plugin(const std::string& name) {
  const auto folder = own_library_folder() / "plugins";
  const fs::path file = folder / (name + ".so");
  if (file.parent_path() != folder || !fs::exists(file)) return false;  // a name, not a path
  try {
    load(file);
  } catch (const std::exception& problem) {
    throw Error(fmt::format("cannot load the plug-in '{}': {}", file.string(), problem.what()));
  }
  return true;
}

void load_plugins(Config& tree) {
  Config* list = tree.find("plugins");
  if (!list) return;
  auto* files = std::get_if<Config::Array>(&list->data);
  if (!files) throw ConfigError(list->origin.text() + ": plugins must be a list of files");
  for (auto& entry : *files) {
    auto* named = std::get_if<std::string>(&entry.data);
    if (!named)
      throw ConfigError(entry.origin.text() + ": plugins must be a list of files, each a string");
    *named = load_entry(entry, *named);
  }
}

std::string load_plugin(const std::string& file, const std::string& option) {
  return load_entry({file, {option, 0, 0}}, file);
}

}  // namespace millrace
