#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>

#include <fstream>
#include <vector>

#include "cli/revision.h"  // made by every build
#include "millrace/cli/program.h"

namespace millrace::cli {
namespace {

std::string text_of_mpi() {
#ifdef OMPI_MAJOR_VERSION
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                     OMPI_RELEASE_VERSION);
#else
  return fmt::format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION);
#endif
}

std::string text_of_compiler() {
#ifdef __clang__
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string name_of_processor() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

/// The instructions that something here or in libtorch is faster with.
std::vector<std::string> instructions() {
  std::vector<std::string> found;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) found.emplace_back("avx2");
  if (__builtin_cpu_supports("fma")) found.emplace_back("fma");
  if (__builtin_cpu_supports("avx512f")) found.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512vnni")) found.emplace_back("avx512_vnni");
  if (__builtin_cpu_supports("avx512bf16")) found.emplace_back("avx512_bf16");
#endif
  if (found.empty()) found.emplace_back("none of those that make it faster");
  return found;
}

}  // namespace

std::string program_version() {
  const std::string revision = MILLRACE_REVISION;
  return "trainer " MILLRACE_VERSION + (revision.empty() ? "" : " (" + revision + ")");
}

std::string revision_day() { return MILLRACE_REVISION_DAY; }

std::string build_facts() {
  const std::string revision = MILLRACE_REVISION;
  return fmt::format("revision {}\nbuilt by {} as " MILLRACE_BUILT_AS ", with " MILLRACE_BUILT_WITH
                     ", {}\nprocessor {}: {}",
                     revision.empty() ? "unknown" : revision, text_of_compiler(), text_of_mpi(),
                     name_of_processor(), fmt::join(instructions(), " "));
}

}  // namespace millrace::cli
