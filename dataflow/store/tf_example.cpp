#include "millrace/dataflow/store/tf_example.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_file.h"

namespace millrace {
namespace {

/// Reads a protocol buffer message field by field. Throws Error if it is damaged.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : left_(bytes) {}

  struct Field {
    int number = 0;
    std::uint64_t value = 0;  // if it is a varint
    std::string_view bytes;   // of a text or message, or four or eight bytes of a fixed number
  };

  std::optional<Field> next() {
    if (left_.empty()) return {};
    const auto key = varint();
    Field field{static_cast<int>(key >> 3)};
    switch (key & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.bytes = take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.bytes = take(4);
        break;
      default:
        throw Error("not a tf.train.Example");
    }
    return field;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    throw Error("not a tf.train.Example");
  }

  bool empty() const { return left_.empty(); }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > left_.size()) throw Error("not a tf.train.Example: truncated");
    const auto bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }

  std::string_view left_;
};

/// A feature; only one of the three lists has values.
struct Feature {
  std::vector<std::string_view> texts;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
};

void add_reals(std::string_view bytes, std::vector<float>& reals) {
  for (; bytes.size() >= sizeof(float); bytes.remove_prefix(sizeof(float))) {
    float value = 0;
    std::memcpy(&value, bytes.data(), sizeof(value));
    reals.push_back(value);
  }
}

Feature read_feature(std::string_view bytes) {
  Feature feature;
  ProtoReader lists(bytes);
  while (const auto list = lists.next()) {
    ProtoReader values(list->bytes);
    while (const auto value = values.next()) {
      if (value->number != 1) continue;
      if (list->number == 1) feature.texts.push_back(value->bytes);
      if (list->number == 2) add_reals(value->bytes, feature.reals);
      if (list->number != 3) continue;
      if (value->bytes.data() == nullptr) {
        feature.integers.push_back(static_cast<std::int64_t>(value->value));
        continue;
      }
      for (ProtoReader packed(value->bytes); !packed.empty();)
        feature.integers.push_back(static_cast<std::int64_t>(packed.varint()));
    }
  }
  return feature;
}

using Features = std::map<std::string_view, Feature>;

Features read_features(std::string_view message) {
  Features all;
  ProtoReader example(message);
  while (const auto features = example.next()) {
    if (features->number != 1) continue;
    ProtoReader entries(features->bytes);
    while (const auto entry = entries.next()) {
      std::string_view key, value;
      ProtoReader pair(entry->bytes);
      while (const auto field = pair.next()) (field->number == 1 ? key : value) = field->bytes;
      all[key] = read_feature(value);
    }
  }
  return all;
}

const Feature& feature(const Features& all, std::string_view key) {
  static const Feature none;
  const auto found = all.find(key);
  return found == all.end() ? none : found->second;
}

/// Decodes a mask of the Object Detection API: a PNG whose pixels above 0 are inside.
coco::Segmentation mask_in(std::string_view png, const std::string& where) {
  const auto rgb = decode_rgb(png, where);
  cv::Mat grey;
  cv::extractChannel(rgb, grey, 0);
  return coco::encode(grey.data, static_cast<std::uint32_t>(grey.rows),
                      static_cast<std::uint32_t>(grey.cols));
}

Instances read_objects(const Features& all, cv::Size size, const std::string& where,
                       ClassNames& classes) {
  const auto corner = [&](const char* name) -> const std::vector<float>& {
    return feature(all, std::string("image/object/bbox/") + name).reals;
  };
  const auto &x1 = corner("xmin"), &y1 = corner("ymin"), &x2 = corner("xmax"), &y2 = corner("ymax");
  const auto& names = feature(all, "image/object/class/text").texts;
  const auto& labels = feature(all, "image/object/class/label").integers;
  const auto& crowds = feature(all, "image/object/is_crowd").integers;
  const auto& masks = feature(all, "image/object/mask").texts;
  const auto count = x1.size();
  if (y1.size() != count || x2.size() != count || y2.size() != count ||
      (names.size() != count && labels.size() != count))
    throw Error("its objects have lists of different lengths");
  const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  Instances objects;
  for (std::size_t i = 0; i < count; ++i) {
    objects.boxes.push_back({x1[i] * width, y1[i] * height, x2[i] * width, y2[i] * height});
    objects.classes.push_back(
        classes.number(names.size() == count ? std::string(names[i]) : std::to_string(labels[i])));
    objects.crowd.push_back(crowds.size() == count && crowds[i] != 0);
    objects.segmentations.push_back(masks.size() == count ? mask_in(masks[i], where)
                                                          : coco::Segmentation());
  }
  return objects;
}

}  // namespace

TfExample read_tf_example(std::string_view message, const std::string& where, ClassNames& classes) {
  try {
    const auto all = read_features(message);
    const auto text = [&](const char* key) {
      const auto& texts = feature(all, key).texts;
      return texts.empty() ? std::string_view() : texts.front();
    };
    const auto number = [&](const char* key) {
      const auto& integers = feature(all, key).integers;
      return integers.empty() ? std::int64_t{0} : integers.front();
    };
    TfExample example;
    auto& sample = example.sample;
    example.image = text("image/encoded");
    if (example.image.empty()) throw Error("has no feature 'image/encoded'");
    sample.path = text("image/filename");
    const auto id = text("image/source_id");
    std::from_chars(id.data(), id.data() + id.size(), sample.image_id);
    sample.width = static_cast<std::int32_t>(number("image/width"));
    sample.height = static_cast<std::int32_t>(number("image/height"));
    if (sample.width <= 0 || sample.height <= 0) {
      const auto size = decode_rgb(example.image, where).size();
      sample.width = size.width;
      sample.height = size.height;
    }
    sample.objects = read_objects(all, {sample.width, sample.height}, where, classes);
    return example;
  } catch (const DataError&) {
    throw;
  } catch (const Error& problem) {
    throw DataError(where, problem.what());
  }
}

}  // namespace millrace
