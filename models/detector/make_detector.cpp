#include "millrace/models/detector/make_detector.h"

#include "millrace/base/errors.h"

namespace millrace {

Registry<DetectorFactory>& detectors() {
  static Registry<DetectorFactory> registry("detector");
  return registry;
}

Config own_options(const Config& model_table) {
  return without(model_table, {"type", "weights", "force_weights"});
}

std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context) {
  const auto& entry = detectors().at(name, table.origin);
  const auto who = detectors().title(entry);
  auto detector = with_component_name(who, "its factory",
                                      [&] { return entry.create(own_options(table), context); });
  detector->title_ = who.text();
  detector->class_count_ = context.classes.size();
  return detector;
}

}  // namespace millrace
