#include "millrace/coco/data/records.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>

namespace millrace::coco {
namespace {

constexpr std::uint32_t kNowhere = UINT32_MAX;

using Tell = std::function<void(const RecordConflict&)>;

/// Sorts records by id. Of records with equal ids, keeps the first and reports the others.
template <typename Record>
void order_by_id(std::vector<Record>& records, ConflictKind kind, std::string_view noun,
                 const Tell& tell) {
  std::ranges::stable_sort(records, {}, &Record::id);
  for (std::size_t i = 1; i < records.size(); ++i)
    if (const std::int64_t id = records[i].id; records[i - 1].id == id)
      tell({kind, id, fmt::format("{} id {} occurs twice", noun, id)});
  const auto same = [](const Record& a, const Record& b) { return a.id == b.id; };
  records.erase(std::unique(records.begin(), records.end(), same), records.end());
}

/// Reports annotations with the id of an earlier one and sets their owner to kNowhere.
void check_ids(std::span<const Annotation> annotations, std::vector<std::uint32_t>& owners,
               const Tell& tell) {
  std::vector<std::int64_t> ids;
  ids.reserve(annotations.size());
  for (const Annotation& one : annotations) ids.push_back(one.id);
  if (!std::ranges::is_sorted(ids)) tbb::parallel_sort(ids.begin(), ids.end());
  if (std::ranges::adjacent_find(ids) == ids.end()) return;
  using Seen = std::pair<std::int64_t, std::size_t>;  // id, position
  std::vector<Seen> seen;
  seen.reserve(annotations.size());
  for (const Annotation& one : annotations) seen.emplace_back(one.id, seen.size());
  tbb::parallel_sort(seen.begin(), seen.end());
  for (std::size_t i = 1, first = 0; i < seen.size(); ++i) {
    if (seen[i].first != seen[first].first) {
      first = i;
      continue;
    }
    const std::size_t index = seen[i].second;
    tell({ConflictKind::annotation_twice, index, annotations[index],
          fmt::format("annotations[{}] has the same id", seen[first].second)});
    owners[index] = kNowhere;
  }
}

/// Returns why an annotation does not fit its image or category; nullopt if it does.
std::optional<std::pair<ConflictKind, std::string>> fault_of(const Annotation& one,
                                                             const Image* image,
                                                             const Dataset& data) {
  if (!image) return {{ConflictKind::no_image, fmt::format("no image has id {}", one.image_id)}};
  if (data.category_index(one.category_id) < 0)
    return {{ConflictKind::no_category, fmt::format("no category has id {}", one.category_id)}};
  if (one.shape.kind == ShapeKind::mask) {
    const std::int64_t height = data.runs[one.shape.first], width = data.runs[one.shape.first + 1];
    if (height != image->height || width != image->width)
      return {{ConflictKind::mask_size,
               fmt::format("the mask is {} x {}, the image {} x {} (height x width)", height, width,
                           image->height, image->width)}};
  }
  return {};
}

/// Returns the position of each annotation's image; kNowhere for an annotation that does not fit.
std::vector<std::uint32_t> find_images(const Dataset& data, const Tell& tell) {
  const auto& all = data.annotations;
  std::vector<std::uint32_t> owners(all.size());
  tbb::parallel_for(std::size_t{0}, all.size(), [&](std::size_t i) {
    const Image* image = data.find_image(all[i].image_id);
    owners[i] = fault_of(all[i], image, data)
                    ? kNowhere
                    : static_cast<std::uint32_t>(image - data.images.data());
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (owners[i] != kNowhere) continue;
    const auto fault = fault_of(all[i], data.find_image(all[i].image_id), data);
    tell({fault->first, i, all[i], fault->second});
  }
  check_ids(all, owners, tell);
  return owners;
}

/// Returns the annotations grouped by image, in file order within an image, and sets the images'
/// ranges.
SpillingArray<Annotation> grouped(const std::vector<std::uint32_t>& owners,
                                  GatheredRecords& records) {
  auto& images = records.images;
  for (Image& image : images) image.count = 0;
  std::uint32_t kept = 0;
  for (const std::uint32_t owner : owners)
    if (owner != kNowhere) ++images[owner].count, ++kept;
  std::uint32_t first = 0;
  for (Image& image : images) image.first = std::exchange(first, first + image.count);
  if (kept == owners.size() && std::ranges::is_sorted(owners))  // already grouped in the file
    return std::move(records.annotations);

  std::vector<std::uint32_t> next, order(kept);
  for (const Image& image : images) next.push_back(image.first);
  for (std::uint32_t i = 0; i < owners.size(); ++i)
    if (owners[i] != kNowhere) order[next[owners[i]]++] = i;
  const auto annotations = records.annotations.values();
  SpillingArray<Annotation> result(records.spill);
  result.reserve(kept);
  for (const std::uint32_t i : order) result.append(annotations.subspan(i, 1));
  return result;
}

template <class T>
void append_to(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
template <class T>
void append_to(SpillingArray<T>& to, const std::vector<T>& from) {
  to.append(from);
}

template <class T>
std::span<const T> values_of(const std::vector<T>& array) {
  return array;
}
template <class T>
std::span<const T> values_of(SpillingArray<T>& array) {
  return array.values();
}

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

void Records::add(Annotation one, const Segmentation& shape,
                  std::span<const double> its_keypoints) {
  one.shape = {};
  one.keypoints = its_keypoints.empty() ? 0 : keypoints.size();
  one.keypoint_count = static_cast<std::uint16_t>(its_keypoints.size() / 3);
  keypoints.insert(keypoints.end(), its_keypoints.begin(), its_keypoints.end());
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

GatheredRecords::GatheredRecords(const std::optional<Spill>& where)
    : annotations(where),
      coordinates(where),
      keypoints(where),
      polygon_ends(where),
      runs(where),
      spill(where) {}

GatheredRecords::GatheredRecords(Records records) {
  const auto take = [](auto& to, auto& from) {
    to = std::remove_reference_t<decltype(to)>(std::move(from));
  };
  each_array(take, *this, records);
}

void GatheredRecords::reserve(const Records& part, std::size_t parts) {
  const auto as = [&](auto& array, const auto& of_part) {
    array.reserve(of_part.size() * (parts + 1) / 8 * 9);
  };
  each_array(as, *this, part);
}

void GatheredRecords::append(Records& part) {
  for (Image& one : part.images) {
    one.file_name.first += names.size();
    one.category_lists += category_lists.size();
  }
  for (Category& one : part.categories) one.name.first += names.size();
  for (Annotation& one : part.annotations) {
    if (one.shape.kind == ShapeKind::polygons) one.shape.first += polygon_ends.size();
    if (one.shape.kind == ShapeKind::mask) one.shape.first += runs.size();
    if (one.keypoint_count > 0) one.keypoints += keypoints.size();
  }
  for (std::uint64_t& end : part.polygon_ends) end += coordinates.size();
  each_array([](auto& to, const auto& from) { append_to(to, from); }, *this, part);
}

RecordConflict::RecordConflict(ConflictKind which, std::size_t index, const Annotation& one,
                               const std::string& reason)
    : Error(fmt::format("annotations[{}] (id {}): {}", index, one.id, reason)),
      kind(which),
      id(one.id),
      annotation(index),
      image_id(one.image_id),
      why(reason) {}

std::shared_ptr<const Dataset> assemble(GatheredRecords given, std::string source,
                                        const Tell& on_conflict) {
  const Tell tell =
      on_conflict ? on_conflict : [](const RecordConflict& problem) { throw problem; };
  const auto records = std::make_shared<GatheredRecords>(std::move(given));
  order_by_id(records->images, ConflictKind::image_twice, "image", tell);
  order_by_id(records->categories, ConflictKind::category_twice, "category", tell);
  auto data = std::make_shared<Dataset>();
  data->source = std::move(source);
  data->memory = records;
  each_array([](auto& view, auto& array) { view = values_of(array); }, *data, *records);
  records->annotations = grouped(find_images(*data, tell), *records);
  data->annotations = records->annotations.values();
  return data;
}

std::shared_ptr<const Dataset> subset(const Dataset& data, std::span<const std::size_t> images,
                                      const std::map<std::int64_t, std::int64_t>& categories) {
  Records records;
  for (const auto& category : data.categories) {
    const auto found = categories.find(category.id);
    if (found == categories.end() || found->second != category.id) continue;
    records.add_category(category.id, data.text(category.name));
    records.categories.back().frequency = category.frequency;
  }
  const auto add_ids = [&](std::span<const std::int64_t> ids) {
    std::uint32_t count = 0;
    for (const auto id : ids)
      if (const auto found = categories.find(id); found != categories.end())
        records.category_lists.push_back(found->second), ++count;
    return count;
  };
  for (const auto position : images) {
    const auto& image = data.images[position];
    records.add_image(image.id, data.text(image.file_name), image.width, image.height);
    auto& added = records.images.back();
    added.category_lists = records.category_lists.size();
    added.negatives = add_ids(data.negative_categories(image));
    added.not_exhaustive = add_ids(data.not_exhaustive_categories(image));
    for (const auto& object : data.objects(image)) {
      const auto found = categories.find(object.category_id);
      if (found == categories.end()) continue;
      auto copy = object;
      copy.category_id = found->second;
      records.add(copy, data.segmentation(object), data.keypoints_of(object));
    }
  }
  return assemble(std::move(records), data.source);
}

}  // namespace millrace::coco
