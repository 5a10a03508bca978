#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/tools/data/checks.h"

namespace millrace {
namespace {

using coco::FindingKind;
using enum coco::Severity;

constexpr FindingKind kLeak{"photo-in-both-splits", error,
                            "images used for both training and evaluation",
                            "scores measure memorization instead of generalization"};
constexpr FindingKind kCopy{"photo-twice", warning, "images that occur twice in a split",
                            "they count twice in training and in scores"};

/// A file, identified by its index in the splits.
struct Entry {
  std::uint64_t bytes;
  WideDigest digest;  // digest of the first bytes, later of the whole file
  std::size_t split, image;

  auto content() const { return std::tuple(bytes, digest.high, digest.low); }
  auto key() const { return std::tuple(bytes, digest.high, digest.low, split, image); }
};

/// Keeps entries with equal content, sorted by content, split and image.
void keep_alike(std::vector<Entry>& entries) {
  std::ranges::sort(entries, {}, &Entry::key);
  std::vector<Entry> alike;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto same = [&](std::size_t j) {
      return j < entries.size() && entries[j].content() == entries[i].content();
    };
    if (same(i + 1) || (i > 0 && same(i - 1))) alike.push_back(entries[i]);
  }
  entries = std::move(alike);
}

}  // namespace

void check_copies(std::span<const NamedSplit> splits, coco::Findings& findings) {
  const auto image = [&](const Entry& one) -> const coco::Image& {
    return splits[one.split].data.annotations->images[one.image];
  };
  const auto name = [&](const Entry& one) {
    return std::string(splits[one.split].data.annotations->text(image(one).file_name));
  };
  const auto path = [&](const Entry& one) {
    return (splits[one.split].data.images / name(one)).lexically_normal();
  };
  std::vector<Entry> entries;
  for (std::size_t s = 0; s < splits.size(); ++s)
    for (std::size_t i = 0; i < splits[s].marks.size(); ++i)
      if (const auto& mark = splits[s].marks[i]; mark.bytes > 0)
        entries.push_back({mark.bytes, mark.head, s, i});
  keep_alike(entries);
  tbb::parallel_for(std::size_t{0}, entries.size(), [&](std::size_t i) {
    try {
      const auto bytes = read_file(path(entries[i]));
      entries[i].digest = wide_digest(bytes.data(), bytes.size());
    } catch (const Error&) {  // the file was removed meanwhile
      entries[i].bytes = 0;
    }
  });
  std::erase_if(entries, [](const Entry& one) { return one.bytes == 0; });
  keep_alike(entries);

  // The first entry of each content is the original; findings are then sorted by split and image.
  std::vector<std::pair<Entry, Entry>> pairs;  // copy and original
  for (std::size_t i = 1, first = 0; i < entries.size(); ++i) {
    if (entries[i].content() != entries[first].content())
      first = i;
    else if (path(entries[i]) !=
             path(entries[first]))  // otherwise a shared file, reported by check_file_names
      pairs.emplace_back(entries[i], entries[first]);
  }
  std::ranges::sort(pairs, {},
                    [](const auto& pair) { return std::pair(pair.first.split, pair.first.image); });
  for (const auto& [copy, original] : pairs)
    findings.add(
        copy.split == original.split ? kCopy : kLeak,
        {.image = image(copy).id,
         .file = name(copy),
         .what = fmt::format("same bytes in {} as image {} ({}) in {}", splits[copy.split].name,
                             image(original).id, name(original), splits[original.split].name)});
}

}  // namespace millrace
