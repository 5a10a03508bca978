#include "millrace/tools/formats/set_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/data/bounds.h"
#include "millrace/tools/formats/faults.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;

constexpr double kFar = 1;  // pixels beyond the border that rounding does not explain

bool are_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

bool is_sound(const coco::Segmentation& shape) {
  const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape);
  return !polygons || (!polygons->empty() && std::ranges::all_of(*polygons, [](const auto& one) {
    return one.size() >= 6 && one.size() % 2 == 0 && are_finite(one);
  }));
}

/// Returns true if `file` is below `folder`; both paths must be normalised.
bool lies_in(const fs::path& file, const fs::path& folder) {
  const auto relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

void SetBuilder::report(const FindingKind& kind, std::string_view file, int line,
                        std::string what) {
  add_finding(findings_, kind, file, line, std::move(what));
}

int SetBuilder::category(std::string_view name) {
  const auto found = category_positions_.find(name);
  if (found != category_positions_.end()) return found->second;
  const auto position = static_cast<int>(categories_.size());
  categories_.emplace_back(name);
  category_positions_.emplace(name, position);
  return position;
}

std::size_t SetBuilder::split(std::string_view name, const RelativePath& images) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].name == name) return i;
  parts_.push_back({.name = std::string(name), .images = folder_.path(images).lexically_normal()});
  return parts_.size() - 1;
}

std::optional<OpenImage> SetBuilder::add_image(std::size_t split, const RelativePath& file,
                                               std::optional<ImageSize> annotated,
                                               LabelPlace label) {
  mark(file);
  Part& part = parts_[split];
  auto [known, is_new] = part.seen.try_emplace(file);
  if (!is_new) return known->second;
  ImageSizes sizes;
  try {
    sizes = sizes_of_image(folder_.path(file));
  } catch (const Error& problem) {
    report(kImageUnreadable, "", 0, problem.what());
    return {};
  }
  ImageSize size = sizes.upright;
  if (annotated && (*annotated == sizes.stored || *annotated == sizes.upright))
    size = *annotated;
  else if (annotated)
    report(kSizeDiffers, label.file, label.line,
           fmt::format("annotated size is {} x {} pixels, but {} is {} x {}", annotated->width,
                       annotated->height, file, size.width, size.height));
  const auto id = ++last_image_;
  part.records.add_image(id, "", size.width, size.height);  // file names are set by name_files()
  part.files.push_back(folder_.path(file).lexically_normal());
  known->second = OpenImage{split, id, size};
  return known->second;
}

void SetBuilder::add(const OpenImage& image, ReadObject object, LabelPlace label) {
  if (!is_sound(object.shape)) {
    report(kShapeUnusable, label.file, label.line);
    return;
  }
  const bool has_shape = !std::holds_alternative<std::monostate>(object.shape);
  auto corners = object.box_of_shape && has_shape
                     ? coco::bounds_of(object.shape)
                     : coco::Bounds{object.x1, object.y1, object.x2, object.y2};
  auto& [x1, y1, x2, y2] = corners;
  if (!are_finite(std::array{x1, y1, x2, y2})) {
    report(kLabelUnreadable, label.file, label.line, "numbers are not finite");
    return;
  }
  if (x2 < x1 || y2 < y1) {
    report(kCornersSwapped, label.file, label.line,
           fmt::format("from ({}, {}) to ({}, {})", x1, y1, x2, y2));
    std::tie(x1, x2) = std::minmax({x1, x2});
    std::tie(y1, y2) = std::minmax({y1, y2});
  }
  const double beyond = std::max({-x1, -y1, x2 - image.size.width, y2 - image.size.height});
  if (x2 <= x1 || y2 <= y1)
    report(kBoxEmpty, label.file, label.line,
           fmt::format("{} x {} pixels at ({}, {})", x2 - x1, y2 - y1, x1, y1));
  else if (beyond > kFar)
    report(kBoxOutside, label.file, label.line,
           fmt::format("{:.1f} pixels beyond the image of {} x {}", beyond, image.size.width,
                       image.size.height));
  coco::Annotation one;
  one.id = ++last_annotation_;
  one.image_id = image.id;
  one.category_id = object.category + 1;
  one.bbox[0] = x1, one.bbox[1] = y1, one.bbox[2] = x2 - x1, one.bbox[3] = y2 - y1;
  one.area = has_shape ? coco::shape_area(object.shape) : one.bbox[2] * one.bbox[3];
  one.crowd = object.crowd;
  one.ignored = object.ignored;
  parts_[image.split].records.add(one, object.shape);
}

void SetBuilder::name_files(Part& part) const {
  auto base = part.images;
  for (const auto& file : part.files)
    while (!lies_in(file, base) && base.has_parent_path() && base != base.parent_path())
      base = base.parent_path();
  part.images = base;
  for (std::size_t i = 0; i < part.files.size(); ++i)
    part.records.images[i].file_name =
        part.records.add_text(part.files[i].lexically_relative(base).generic_string());
}

std::vector<Split> SetBuilder::finish(const ImageFinder& images) && {
  for (const auto& image : images.others_beside(marked_)) report(kImageUnannotated, image);
  return std::move(*this).finish();
}

std::vector<Split> SetBuilder::finish() && {
  std::vector<int> order(categories_.size());  // index of the k-th category
  std::iota(order.begin(), order.end(), 0);
  if (sorts_categories_)
    std::ranges::sort(order, {}, [&](int k) { return categories_[static_cast<std::size_t>(k)]; });
  std::vector<std::int64_t> ids(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    ids[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k) + 1;
  std::vector<Split> splits;
  for (auto& part : parts_) {
    if (part.files.empty()) continue;
    name_files(part);
    for (auto& one : part.records.annotations)
      one.category_id = ids[static_cast<std::size_t>(one.category_id - 1)];
    for (std::size_t k = 0; k < order.size(); ++k)
      part.records.add_category(static_cast<std::int64_t>(k) + 1,
                                categories_[static_cast<std::size_t>(order[k])]);
    splits.push_back(
        {part.name, part.images, coco::assemble(std::move(part.records), folder_.root().string())});
  }
  if (splits.empty())
    throw Error(fmt::format("{}: no image with a label found; {}", folder_.root().string(),
                            folder_.counts()));
  return splits;
}

}  // namespace millrace::formats
