#include "millrace/coco/data/sound_records.h"

#include <utility>

#include "millrace/coco/data/annotation_pieces.h"
#include "millrace/coco/data/record_reader.h"

namespace millrace::coco {
namespace {

Records read_loosely(const std::filesystem::path& json,
                     const std::function<void(const RecordFault&)>& tell) {
  if (auto records = read_pieces(open_json(json, '{'), kPieceBytes)) return std::move(*records);
  JsonText text(read_json(json, '{'), json.string());
  text.tolerate(tell);
  Records all, one;
  read_sections(text, all, [&](json::value section) {
    constexpr std::string_view kSection = "annotations";
    text.each_record(array(section, kSection), kSection, [&](json::object fields, const char* at) {
      one.clear();  // what is left of a record that was wrong
      read_annotation(fields, at, one);
      all.add_annotations(one);
    });
  });
  return all;
}

}  // namespace

std::shared_ptr<const Dataset> read_sound_records(const std::filesystem::path& json,
                                                  const FaultListener& listener) {
  return assemble(read_loosely(json, listener.unreadable), json.string(), listener.contradiction);
}

}  // namespace millrace::coco
