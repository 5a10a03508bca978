#include "millrace/models/weights/weights.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/models/weights/class_rows.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/models/weights/schemes.h"

namespace millrace {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes().vec(), ", "));
}

/// Returns the first few names, for a message.
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  const auto shown = std::min(names.size(), kMost);
  return joined({names.data(), shown}) + (shown < names.size() ? ", ..." : "");
}

/// Copies the tensors of one file into parameters.
class Loader {
 public:
  /// `names`: the file's classes in label order; empty = unknown.
  Loader(const TranslatedTensors& file, const std::vector<std::string>& names,
         const std::vector<std::string>& wanted, LoadReport& report)
      : classes_(classes_of(file)), report_(report) {
    if (names.empty() || wanted.empty()) return;
    chosen_ = same_names(names, wanted);
    known_ = std::ssize(names);
    wanted_ = std::ssize(wanted);
    if (std::ranges::all_of(*chosen_, [](auto label) { return label < 0; })) chosen_->clear();
  }

  void load(const Parameter& parameter, at::Tensor value) {
    if (parameter.classes.values > 0 && value.dim() > 0) {
      auto ordered = in_order_of(parameter, value);
      if (!ordered) return report_.initial.push_back(parameter.name);
      value = *ordered;
    }
    if (value.sizes() != parameter.value.sizes()) {
      report_.mismatched.push_back(parameter.name + ": file " + shape_text(value) + ", model " +
                                   shape_text(parameter.value));
      return report_.initial.push_back(parameter.name);
    }
    value = value.to(parameter.value.scalar_type());
    if (const auto why = not_finite(value)) bad.push_back("'" + parameter.name + "': " + *why);
    parameter.value.copy_(value);
    ++report_.loaded;
  }

  bool has_classes() const { return classes_.has_value(); }

  std::vector<std::string> bad;  // parameters with values that are not finite
  bool took_categories = false, went_by_name = false;

 private:
  /// Returns the rows for a head's parameter; nullopt, after a report, if they are of other
  /// classes.
  std::optional<at::Tensor> in_order_of(const Parameter& parameter, const at::Tensor& value) {
    const auto& to = parameter.classes;
    const auto wanted = to.classes(parameter.value.size(0));
    const auto named = chosen_ && wanted == wanted_ ? named_axis(to, value.size(0)) : std::nullopt;
    if (named && value.sizes().slice(1) == parameter.value.sizes().slice(1)) {
      if (chosen_->empty()) {
        report_.other_classes.push_back(parameter.name +
                                        ": the file and the model have no class in common");
        return {};
      }
      went_by_name = true;
      if (std::ranges::count(*chosen_, -1) > 0) report_.initial.push_back(parameter.name);
      return with_chosen_classes(parameter.value, to, value, *named, *chosen_);
    }
    if (!classes_ || to.repeats > 1) return value;  // a mismatch shows in the shapes
    auto from = classes_->axis(value.size(0), to.values);
    if (!from) return value;  // no classes in the file: a mismatch shows in the shapes
    if (from->background == Background::none && from->classes(value.size(0)) != classes_->count)
      from->background = to.background;  // unknown in the file: assumes the model's
    auto ordered = with_classes(value, *from, to, wanted);
    if (!ordered)
      report_.other_classes.push_back(
          fmt::format("{}: file {} classes, model {}", parameter.name, classes_->count, wanted));
    else if (classes_->count != wanted)
      took_categories = true;
    return ordered;
  }

  /// Returns the axis of the file's rows if its classes are those known by name.
  std::optional<ClassAxis> named_axis(const ClassAxis& to, std::int64_t rows) const {
    ClassAxis from{to.values, Background::none, to.repeats};
    if (from.classes(rows) == known_) return from;
    if (from.classes(rows) != known_ + 1) return {};
    from.background = to.background == Background::none ? Background::first : to.background;
    if (classes_ && classes_->background != Background::none)
      from.background = classes_->background;
    return from;
  }

  std::optional<FileClasses> classes_;
  LoadReport& report_;
  std::optional<std::vector<std::int64_t>> chosen_;  // index in the file of each class of the model
  std::int64_t known_ = 0, wanted_ = 0;              // number of classes: file, model
};

/// Reports rows that were selected by the names of their classes.
void report_name_matches(const std::vector<std::string>& from, const std::vector<std::string>& to,
                         LoadReport& report) {
  if (from == to) return;
  report.notes.push_back("loaded the rows of heads by class name");
  for (const auto& name : to)
    if (std::ranges::count(from, name) == 0) report.new_classes.push_back(name);
  std::vector<std::string> left;
  for (const auto& name : from)
    if (std::ranges::count(to, name) == 0) left.push_back(name);
  if (!left.empty())
    report.notes.push_back(fmt::format(
        "{} of its classes are not in the model and are not used: {}", left.size(), some(left)));
}

/// Returns the model's parameter for a tensor of a file; nullptr if not found.
const Parameter* parameter_for(const Parameters& parameters, const StoredTensor& tensor) {
  // Tries the name as it is first, for a model whose own names start with a wrapper's ("model.").
  std::string_view own = tensor.stored_as;
  do {
    if (const auto* found = parameters.find(own)) return found;
  } while (strip_wrapper(own));
  const auto* found = parameters.find(tensor.name);
  return found || tensor.without_norm.empty() ? found : parameters.find(tensor.without_norm);
}

/// Returns the value of a parameter that starts as a constant, such as a norm's scale or shift;
/// nullopt for other parameters.
std::optional<double> constant_of(const Parameter& parameter) {
  if (parameter.kind == ParameterKind::weight || parameter.value.numel() == 0) return {};
  const auto values = parameter.value.detach().flatten();
  if (!values.eq(values[0]).all().item<bool>()) return {};
  return values[0].item<double>();
}

void log_names(const std::string& what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  log_warning("{} {}: {}", counted(std::ssize(names), "tensor"), what, some(names));
  for (const auto& name : names) log_debug("  {}: {}", what, name);
}

}  // namespace

std::vector<std::string> LoadReport::not_loaded() const {
  auto names = missing;
  names.insert(names.end(), mismatched.begin(), mismatched.end());
  names.insert(names.end(), other_classes.begin(), other_classes.end());
  for (const auto& name : new_classes) names.push_back("rows of class '" + name + "'");
  return names;
}

LoadReport load_weights(const Parameters& parameters, const std::filesystem::path& file,
                        const WeightUse& use) {
  const c10::NoGradGuard no_grad;
  const auto translated = in_our_names(read_weights(file));
  const auto card = read_card(file);
  const auto names = card ? card->classes : std::vector<std::string>();
  LoadReport report{.scheme = std::string(translated.scheme->name)};
  Loader loader(translated, names, use.classes, report);
  std::set<std::string> seen;
  for (const auto& tensor : translated.tensors) {
    const auto* parameter = parameter_for(parameters, tensor);
    if (!parameter) {
      if (!tensor.stored_as.empty()) report.unused.push_back(tensor.stored_as);
      continue;
    }
    if (!seen.insert(parameter->name).second)
      throw Error(file.string() + ": tensor '" + parameter->name + "' occurs twice");
    loader.load(*parameter, tensor.value);
  }
  for (const auto& parameter : parameters)
    if (!seen.contains(parameter.name)) report.missing.push_back(parameter.name);
  report.initial.insert(report.initial.end(), report.missing.begin(), report.missing.end());
  if (const auto& bad = loader.bad; !bad.empty())
    use.force_weights.throw_or_warn<Error>(fmt::format(
        "{}: {}{}; the training that wrote this file diverged", file.string(), bad.front(),
        bad.size() > 1 ? fmt::format(", also in {} more", counted(std::ssize(bad) - 1, "tensor"))
                       : ""));
  if (loader.went_by_name)
    report_name_matches(names, use.classes, report);
  else if (!names.empty() && names.size() == use.classes.size() && names != use.classes &&
           report.other_classes.empty())
    use.force_weights.throw_or_warn<Error>(
        fmt::format("{}: its classes are {}, the model's are {}, and the detector does not declare "
                    "which rows of its tensors belong to which class (Parameters::set_classes)",
                    file.string(), some(names), some(use.classes)));
  if (loader.took_categories)
    report.notes.push_back(
        "its heads have 90 classes (COCO's raw category ids); loaded the rows of the 80 "
        "categories");
  if (loader.has_classes() && report.scheme == "torchvision-2019")
    report.notes.push_back(
        "its tensor names are torchvision's of 2019; detectors published then need model.norm_eps "
        "= 0");

  if (report.loaded > 0) return report;
  auto& found = report.unused;
  for (const auto* misfits : {&report.mismatched, &report.other_classes})
    found.insert(found.end(), misfits->begin(), misfits->end());
  throw Error(file.string() + ": no tensor matches this model. The file contains " +
              counted(std::ssize(found), "tensor") + " (" + some(found) + "); the model needs " +
              some(report.missing));
}

void check_all_loaded(const LoadReport& report, std::size_t parameters, const std::string& file) {
  const auto bad = report.not_loaded();
  if (bad.empty()) return;
  throw Error(
      fmt::format("{} does not match this model: {} of {} tensors are missing or have other "
                  "classes or another shape, e.g. {}; was it trained with another configuration?",
                  file, bad.size(), parameters, bad.front()));
}

void check_frozen_loaded(const LoadReport& report, const std::vector<std::string>& frozen,
                         const std::string& file, const ForceWeights& force_weights) {
  std::vector<std::string> initial;
  for (const auto& name : frozen)
    if (std::ranges::count(report.initial, name) > 0) initial.push_back(name);
  if (initial.empty()) return;
  force_weights.throw_or_warn<Error>(
      fmt::format("{} contains no values for {} that the configuration freezes and that would keep "
                  "their initial values: {}; train them (model.backbone.freeze_at, "
                  "optimizer.groups) or use weights of this model",
                  file, counted(std::ssize(initial), "tensor"), some(initial)));
}

void log_report(const LoadReport& report, const Parameters& parameters, const std::string& file) {
  log_info("loaded {} of {} tensors from {} (names of {})", report.loaded, parameters.size(), file,
           report.scheme);
  for (const auto& note : report.notes) log_info("{}: {}", file, note);
  std::vector<std::string> random, constants;
  for (const auto& name : report.missing) {
    if (const auto value = constant_of(*parameters.find(name)))
      constants.push_back(fmt::format("{} ({})", name, *value));
    else
      random.push_back(name);
  }
  log_names("not in the file start from random values", random);
  log_names("not in the file start from a constant", constants);
  log_names("with another shape keep their initial values", report.mismatched);
  log_names("of heads for other classes keep their initial values", report.other_classes);
  log_names("of the file are not used", report.unused);
  if (!report.new_classes.empty())
    log_warning("rows of {} missing in {} start from random values: {}",
                report.new_classes.size() == 1 ? "the class" : "the classes", file,
                joined(report.new_classes));
}

}  // namespace millrace
