#include "millrace/tools/report/view.h"

#include "millrace/base/files.h"
#include "millrace/tools/report/viewer_text.h"

namespace millrace::report {
namespace {

/// Returns JSON that cannot close its HTML element; '<' occurs only in strings, where it is
/// escaped.
std::string inlined(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

}  // namespace

std::string view_page(std::string_view kind, std::string_view made_by,
                      const nlohmann::ordered_json& view) {
  nlohmann::ordered_json all = {{"kind", kind}, {"made_by", made_by}};
  all.update(view);
  return std::string(kViewerHead) + inlined(all) + std::string(kViewerTail);
}

void write_view(const std::filesystem::path& file, std::string_view kind, std::string_view made_by,
                const nlohmann::ordered_json& view) {
  write_file_atomically(file, view_page(kind, made_by, view));
}

}  // namespace millrace::report
