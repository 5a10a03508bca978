#include "millrace/models/layers/model_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/options.h"

namespace millrace {
namespace {

std::string value_in(const Options& options, const std::string& name) {
  const auto& entries = options.entries();
  return value_text(Options::value(*std::ranges::find(entries, name, &Options::Entry::name)));
}

}  // namespace

void refuse_idle(const Config& table, const std::vector<IdleOption>& idle, const Options& asked,
                 const Options& defaults) {
  for (const auto& [name, why] : idle) {
    const auto value = value_in(asked, name), normal = value_in(defaults, name);
    require(table, name, !table.find_path(name) || value == normal,
            fmt::format("= {} changes nothing: {}; leave it out, or at {}", value, why, normal));
  }
}

}  // namespace millrace
