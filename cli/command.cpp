#include "cli/command.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/config.h"
#include "plugins/loader.h"

namespace millrace::cli {

void ConfigArguments::add_to(CLI::App& command) {
  command.add_option("CONFIG", file, "the TOML file, such as configs/maskrcnn.toml")->required();
  command
      .add_option("--set", overrides,
                  "set a key of the configuration, such as train.seed=7; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false);
}

Recipe ConfigArguments::load() const {
  auto tree = load_config(file, overrides);
  load_plugins(tree);
  return resolve(std::move(tree));
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json,
                   "print one JSON object in one line, and nothing else, on standard output");
}

void print(const Json& json) {
  // Names of files need not be UTF-8.
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  command.footer(fmt::format("Examples:\n  {}", fmt::join(examples, "\n  ")));
}

}  // namespace millrace::cli
