#include "trainer/detector.h"

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace {
namespace {

template <class Work>
auto named(const std::string& title, const char* where, Work work) {
  const auto why = [&](const char* what) {
    return fmt::format("{} failed in {}: {}", title, where, what);
  };
  try {
    return work();
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& problem) {
    throw Error(why(problem.what()));
  } catch (...) {
    throw Error(why("it threw something that is no std::exception"));
  }
}

}  // namespace

Losses losses_of(Detector& detector, const Batch& batch, const StepInfo& step) {
  return named(detector.title, "losses", [&] { return detector.losses(batch, step); });
}

std::vector<std::vector<DetectedObject>> detect_with(Detector& detector, const Batch& batch) {
  return named(detector.title, "detect", [&] { return detector.detect(batch); });
}

void tell_parameters_changed(Detector& detector) {
  named(detector.title, "parameters_changed", [&] { detector.parameters_changed(); });
}

Registry<DetectorFactory>& detectors() {
  static Registry<DetectorFactory> registry("detector");
  return registry;
}

std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context) {
  const auto& entry = detectors().at(name, table.origin);
  const auto title = fmt::format("detector '{}'{}", name, of_plugin(entry.plugin));
  auto detector = named(title, "its factory", [&] { return entry.create(table, context); });
  detector->title = title;
  return detector;
}

}  // namespace millrace
