#include "trainer/weights.h"

#include <c10/core/GradMode.h>

#include <set>

#include "base/errors.h"
#include "base/text.h"
#include "trainer/npz.h"
#include "trainer/tensorpack_names.h"

namespace millrace {
namespace {

/// Names as torchvision and detectron2 write them, the model wrapped or not.
std::vector<StoredTensor> from_torchvision(const NamedTensors& tensors) {
  std::vector<StoredTensor> result;
  for (const auto& [name, value] : tensors) {
    if (name.ends_with(".num_batches_tracked")) continue;  // a counter that frozen norms do without
    constexpr std::string_view kWrapper = "model.";
    result.push_back(
        {name, name.starts_with(kWrapper) ? name.substr(kWrapper.size()) : name, value});
  }
  return result;
}

std::vector<StoredTensor> read_any(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file))
    return from_torchvision(read_safetensors(file / "model.safetensors"));
  if (!std::filesystem::exists(file)) throw Error(file.string() + ": there is no such file");
  if (file.extension() == ".safetensors") return from_torchvision(read_safetensors(file));
  if (file.extension() == ".npz") return from_tensorpack(read_npz(file));
  throw Error(file.string() +
              ": weights come as .safetensors, as tensorpack's .npz or as a checkpoint folder");
}

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sides;
  for (const auto side : tensor.sizes()) sides.push_back(std::to_string(side));
  return "(" + joined(sides) + ")";
}

/// The first few of a list, for a message.
std::string some(std::vector<std::string> names) {
  constexpr std::size_t kMost = 3;
  const bool more = names.size() > kMost;
  if (more) names.resize(kMost);
  return joined(names) + (more ? ", ..." : "");
}

}  // namespace

LoadReport load_weights(const Parameters& parameters, const std::filesystem::path& file) {
  const c10::NoGradGuard no_grad;
  LoadReport report;
  std::set<std::string> seen;
  for (const auto& [stored_as, name, value] : read_any(file)) {
    const auto* parameter = parameters.find(name);
    if (!parameter) {
      if (!stored_as.empty()) report.unused.push_back(stored_as);
      continue;
    }
    if (!seen.insert(name).second) throw Error(file.string() + ": has '" + name + "' twice");
    if (value.sizes() != parameter->value.sizes()) {
      report.mismatched.push_back(name + ": file " + shape_text(value) + ", model " +
                                  shape_text(parameter->value));
      continue;
    }
    parameter->value.copy_(value);
    ++report.loaded;
  }
  for (const auto& parameter : parameters)
    if (!seen.contains(parameter.name)) report.missing.push_back(parameter.name);

  if (report.loaded > 0) return report;
  auto& found = report.unused;
  found.insert(found.end(), report.mismatched.begin(), report.mismatched.end());
  throw Error(file.string() + ": nothing in it fits this model. It has " +
              counted(std::ssize(found), "tensor") + " (" + some(found) + "); the model wants " +
              some(report.missing));
}

}  // namespace millrace
