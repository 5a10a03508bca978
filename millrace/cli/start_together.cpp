#include "millrace/cli/start_together.h"

#include <fmt/format.h>

#include <string>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/cli/sample_data.h"
#include "millrace/trainer/run/config_changes.h"

namespace millrace::cli {
namespace {

/// Throws ConfigError where a rank says something else than the chief; `what` it is.
void check_same(const Cluster& cluster, const std::string& what, const std::string& mine) {
  const auto all = cluster.gather(what, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw ConfigError(fmt::format("{} has {} {}, {} has {}: all ranks must have the same",
                                    cluster.name(static_cast<std::int64_t>(rank)), what, all[rank],
                                    cluster.name(0), all[0]));
}

void check_same_configuration(const Cluster& cluster, const Config& mine) {
  const auto text = to_toml(mine);
  const auto digests =
      cluster.gather("digest of the configuration", hex(digest(text.data(), text.size())));
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    // All ranks come here with the same rank.
    const auto texts = cluster.gather("configuration", text);
    const auto name = cluster.name(static_cast<std::int64_t>(rank));
    const auto changes = config_changes(parse_config(texts[0], "the chief's configuration"),
                                        parse_config(texts[rank], "the configuration of " + name));
    if (changes.empty()) continue;  // the same in another order
    const auto& first = changes.front();
    throw ConfigError(
        fmt::format("{} has another configuration than {}: {} is {} there, {} here; all ranks must "
                    "have the same",
                    name, cluster.name(0), first.key, first.is, first.was));
  }
}

}  // namespace

void start_together(const Recipe& recipe, const Cluster& cluster) {
  cluster.set_patience(recipe.train.rank_timeout);
  if (cluster.size() > 1) {
    check_same(cluster, "trainer", MILLRACE_VERSION);
    check_same_configuration(cluster, recipe.tree);
  }
}

void make_sample_together(const Recipe& recipe, const Cluster& cluster) {
  // The chief first: hosts may share their files.
  if (cluster.is_chief()) make_sample_on_first_use(recipe);
  cluster.meet("sample data set of the chief");
  if (cluster.local_rank() == 0 && !cluster.is_chief()) make_sample_on_first_use(recipe);
  cluster.meet("sample data sets");
}

}  // namespace millrace::cli
