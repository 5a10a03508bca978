#include "tests/parity/golden_runs.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "millrace/base/files.h"
#include "millrace/models/weights/safetensors.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  const char* set = std::getenv("MILLRACE_GOLDENS");
  return set ? fs::path(set) : data_folder() / "goldens";
}

/// Parses the output of Python's str() for an argument: a number, a list, or a string.
nlohmann::json parsed(std::string text) {
  std::ranges::replace(text, '\'', '"');
  auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

/// Returns "grad_norm" for "grad_norm.rpn.head.conv.0.0.weight".
std::string kind_of(const std::string& name) { return name.substr(0, name.find('.')); }

double largest(const at::Tensor& values) {
  return values.numel() == 0 ? 0 : values.to(at::kDouble).abs().max().item<double>();
}

}  // namespace

GoldenRun::GoldenRun(const fs::path& file) : file_(file), title_(file.stem().string()) {
  std::map<std::string, std::string> metadata;
  for (auto& [name, tensor] : read_safetensors(file, &metadata)) tensors_[name] = tensor;
  for (const auto& [name, text] : metadata) arguments_[name] = parsed(text);

  const auto kind = title_.substr(title_.find_last_of('_') + 1);  // infer or train
  const auto differences =
      file.parent_path() / (title_.substr(0, title_.find_last_of('_')) + "_tolerance.json");
  if (!fs::exists(differences)) return;
  const auto all = nlohmann::json::parse(read_file(differences));
  for (const auto* other : {"_2threads", "_float64"}) {
    if (!all.contains(kind + other)) continue;  // missing in traces
    for (const auto& [name, difference] : all.at(kind + other).items())
      if (difference.is_array()) {
        auto& most = differences_[name];
        most = std::max(most, difference[0].get<double>());
        auto& share = shares_[kind_of(name)];
        share = std::max(share, difference[1].get<double>());
      }
  }
}

std::vector<at::Tensor> GoldenRun::of_images(const std::string& prefix,
                                             const std::string& suffix) const {
  std::vector<at::Tensor> tensors;
  while (has(prefix + std::to_string(tensors.size()) + suffix))
    tensors.push_back((*this)[prefix + std::to_string(tensors.size()) + suffix]);
  return tensors;
}

fs::path GoldenRun::path_beside(const std::string& part) const {
  return file_.parent_path() /
         (title_.substr(0, title_.find_last_of('_') + 1) + part + ".safetensors");
}

GoldenRun GoldenRun::beside(const std::string& part) const { return GoldenRun(path_beside(part)); }

bool GoldenRun::has_beside(const std::string& part) const { return fs::exists(path_beside(part)); }

std::vector<std::string> GoldenRun::names(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_)
    if (name.starts_with(prefix)) names.push_back(name);
  return names;
}

double GoldenRun::tolerance(const std::string& name) const {
  const double most = largest((*this)[name]);
  if (differences_.empty()) return 1e-5 * most;
  const auto value_or = [](const auto& map, const std::string& key, double otherwise) {
    const auto found = map.find(key);
    return found == map.end() ? otherwise : found->second;
  };
  const double rounding = std::numeric_limits<float>::epsilon();
  const double share =
      name.starts_with("grad") ? value_or(shares_, kind_of(name), rounding) : rounding;
  const double measured = value_or(differences_, name, 0);
  return 4 * std::max(measured, share * most);
}

::testing::AssertionResult agrees(const at::Tensor& actual, const GoldenRun& golden,
                                  const std::string& name) {
  const auto& expected = golden[name];
  if (actual.sizes() != expected.sizes())
    return ::testing::AssertionFailure()
           << name << " has shape " << actual.sizes() << ", not " << expected.sizes();
  const double error = largest(actual.to(at::kDouble) - expected.to(at::kDouble));
  if (error <= golden.tolerance(name)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << name << " differs by " << error << " with largest value " << largest(expected)
         << "; the tolerance is " << golden.tolerance(name);
}

void each_golden(const std::string& tensor, const std::function<void(const GoldenRun&)>& work) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder()))
    for (const auto& entry : fs::directory_iterator(folder()))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::ranges::sort(files);
  bool found = false;
  for (const auto& file : files)
    if (const GoldenRun run(file); run.has(tensor)) {
      SCOPED_TRACE(run.title());
      work(run);
      found = true;
    }
  if (!found)
    GTEST_SKIP() << "no torchvision recording contains \"" << tensor
                 << "\" (set MILLRACE_GOLDENS to the golden folder)";
}

}  // namespace millrace::testing
