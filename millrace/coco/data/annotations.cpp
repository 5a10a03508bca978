#include "millrace/coco/data/annotations.h"

#include <system_error>
#include <utility>

#include "millrace/coco/data/annotation_pieces.h"
#include "millrace/coco/data/record_reader.h"

namespace millrace::coco {
namespace {

/// Reads the sections in the order of the file, then checks what one says of another.
std::shared_ptr<const Dataset> read_in_order(std::string json, const std::string& source) {
  JsonText text(std::move(json), source);
  Records records;
  std::vector<std::size_t> begins;  // byte where each annotation begins
  read_sections(text, records, [&](json::value section) {
    constexpr std::string_view kSection = "annotations";
    text.each_record(array(section, kSection), kSection, [&](json::object fields, const char* at) {
      read_annotation(fields, at, records);
      begins.push_back(text.offset(at));
    });
  });
  try {
    return assemble(std::move(records), source);
  } catch (const Contradiction& problem) {
    if (problem.annotation) text.fail(begins[*problem.annotation], problem.what());
    text.fail(problem.what());
  }
}

}  // namespace

std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json) {
  std::error_code no_size;  // a pipe has no size, and can be read only once
  if (const auto size = std::filesystem::file_size(json, no_size);
      !no_size && size >= 2 * kPieceBytes) {
    try {
      if (auto records = read_pieces(open_json(json, '{'), kPieceBytes))
        return assemble(std::move(*records), json.string());
    } catch (const Contradiction&) {  // told below, with its place in the file
    }
  }
  return read_in_order(read_json(json, '{'), json.string());
}

std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source) {
  return read_in_order(std::string(json), source);
}

}  // namespace millrace::coco
