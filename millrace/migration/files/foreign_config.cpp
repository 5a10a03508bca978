#include "millrace/migration/files/foreign_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/migration/files/python_literals.h"
#include "millrace/migration/files/yaml.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr int kLongestChain = 20;  // of files that inherit
constexpr std::uint64_t kLargestFile = 4 << 20;

/// The files that a file names as its bases.
std::vector<fs::path> bases_of(const Value& named, const fs::path& file) {
  std::vector<fs::path> all;
  const auto add = [&](const Value& one) {
    const auto* text = std::get_if<std::string>(&one.data);
    if (!text)
      throw ConfigError(fmt::format("{}: a base is the name of a file, not {}", one.place.text(),
                                    one.type_name()));
    if (text->find("://") != std::string::npos || text->find("::") != std::string::npos)
      throw ConfigError(fmt::format(
          "{}: the base '{}' is in no file beside this one: fetch it, and name the file",
          one.place.text(), *text));
    all.push_back((file.parent_path() / *text).lexically_normal());
  };
  if (named.is_list())
    std::ranges::for_each(named.list(), add);
  else
    add(named);
  return all;
}

/// Which file asks for which: an error where a file is missing or inherits from itself.
class Chain {
 public:
  std::string enter(const fs::path& file, const Place& asked_by) {
    const auto where = asked_by.line > 0 ? asked_by.text() + ": the base " : std::string();
    if (std::ranges::count(files_, file))
      throw ConfigError(fmt::format("{}{} inherits from itself", where, file.string()));
    if (files_.size() >= kLongestChain)
      throw ConfigError(fmt::format("{}{}: more than {} files that inherit from each other", where,
                                    file.string(), kLongestChain));
    if (!where.empty() && !fs::exists(file))
      throw ConfigError(fmt::format("{}{} does not exist", where, file.string()));
    files_.push_back(file);
    return read_file(file, {.most = kLargestFile});
  }
  void leave() { files_.pop_back(); }

 private:
  std::vector<fs::path> files_;
};

Value read_yaml(const fs::path& file, Chain& chain, const Place& asked_by) {
  auto tree = parse_yaml(chain.enter(file, asked_by), file.string());
  Value all{Value::Dict{}, tree.place};
  if (const auto* base = tree.find("_BASE_"))
    for (const auto& below : bases_of(*base, file))
      merge(all, read_yaml(below, chain, base->place));
  std::erase_if(std::get<Value::Dict>(tree.data),
                [](const auto& member) { return member.first == "_BASE_"; });
  merge(all, tree);
  chain.leave();
  return all;
}

/// One Python file, read on top of its bases.
class PythonFile {
 public:
  PythonFile(fs::path file, Chain& chain) : file_(std::move(file)), chain_(chain) {}

  ForeignConfig read(const Place& asked_by) {
    const auto text = chain_.enter(file_, asked_by);
    const NamedValue named = [&](const std::string& name) -> const Value* {
      uses_.insert(name);
      if (name == "_base_") return &below_.tree;
      return own_.find(name);
    };
    read_assignments(text, file_.string(), named, [&](Assignment one) { take(std::move(one)); });
    chain_.leave();
    ForeignConfig all;
    if (!uses_.contains("_base_")) all.unused = std::move(below_.unused);
    for (const auto& [name, value] : own_.dict())
      if (!uses_.contains(name)) all.unused.emplace_back(name, value);
    all.tree = std::move(below_.tree);
    merge(all.tree, own_);
    return all;
  }

 private:
  void take(Assignment one) {
    const auto& name = std::get<std::string>(one.target.front().data);
    if (name == "_base_" && one.target.size() == 1) return take_bases(one.value);
    auto& tree = name == "_base_" ? below_.tree : own_;
    if (one.target.size() == 1) {
      own_.set(name, std::move(one.value));
      return;
    }
    std::string path;
    for (std::size_t i = name == "_base_" ? 1 : 0; i < one.target.size(); ++i) {
      const auto* key = std::get_if<std::string>(&one.target[i].data);
      path += (path.empty() ? "" : ".") + (key ? *key : one.target[i].text());
    }
    set_at_path(tree, path, std::move(one.value));
  }

  void take_bases(const Value& named) {
    for (const auto& file : bases_of(named, file_)) {
      auto below = PythonFile(file, chain_).read(named.place);
      merge(below_.tree, below.tree);
      std::ranges::move(below.unused, std::back_inserter(below_.unused));
    }
  }

  fs::path file_;
  Chain& chain_;
  ForeignConfig below_{{Value::Dict{}, {file_.string(), 1}}};
  Value own_{Value::Dict{}, {file_.string(), 1}};
  std::set<std::string> uses_;
};

}  // namespace

ForeignConfig read_yaml_config(const fs::path& file) {
  Chain chain;
  return {read_yaml(file.lexically_normal(), chain, {})};
}

ForeignConfig read_python_config(const fs::path& file) {
  Chain chain;
  return PythonFile(file.lexically_normal(), chain).read({});
}

void merge(Value& under, const Value& over) {
  for (const auto& [key, value] : over.dict()) {
    auto* present = under.find(key);
    const auto* mark = value.is_dict() ? value.find("_delete_") : nullptr;
    const bool replaces = mark && same(*mark, Value{true, {}});
    if (present && present->is_dict() && value.is_dict() && !replaces) {
      merge(*present, value);
      continue;
    }
    auto kept = value;
    if (kept.is_dict()) {  // merged into nothing, so that marks further down go as well
      kept.data = Value::Dict{};
      merge(kept, value);
      std::erase_if(std::get<Value::Dict>(kept.data),
                    [](const auto& member) { return member.first == "_delete_"; });
    }
    under.set(key, std::move(kept));
  }
}

void set_at_path(Value& tree, const std::string& path, Value value) {
  const auto dot = path.rfind('.');
  auto* above = &tree;
  const auto place = value.place;
  const auto key = dot == std::string::npos ? path : path.substr(dot + 1);
  if (dot != std::string::npos) {
    const auto folder = path.substr(0, dot);
    if (!tree.at_path(folder)) set_at_path(tree, folder, {Value::Dict{}, place});
    above = tree.at_path(folder);
  }
  if (above && above->is_dict()) {
    above->set(key, std::move(value));
  } else if (auto* present = above ? tree.at_path(path) : nullptr) {
    *present = std::move(value);
  } else {
    throw ConfigError(fmt::format("{}: there is no '{}' to change", place.text(), path));
  }
}

}  // namespace millrace
