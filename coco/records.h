// What a data set is made of, gathered record by record. Not for several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "coco/annotations.h"

namespace millrace::coco {

/// Growing arrays of a data set, see Dataset; what refers to them counts from the beginning of these.
struct Records {
  std::vector<Image> images;
  std::vector<Annotation> annotations;
  std::vector<Category> categories;
  std::vector<double> coordinates;
  std::vector<std::uint64_t> polygon_ends;
  std::vector<std::uint32_t> runs;
  std::vector<char> names;

  void add_image(std::int64_t id, std::string_view file_name, std::int32_t width,
                 std::int32_t height);
  void add_category(std::int64_t id, std::string_view name);
  /// Its image and category may follow later.
  void add(Annotation one, const Segmentation& shape = {});
  ShapeRef add_mask(const Rle& mask);
  TextRef add_text(std::string_view text);
  /// Keeps the memory.
  void clear();
  /// Appends the annotations of others and their shapes.
  void add_annotations(const Records& others);
};

/// Records that do not fit each other. The message names the record.
struct Contradiction : Error {
  Contradiction(const std::string& why, std::optional<std::size_t> index = {})
      : Error(why), annotation(index) {}
  std::optional<std::size_t> annotation;  // its position in the records
};

/// Orders the records and checks what one says of another, by all threads of the caller's arena. Throws Contradiction:
/// an id is there twice, an annotation has an unknown image or category, or a mask of another size than its image.
std::shared_ptr<const Dataset> assemble(Records records, std::string source);

}  // namespace millrace::coco
