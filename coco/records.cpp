#include "coco/records.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace millrace::coco {
namespace {

constexpr std::size_t kAlignment = 64;

/// Sizes of the arrays of a part, or where its own begin among those of all.
struct Sizes {
  std::size_t images = 0, annotations = 0, categories = 0, polygon_ends = 0, coordinates = 0,
              runs = 0, names = 0;

  void add(const Records& part) {
    images += part.images.size();
    annotations += part.annotations.size();
    categories += part.categories.size();
    polygon_ends += part.polygon_ends.size();
    coordinates += part.coordinates.size();
    runs += part.runs.size();
    names += part.names.size();
  }
};

/// The bytes of a data set while they are written.
class Bytes {
 public:
  explicit Bytes(const Sizes& all) {
    const std::uint64_t lengths[Dataset::kArrays] = {
        all.images,      all.annotations, all.categories, all.polygon_ends,
        all.coordinates, all.runs,        all.names};
    size_ = sizeof(lengths) + all.images * sizeof(Image) + all.annotations * sizeof(Annotation) +
            all.categories * sizeof(Category) + all.polygon_ends * sizeof(std::uint64_t) +
            all.coordinates * sizeof(double) + all.runs * sizeof(std::uint32_t) + all.names;
    const std::size_t rounded = (size_ + kAlignment - 1) / kAlignment * kAlignment;
    memory_ = {static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)), std::free};
    if (!memory_) throw Error("not enough memory for the annotations");
    std::copy_n(lengths, Dataset::kArrays, reinterpret_cast<std::uint64_t*>(memory_.get()));
  }

  Dataset as_dataset(std::string source) const {
    return Dataset(std::move(source), {memory_, size_});
  }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

template <typename T>
std::span<T> writable(std::span<const T> array) {
  return {const_cast<T*>(array.data()), array.size()};
}

/// Sorts by id; two records must not share one.
template <typename Record>
void order_by_id(std::span<Record> records, std::string_view noun) {
  std::ranges::stable_sort(records, {}, &Record::id);
  const auto twice = std::ranges::adjacent_find(records, {}, &Record::id);
  if (twice != records.end())
    throw Contradiction(fmt::format("{} id {} is there twice", noun, twice->id));
}

/// Puts the parts into the bytes of a data set that nobody else has seen yet.
class Assembly {
 public:
  Assembly(std::vector<Records>& parts, std::string source)
      : parts_(parts),
        sizes_(sum_of(parts, begins_)),
        data_(std::make_shared<Dataset>(Bytes(sizes_).as_dataset(std::move(source)))) {}

  std::shared_ptr<const Dataset> finish() {
    each_part([&](const Records& part, const Sizes& begin) { copy_named(part, begin); });
    order_by_id(writable(data_->images), "image");
    order_by_id(writable(data_->categories), "category");
    check_annotation_ids();
    find_places();
    each_part([&](Records& part, const Sizes& begin) {
      copy_annotations(part, begin);
      copy_shapes(part, begin);
      part = {};
    });
    return data_;
  }

 private:
  static Sizes sum_of(const std::vector<Records>& parts, std::vector<Sizes>& begins) {
    Sizes all;
    for (const Records& part : parts) {
      begins.push_back(all);
      all.add(part);
    }
    return all;
  }

  template <typename F>
  void each_part(F work) {
    tbb::parallel_for(std::size_t{0}, parts_.size(),
                      [&](std::size_t i) { work(parts_[i], begins_[i]); });
  }

  void copy_named(const Records& part, const Sizes& begin) const {
    const auto images = writable(data_->images).subspan(begin.images, part.images.size());
    std::ranges::copy(part.images, images.begin());
    for (Image& image : images) image.file_name.first += begin.names;
    const auto categories =
        writable(data_->categories).subspan(begin.categories, part.categories.size());
    std::ranges::copy(part.categories, categories.begin());
    for (Category& category : categories) category.name.first += begin.names;
    std::ranges::copy(part.names, writable(data_->names).subspan(begin.names).begin());
  }

  [[noreturn]] void fail(std::size_t index, std::int64_t id, const std::string& why) const {
    throw Contradiction(fmt::format("annotations[{}] (id {}): {}", index, id, why), index);
  }

  void check_annotation_ids() {
    using Seen = std::pair<std::int64_t, std::size_t>;  // id, position
    std::vector<Seen> seen(sizes_.annotations);
    each_part([&](const Records& part, const Sizes& begin) {
      for (std::size_t i = 0; i < part.annotations.size(); ++i)
        seen[begin.annotations + i] = {part.annotations[i].id, begin.annotations + i};
    });
    if (!std::ranges::is_sorted(seen)) tbb::parallel_sort(seen.begin(), seen.end());
    const auto twice = std::ranges::adjacent_find(seen, {}, &Seen::first);
    if (twice == seen.end()) return;
    fail(twice[1].second, twice->first,
         fmt::format("annotations[{}] has this id already", twice->second));
  }

  /// Checks an annotation against its image and category; the image's position.
  std::size_t image_of(const Annotation& one, const Records& part, std::size_t index) const {
    const Image* image = data_->find_image(one.image_id);
    if (!image) fail(index, one.id, fmt::format("there is no image with id {}", one.image_id));
    if (data_->category_index(one.category_id) < 0)
      fail(index, one.id, fmt::format("there is no category with id {}", one.category_id));
    if (one.shape.kind == ShapeKind::mask) {
      const std::int64_t height = part.runs[one.shape.first],
                         width = part.runs[one.shape.first + 1];
      if (height != image->height || width != image->width)
        fail(index, one.id,
             fmt::format("its mask is {} x {}, its image {} x {} (height x width)", height, width,
                         image->height, image->width));
    }
    return static_cast<std::size_t>(image - data_->images.data());
  }

  /// Gives each annotation its place behind those of earlier images and earlier ones of its own.
  void find_places() {
    places_.resize(sizes_.annotations);
    std::vector<std::optional<Contradiction>> problems(parts_.size());
    each_part([&](const Records& part, const Sizes& begin) {
      try {
        for (std::size_t i = 0; i < part.annotations.size(); ++i) {
          const std::size_t index = begin.annotations + i;
          places_[index] = static_cast<std::uint32_t>(image_of(part.annotations[i], part, index));
        }
      } catch (const Contradiction& problem) {
        problems[static_cast<std::size_t>(&part - parts_.data())] = problem;
      }
    });
    for (const auto& problem : problems) {
      if (problem) throw Contradiction(*problem);
    }
    const auto images = writable(data_->images);
    for (Image& image : images) image.count = 0;
    for (const std::uint32_t owner : places_) ++images[owner].count;
    std::uint32_t first = 0;
    for (Image& image : images) {
      image.first = first;
      first += std::exchange(image.count, 0);
    }
    for (std::uint32_t& place : places_) {
      Image& image = images[place];
      place = image.first + image.count++;
    }
  }

  void copy_annotations(const Records& part, const Sizes& begin) const {
    const auto annotations = writable(data_->annotations);
    for (std::size_t i = 0; i < part.annotations.size(); ++i) {
      Annotation& one = annotations[places_[begin.annotations + i]] = part.annotations[i];
      if (one.shape.kind == ShapeKind::polygons) one.shape.first += begin.polygon_ends;
      if (one.shape.kind == ShapeKind::mask) one.shape.first += begin.runs;
    }
  }

  void copy_shapes(const Records& part, const Sizes& begin) const {
    const auto put = [](const auto& from, auto array, std::size_t at) {
      std::ranges::copy(from, writable(array).subspan(at).begin());
    };
    put(part.coordinates, data_->coordinates, begin.coordinates);
    put(part.runs, data_->runs, begin.runs);
    const auto ends = writable(data_->polygon_ends).subspan(begin.polygon_ends);
    std::ranges::transform(part.polygon_ends, ends.begin(),
                           [&](std::uint64_t end) { return end + begin.coordinates; });
  }

  std::vector<Records>& parts_;
  std::vector<Sizes> begins_;
  Sizes sizes_;
  std::shared_ptr<Dataset> data_;
  std::vector<std::uint32_t> places_;  // of each annotation in `data_`; before that, its image
};

}  // namespace

TextRef Records::add_text(std::string_view text) {
  const TextRef where{names.size(), text.size()};
  names.insert(names.end(), text.begin(), text.end());
  return where;
}

void Records::add_image(std::int64_t id, std::string_view file_name, std::int32_t width,
                        std::int32_t height) {
  images.push_back({id, add_text(file_name), width, height});
}

void Records::add_category(std::int64_t id, std::string_view name) {
  categories.push_back({id, add_text(name)});
}

ShapeRef Records::add_mask(const Rle& mask) {
  const std::size_t first = runs.size();
  runs.insert(runs.end(), {mask.height, mask.width});
  runs.insert(runs.end(), mask.counts.begin(), mask.counts.end());
  return {first, static_cast<std::uint32_t>(runs.size() - first), ShapeKind::mask};
}

void Records::add(Annotation one, const Segmentation& shape) {
  one.shape = {};
  if (const auto* mask = std::get_if<Rle>(&shape)) one.shape = add_mask(*mask);
  if (const auto* polygons = std::get_if<std::vector<Polygon>>(&shape)) {
    one.shape = {polygon_ends.size(), static_cast<std::uint32_t>(polygons->size()),
                 ShapeKind::polygons};
    for (const Polygon& polygon : *polygons) {
      coordinates.insert(coordinates.end(), polygon.begin(), polygon.end());
      polygon_ends.push_back(coordinates.size());
    }
  }
  annotations.push_back(one);
}

std::shared_ptr<const Dataset> assemble(std::vector<Records> parts, std::string source) {
  return Assembly(parts, std::move(source)).finish();
}

std::shared_ptr<const Dataset> assemble(Records all, std::string source) {
  std::vector<Records> parts;
  parts.push_back(std::move(all));
  return assemble(std::move(parts), std::move(source));
}

}  // namespace millrace::coco
