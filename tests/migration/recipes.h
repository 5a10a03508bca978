// Recipes for tests: those in tests/migration/recipes, and files written by a test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/migration/files/foreign_config.h"
#include "millrace/migration/import_config.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::testing {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

const std::filesystem::path kRecipes = "tests/migration/recipes";

/// TOML text of one of ours, "" where there is none.
inline std::string text_at(const ImportedConfig& config, const std::string& key) {
  const auto* value = config.tree.find_path(key);
  return value ? value_text(*value) : "";
}
inline std::string origin_at(const ImportedConfig& config, const std::string& key) {
  const auto* value = config.tree.find_path(key);
  return value ? value->origin.text() : "";
}

/// Why a key of theirs was not translated, "" where it was.
inline std::string reason_of(const ImportedConfig& config, const std::string& key) {
  for (const auto& one : config.left_out)
    if (one.key == key) return one.reason;
  return "";
}

}  // namespace millrace::testing
