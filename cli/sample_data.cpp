#include "cli/sample_data.h"

#include <filesystem>

#include "base/log.h"
#include "coco/sample.h"

namespace millrace::cli {

void make_sample_on_first_use(const Recipe& recipe) {
  const std::filesystem::path root = recipe.data.root;
  if (!recipe.has_sample || std::filesystem::exists(root)) return;
  spdlog::info("making the sample data set in {} ({} + {} images, seed {})", root.string(),
               recipe.sample.train, recipe.sample.val, recipe.sample.seed);
  coco::make_sample(root, recipe.sample);
}

}  // namespace millrace::cli
