// What a data set is made of, gathered record by record. Not for several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Growing arrays of a data set, see Dataset; what refers to them counts from the beginning of
/// these.
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

/// How records may not fit each other.
enum class Clash {
  image_twice,
  category_twice,
  annotation_twice,
  no_image,
  no_category,
  mask_size
};

/// A record that does not fit the others. The message names it.
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

/// Orders the records and checks what one says of another, by all threads of the caller's arena.
/// Throws Contradiction: an id is there twice, an annotation has an unknown image or category, or a
/// mask of another size than its image. With `on_contradiction`, each one is told to it in turn and
/// the record (of two with one id the later) left out.
std::shared_ptr<const Dataset> assemble(
    Records records, std::string source,
    const std::function<void(const Contradiction&)>& on_contradiction = {});

}  // namespace millrace::coco
