#include "millrace/study/trainer_command.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/process/bound_program.h"

namespace millrace::study {
namespace {

UniqueFd memory_file(const char* name) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) throw Error(fmt::format("no memory for what a program prints: {}", strerror(errno)));
  return file;
}

std::string bytes_of(const UniqueFd& file) {
  return read_file(fmt::format("/proc/self/fd/{}", file.get()));
}

}  // namespace

std::string last_words(const std::string& output) {
  constexpr std::string_view kError = "trainer: error: ";
  std::istringstream lines(output);
  std::string last, error;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.starts_with(kError)) error = line.substr(kError.size());
    last = line;
  }
  return error.empty() ? last : error;
}

void add_settings(std::vector<std::string>& words, const std::vector<std::string>& settings) {
  for (const auto& setting : settings) words.insert(words.end(), {"--set", setting});
}

std::map<std::string, std::string> complete_configuration(const std::filesystem::path& program,
                                                          const StudyPlan& plan,
                                                          const Variant& variant) {
  std::vector<std::string> words = {program.string(), "config", plan.config_file.string()};
  add_settings(words, plan.settings);
  add_settings(words, variant.settings);
  const auto out = memory_file("out"), err = memory_file("err");
  BoundProgram config(words, {out, err});
  config.wait();
  if (!config.failure().empty()) {
    const auto said = last_words(bytes_of(err));
    throw ConfigError(said.empty() ? "trainer config: " + config.failure() : said);
  }
  std::map<std::string, std::string> values;
  const Config tree = parse_config(bytes_of(out), "trainer config");
  for (const auto& [key, value] : leaves(tree))
    if (key != "train.seed" && key != "train.output") values[key] = value_text(*value);
  return values;
}

}  // namespace millrace::study
