#include "millrace/dataflow/data_recipe.h"

#include <algorithm>

#include "millrace/base/options.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/dataflow/stage_tables.h"

namespace millrace {
namespace {

/// Returns true if [data.sample] belongs to data.root: the file that sets the root also sets a key
/// of [data.sample], or the root is the default. Any other root is the user's own data or mistyped.
bool sample_belongs_to_root(const Config& sample, const Config& root) {
  const auto& file = root.origin.source;
  return file == Origin().source || file == sample.origin.source ||
         std::ranges::any_of(sample.table(),
                             [&](const auto& key) { return key.second.origin.source == file; });
}

struct SeedOptions {
  std::int64_t seed = 1;
  void describe(Options& o) {
    o.add("seed", seed, "seed of the sample order and of all random draws",
          {.min = 0, .max = kAnySeed});
  }
};

}  // namespace

std::uint64_t seed_of(const Config& from) {
  return static_cast<std::uint64_t>(read_part<SeedOptions>(from.section("train")).seed);
}

DataRecipe resolve_data(const Config& from, Config& tree) {
  DataRecipe recipe;
  recipe.data = take_section<DataOptions>(from, "data", tree, {"sample", "sources", "stages"});
  auto& table = *tree.find("data");
  auto& root = *table.find("root");
  require(table, "root", !recipe.data.root.empty(), "is empty; expected a folder in COCO's layout");
  make_path_absolute(root);
  recipe.data.root = std::get<std::string>(root.data);
  if (auto* sample = table.find("sample")) {
    const auto options = read_options<coco::SampleOptions>(*sample);
    const bool is_ours = sample_belongs_to_root(*sample, root);
    complete_options<coco::SampleOptions>(*sample);
    if (is_ours)
      recipe.data.sample = options;
    else  // written to one file with the complete tree, it would seem to belong to the root
      std::erase_if(std::get<Config::Table>(table.data),
                    [](const auto& member) { return member.first == "sample"; });
  }
  recipe.sources = list_of_tables(table, "data", "sources");
  recipe.stages = list_of_tables(table, "data", "stages");
  settle_sources(recipe.data, recipe.sources);
  settle_stages(recipe.data, from.section("data"), recipe.stages);
  if (!recipe.sources.empty())
    table.set("sources", {recipe.sources, table.find("sources")->origin});
  const auto* stages = table.find("stages");
  table.set("stages", {recipe.stages, stages ? stages->origin : Origin{}});
  return recipe;
}

}  // namespace millrace
