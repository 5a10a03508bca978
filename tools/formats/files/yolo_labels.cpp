#include "millrace/tools/formats/files/yolo_labels.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace millrace::formats {
namespace {

constexpr double kMostShare = 2;  // larger values are not fractions but probably pixels

/// Reads a line into `label`. Returns why it is not a label; empty if it is one.
std::string read_line(std::string_view line, std::size_t keypoint_numbers, YoloLabel& label) {
  const auto words = words_of(line);
  const auto category = number_in(words[0]);
  if (!category || *category != std::floor(*category) || std::abs(*category) > 1e9)
    return fmt::format("starts with '{}', which is not a class number", words[0]);
  label.category = static_cast<long long>(*category);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto number = number_in(words[i]);
    if (!number) return fmt::format("'{}' is not a number", words[i]);
    label.numbers.push_back(*number);
  }
  const auto count = label.numbers.size();
  label.has_keypoints = keypoint_numbers > 0 && count == 4 + keypoint_numbers;
  if (label.has_keypoints) label.numbers.resize(4);
  label.polygon = !label.has_keypoints && count >= 6 && count % 2 == 0;
  if (count != 4 && !label.has_keypoints && !label.polygon)
    return fmt::format(
        "has {} numbers after the class; expected 4 for a box, or an even number of at least 6 for "
        "a polygon{}",
        count, count == 5 ? "; if the fifth is a score, remove it" : "");
  for (const double number : label.numbers)
    if (std::abs(number) > kMostShare)
      return fmt::format(
          "{} is not a coordinate relative to the image's width or height, as YOLO requires",
          number);
  return {};
}

}  // namespace

YoloFile parse_yolo(std::string_view text, std::size_t keypoint_numbers) {
  YoloFile file;
  for (const auto& [number, line] : lines_of(text)) {
    YoloLabel label{.line = number};
    auto why = read_line(line, keypoint_numbers, label);
    if (why.empty())
      file.labels.push_back(std::move(label));
    else
      file.faults.push_back({number, std::move(why)});
  }
  return file;
}

}  // namespace millrace::formats
