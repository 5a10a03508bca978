// What a data set is made of, gathered record by record. Not for several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/disk/spool.h"
#include "millrace/base/errors.h"
#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Calls `use` with one array after the other of data sets, the same of each.
template <typename F, typename... Sets>
void each_array(F use, Sets&... sets) {
  use(sets.images...);
  use(sets.annotations...);
  use(sets.categories...);
  use(sets.coordinates...);
  use(sets.keypoints...);
  use(sets.polygon_ends...);
  use(sets.category_lists...);
  use(sets.runs...);
  use(sets.names...);
}

/// The growing arrays of a Dataset; references count from the beginning of these.
struct Records {
  std::vector<Image> images;
  std::vector<Annotation> annotations;
  std::vector<Category> categories;
  std::vector<double> coordinates;
  std::vector<double> keypoints;
  std::vector<std::uint64_t> polygon_ends;
  std::vector<std::int64_t> category_lists;
  std::vector<std::uint32_t> runs;
  std::vector<char> names;

  void add_image(std::int64_t id, std::string_view file_name, std::int32_t width,
                 std::int32_t height);
  void add_category(std::int64_t id, std::string_view name);
  /// Its image and category may be added later.
  void add(Annotation one, const Segmentation& shape = {},
           std::span<const double> its_keypoints = {});
  ShapeRef add_mask(const Rle& mask);
  TextRef add_text(std::string_view text);
  /// Keeps the memory.
  void clear() {
    each_array([](auto& array) { array.clear(); }, *this);
  }
};

/// Records that come part by part. What grows with annotations may lie in files.
struct GatheredRecords {
  std::vector<Image> images;
  SpillingArray<Annotation> annotations;
  std::vector<Category> categories;
  SpillingArray<double> coordinates;
  SpillingArray<double> keypoints;
  SpillingArray<std::uint64_t> polygon_ends;
  std::vector<std::int64_t> category_lists;
  SpillingArray<std::uint32_t> runs;
  std::vector<char> names;
  std::optional<Spill> spill;

  /// Without `where` in memory.
  explicit GatheredRecords(const std::optional<Spill>& where = {});
  explicit GatheredRecords(Records records);

  /// Reserves room for `parts` parts like this and a few more, as growing arrays are copied.
  void reserve(const Records& part, std::size_t parts);
  /// Appends a part, whose references then count from the beginning of these.
  void append(Records& part);
};

enum class Clash {
  image_twice,
  category_twice,
  annotation_twice,
  no_image,
  no_category,
  mask_size
};

/// A record that contradicts another. The message names it.
struct Contradiction : Error {
  Contradiction(Clash which, std::int64_t of, const std::string& message)
      : Error(message), clash(which), id(of) {}
  Contradiction(Clash which, std::size_t index, const Annotation& one, const std::string& reason);

  Clash clash;
  std::int64_t id;
  // An annotation's members:
  std::optional<std::size_t> annotation;  // its position in the records
  std::int64_t image_id = 0;
  std::string why;
};

/// Sorts the records and checks them against each other, on all threads of the caller's arena.
/// Throws Contradiction for a duplicate id, an annotation of an unknown image or category, or a
/// mask of another size than its image. With `on_contradiction`, calls it for each instead and
/// leaves the record (of two with one id the later) out.
std::shared_ptr<const Dataset> assemble(
    GatheredRecords records, std::string source,
    const std::function<void(const Contradiction&)>& on_contradiction = {});
inline std::shared_ptr<const Dataset> assemble(
    Records records, std::string source,
    const std::function<void(const Contradiction&)>& on_contradiction = {}) {
  return assemble(GatheredRecords(std::move(records)), std::move(source), on_contradiction);
}

}  // namespace millrace::coco
