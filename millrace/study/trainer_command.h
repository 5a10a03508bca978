// Command lines of `trainer`, and what it says.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "millrace/study/study_plan.h"

namespace millrace::study {

/// Adds --set K=V for each setting to a command line.
void add_settings(std::vector<std::string>& words, const std::vector<std::string>& settings);

/// What a program has said last: its error, else its last line.
std::string last_words(const std::string& output);

/// The complete configuration of a variant, by key as TOML, as `trainer config` prints it. Throws
/// ConfigError with its message if that refuses it.
std::map<std::string, std::string> complete_configuration(const std::filesystem::path& program,
                                                          const StudyPlan& plan,
                                                          const Variant& variant);

}  // namespace millrace::study
