// What a study runs: variants of one configuration, each trained with the same seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::study {

/// A key of the configuration with the values that it takes in turn, as TOML.
struct Varied {
  std::string key;
  std::vector<std::string> values;
};

/// Reads "optimizer.lr=0.01,0.02"; commas in brackets, braces and quotes belong to a value. Throws
/// ConfigError.
Varied read_varied(std::string_view text);

/// One choice of values.
struct Variant {
  std::string name;                   // "optimizer.lr=0.01, train.epochs=2"
  std::vector<std::string> settings;  // K=V, for --set
};

struct StudyPlan {
  std::filesystem::path config_file;  // absolute
  std::vector<std::string> settings;  // of all variants
  std::vector<Varied> varied;
  std::int64_t seeds = 0;  // train.seed is 1 .. seeds
  /// train.threads of every run: weights are the same bytes only for the same number.
  std::int64_t maths_threads = 0;
  /// All values of the first variant, complete, as TOML by key, except those of a run itself:
  /// train.seed and train.output.
  std::map<std::string, std::string> configuration;

  /// Of the configuration's file: runs are named after it.
  std::string name() const { return config_file.stem().string(); }
};

/// The cross product of the varied values, the last key fastest; without any, one variant with the
/// name of the configuration.
std::vector<Variant> variants_of(const StudyPlan& plan);

/// In what `now` is another plan than `was`, as "KEY is A there and B here"; empty: it is the same,
/// or the same with more seeds. `maths_threads` is no part of it: a study keeps its number.
std::vector<std::string> differences(const StudyPlan& was, const StudyPlan& now);

nlohmann::ordered_json to_json(const StudyPlan& plan);
/// Throws what nlohmann::json throws.
StudyPlan plan_from(const nlohmann::ordered_json& json);

}  // namespace millrace::study
