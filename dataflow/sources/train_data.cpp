#include "millrace/dataflow/sources/train_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "millrace/dataflow/sources/detection_source.h"

namespace millrace {
namespace {

constexpr const char* kPaths[] = {"root", "folder", "cache"};  // keys of sources that are paths

/// A table of [[data.sources]] with its common keys.
struct Declared {
  const Config& table;
  std::string name, type;
  Options::Strings of;
  std::string text() const { return fmt::format("{}: source '{}'", table.origin.text(), name); }
};

Declared declared(const Config& table) {
  auto type = component_type(table, detection_sources().kind());
  auto keys = read_part<SourceKeys>(table);
  return {table, keys.name.empty() ? type : std::move(keys.name), type, std::move(keys.of)};
}

/// The declared sources. Opens each once, after the sources that it combines.
class SourceGraph {
 public:
  explicit SourceGraph(std::span<const Config> tables) {
    for (const auto& table : tables) {
      all_.push_back(declared(table));
      if (std::ranges::count(names_, all_.back().name))
        throw ConfigError(
            all_.back().text() +
            ": this name is already used; give one of them another with `name = \"...\"`");
      names_.push_back(all_.back().name);
    }
    for (const auto& one : all_) check_names(one, {});
  }

  /// Returns the source that no other combines.
  const Declared& end() const {
    std::vector<std::string> ends;
    for (const auto& name : names_)
      if (std::ranges::none_of(all_,
                               [&](const Declared& d) { return std::ranges::count(d.of, name); }))
        ends.push_back(name);
    if (ends.size() > 1)
      throw ConfigError(
          fmt::format("{}: several sources are not used by another one: '{}'; combine them with "
                      "`type = \"concat\"` or `type = \"mix\"` to train on all",
                      find(ends[1]).table.origin.text(), joined(ends, "', '")));
    return find(ends.front());
  }

  SourcePtr<Sample> open(const Declared& one, SourceContext context) {
    auto& source = opened_[one.name];
    if (source) return source;
    std::vector<SourcePtr<Sample>> of;
    for (const auto& name : one.of) of.push_back(open(find(name), context));
    context.of = std::move(of);
    const auto& entry = detection_sources().at(one.type, one.table.origin);
    try {
      source = entry.create(one.table, context);
    } catch (const std::invalid_argument& wrong) {
      throw ConfigError(fmt::format("{}: {}", one.text(), wrong.what()));
    }
    if (source->size() == 0) throw ConfigError(one.text() + " has no samples");
    return source;
  }

 private:
  const Declared& find(const std::string& name) const {
    return *std::ranges::find(all_, name, &Declared::name);
  }

  /// Throws if a name is unknown or already in `path`.
  void check_names(const Declared& one, std::vector<std::string> path) const {
    const bool is_circle = std::ranges::count(path, one.name) > 0;
    path.push_back(one.name);
    if (is_circle)
      throw ConfigError(
          fmt::format("{} contains itself: '{}'", one.text(), joined(path, "' of '")));
    for (const auto& name : one.of) {
      if (!std::ranges::count(names_, name))
        throw ConfigError(fmt::format("{} uses '{}', but no such source exists{}", one.text(), name,
                                      suggestion(name, names_)));
      check_names(find(name), path);
    }
  }

  std::vector<Declared> all_;
  std::vector<std::string> names_;
  std::map<std::string, SourcePtr<Sample>> opened_;
};

/// Returns the classes of a training with declared sources.
std::vector<std::string> class_names(const DataOptions& data) {
  if (!data.classes.empty()) return data.classes;
  if (!std::filesystem::is_directory(data.root))
    throw ConfigError(
        fmt::format("data.classes: list the classes to detect, since no data folder '{}' exists to "
                    "read them from",
                    data.root));
  return open_split(data, data.train).classes;
}

}  // namespace

DetectionSources& detection_sources() {
  static DetectionSources sources("source");
  return sources;
}

void settle_sources(const DataOptions& data, std::vector<Config>& tables) {
  for (auto& table : tables) {
    const auto name = component_type(table, detection_sources().kind());
    const auto& entry = detection_sources().at(name, table.find("type")->origin);
    entry.follow(table, [&](const std::string& key) { return data_value(key, data); });
    for (const auto* key : kPaths)
      if (auto* path = table.find(key)) make_path_absolute(*path);
    entry.check(without(table, {"type", "name"}));
    entry.complete(table);
  }
  if (!tables.empty()) SourceGraph(tables).end();
}

TrainData open_train_data(const DataOptions& data, std::span<const Config> tables) {
  if (!data.source.empty() && !std::filesystem::is_directory(data.root))
    return {class_names(data), nullptr};
  if (tables.empty()) {
    auto split = open_split(data, data.train);
    auto classes = split.classes;
    return {std::move(classes), open_source(std::move(split), data.filter_empty)};
  }
  auto classes = class_names(data);
  std::vector<Config> complete(tables.begin(), tables.end());
  settle_sources(data, complete);
  SourceGraph graph(complete);
  auto source = graph.open(graph.end(), {classes, data, {}});
  return {std::move(classes), std::move(source)};
}

}  // namespace millrace
