#include "millrace/models/detector/detector.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/models/detector/loss_sums.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/onnx/detection.h"

namespace millrace {
namespace {

template <class Work>
auto named(const std::string& title, const char* where, Work work) {
  try {
    return work();
  } catch (const ConfigError&) {
    throw;
  } catch (...) {
    throw Error(fmt::format("{} failed in {}: {}", title, where, what_is_thrown()));
  }
}

/// Throws Error for losses that cannot be trained with.
void check(const LossSums& losses) {
  if (losses.empty()) throw Error("no losses returned");
  counts_of(losses);
  bool descends = false;
  for (const auto& [name, loss, divisor] : losses) {
    if (!loss.defined()) throw Error(fmt::format("'{}' is an undefined tensor", name));
    if (loss.numel() != 1 || !loss.is_floating_point())
      throw Error(fmt::format("'{}' must be one floating point number, not {} of shape ({})", name,
                              c10::toString(loss.scalar_type()),
                              fmt::join(loss.sizes().vec(), ", ")));
    descends = descends || loss.requires_grad();
  }
  if (descends || !c10::GradMode::is_enabled()) return;
  std::vector<std::string> names;
  for (const auto& loss : losses) names.push_back(loss.name);
  throw Error(fmt::format(
      "none of the losses ('{}') depends on a trained parameter, so there is no gradient",
      fmt::join(names, "', '")));
}

/// Throws Error for an invalid object.
void check(const DetectedObject& object, const ImageInfo& image, std::size_t classes) {
  if (classes > 0 && (object.label < 0 || static_cast<std::size_t>(object.label) >= classes))
    throw Error(fmt::format("label {} is out of range; there are {} classes, counted from 0",
                            object.label, classes));
  if (!std::isfinite(object.score)) throw Error(fmt::format("invalid score {}", object.score));
  const auto& [x1, y1, x2, y2] = object.box;
  if (!std::isfinite(x1) || !std::isfinite(y1) || !std::isfinite(x2) || !std::isfinite(y2))
    throw Error(fmt::format("invalid box [{}, {}, {}, {}]", x1, y1, x2, y2));
  const auto& mask = object.mask;
  if (mask.counts.empty()) return;
  if (std::cmp_not_equal(mask.height, image.original_height) ||
      std::cmp_not_equal(mask.width, image.original_width))
    throw Error(fmt::format("the mask is {} x {} pixels, but the image is {} x {}", mask.width,
                            mask.height, image.original_width, image.original_height));
}

void check(const std::vector<std::vector<DetectedObject>>& found, const Batch& batch,
           std::size_t classes) {
  if (found.size() != batch.size())
    throw Error(fmt::format("returned results for {} of {} images", found.size(), batch.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::size_t k = 0; k < found[i].size(); ++k) try {
        check(found[i][k], batch.images[i], classes);
      } catch (const Error& problem) {
        throw Error(fmt::format("object {} of image {}: {}", k + 1, batch.images[i].image_id,
                                problem.what()));
      }
}

}  // namespace

LossSums Detector::loss_sums(const Batch& batch, const StepInfo& step) {
  return named(title_, "losses", [&] {
    auto losses = compute_losses(batch, step);
    check(losses);
    return losses;
  });
}

LossDivisors Detector::counts(const Batch& batch, const StepInfo& step) {
  auto counts = named(title_, "counts", [&] { return compute_counts(batch, step); });
  return counts.empty() ? counts_of(loss_sums(batch, step)) : counts;
}

Losses Detector::losses(const Batch& batch, const StepInfo& step) {
  return means_of(loss_sums(batch, step));
}

std::vector<std::vector<DetectedObject>> Detector::detect(const Batch& batch,
                                                          DetectionNotes* notes) {
  if (notes && !gives_notes()) throw Error(title_ + " does not report proposals");
  const auto on = device();
  const c10::DeviceGuard on_device(on);  // a new thread's current device is the first GPU
  std::optional<ComputeIn> precision;
  if (detect_type_ != at::kFloat) precision.emplace(detect_type_, on.type());
  return named(title_, "detect", [&] {
    std::vector<std::vector<DetectedObject>> all(batch.size());
    if (notes) *notes = {all, all};
    for (auto& one : split_by_padded_size(batch)) {
      take_pixels_of(batch, one);
      const auto& [part, places] = one;
      DetectionNotes own;
      auto found = find_objects(part, notes ? &own : nullptr);
      for (auto [whole, some] :
           {std::pair(&all, &found), std::pair(notes ? &notes->proposals : nullptr, &own.proposals),
            std::pair(notes ? &notes->raw : nullptr, &own.raw)}) {
        if (!whole) continue;
        check(*some, part, class_count_);
        for (std::size_t i = 0; i < places.size(); ++i) (*whole)[places[i]] = std::move((*some)[i]);
      }
    }
    return all;
  });
}

onnx::Objects Detector::add_to(const onnx::Images& images, bool pasted) const {
  return named(title_, "add_to", [&] { return add_nodes(images, pasted); });
}

onnx::Objects Detector::add_nodes(const onnx::Images&, bool) const {
  throw Error(
      "export is not supported: the detector does not implement Detector::add_nodes "
      "(millrace/models/detector/detector.h)");
}

void Detector::parameters_changed() {
  named(title_, "parameters_changed", [&] { on_parameters_changed(); });
}

std::vector<std::string> Detector::check_training(const TrainingFacts& facts) const {
  return named(title_, "check_training", [&] { return check_facts(facts); });
}

at::Device Detector::device() const {
  return parameters().size() > 0 ? parameters().begin()->value.device() : at::kCPU;
}

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
