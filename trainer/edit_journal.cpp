#include "millrace/trainer/edit_journal.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/appended_file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

fs::path journal_of(const fs::path& run) { return run / "edits.jsonl"; }

/// Returns the journal's lines of these edits.
std::string lines_of(std::span<const Edit> edits) {
  const auto now = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  std::string lines;
  for (const auto& one : edits)
    lines += !one.line.empty() ? one.line
                               : nlohmann::ordered_json{{"after_step", one.after_step},
                                                        {"name", one.name},
                                                        {"from", one.from},
                                                        {"to", one.to},
                                                        {"time", now}}
                                         .dump() +
                                     "\n";
  return lines;
}

}  // namespace

std::vector<Edit> read_edits(const fs::path& run) {
  const auto file = journal_of(run);
  std::vector<Edit> edits;
  if (!fs::exists(file)) return edits;
  auto text = read_file(file);
  text.resize(text.find_last_of('\n') + 1);
  cut_file(file, text.size());
  std::istringstream lines(text);
  std::int64_t number = 1;
  std::size_t begin = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool is_last = begin + line.size() + 1 == text.size();
    if (json.is_discarded() && is_last) {
      log_warning("{}:{}: removed an incomplete line, which never took effect", file.string(),
                  number);
      cut_file(file, begin);
      break;
    }
    begin += line.size() + 1;
    try {
      edits.push_back({json.at("after_step"), json.at("name"), json.value("from", 0.0),
                       json.at("to"), line + "\n"});
    } catch (const nlohmann::json::exception&) {
      throw Error(
          fmt::format("{}:{}: not an edit with after_step, name and to; repair or remove the line, "
                      "since the run cannot be repeated without it",
                      file.string(), number));
    }
  }
  return edits;
}

void append_edits(const fs::path& run, std::span<const Edit> edits) {
  if (edits.empty()) return;
  const auto file = journal_of(run);
  std::error_code missing;
  const auto before = fs::file_size(file, missing);
  append_to(file, lines_of(edits));
  try {
    sync_path(file);
  } catch (const Error&) {
    cut_file(file, missing ? 0 : before);
    throw;
  }
}

void write_edits(const fs::path& run, std::span<const Edit> edits) {
  write_file_atomically(journal_of(run), lines_of(edits));
}

std::string edits_text(const fs::path& run, std::int64_t until) {
  std::map<std::string, Edit> last;
  for (auto& edit : read_edits(run))
    if (edit.after_step < until) last[edit.name] = std::move(edit);
  std::vector<std::string> texts;
  for (const auto& [name, edit] : last)
    texts.push_back(fmt::format("{} = {} after step {}", name, edit.to, edit.after_step));
  if (texts.empty()) return {};
  return fmt::format("; repeating edits: {}; write NAME = \"withdraw\" to {} to withdraw one",
                     joined(texts), (run / "edit.toml").string());
}

}  // namespace millrace
