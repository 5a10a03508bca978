// The page of an evaluation: whole, self-contained, and the same for the same input.
#include "millrace/coco/analysis/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page(const ResultSet& set, const EvaluateOptions& options = {}, std::size_t draws = 0,
                 bool versus = false) {
  const Detections found(set.found), none;
  const Analysis analysis = analyze(*set.data(), found, options, draws, versus ? &none : nullptr);
  return report_page(analysis, options.iou, {"truth.json", "found <&\"> .json", "other.json"});
}

/// Every tag is closed in its turn, except those that HTML never closes.
void expect_balanced(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::string tag = html.substr(at + 1, html.find('>', at) - at - 1);
    const bool closes = tag.starts_with('/');
    const std::string name = tag.substr(closes, tag.find_first_of(" /\n", closes) - closes);
    if (name == "!DOCTYPE" || name == "meta" || tag.ends_with('/')) continue;
    if (!closes) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << "a stray " << name << " at byte " << at;
    ASSERT_EQ(open.back(), name) << "at byte " << at;
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back() << " is never closed";
}

void expect_whole(const std::string& html) {
  expect_balanced(html);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(ContainsRegex("href=\"[^#]")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  for (const char* number : {">nan", ">inf", ">-1.0<", "\"nan", "\"-nan", "\"inf", "\"-inf"})
    EXPECT_THAT(html, Not(HasSubstr(number)));
}

TEST(ReportPage, IsWholeAndSelfContained) {
  const std::string html = page(random_results(1), {}, 20, /*versus=*/true);
  expect_whole(html);
  for (const char* part : {"What the errors cost", "Precision and recall", "Classes", "Confusions",
                           "Compared with other.json"})
    EXPECT_THAT(html, HasSubstr(part));
}

TEST(ReportPage, IsWholeWhereThereIsNothing) {
  for (const bool joined : {false, true}) {
    expect_whole(page(ResultSet(0, 0), {.class_agnostic = joined}, 5, true));
    expect_whole(page(ResultSet(2, 1), {.class_agnostic = joined}, 5, true));
    ResultSet set(2, 2);
    set.detection(1, 1, {0, 0, 10, 10}, 7);
    expect_whole(page(set, {.class_agnostic = joined}, 5, true));
    set.object(2, 2, {0, 0, 10, 10});
    expect_whole(page(set, {.class_agnostic = joined}, 5, true));
  }
}

TEST(ReportPage, NamesAreText) {
  ResultSet set = random_results(2);
  set.truth.add_category(99, "<b>\"cup\" & saucer");
  set.object(1, 1, {250, 250, 40, 40});
  set.truth.annotations.back().category_id = 99;
  const std::string html = page(set);
  expect_whole(html);
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;&quot;cup&quot; &amp; saucer"));
  EXPECT_THAT(html, Not(HasSubstr("<b>\"cup")));
  EXPECT_THAT(html, HasSubstr("found &lt;&amp;&quot;&gt; .json"));
}

TEST(Analysis, TheNumberOfThreadsDoesNotMatter) {
  const ResultSet set = random_results(3, 100);
  auto worse = set.found;
  for (auto& one : worse) (*one.bbox)[0] += 2;
  const Detections versus(worse);
  const auto with = [&](int threads) {
    return analyze(*set.data(), Detections(set.found), {.threads = threads}, 50, &versus);
  };
  const Analysis one = with(1), many = with(2);
  EXPECT_EQ(one.errors.all.cost, many.errors.all.cost);
  EXPECT_EQ(one.errors.all.count, many.errors.all.count);
  EXPECT_EQ(one.confusion.counts, many.confusion.counts);
  const auto numbers = [](const Spread& spread) {
    std::vector<double> all;
    for (const auto& [value, low, high] : {spread.ap, spread.ap50})
      all.insert(all.end(), {value, low, high});
    for (const auto& [value, low, high] : spread.category_ap)
      all.insert(all.end(), {value, low, high});
    return all;
  };
  EXPECT_EQ(numbers(*one.spread), numbers(*many.spread));
  EXPECT_EQ(numbers(one.versus->difference), numbers(many.versus->difference));
  EXPECT_EQ(one.versus->category_p, many.versus->category_p);
  EXPECT_EQ(sentence(*one.versus), sentence(*many.versus));
  const auto written = [](const Analysis& analysis) {
    return report_page(analysis, IouType::box, {});
  };
  EXPECT_EQ(written(one), written(many));
}

}  // namespace
}  // namespace millrace::coco
