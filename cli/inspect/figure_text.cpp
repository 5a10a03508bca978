#include "millrace/cli/inspect/figure_text.h"

#include <fmt/format.h>

#include <cmath>

#include "millrace/base/text.h"

namespace millrace::cli {

std::vector<double> image_scales(const SeenData& data) {
  std::vector<double> result;
  for (const auto& image : data.images)
    result.push_back(std::sqrt(double{1} * image.seen.area() / std::max(1, image.original.area())));
  return result;
}

std::string pixel_text(double pixels) {
  return fmt::format("{:.{}f}", pixels, pixels < 10 ? 1 : 0);
}

std::string list_text(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(fmt::format("{:.4g}", value));
  return "[" + joined(texts) + "]";
}

}  // namespace millrace::cli
