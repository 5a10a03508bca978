// The JSON that a page shows.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace millrace::testing {

/// That in the page's element; a failure and null if there is none.
inline nlohmann::json page_json(const std::string& page) {
  constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"data\">";
  const auto at = page.find(kBegin);
  if (at == std::string::npos) {
    ADD_FAILURE() << "a page without JSON";
    return {};
  }
  const auto begin = at + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace millrace::testing
