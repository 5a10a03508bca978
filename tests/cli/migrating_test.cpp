// docs/migrating.md names only keys, components and commands that exist.
#include <regex>
#include <set>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

/// Returns the strings between backticks.
Words spans_of(const std::string& text) {
  static const std::regex span("`([^`]+)`");
  Words all;
  for (std::sregex_iterator at(text.begin(), text.end(), span), end; at != end; ++at)
    all.push_back((*at)[1]);
  return all;
}

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class Migrating : public Trainer {
 protected:
  /// Calls `each` with every line of the page and its "page:line".
  template <class Each>
  static void for_each_line(Each each) {
    std::istringstream lines(read_text("docs/migrating.md"));
    int number = 0;
    for (std::string line; std::getline(lines, line);)
      each(line, "migrating.md:" + std::to_string(++number));
  }

  /// Returns "table.key" of every option, and `[[data.stages]] type = "NAME"` of every component.
  std::set<std::string> known() const {
    const auto list = successful(trainer({"list", "--json"})).json();
    std::set<std::string> keys;
    const auto add = [&](const std::string& table, const Json& options) {
      for (const auto& option : options)
        keys.insert(table + "." + option["name"].get<std::string>());
    };
    for (const auto& table : list["tables"]) add(table["name"], table["options"]);
    for (const auto& one : list["detectors"]) add("model", one["options"]);
    for (const auto& one : list["callbacks"]) {
      const auto name = "callbacks." + one["name"].get<std::string>();
      keys.insert("[" + name + "]");
      add(name, one["options"]);
    }
    for (const auto* kind : {"stages", "sources"})
      for (const auto& one : list[kind])
        keys.insert(std::string("[[data.") + kind + "]] type = \"" +
                    one["name"].get<std::string>() + "\"");
    keys.insert("[[optimizer.groups]]");
    keys.insert("[[data.stages]]");
    keys.insert("[[data.sources]]");
    return keys;
  }
};

TEST_F(Migrating, NamesOnlyKnownKeys) {
  const auto keys = known();
  int seen = 0;
  bool in_keys = false;
  for_each_line([&](const std::string& line, const std::string& where) {
    if (line.starts_with("##")) in_keys = line.starts_with("### Keys of ");
    if (!in_keys || !line.starts_with("| `")) return;
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '|');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 4) << where;
    const auto ours = spans_of(cells[2]);
    EXPECT_TRUE(!ours.empty() || cells[2] == " - ") << where << ": " << cells[2];
    for (const auto& key : ours) {
      ++seen;
      EXPECT_TRUE(keys.contains(key)) << where << ": unknown key " << key;
    }
  });
  EXPECT_GT(seen, 250);
}

TEST_F(Migrating, NamesOnlyKnownCallbacks) {
  const auto keys = known();
  for_each_line([&](const std::string& line, const std::string& where) {
    for (const auto& span : spans_of(line)) {
      const bool is_callback = span.starts_with("[callbacks.") && span != "[callbacks.NAME]";
      EXPECT_TRUE(!is_callback || keys.contains(span)) << where << ": unknown callback " << span;
    }
  });
}

TEST_F(Migrating, NamesOnlyKnownCommandsAndOptions) {
  std::map<std::string, std::string> help;  // by subcommand
  int seen = 0;
  const auto check = [&](const std::string& line, const std::string& where) {
    auto words = words_of(line);
    while (!words.empty() && words[0] != "trainer") words.erase(words.begin());
    if (words.size() < 2) return;
    ++seen;
    Words command = {words[1]};
    if (command[0] == "bench" && words.size() > 2) command.push_back(words[2]);
    auto& text = help[quoted(command)];
    if (text.empty()) text = successful(trainer(command + Words{"--help"})).out;
    EXPECT_THAT(text, HasSubstr("Usage: trainer " + command[0])) << where;
    std::erase_if(words, [](const std::string& word) { return !word.starts_with("--"); });
    for (const auto& option : words)
      EXPECT_THAT(text, ContainsRegex("  " + option + "[ ,=]")) << where << ": " << line;
  };
  for_each_line([&](const std::string& line, const std::string& where) {
    if (line.starts_with("    ")) check(line, where);
    for (const auto& span : spans_of(line)) check(span, where);
  });
  EXPECT_GT(seen, 40);
}

TEST_F(Migrating, ResolvesEveryConfiguration) {
  static const std::regex block("```toml\n([^`]*)```");
  int seen = 0;
  const auto text = read_text("docs/migrating.md");
  for (std::sregex_iterator at(text.begin(), text.end(), block), end; at != end; ++at, ++seen) {
    write_text(in_folder("page.toml"), (*at)[1]);
    successful(trainer({"config", in_folder("page.toml")}));
  }
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace millrace::testing
