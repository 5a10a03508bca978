#include "millrace/migration/import_config.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/migration/detectron2/import_detectron2.h"
#include "millrace/migration/files/foreign_config.h"
#include "millrace/migration/files/python_literals.h"
#include "millrace/migration/mmdetection/import_mmdetection.h"

namespace millrace {
namespace {

const Place kCommandLine{"command line", 0};

Value value_of(const std::string& text) {
  for (const bool flag : {false, true})
    if (text == (flag ? "true" : "false")) return {flag, kCommandLine};
  if (auto literal = literal_of(text, kCommandLine)) return std::move(*literal);
  return {text, kCommandLine};
}

/// "KEY VALUE KEY VALUE ...", as detectron2's command lines end.
void override_pairs(Value& tree, const std::vector<std::string>& words) {
  if (words.size() % 2 != 0)
    throw ConfigError(
        fmt::format("overrides are KEY VALUE pairs: '{}' has no value", words.back()));
  for (std::size_t i = 0; i < words.size(); i += 2)
    set_at_path(tree, words[i], value_of(words[i + 1]));
}

/// "key=value", as MMDetection's --cfg-options.
void override_options(Value& tree, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto sign = word.find('=');
    if (sign == std::string::npos || sign == 0)
      throw ConfigError(fmt::format("overrides are key=value: '{}' is none", word));
    set_at_path(tree, word.substr(0, sign), value_of(word.substr(sign + 1)));
  }
}

}  // namespace

ImportedConfig import_config(const std::filesystem::path& file, const ImportOptions& options) {
  const auto kind = file.extension();
  if (kind == ".yaml" || kind == ".yml") {
    auto config = read_yaml_config(file);
    override_pairs(config.tree, options.overrides);
    return import_detectron2(config.tree, options);
  }
  if (kind == ".py") {
    auto config = read_python_config(file);
    override_options(config.tree, options.overrides);
    return import_mmdetection(config, options);
  }
  throw ConfigError(
      fmt::format("{}: a recipe is detectron2's .yaml or MMDetection's .py; other code bases have "
                  "tables of keys "
                  "in docs/migrating",
                  file.string()));
}

}  // namespace millrace
