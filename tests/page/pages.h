// What every page must be.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::testing {

/// A page without its scripts and styles.
inline std::string without_code(std::string html) {
  for (const std::string_view name : {"script", "style"})
    for (;;) {
      const auto begin = html.find("<" + std::string(name));
      if (begin == std::string::npos) break;
      const std::string end = "</" + std::string(name) + ">";
      const auto last = html.find(end, begin);
      if (last == std::string::npos) {
        ADD_FAILURE() << "a " << name << " is never closed";
        return html;
      }
      html.erase(begin, last + end.size() - begin);
    }
  return html;
}

/// Every tag is closed in its turn, except those that HTML never closes.
inline void expect_balanced(const std::string& page) {
  constexpr std::array<std::string_view, 5> kVoid = {"!DOCTYPE", "meta", "img", "input", "br"};
  const std::string html = without_code(page);
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::string tag = html.substr(at + 1, html.find('>', at) - at - 1);
    const bool closes = tag.starts_with('/');
    const std::string name = tag.substr(closes, tag.find_first_of(" /\n", closes) - closes);
    if (std::ranges::count(kVoid, name) > 0 || tag.ends_with('/')) continue;
    if (!closes) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << "a stray " << name << " at byte " << at;
    ASSERT_EQ(open.back(), name) << "at byte " << at << ": " << html.substr(at, 80);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back() << " is never closed";
}

/// Whole, and loads nothing: neither scripts nor pictures nor links from elsewhere.
inline void expect_self_contained(const std::string& html) {
  expect_balanced(html);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const char* outside : {"src=\"http", "src=\"/", "href=\"http", "url(", "@import", "<link"})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  for (std::size_t at = html.find(" src=\""); at != std::string::npos;
       at = html.find(" src=\"", at + 1))
    EXPECT_EQ(html.substr(at + 6, 5), "data:");
}

}  // namespace millrace::testing
