// Reads the JSON that is embedded in an HTML page.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace millrace::testing {

/// Returns the JSON of the page's data element; if it is missing, adds a test failure and returns
/// null.
inline nlohmann::json page_json(const std::string& page) {
  constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"data\">";
  const auto at = page.find(kBegin);
  if (at == std::string::npos) {
    ADD_FAILURE() << "page without JSON";
    return {};
  }
  const auto begin = at + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace millrace::testing
