#include "millrace/cli/libtorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSearchPath = "LD_LIBRARY_PATH";
constexpr const char* kAdded = "MILLRACE_ADDED_LIBRARY_PATH";  // our prefix of kSearchPath

/// Returns the folder of the package that contains this program. It has bin/, lib/ and
/// lib/millrace/libtorch-version, the libtorch version that the package was built with.
fs::path package_folder() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path().parent_path();
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream text(file);
  std::getline(text, line);
  return line;
}

/// Returns the word after `key` in a file, up to white space, without quotes.
std::optional<std::string> value_in(const fs::path& file, const std::string& key) {
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of(" ='\"", key.size());
    if (begin == line.npos) continue;
    return line.substr(begin, line.find_first_of(" '\"\r", begin) - begin);
  }
  return {};
}

/// Returns "2.11" for "2.11.0+cu130". Two libtorch versions are compatible with one program if this
/// part is equal.
std::string interface_of(const std::string& version) {
  const auto minor = version.find('.');
  return minor == version.npos ? version : version.substr(0, version.find('.', minor + 1));
}

/// Returns the folder of the torch package that `python3` would import; empty if not found.
/// Does not import it, which would take seconds.
std::string folder_of_pythons_torch() {
  constexpr auto kAsk =
      "python3 -c \"import importlib.util as u; s = u.find_spec('torch'); "
      "print(list(s.submodule_search_locations)[0] if s else '')\" 2>/dev/null </dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(kAsk, "r"), ::pclose);
  std::string folder;
  std::array<char, 4096> piece;
  while (answer && std::fgets(piece.data(), piece.size(), answer.get())) folder += piece.data();
  while (folder.ends_with('\n')) folder.pop_back();
  return folder;
}

/// Returns why this folder's libtorch is unsuitable; nullopt if it is suitable.
std::optional<std::string> complaint(const fs::path& folder, const std::string& wanted) {
  if (!fs::exists(folder / "lib/libtorch_cpu.so"))
    return fmt::format("{} has no lib/libtorch_cpu.so", folder.string());
  const auto version = libtorch_version(folder);
  if (!version) return fmt::format("the version of {} is unknown", folder.string());
  if (interface_of(*version) != interface_of(wanted))
    return fmt::format("{} is version {}", folder.string(), *version);
  return {};
}

fs::path find_libtorch(const std::string& wanted) {
  const auto needs =
      fmt::format("this package needs libtorch {} (CUDA or CPU)", interface_of(wanted));
  const auto get = fmt::format("`pip install torch=={}.*`", interface_of(wanted));
  if (const auto named = environment("LIBTORCH"); !named.empty()) {
    const auto wrong = complaint(named, wanted);
    if (!wrong) return named;
    throw Error(
        fmt::format("{}, but LIBTORCH={}: {}. Set LIBTORCH to another folder, or unset it to "
                    "search the default places",
                    needs, named, *wrong));
  }
  std::vector<std::string> wrong;
  const auto package = package_folder();
  for (const auto& folder : {package / "libtorch", package.parent_path() / "libtorch"}) {
    if (!fs::exists(folder)) continue;
    const auto why = complaint(folder, wanted);
    if (!why) return folder;
    wrong.push_back(*why);
  }
  const auto pythons = folder_of_pythons_torch();
  if (!pythons.empty()) {
    const auto why = complaint(pythons, wanted);
    if (!why) return pythons;
    wrong.push_back("python3's torch in " + *why);
  }
  if (wrong.empty())
    throw Error(
        fmt::format("{}, but none was found: LIBTORCH is not set, {} does not exist, and python3 "
                    "has no torch. Run {}, or set LIBTORCH to a folder with lib/libtorch_cpu.so",
                    needs, (package / "libtorch").string(), get));
  throw Error(fmt::format("{}, but {}. Run {}, or set LIBTORCH to a suitable folder", needs,
                          fmt::join(wrong, ", and "), get));
}

/// Returns the library folders of a libtorch: its own and, beside a torch package, those of
/// NVIDIA's packages.
std::vector<std::string> library_folders(const fs::path& libtorch) {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& package : fs::directory_iterator(libtorch.parent_path() / "nvidia", none))
    if (fs::is_directory(package.path() / "lib"))
      folders.push_back((package.path() / "lib").string());
  std::ranges::sort(folders);
  folders.insert(folders.begin(), (libtorch / "lib").string());
  return folders;
}

/// Sets the environment variables by which Open MPI finds its parts in a package. Variables that
/// the caller has set are kept. Only ranks do this, so that other programs of a run are not
/// affected.
void open_mpi_to_next_program(const fs::path& package) {
  if (environment("OMPI_COMM_WORLD_SIZE").empty() && environment("PMIX_RANK").empty()) return;
  const auto mpi = package / "lib/openmpi";
  if (!fs::exists(mpi / "plugins")) return;  // a .deb uses the distribution's Open MPI
  for (const auto& [name, folder] :
       {std::pair("OPAL_PREFIX", mpi), std::pair("OPAL_LIBDIR", mpi),
        std::pair("OPAL_PKGLIBDIR", mpi / "plugins"), std::pair("OPAL_DATADIR", mpi / "share"),
        std::pair("OPAL_PKGDATADIR", mpi / "share/openmpi"),
        std::pair("OPAL_SYSCONFDIR", mpi / "etc"), std::pair("PMIX_INSTALL_PREFIX", mpi / "pmix")})
    ::setenv(name, folder.c_str(), /*overwrite=*/0);
}

}  // namespace

std::optional<std::string> libtorch_version(const fs::path& folder) {
  if (const auto version = value_in(folder / "version.py", "__version__")) return version;
  if (const auto version = first_line(folder / "build-version"); !version.empty()) return version;
  for (const auto* header :
       {"include/torch/headeronly/version.h", "include/torch/csrc/api/include/torch/version.h"}) {
    std::vector<std::string> numbers;
    for (const auto* part : {"MAJOR", "MINOR", "PATCH"})
      if (const auto number =
              value_in(folder / header, fmt::format("#define TORCH_VERSION_{}", part)))
        numbers.push_back(*number);
    if (numbers.size() == 3) return fmt::format("{}", fmt::join(numbers, "."));
  }
  return {};
}

std::string libtorch_text(const fs::path& folder, const std::string& otherwise) {
  return fmt::format("libtorch {} {} in {}", libtorch_version(folder).value_or(otherwise),
                     fs::exists(folder / "lib/libtorch_cuda.so") ? "with CUDA" : "for CPUs",
                     folder.string());
}

void add_libtorch_to_library_path() {
  const auto package = package_folder();
  const auto wanted = first_line(package / "lib/millrace/libtorch-version");
  if (wanted.empty()) return;
  auto folders = library_folders(find_libtorch(wanted));
  // These must come after libtorch's folders, because libtorch has its own OpenMP.
  folders.push_back((package / "lib").string());
  const auto added = fmt::format("{}", fmt::join(folders, ":"));
  const auto before = environment(kSearchPath);
  ::setenv(kSearchPath, (before.empty() ? added : added + ":" + before).c_str(), 1);
  ::setenv(kAdded, added.c_str(), 1);
  open_mpi_to_next_program(package);
}

void restore_library_path() {
  const auto added = environment(kAdded), now = environment(kSearchPath);
  if (added.empty()) return;
  ::unsetenv(kAdded);
  if (now == added)
    ::unsetenv(kSearchPath);
  else if (now.starts_with(added + ":"))
    ::setenv(kSearchPath, now.substr(added.size() + 1).c_str(), 1);
}

}  // namespace millrace::cli
