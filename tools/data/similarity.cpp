#include "millrace/tools/data/similarity.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <opencv2/imgproc.hpp>
#include <tuple>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_file.h"

namespace millrace::advice {
namespace {

constexpr double kSameProportions = 1.03;
constexpr double kLeastDeviation = 2;  // of 255; below, an image counts as uniform
constexpr double kSequence = 0.25;     // minimum fraction of similar neighbours for names that
                                       // number frames
constexpr std::size_t kWindow = 64;    // compared images per entry among those with equal bits
constexpr std::size_t kParts = 10;     // number of parts of a cut group

/// Returns a perceptual hash: a bit for each of 8 x 8 cells, set if it is darker than the next cell
/// of its row. Hashes of copies differ in few bits.
std::uint64_t bits_of(const Thumbprint& thumbprint) {
  constexpr std::size_t kCells = 8, kBlock = Thumbprint::kSide / kCells;
  std::array<int, kCells * kCells> sums{};
  for (std::size_t y = 0; y < Thumbprint::kSide; ++y)
    for (std::size_t x = 0; x < Thumbprint::kSide; ++x)
      sums[y / kBlock * kCells + x / kBlock] += thumbprint.cells[y * Thumbprint::kSide + x];
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto next = i / kCells * kCells + (i + 1) % kCells;
    bits = bits << 1 | static_cast<std::uint64_t>(sums[i] < sums[next]);
  }
  return bits;
}

/// Disjoint sets of images (union-find).
class Joined {
 public:
  explicit Joined(std::size_t count) : above_(count) {
    std::iota(above_.begin(), above_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  /// Joins two sets; the earlier image becomes the root. Returns false if they were already joined.
  bool join(std::size_t a, std::size_t b) {
    const auto [first, second] = std::minmax({root(a), root(b)});
    above_[second] = first;
    return first != second;
  }

 private:
  std::vector<std::size_t> above_;
};

/// Joins copies, by comparing images whose hashes have eight consecutive bits in common.
std::size_t join_copies(std::span<const Thumbprint> thumbprints, Joined& joined) {
  struct Entry {
    std::uint64_t bits;
    std::size_t image;
    bool mirrored;
  };
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < thumbprints.size(); ++i) {
    if (thumbprints[i].aspect == 0) continue;
    entries.push_back({bits_of(thumbprints[i]), i, false});
    entries.push_back({bits_of(thumbprints[i].mirrored()), i, true});
  }
  std::size_t copies = 0;
  for (int band = 0; band < 8; ++band) {
    const auto part = [&](const Entry& one) { return one.bits >> (8 * band) & 255; };
    const auto rest = [&](const Entry& one) { return std::rotr(one.bits, 8 * band); };
    std::ranges::sort(entries, {}, [&](const Entry& one) {
      return std::tuple(part(one), rest(one), one.image, one.mirrored);
    });
    for (std::size_t i = 0; i < entries.size(); ++i)
      for (std::size_t j = i;
           j-- > 0 && i - j <= kWindow && part(entries[j]) == part(entries[i]);) {
        const auto &a = entries[i], &b = entries[j];
        constexpr int kNear = 12;  // maximum number of different bits, of 64
        if ((a.mirrored && b.mirrored) || std::popcount(a.bits ^ b.bits) > kNear ||
            joined.root(a.image) == joined.root(b.image))
          continue;
        const auto& one = thumbprints[a.image];
        const auto& other = thumbprints[b.image];
        if (similarity(a.mirrored ? one.mirrored() : one, b.mirrored ? other.mirrored() : other) >=
            kCopy)
          copies += joined.join(a.image, b.image) ? 1 : 0;
      }
  }
  return copies;
}

/// A name split into its last number and the rest.
struct NumberedName {
  std::string family;
  std::string number;  // without leading zeros; empty if the name has no number

  /// Returns a key that sorts like the numeric value.
  auto order() const { return std::pair(number.size(), number); }
};

NumberedName numbered(const std::string& name) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto stem_end = std::min(name.rfind('.'), name.size());
  auto end = stem_end;
  while (end > 0 && !is_digit(name[end - 1]) && name[end - 1] != '/') --end;
  auto begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  if (begin == end) return {};
  auto number = name.substr(begin, end - begin);
  number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
  return {name.substr(0, begin) + '#' + name.substr(end), number};
}

/// Joins images with consecutive numbers that show one scene.
std::size_t join_scenes(std::span<const std::string> names, std::span<const Thumbprint> thumbprints,
                        Joined& joined) {
  std::map<std::string, std::vector<std::pair<NumberedName, std::size_t>>> families;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (auto name = numbered(names[i]); !name.number.empty() && thumbprints[i].aspect > 0)
      families[name.family].emplace_back(name, i);
  std::size_t scenes = 0;
  for (auto& [family, members] : families) {
    std::ranges::stable_sort(members, {}, [](const auto& one) { return one.first.order(); });
    std::vector<std::pair<std::size_t, std::size_t>> alike;
    for (std::size_t k = 1; k < members.size(); ++k)
      if (const auto a = members[k - 1].second, b = members[k].second;
          similarity(thumbprints[a], thumbprints[b]) >= kScene)
        alike.emplace_back(a, b);
    if (static_cast<double>(alike.size()) < kSequence * static_cast<double>(members.size() - 1))
      continue;
    for (const auto& [a, b] : alike) scenes += joined.join(a, b) ? 1 : 0;
  }
  return scenes;
}

/// Joins the images that Roboflow exports from one photo: rotated, blurred or cropped.
std::size_t join_exports(std::span<const std::string> names, Joined& joined) {
  std::map<std::string, std::size_t> first;
  std::size_t copies = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto at = names[i].rfind(".rf.");
    if (at == std::string::npos) continue;
    const auto [known, is_new] = first.try_emplace(names[i].substr(0, at), i);
    if (!is_new) copies += joined.join(known->second, i) ? 1 : 0;
  }
  return copies;
}

/// Cuts a group of more than half of the images into parts by name order, if its images are the
/// frames of one video. Does not cut groups with copies under other names.
std::size_t cut_largest(std::span<const std::string> names, std::vector<std::size_t>& group) {
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < group.size(); ++i) members[group[i]].push_back(i);
  for (auto& [id, images] : members) {
    if (images.size() * 2 <= group.size() || images.size() < 2) continue;
    const auto family = numbered(names[images.front()]).family;
    const auto is_frame = [&](std::size_t i) {
      const auto name = numbered(names[i]);
      return !name.number.empty() && name.family == family;
    };
    if (!std::ranges::all_of(images, is_frame)) return 0;
    std::ranges::stable_sort(images, {}, [&](std::size_t i) { return numbered(names[i]).order(); });
    const auto parts = std::min(kParts, images.size());
    for (std::size_t k = 0; k < images.size(); ++k)
      if (const auto part = k * parts / images.size(); part > 0)
        group[images[k]] = names.size() + part;
    return images.size();
  }
  return 0;
}

}  // namespace

Thumbprint Thumbprint::mirrored() const {
  Thumbprint result = *this;
  for (std::size_t y = 0; y < kSide; ++y)
    std::reverse(result.cells.begin() + static_cast<std::ptrdiff_t>(y * kSide),
                 result.cells.begin() + static_cast<std::ptrdiff_t>((y + 1) * kSide));
  return result;
}

std::vector<Thumbprint> compute_thumbprints(const DataSplit& split,
                                            const std::function<void()>& on_image) {
  const auto& data = *split.annotations;
  std::vector<Thumbprint> thumbprints(data.images.size());
  tbb::parallel_for(std::size_t{0}, thumbprints.size(), [&](std::size_t i) {
    constexpr int kEnough = 4 * Thumbprint::kSide;  // in pixels
    constexpr int kSide = Thumbprint::kSide;
    const auto file = (split.images / data.text(data.images[i].file_name)).string();
    try {
      const auto image = decode_rgb(read_image_file(file), file, {}, /*strict=*/false,
                                    /*enough=*/{kEnough, kEnough});
      cv::Mat grey, cells(kSide, kSide, CV_8U, thumbprints[i].cells.data());
      cv::cvtColor(image, grey, cv::COLOR_RGB2GRAY);
      cv::resize(grey, cells, cells.size(), 0, 0, cv::INTER_AREA);
      thumbprints[i].aspect = static_cast<float>(image.cols) / static_cast<float>(image.rows);
    } catch (const Error&) {  // reported by `trainer doctor`
    }
    on_image();
  });
  return thumbprints;
}

double similarity(const Thumbprint& a, const Thumbprint& b) {
  if (a.aspect == 0 || b.aspect == 0) return 0;
  if (std::max(a.aspect / b.aspect, b.aspect / a.aspect) > kSameProportions) return 0;
  constexpr auto kCount = static_cast<double>(std::tuple_size_v<decltype(Thumbprint::cells)>);
  std::int64_t sum_a = 0, sum_b = 0, squares_a = 0, squares_b = 0, products = 0;
  for (std::size_t i = 0; i < a.cells.size(); ++i) {
    const int x = a.cells[i], y = b.cells[i];
    sum_a += x, sum_b += y;
    squares_a += x * x, squares_b += y * y, products += x * y;
  }
  const auto covariance = [](std::int64_t product, std::int64_t one, std::int64_t other) {
    return (static_cast<double>(product) -
            static_cast<double>(one) * static_cast<double>(other) / kCount) /
           kCount;
  };
  const double of_a = covariance(squares_a, sum_a, sum_a),
               of_b = covariance(squares_b, sum_b, sum_b);
  if (a.cells == b.cells) return 1;
  if (std::min(of_a, of_b) < kLeastDeviation * kLeastDeviation) return 0;
  return covariance(products, sum_a, sum_b) / std::sqrt(of_a * of_b);
}

std::vector<std::size_t> copy_groups(std::span<const Thumbprint> thumbprints) {
  Joined joined(thumbprints.size());
  join_copies(thumbprints, joined);
  std::vector<std::size_t> groups(thumbprints.size());
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = joined.root(i);
  return groups;
}

ImageGroups group_images(std::span<const std::string> names,
                         std::span<const Thumbprint> thumbprints) {
  Joined joined(names.size());
  ImageGroups result;
  result.copies = join_copies(thumbprints, joined) + join_exports(names, joined);
  result.scenes = join_scenes(names, thumbprints, joined);
  result.group.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) result.group[i] = joined.root(i);
  result.cut = cut_largest(names, result.group);
  std::map<std::size_t, std::size_t> numbers;
  for (auto& one : result.group) one = numbers.try_emplace(one, numbers.size()).first->second;
  result.groups = numbers.size();
  return result;
}

}  // namespace millrace::advice
