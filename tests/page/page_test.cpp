// Pages and their pieces: whole, self-contained, and text stays text.
#include "millrace/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "millrace/page/charts.h"
#include "millrace/page/gallery.h"
#include "millrace/page/html.h"
#include "tests/page/pages.h"

namespace millrace::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, IsWholeAndLoadsNothing) {
  Page page{.title = "a <run>", .top = "<p>top</p>\n", .footer = "end"};
  for (const char* id : {"a", "b", "c"}) page.sections.push_back({id, id, "<p>text</p>\n"});
  testing::expect_self_contained(page.html());
  EXPECT_THAT(page.html(), HasSubstr("<h1>a &lt;run&gt;</h1>"));
  EXPECT_THAT(page.html(), HasSubstr("<a href=\"#b\">b</a>"));
  EXPECT_EQ(page.html(), page.html());
}

TEST(Page, HasTheScriptsOfWhatIsInIt) {
  Page page{.title = "plain"};
  page.sections.push_back({"a", "a", "<p>text</p>\n"});
  EXPECT_THAT(page.html(), Not(HasSubstr("<script")));
  page.sections[0].body = line_chart({.title = "t", .series = {{"s", {{1, 1}, {2, 2}}}}});
  EXPECT_THAT(page.html(), HasSubstr("figure.lines"));
  EXPECT_THAT(page.html(), Not(HasSubstr("div.gallery")));
  page.sections[0].body = gallery({.id = "g", .pictures = {{.width = 4, .height = 3}}});
  EXPECT_THAT(page.html(), HasSubstr("div.gallery"));
  testing::expect_self_contained(page.html());
}

TEST(Html, TextStaysText) {
  EXPECT_EQ(escaped("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
  EXPECT_EQ(nlohmann::json::parse(json_string("</script><!-- \"x\" \n")), "</script><!-- \"x\" \n");
  EXPECT_THAT(json_string("</script><!--"), Not(HasSubstr("<")));
  EXPECT_EQ(json_string("\xff"), "\"\xef\xbf\xbd\"");  // not UTF-8
}

TEST(Html, DataIsBase64) {  // the vectors of RFC 4648
  const auto encoded = [](const char* text) { return data_uri(text, "a/b"); };
  EXPECT_EQ(encoded(""), "data:a/b;base64,");
  EXPECT_EQ(encoded("f"), "data:a/b;base64,Zg==");
  EXPECT_EQ(encoded("fo"), "data:a/b;base64,Zm8=");
  EXPECT_EQ(encoded("foo"), "data:a/b;base64,Zm9v");
  EXPECT_EQ(encoded("foob"), "data:a/b;base64,Zm9vYg==");
  EXPECT_EQ(data_uri(std::string_view("\xff\xfe\xfd", 3), "a/b"), "data:a/b;base64,//79");
}

TEST(Html, TablesMayHaveShortRows) {
  const std::vector<Column> columns{{"a"}, {"b", true}};
  const std::vector<std::vector<std::string>> rows{{"1", "2"}, {"3"}};
  const std::string html = table(columns, rows);
  testing::expect_balanced(html);
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">1</th><td class=\"left\">2</td></tr>"));
}

}  // namespace
}  // namespace millrace::page
