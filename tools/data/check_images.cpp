#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/image/image_head.h"
#include "millrace/tools/data/check_each.h"
#include "millrace/tools/data/checks.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using coco::FindingKind;
using enum coco::Severity;

constexpr std::string_view kSkipped =
    "the image is skipped (data.on_error); training stops if data.max_skipped is exceeded";

constexpr FindingKind kMissing{"image-missing", error, "images without a file", kSkipped};
constexpr FindingKind kUnreadable{"image-unreadable", error, "files that are damaged or not images",
                                  kSkipped};
constexpr FindingKind kWrongSize{"image-size", error,
                                 "images whose size differs from the annotated one", kSkipped};
constexpr FindingKind kUnturned{"image-unturned", warning,
                                "images that are not rotated according to their EXIF orientation",
                                "the annotated size is that before the rotation; if objects were "
                                "annotated on the rotated image, their boxes are misplaced"};
constexpr FindingKind kMisnamed{
    "image-misnamed", note, "image files whose format differs from their extension",
    "no effect: the format is detected from the content; other tools may fail"};
constexpr FindingKind kShared{
    "file-name-twice", error, "images that share a file with another",
    "each is trained with only some of the objects, the rest as background"};
constexpr FindingKind kOrphan{"file-orphan", note, "image files without an image entry",
                              "no effect: they are not used"};
constexpr FindingKind kUnusable{"sample-unusable", error, "samples that cannot be used", kSkipped};

constexpr std::uint64_t kHead = 64 << 10;  // bytes that contain the header of nearly any JPEG

/// Returns the format of a file from its first bytes; empty if unknown.
std::string_view format_of_content(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xD8")) return "JPEG";
  if (bytes.starts_with("\x89PNG")) return "PNG";
  if (bytes.starts_with("BM")) return "BMP";
  if (bytes.starts_with("GIF8")) return "GIF";
  if (bytes.starts_with("RIFF") && bytes.substr(8).starts_with("WEBP")) return "WebP";
  if (bytes.starts_with(std::string_view("II*\0", 4)) ||
      bytes.starts_with(std::string_view("MM\0*", 4)))
    return "TIFF";
  return {};
}

/// Returns the format of a file from its extension; empty if unknown.
std::string_view format_of_name(const fs::path& file) {
  static const std::map<std::string, std::string_view> kKnown = {
      {".jpg", "JPEG"}, {".jpeg", "JPEG"}, {".png", "PNG"},  {".bmp", "BMP"},
      {".gif", "GIF"},  {".webp", "WebP"}, {".tif", "TIFF"}, {".tiff", "TIFF"}};
  const auto found = kKnown.find(lower_case(file.extension().string()));
  return found == kKnown.end() ? std::string_view{} : found->second;
}

/// Checks the file of one image and reports findings.
struct ImageFile {
  const coco::Image& image;
  std::string name;
  fs::path path;
  coco::Findings& findings;
  const ImageOptions& options;
  FileMark mark = {};

  FileMark check(ImageCheck how) {
    std::error_code unknown;
    if (!fs::exists(path, unknown)) {
      add_finding(kMissing, "");
      return {};
    }
    try {
      return check_content(how);
    } catch (const WrongSize& problem) {
      add_finding(kWrongSize, problem.what());
    } catch (const Error& problem) {
      add_finding(kUnreadable, problem.what());
    } catch (const std::bad_alloc&) {
      add_finding(kUnreadable, "not enough memory to read it");
    }
    return mark;
  }

  FileMark check_content(ImageCheck how) {
    const InputFile file(path);
    std::string bytes(std::min(file.size(), kHead), '\0');
    file.read(0, bytes);
    mark = {file.size(), wide_digest(bytes.data(), bytes.size())};
    const auto format = format_of_content(bytes), named = format_of_name(path);
    if (!format.empty() && !named.empty() && format != named)
      add_finding(kMisnamed, fmt::format("is {}", format));
    if (how == ImageCheck::heads && check_beginning(bytes)) return mark;
    const auto head = bytes.size();
    check_image_bytes(file.size(), name);
    bytes.resize(file.size());
    file.read(head, std::span(bytes).subspan(head));
    const auto turn = check_head(bytes, name, annotated(), options.max_pixels);
    // The smallest size that the decoder supports; it still reads all data.
    if (how == ImageCheck::decode || !turn)
      decode_rgb(bytes, name, annotated(), options.strict_decoding, /*enough=*/{1, 1},
                 options.max_pixels);
    if (turn) check_turn(bytes, *turn);
    return mark;
  }

  /// Returns true if the first bytes are enough to accept the file.
  bool check_beginning(std::string_view head) {
    try {
      const auto turn = check_head(head, name, annotated(), options.max_pixels);
      if (turn) check_turn(head, *turn);
      return turn.has_value();
    } catch (const DataError&) {
      return false;
    }
  }

  void check_turn(std::string_view head, int turn) {
    if (const int orientation = exif_orientation(head); orientation != turn)
      add_finding(kUnturned, fmt::format("EXIF orientation {}", orientation));
  }

  cv::Size annotated() const { return {image.width, image.height}; }

  void add_finding(const FindingKind& kind, std::string_view what) {
    if (what.starts_with(name + ": ")) what.remove_prefix(name.size() + 2);
    findings.add(kind, {.image = image.id, .file = name, .what = std::string(what)});
  }
};

}  // namespace

std::vector<FileMark> check_images(const DataSplit& split, ImageCheck how, coco::Findings& findings,
                                   const std::function<void()>& on_image,
                                   const ImageOptions& options) {
  const auto& data = *split.annotations;
  std::vector<FileMark> marks(data.images.size());
  coco::check_each(data.images.size(), findings, [&](std::size_t i, coco::Findings& part) {
    const auto& image = data.images[i];
    const std::string name(data.text(image.file_name));
    marks[i] = ImageFile{image, name, split.images / name, part, options}.check(how);
    on_image();
  });
  return marks;
}

void check_file_names(const DataSplit& split, coco::Findings& findings) {
  const auto& data = *split.annotations;
  std::map<std::string, std::int64_t> named;  // path, and id of its first image
  std::set<fs::path> folders = {split.images};
  for (const auto& image : data.images) {
    const std::string name(data.text(image.file_name));
    const auto path = (split.images / name).lexically_normal();
    folders.insert(path.parent_path());
    const auto [first, is_new] = named.try_emplace(path.string(), image.id);
    if (!is_new)
      findings.add(kShared, {.image = image.id,
                             .file = name,
                             .what = fmt::format("also the file of image {}", first->second)});
  }
  for (const auto& folder : folders) {
    if (!fs::is_directory(folder)) continue;  // reported as missing files
    for (const auto& file : images_in(folder))
      if (!named.contains(file.lexically_normal().string()))
        findings.add(kOrphan, {.file = file.lexically_relative(split.images).string()});
  }
}

std::size_t check_split(NamedSplit& split, const SplitChecks& checks, coco::Findings& findings,
                        const std::function<void()>& on_image) {
  const auto& [data, images, classes, category_ids] = split.data;
  check_categories(split, findings);
  if (checks.images) {
    check_file_names(split.data, findings);
    split.marks =
        check_images(split.data, *checks.images, findings, on_image, checks.image_options);
  }
  return coco::check_objects(*data, category_ids, checks.shapes, findings);
}

void check_samples(const Source<Sample>& source, bool decode, coco::Findings& findings,
                   const std::function<void()>& on_sample, const ImageOptions& options) {
  const Decode decoder{.strict = options.strict_decoding,
                       .max_pixels = options.max_pixels,
                       .short_side = 1};  // the smallest size; the decoder still reads all data
  const auto count = static_cast<std::size_t>(source.size());
  coco::check_each(count, findings, [&](std::size_t i, coco::Findings& part) {
    try {
      auto sample = source[static_cast<std::int64_t>(i)];
      if (decode) decoder(std::move(sample));
    } catch (const DataError& problem) {
      part.add(kUnusable, {.what = problem.what()});
    }
    on_sample();
  });
}

}  // namespace millrace
