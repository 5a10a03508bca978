#include "coco/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/files.h"
#include "coco/json.h"
#include "coco/segmentation.h"

namespace millrace::coco {
namespace {

template <typename Record>
auto id_before(const Record& record, std::int64_t id) {
  return record.id < id;
}

/// Position of the record with this id among records that ascend by id, or -1.
template <typename Record>
std::ptrdiff_t find_id(const std::vector<Record>& records, std::int64_t id) {
  const auto at = std::lower_bound(records.begin(), records.end(), id, id_before<Record>);
  return at != records.end() && at->id == id ? at - records.begin() : -1;
}

/// Reads the sections in the order of the file, then checks what one says of another.
class Reader {
 public:
  Reader(std::string text, const std::string& source)
      : text_(std::move(text), source), data_(std::make_shared<Dataset>()) {
    data_->source = source;
  }

  std::shared_ptr<const Dataset> read() {
    text_.read(required("images", [&](json::value value) { read_images(value); }),
               required("annotations", [&](json::value value) { read_annotations(value); }),
               required("categories", [&](json::value value) { read_categories(value); }));
    order_by_id(data_->images, "image");
    order_by_id(data_->categories, "category");
    check_annotation_ids();
    group_by_image();
    return data_;
  }

 private:
  void read_images(json::value section) {
    text_.each_record(array(section, "images"), "images", [&](json::object fields, const char* at) {
      Image image;
      read_fields(
          fields, at, required("id", [&](json::value v) { image.id = integer(v, "id"); }),
          required("file_name", [&](json::value v) { image.file_name = text(v, "file_name"); }),
          required("width", [&](json::value v) { image.width = side(v, "width"); }),
          required("height", [&](json::value v) { image.height = side(v, "height"); }));
      data_->images.push_back(std::move(image));
    });
  }

  void read_categories(json::value section) {
    text_.each_record(
        array(section, "categories"), "categories", [&](json::object fields, const char* at) {
          Category category;
          read_fields(fields, at,
                      required("id", [&](json::value v) { category.id = integer(v, "id"); }),
                      required("name", [&](json::value v) { category.name = text(v, "name"); }));
          data_->categories.push_back(std::move(category));
        });
  }

  void read_annotations(json::value section) {
    text_.each_record(
        array(section, "annotations"), "annotations", [&](json::object fields, const char* at) {
          Annotation one;
          bool has_area = false;
          read_fields(
              fields, at, required("id", [&](json::value v) { one.id = integer(v, "id"); }),
              required("image_id", [&](json::value v) { one.image_id = integer(v, "image_id"); }),
              required("category_id",
                       [&](json::value v) { one.category_id = integer(v, "category_id"); }),
              required("bbox", [&](json::value v) { read_box(v, one.bbox); }),
              optional("area",
                       [&](json::value v) {
                         one.area = number(v, "area");
                         has_area = true;
                       }),
              optional("iscrowd", [&](json::value v) { one.crowd = flag(v, "iscrowd"); }),
              optional("segmentation",
                       [&](json::value v) { one.segmentation = read_segmentation(v); }));
          if (!has_area) one.area = derived_area(one);
          data_->annotations.push_back(std::move(one));
          begins_.push_back(text_.offset(at));
        });
  }

  static std::int32_t side(json::value value, std::string_view field) {
    const char* at = place(value);
    const std::int64_t pixels = integer(value, field);
    if (pixels < 1 || pixels > INT32_MAX) {
      throw Wrong{
          at, fmt::format("'{}' is {}; an image has 1 to 2147483647 pixels a side", field, pixels)};
    }
    return static_cast<std::int32_t>(pixels);
  }

  static void read_box(json::value value, std::span<double, 4> box) {
    const char* at = place(value);
    numbers(value, "bbox", box);
    if (box[2] < 0 || box[3] < 0) {
      throw Wrong{at, fmt::format("'bbox' has a negative size: {} x {}", box[2], box[3])};
    }
  }

  static double derived_area(const Annotation& one) {
    if (std::holds_alternative<std::monostate>(one.segmentation)) return one.bbox[2] * one.bbox[3];
    return shape_area(one.segmentation);
  }

  template <typename Record>
  void order_by_id(std::vector<Record>& records, std::string_view noun) {
    const auto id_less = [](const Record& a, const Record& b) { return a.id < b.id; };
    const auto id_same = [](const Record& a, const Record& b) { return a.id == b.id; };
    std::stable_sort(records.begin(), records.end(), id_less);
    const auto twice = std::adjacent_find(records.begin(), records.end(), id_same);
    if (twice != records.end()) text_.fail(fmt::format("{} id {} is there twice", noun, twice->id));
  }

  [[noreturn]] void fail(std::size_t index, const std::string& why) const {
    text_.fail(begins_[index], fmt::format("annotations[{}] (id {}): {}", index,
                                           data_->annotations[index].id, why));
  }

  void check_annotation_ids() const {
    const auto& all = data_->annotations;
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return all[a].id < all[b].id; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (all[order[i]].id != all[order[i - 1]].id) continue;
      fail(order[i], fmt::format("annotations[{}] has this id already", order[i - 1]));
    }
  }

  /// Checks an annotation against its image and category; the image's position.
  std::size_t image_of(std::size_t index) const {
    const Annotation& one = data_->annotations[index];
    const std::ptrdiff_t at = find_id(data_->images, one.image_id);
    if (at < 0) fail(index, fmt::format("there is no image with id {}", one.image_id));
    if (find_id(data_->categories, one.category_id) < 0) {
      fail(index, fmt::format("there is no category with id {}", one.category_id));
    }
    const Image& image = data_->images[static_cast<std::size_t>(at)];
    if (const auto* mask = std::get_if<Rle>(&one.segmentation)) {
      if (std::int64_t{mask->height} != image.height || std::int64_t{mask->width} != image.width) {
        fail(index, fmt::format("its mask is {} x {}, its image {} x {} (height x width)",
                                mask->height, mask->width, image.height, image.width));
      }
    }
    return static_cast<std::size_t>(at);
  }

  void group_by_image() {
    auto& images = data_->images;
    std::vector<std::size_t> owner(data_->annotations.size());
    for (std::size_t i = 0; i < owner.size(); ++i) ++images[owner[i] = image_of(i)].count;
    std::uint32_t first = 0;
    for (Image& image : images) {
      image.first = first;
      first += image.count;
      image.count = 0;
    }
    std::vector<Annotation> grouped(owner.size());
    for (std::size_t i = 0; i < owner.size(); ++i) {
      Image& image = images[owner[i]];
      grouped[image.first + image.count++] = std::move(data_->annotations[i]);
    }
    data_->annotations = std::move(grouped);
  }

  JsonText text_;
  std::shared_ptr<Dataset> data_;
  std::vector<std::size_t> begins_;  // byte where each annotation begins
};

}  // namespace

int Dataset::category_index(std::int64_t id) const {
  return static_cast<int>(find_id(categories, id));
}

const Image* Dataset::find_image(std::int64_t id) const {
  const std::ptrdiff_t at = find_id(images, id);
  return at < 0 ? nullptr : &images[static_cast<std::size_t>(at)];
}

std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json) {
  return Reader(read_file(json), json.string()).read();
}

std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source) {
  return Reader(std::string(json), source).read();
}

}  // namespace millrace::coco
