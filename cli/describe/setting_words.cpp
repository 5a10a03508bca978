#include "millrace/cli/describe/setting_words.h"

#include <set>

#include "millrace/cli/describe/config_tables.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"

namespace millrace::cli {
namespace {

void add_words(std::set<std::string>& words, const std::string& table,
               const std::vector<OptionHelp>& options) {
  for (const auto& option : options) {
    const auto key = table + (table.empty() ? "" : ".") + option.name + "=";
    words.insert(key);
    if (option.type == OptionHelp::Type::boolean)
      words.insert({key + "false", key + "true"});
    else if (option.type == OptionHelp::Type::text)
      for (const auto& choice : option.choices) words.insert(key + choice);
  }
}

}  // namespace

std::vector<std::string> setting_words() {
  std::set<std::string> words;
  std::vector<OptionHelp> switches;  // of every callback
  for (const auto& table : config_tables()) {
    if (table.name == "callbacks.NAME")
      switches = table.options;
    else if (!table.name.starts_with("["))  // a list is written in a file
      add_words(words, table.name, table.options);
  }
  for (const auto& [name, entry] : detectors().entries()) {
    words.insert("model.type=" + name);
    add_words(words, "model", entry.help());
  }
  for (const auto& [name, entry] : callbacks().entries()) {
    add_words(words, "callbacks." + name, switches);
    add_words(words, "callbacks." + name, entry.help());
  }
  return {words.begin(), words.end()};
}

}  // namespace millrace::cli
