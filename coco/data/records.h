// The records of a data set while it is being built. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

/// Calls `use` for each array of a data set, passing that array of each of `sets`.
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

/// The growing arrays of a Dataset; references are positions in these arrays.
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
  /// Adds an annotation. Its image and category may be added later.
  void add(Annotation one, const Segmentation& shape = {},
           std::span<const double> its_keypoints = {});
  ShapeRef add_mask(const Rle& mask);
  TextRef add_text(std::string_view text);
  /// Removes all records but keeps the memory.
  void clear() {
    each_array([](auto& array) { array.clear(); }, *this);
  }
};

/// Records gathered part by part. The arrays that grow with the annotations may be stored in files.
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

  /// With `where`, large arrays are stored in files; otherwise in memory.
  explicit GatheredRecords(const std::optional<Spill>& where = {});
  explicit GatheredRecords(Records records);

  /// Reserves memory for `parts` parts of this size plus a margin, since growing arrays are copied.
  void reserve(const Records& part, std::size_t parts);
  /// Appends a part and adjusts its references to these arrays.
  void append(Records& part);
};

enum class ConflictKind {
  image_twice,
  category_twice,
  annotation_twice,
  no_image,
  no_category,
  mask_size
};

/// A conflict of a record with another record. The message names the record.
struct RecordConflict : Error {
  RecordConflict(ConflictKind which, std::int64_t of, const std::string& message)
      : Error(message), kind(which), id(of) {}
  RecordConflict(ConflictKind which, std::size_t index, const Annotation& one,
                 const std::string& reason);

  ConflictKind kind;
  std::int64_t id;
  // Set for annotations:
  std::optional<std::size_t> annotation;  // position in the records
  std::int64_t image_id = 0;
  std::string why;
};

/// Sorts the records and checks them against each other, on all threads of the caller's arena.
/// Throws RecordConflict for a duplicate id, an annotation of an unknown image or category, or a
/// mask whose size differs from its image. With `on_conflict`, calls it for each conflict
/// instead and leaves the record out (of two records with equal ids, the later one).
std::shared_ptr<const Dataset> assemble(
    GatheredRecords records, std::string source,
    const std::function<void(const RecordConflict&)>& on_conflict = {});
inline std::shared_ptr<const Dataset> assemble(
    Records records, std::string source,
    const std::function<void(const RecordConflict&)>& on_conflict = {}) {
  return assemble(GatheredRecords(std::move(records)), std::move(source), on_conflict);
}

/// Returns the images at these positions with their annotations, with unchanged ids. `categories`
/// maps the id of each category to keep to the id that its objects get. That id must itself be kept
/// (mapped to itself). Objects of other categories are left out; a category mapped to another one
/// is merged into it.
std::shared_ptr<const Dataset> subset(const Dataset& data, std::span<const std::size_t> images,
                                      const std::map<std::int64_t, std::int64_t>& categories);

}  // namespace millrace::coco
