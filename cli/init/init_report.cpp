#include "millrace/cli/init/init_report.h"

#include <fmt/format.h>

#include <cstdio>

#include "millrace/base/text.h"
#include "millrace/base/word_wrap.h"

namespace millrace::cli {

void InitReport::add(const std::string& what, const std::string& text) {
  json[what] = text;
  print(what + ": " + text);
}

void InitReport::print(const std::string& text) { print_line(wrapped(text, 80, "    ") + '\n'); }

void InitReport::examine(const std::filesystem::path& folder, SourceData& data, bool masks) {
  const auto& train = *data.train.data;
  add("data", fmt::format("{}: {} ({}), {}, {}", folder.string(), data.format, data.why,
                          counted(train.images.size(), "image"),
                          counted(train.annotations.size(), "object")));
  cli::examine(data, masks);
  json["findings"] = Json::array();
  for (const auto& sentence : sentences(data.findings)) {
    print(sentence);
    json["findings"].push_back(sentence);
  }
  if (!data.unused.empty())
    add("unused", fmt::format("{} in {}, used neither for training nor for validation",
                              joined(data.unused), folder.string()));
}

void InitReport::print_line(const std::string& line) {
  if (as_json_) return;
  print_text(line);
  std::fflush(stdout);
}

}  // namespace millrace::cli
