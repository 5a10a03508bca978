#include "millrace/cli/check_gpu/page.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace::cli {
namespace {

constexpr std::size_t kRows = 6;  // of a table on the terminal

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

/// Text that a cell of a table can hold.
std::string cell(const Json& value) {
  std::string text;
  for (const char c : text_of(value))
    text += c == '|' ? "\\|" : std::string(1, c == '\n' ? ' ' : c);
  return text;
}

template <class Items>
std::string table_line(const Items& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string table(const Json& rows) {
  std::vector<std::string> names, rule;
  for (const auto& [name, value] : rows.at(0).items()) {
    names.push_back(cell(name));
    rule.emplace_back("---");
  }
  auto text = table_line(names) + table_line(rule);
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : row.items()) cells.push_back(cell(value));
    text += table_line(cells);
  }
  return text + "\n";
}

const Json& member(const Json& part, const char* name) {
  static const Json kNone = Json::array();
  const auto found = part.find(name);
  return found == part.end() ? kNone : *found;
}

std::vector<std::string> failed_checks(const Json& part) {
  std::vector<std::string> lines;
  for (const auto& check : member(part, "checks"))
    if (!check.at("ok").get<bool>())
      lines.push_back(fmt::format("{}: {}", text_of(check.at("what")), text_of(check.at("found"))));
  return lines;
}

/// "4 checks", "1 of 4 checks failed"; the reason where there is one.
std::string summary(const Json& part) {
  std::vector<std::string> words;
  const auto failed = failed_checks(part).size(), all = member(part, "checks").size();
  if (failed > 0)
    words.push_back(fmt::format("{} of {} checks failed", failed, all));
  else if (all > 0)
    words.push_back(fmt::format("{} check{} passed", all, all == 1 ? "" : "s"));
  if (const auto why = part.value("why", ""); !why.empty()) words.push_back(why);
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string section(const Json& part) {
  auto text = fmt::format("## {}: {}\n\n{}", text_of(part.at("name")), text_of(part.at("title")),
                          text_of(part.at("state")));
  if (part.contains("seconds")) text += fmt::format(", {:.1f} s", part["seconds"].get<double>());
  if (const auto words = summary(part); !words.empty()) text += ": " + words;
  text += "\n\n";
  const auto failed = failed_checks(part);
  for (const auto& line : failed) text += fmt::format("- **failed** {}\n", line);
  if (!failed.empty()) text += "\n";
  for (const auto& [name, value] : member(part, "facts").items())
    text += fmt::format("- {}: {}\n", name, text_of(value));
  if (!member(part, "facts").empty()) text += "\n";
  for (const auto& [title, rows] : member(part, "tables").items())
    text += fmt::format("### {}\n\n{}", title, table(rows));
  for (const auto& note : member(part, "notes")) text += text_of(note) + "\n\n";
  return text;
}

}  // namespace

std::string check_gpu_page(const Json& report) {
  auto text = fmt::format(
      "# trainer check-gpu: {}\n\n{}, device {}, begun {}, {:.0f} s so "
      "far.{}\n\n",
      text_of(report.at("result")), text_of(report.at("version")), text_of(report.at("device")),
      text_of(report.at("started")), report.at("seconds").get<double>(),
      report.at("small").get<bool>() ? " Small models and few steps: figures of speed mean nothing."
                                     : "");
  Json rows = Json::array();
  for (const auto& part : report.at("parts"))
    rows.push_back({{"part", part.at("name")},
                    {"finds out", part.at("title")},
                    {"state", part.at("state")},
                    {"s", part.value("seconds", 0.0)},
                    {"", summary(part)}});
  if (!rows.empty()) text += table(rows);
  for (const auto& part : report.at("parts")) text += section(part);
  return text;
}

std::string part_lines(const Json& part) {
  auto text = fmt::format("{:<12} {:<10} {:>6.1f} s  {}\n", text_of(part.at("name")),
                          text_of(part.at("state")), part.value("seconds", 0.0), summary(part));
  for (const auto& line : failed_checks(part)) text += fmt::format("    failed: {}\n", line);
  for (const auto& [title, rows] : member(part, "tables").items()) {
    text += fmt::format("    {}\n", title);
    for (std::size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
      std::vector<std::string> cells;
      for (const auto& [name, value] : rows[i].items())
        cells.push_back(fmt::format("{} {}", name, text_of(value)));
      text += fmt::format("      {}\n", fmt::join(cells, ", "));
    }
    if (rows.size() > kRows) text += fmt::format("      ... {} more\n", rows.size() - kRows);
  }
  return text;
}

}  // namespace millrace::cli
