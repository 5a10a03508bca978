#include "millrace/coco/data/check_records.h"

#include <fmt/format.h>

#include "millrace/coco/data/readers.h"

namespace millrace::coco {
namespace {

using enum Severity;

constexpr std::string_view kStops = "training stops before its first step";
constexpr std::string_view kLeftOut =
    "the object is skipped (data.on_error); training stops before its first step if more than "
    "data.max_skipped are skipped";

constexpr FindingKind kFile{"file-unreadable", error, "unreadable annotation files", kStops};
constexpr FindingKind kRecord{
    "record-unreadable", error, "records with a missing field or a field of the wrong type",
    "the object, or the image with its objects, is skipped (data.on_error); training stops before "
    "its first step if more than data.max_skipped are skipped or the record is a category"};
constexpr FindingKind kBox{"box-unreadable", error,
                           "boxes that are not four finite numbers or have a negative size",
                           kLeftOut};
constexpr FindingKind kShape{
    "shape-unreadable", error,
    "shapes that are neither run lengths nor polygons of three or more points", kLeftOut};
constexpr FindingKind kRuns{"mask-unreadable", error,
                            "run lengths that are damaged or do not fill their mask", kLeftOut};

/// Indexed by ConflictKind.
constexpr FindingKind kConflictKinds[] = {
    {"image-id-twice", error, "images with the id of another image", kStops},
    {"category-id-twice", error, "categories with the id of another category", kStops},
    {"annotation-id-twice", error, "annotations with the id of another annotation", kLeftOut},
    {"image-unknown", error, "annotations of an unknown image", kLeftOut},
    {"category-unknown", error, "annotations of an unknown category", kLeftOut},
    {"mask-size", error, "masks that differ in size from their image", kLeftOut}};

const FindingKind& kind_of(const RecordFault& fault) {
  if (fault.field == "bbox") return kBox;
  if (fault.field == "segmentation") return kShape;
  if (fault.field == "counts" || fault.field == "size") return kRuns;
  return kRecord;
}

FindingExample example_of(const RecordFault& fault) {
  const auto id_in = [&](std::string_view section) {
    return fault.section == section ? fault.id : std::nullopt;
  };
  return {.annotation = id_in("annotations"),
          .image = id_in("images"),
          .category = id_in("categories"),
          .what = fmt::format("{}[{}], byte {}: {}", fault.section, fault.index, fault.byte,
                              fault.why)};
}

FindingExample example_of(const RecordConflict& problem) {
  FindingExample example;
  if (problem.kind == ConflictKind::image_twice) example.image = problem.id;
  if (problem.kind == ConflictKind::category_twice) example.category = problem.id;
  if (!problem.annotation) return example;
  example.annotation = problem.id;
  example.image = problem.image_id;
  // Omitted for a duplicate annotation id, since positions count only readable records.
  if (problem.kind != ConflictKind::annotation_twice) example.what = problem.why;
  return example;
}

}  // namespace

std::shared_ptr<const Dataset> check_records(const std::filesystem::path& json,
                                             Findings& findings) {
  try {
    return read_valid_records(
        json,
        {.unreadable =
             [&](const RecordFault& fault) { findings.add(kind_of(fault), example_of(fault)); },
         .on_conflict =
             [&](const RecordConflict& problem) {
               findings.add(kConflictKinds[static_cast<std::size_t>(problem.kind)],
                            example_of(problem));
             }});
  } catch (const Error& problem) {
    findings.add(kFile, {.what = problem.what()});
    return nullptr;
  }
}

}  // namespace millrace::coco
