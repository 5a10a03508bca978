#include "millrace/dataflow/sources/train_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/data_defaults.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/engine/pipeline.h"

namespace millrace {
namespace {

/// One table and what it asks for.
struct Declared {
  const Config& table;
  std::string name, type;
  Options::Strings of;
  std::string text() const { return fmt::format("{}: source '{}'", table.origin.text(), name); }
};

Declared declared(const Config& table) {
  auto type = used_name(table, detection_sources().kind());
  Config own(Config::Table{}, table.origin);
  for (const char* key : {"type", "name", "of"})
    if (const auto* value = table.find(key)) own.set(key, *value);
  auto keys = read_options<SourceKeys>(own);
  if (keys.name.empty()) keys.name = type;
  return {table, std::move(keys.name), std::move(type), std::move(keys.of)};
}

/// The declared sources, by name. Opens each once, what it is made of first.
class SourceGraph {
 public:
  SourceGraph(std::span<const Config> tables, SourceContext context)
      : context_(std::move(context)) {
    for (const auto& table : tables) {
      all_.push_back(declared(table));
      names_.push_back(all_.back().name);
      if (!by_name_.emplace(names_.back(), all_.size() - 1).second)
        throw ConfigError(all_.back().text() +
                          ": another has this name already; give one of them "
                          "another with `name = \"...\"`");
    }
    std::vector<std::string> path;
    for (const auto& one : all_) check_names(one, path);
  }

  SourcePtr<Sample> open() { return open(end()); }

  /// The source that no other is made of.
  const Declared& end() const {
    std::vector<std::string> ends;
    for (const auto& name : names_)
      if (std::ranges::none_of(all_,
                               [&](const Declared& d) { return std::ranges::count(d.of, name); }))
        ends.push_back(name);
    if (ends.size() > 1)
      throw ConfigError(
          fmt::format("{}: no other source is made of any of '{}', so it is not clear which of "
                      "them to train on; put "
                      "them together with `type = \"concat\"` or `type = \"mix\"`",
                      find(ends[1]).table.origin.text(), joined(ends, "', '")));
    return find(ends.front());
  }

 private:
  const Declared& find(const std::string& name) const { return all_[by_name_.at(name)]; }

  /// Throws where a name is unknown or leads back into `path`.
  void check_names(const Declared& one, std::vector<std::string>& path) const {
    if (std::ranges::count(path, one.name)) {
      path.push_back(one.name);
      throw ConfigError(
          fmt::format("{} is made of itself: '{}'", one.text(), joined(path, "' of '")));
    }
    path.push_back(one.name);
    for (const auto& name : one.of) {
      if (!by_name_.contains(name))
        throw ConfigError(fmt::format("{} is made of '{}', but there is no such source{}",
                                      one.text(), name, suggestion(name, names_)));
      check_names(find(name), path);
    }
    path.pop_back();
  }

  SourcePtr<Sample> open(const Declared& one) {
    auto& source = opened_[one.name];
    if (source) return source;
    auto context = context_;
    for (const auto& name : one.of) context.of.push_back(open(find(name)));
    const auto& entry = detection_sources().at(one.type, one.table.origin);
    try {
      source = entry.create(one.table, context);
    } catch (const std::invalid_argument& wrong) {
      throw ConfigError(fmt::format("{}: {}", one.text(), wrong.what()));
    }
    if (source->size() == 0) throw ConfigError(one.text() + " has no samples");
    return source;
  }

  SourceContext context_;
  std::vector<Declared> all_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, SourcePtr<Sample>> opened_;
};

/// The classes of a training whose sources are declared.
std::vector<std::string> class_names(const DataOptions& data) {
  check_class_names(data.classes);
  if (!data.classes.empty()) return data.classes;
  if (!std::filesystem::is_directory(data.root))
    throw ConfigError(fmt::format(
        "data.classes: name the classes to detect, since there is no data folder '{}' to "
        "take them from",
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
    const auto name = used_name(table, detection_sources().kind());
    const auto& entry = detection_sources().at(name, table.find("type")->origin);
    follow_data(table, name, source_defaults(), data);
    Config own(Config::Table{}, table.origin);
    for (const auto& [key, value] : table.table())
      if (key != "type" && key != "name") own.set(key, value);
    entry.check(own);
    entry.complete(table);
  }
  if (!tables.empty()) SourceGraph(tables, {{}, data, {}}).end();
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
  SourceGraph graph(complete, {classes, data, {}});
  return {std::move(classes), graph.open()};
}

}  // namespace millrace
