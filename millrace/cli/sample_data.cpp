#include "millrace/cli/sample_data.h"

#include <filesystem>

#include "millrace/base/log.h"
#include "millrace/coco/sample/sample.h"

namespace millrace::cli {
namespace {

void make_sample(const Recipe& recipe) {
  const std::filesystem::path root = recipe.data.root;
  const auto& sample = recipe.data.sample;
  if (!sample || !recipe.sources.empty() || std::filesystem::exists(root)) return;
  spdlog::info("making the sample data set in {} ({} + {} images, seed {})", root.string(),
               sample->train, sample->val, sample->seed);
  coco::make_sample(root, *sample);
}

}  // namespace

void make_sample_on_first_use(const Recipe& recipe, const Cluster& cluster) {
  // The chief first: hosts may share their files.
  if (cluster.is_chief()) make_sample(recipe);
  cluster.meet("sample data set of the chief");
  if (cluster.local_rank() == 0 && !cluster.is_chief()) make_sample(recipe);
  cluster.meet("sample data sets");
}

}  // namespace millrace::cli
