// Class names that may be typing errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/tools/data/checks.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> told(const std::vector<std::string>& names,
                              const std::vector<std::uint64_t>& objects) {
  coco::Findings findings(10);
  check_class_names(names, objects, findings);
  std::vector<std::string> result;
  for (const auto& finding : findings.sorted())
    for (const auto& example : finding.examples) result.push_back(example.text());
  return result;
}

TEST(ClassNames, ReportsDifferentCaseOrSpelling) {
  EXPECT_THAT(told({"dog", "Dog"}, {40, 3}),
              ElementsAre("'Dog' (objects: 3) and 'dog' (objects: 40)"));
  EXPECT_THAT(told({"traffic_light", "traffic light"}, {9, 9}),
              ElementsAre("'traffic light' (objects: 9) and 'traffic_light' (objects: 9)"));
}

TEST(ClassNames, ReportsRareMisspelledNames) {
  for (const auto* slip : {"perso", "perrson", "preson", "person1", "berson"})
    EXPECT_EQ(told({"person", slip}, {100, 2}).size(), 1U) << slip;
  EXPECT_THAT(told({"person", "parson"}, {100, 60}), IsEmpty());
  EXPECT_EQ(told({"chair", "chiar"}, {16, 1}).size(), 1U);  // as in ten photos
  EXPECT_THAT(told({"chair", "chiar"}, {2, 1}), IsEmpty());
}

TEST(ClassNames, IgnoresShortOrDifferentNames) {
  EXPECT_THAT(told({"car", "cat", "cow", "cup"}, {500, 1, 1, 1}), IsEmpty());
  EXPECT_THAT(told({"person", "pigeon", "reason"}, {500, 1, 1}), IsEmpty());
  EXPECT_THAT(told({"fork", "form"}, {0, 0}), IsEmpty());
}

}  // namespace
}  // namespace millrace
