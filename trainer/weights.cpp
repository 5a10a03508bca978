#include "trainer/weights.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <set>

#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"
#include "trainer/weights/class_rows.h"
#include "trainer/weights/formats.h"
#include "trainer/weights/schemes.h"

namespace millrace {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sides;
  for (const auto side : tensor.sizes()) sides.push_back(std::to_string(side));
  return "(" + joined(sides) + ")";
}

/// The first few of a list, for a message.
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  const auto shown = std::min(names.size(), kMost);
  return joined({names.data(), shown}) + (shown < names.size() ? ", ..." : "");
}

/// Puts the tensors of one file into parameters.
class Loader {
 public:
  Loader(const TranslatedTensors& file, LoadReport& report)
      : classes_(classes_of(file)), report_(report) {}

  void load(const Parameter& parameter, at::Tensor value) {
    if (parameter.classes.values > 0 && classes_ && value.dim() > 0) {
      auto ordered = in_order_of(parameter, value);
      if (!ordered) return;
      value = *ordered;
    }
    if (value.sizes() != parameter.value.sizes()) {
      report_.mismatched.push_back(parameter.name + ": file " + shape_text(value) + ", model " +
                                   shape_text(parameter.value));
      return;
    }
    parameter.value.copy_(value);
    ++report_.loaded;
  }

  bool has_classes() const { return classes_.has_value(); }
  bool took_categories() const { return took_categories_; }

 private:
  /// The rows that a head's parameter wants; nothing, which has been reported, where they are of other classes.
  std::optional<at::Tensor> in_order_of(const Parameter& parameter, const at::Tensor& value) {
    const auto& to = parameter.classes;
    const auto wanted = to.classes(parameter.value.size(0));
    auto from = classes_->axis(value.size(0), to.values);
    if (!from) return value;  // no classes in the file: the shapes will tell
    if (from->background == Background::none && from->classes(value.size(0)) != classes_->count)
      from->background = to.background;  // the file does not say: as we do
    auto ordered = with_classes(value, *from, to, wanted);
    if (!ordered)
      report_.other_classes.push_back(
          fmt::format("{}: file {} classes, model {}", parameter.name, classes_->count, wanted));
    else if (classes_->count != wanted)
      took_categories_ = true;
    return ordered;
  }

  std::optional<FileClasses> classes_;
  LoadReport& report_;
  bool took_categories_ = false;
};

void warn_of(const std::string& what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  spdlog::warn("{} {}: {}", counted(std::ssize(names), "tensor"), what, some(names));
  for (const auto& name : names) spdlog::debug("  {}: {}", what, name);
}

}  // namespace

std::vector<std::string> LoadReport::not_loaded() const {
  auto names = missing;
  names.insert(names.end(), mismatched.begin(), mismatched.end());
  names.insert(names.end(), other_classes.begin(), other_classes.end());
  return names;
}

LoadReport load_weights(const Parameters& parameters, const std::filesystem::path& file) {
  const c10::NoGradGuard no_grad;
  const auto translated = in_our_names(read_weights(file));
  LoadReport report{.scheme = std::string(translated.scheme->name)};
  Loader loader(translated, report);
  std::set<std::string> seen;
  for (const auto& [stored_as, name, value] : translated.tensors) {
    const auto* parameter = parameters.find(name);
    if (!parameter) {
      if (!stored_as.empty()) report.unused.push_back(stored_as);
      continue;
    }
    if (!seen.insert(name).second) throw Error(file.string() + ": has '" + name + "' twice");
    loader.load(*parameter, value);
  }
  for (const auto& parameter : parameters)
    if (!seen.contains(parameter.name)) report.missing.push_back(parameter.name);
  if (loader.took_categories())
    report.notes.push_back(
        "its heads have 90 classes, COCO's raw ids: the rows of the 80 categories were taken");
  if (loader.has_classes() && report.scheme == "torchvision-2019")
    report.notes.push_back(
        "its names are torchvision's of 2019: detectors published then want model.norm_epsilon = "
        "0");

  if (report.loaded > 0) return report;
  auto& found = report.unused;
  for (const auto* misfits : {&report.mismatched, &report.other_classes})
    found.insert(found.end(), misfits->begin(), misfits->end());
  throw Error(file.string() + ": nothing in it fits this model. It has " +
              counted(std::ssize(found), "tensor") + " (" + some(found) + "); the model wants " +
              some(report.missing));
}

void log_report(const LoadReport& report, std::size_t parameters, const std::string& file) {
  spdlog::info("{} of {} tensors from {} (names of {})", report.loaded, parameters, file,
               report.scheme);
  for (const auto& note : report.notes) spdlog::info("{}: {}", file, note);
  warn_of("not in the file start from random values", report.missing);
  warn_of("with another shape start from random values", report.mismatched);
  warn_of("of heads for other classes start from random values", report.other_classes);
  warn_of("of the file are not used", report.unused);
}

}  // namespace millrace
