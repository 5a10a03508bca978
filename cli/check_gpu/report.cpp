#include "millrace/cli/check_gpu/report.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "millrace/base/files.h"

namespace millrace::cli {

PartReport::PartReport(std::filesystem::path file)
    : file_(std::move(file)),
      content_{{"checks", Json::array()},
               {"facts", Json::object()},
               {"tables", Json::object()},
               {"notes", Json::array()}} {
  write();
}

void PartReport::check(const std::string& what, bool ok, const std::string& found) {
  ok_ = ok_ && ok;
  content_["checks"].push_back({{"what", what}, {"ok", ok}, {"found", found}});
  write();
}

void PartReport::check_error(const std::string& what, double error, double most) {
  check(what, error <= most, fmt::format("{:.2g}, at most {:.2g}", error, most));
}

void PartReport::fact(const std::string& name, const std::string& text) {
  content_["facts"][name] = text;
  write();
}

void PartReport::row(const std::string& table, Json columns) {
  content_["tables"][table].push_back(std::move(columns));
  write();
}

void PartReport::note(const std::string& sentence) {
  content_["notes"].push_back(sentence);
  write();
}

void PartReport::skip(const std::string& why) {
  content_["skipped"] = why;
  write();
}

void PartReport::write() const {
  const auto text = content_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string_view part = text;
  replace_file(file_, {&part, 1});
}

}  // namespace millrace::cli
