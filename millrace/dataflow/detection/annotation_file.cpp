#include "millrace/dataflow/detection/annotation_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/coco/data/annotation_cache.h"
#include "millrace/coco/data/sound_records.h"

namespace millrace {
namespace {

constexpr std::size_t kExamples = 3;  // that a message names

/// What is wrong with the records of one section.
struct Faults {
  std::string_view noun;  // "annotation"
  std::size_t count = 0;
  std::vector<std::string> examples = {};

  void add(const std::string& example) {
    if (++count <= kExamples) examples.push_back(example);
  }
  std::string text() const {
    return fmt::format("{} cannot be used: {}{}", counted(static_cast<long long>(count), noun),
                       joined(examples, "; "),
                       count > kExamples ? "; `trainer doctor` tells of all" : "");
  }
};

std::string text(const coco::RecordFault& fault, std::string_view noun) {
  const auto name = fault.id ? fmt::format("{} {}", noun, *fault.id)
                             : fmt::format("{}[{}]", fault.section, fault.index);
  return fmt::format("{}, byte {}: {}", name, fault.byte, fault.why);
}

/// What is left out, and where that is too much.
class LeftOut {
 public:
  LeftOut(std::string file, double most) : file_(std::move(file)), most_(most) {}

  coco::FaultListener listener() {
    return {.unreadable =
                [this](const coco::RecordFault& fault) {
                  auto& faults = fault.section == "images" ? images_ : annotations_;
                  if (fault.section == "categories")
                    throw Error(fmt::format("{}: {}", file_, text(fault, "category")));
                  faults.add(text(fault, faults.noun));
                },
            .contradiction =
                [this](const coco::Contradiction& problem) {
                  if (!problem.annotation)  // it is not clear which of two is meant
                    throw Error(fmt::format("{}: {}", file_, problem.what()));
                  annotations_.add(fmt::format("annotation {}: {}", problem.id, problem.why));
                }};
  }

  /// Throws Error where too much is left out of `kept`, else says what is.
  void tell(const coco::Dataset& kept) const {
    tell(images_, kept.images.size());
    tell(annotations_, kept.annotations.size());
  }

 private:
  void tell(const Faults& faults, std::size_t kept) const {
    if (faults.count == 0) return;
    const auto all = faults.count + kept;
    if (static_cast<double>(faults.count) > std::ceil(most_ * static_cast<double>(all)))
      throw Error(fmt::format("{}: of {}, more than data.max_skipped = {} allows, {}", file_,
                              counted(static_cast<long long>(all), faults.noun), most_,
                              faults.text()));
    spdlog::warn("{}: left out: {}", file_, faults.text());
  }

  std::string file_;
  double most_;  // share
  Faults annotations_{"annotation"}, images_{"image"};
};

}  // namespace

std::shared_ptr<const coco::Dataset> read_annotations(const std::filesystem::path& file,
                                                      const FaultOptions& options) {
  if (options.on_error == OnError::fail) return coco::read_dataset_cached(file);
  try {
    return coco::read_dataset_cached(file);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error&) {  // told below, unless it is a record's fault alone
    LeftOut left_out(file.string(), options.max_skipped);
    auto data = coco::read_sound_records(file, left_out.listener());
    left_out.tell(*data);
    return data;
  }
}

}  // namespace millrace
