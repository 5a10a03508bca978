#include "millrace/base/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/base/toml_depth.h"
#include "millrace/base/word_wrap.h"

namespace millrace {
namespace {

Config convert(const toml::node& node, const std::string& source) {
  Origin origin{source, static_cast<int>(node.source().begin.line),
                static_cast<int>(node.source().begin.column)};
  if (const auto* table = node.as_table()) {
    // toml++ sorts keys; this restores the order of the file.
    Config::Table members;
    for (const auto& [key, value] : *table)
      members.emplace_back(std::string(key.str()), convert(value, source));
    std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.origin.line, a.second.origin.column) <
             std::pair(b.second.origin.line, b.second.origin.column);
    });
    return {std::move(members), std::move(origin)};
  }
  if (const auto* array = node.as_array()) {
    Config::Array items;
    for (const auto& item : *array) items.push_back(convert(item, source));
    return {std::move(items), std::move(origin)};
  }
  if (const auto* value = node.as_boolean()) return {value->get(), std::move(origin)};
  if (const auto* value = node.as_integer()) return {value->get(), std::move(origin)};
  if (const auto* value = node.as_floating_point()) return {value->get(), std::move(origin)};
  if (const auto* value = node.as_string()) return {value->get(), std::move(origin)};
  throw ConfigError(origin.text() + ": dates and times are not supported; write a string");
}

std::vector<std::string> split_key(const std::string& path) {
  std::istringstream keys(path);
  std::vector<std::string> parts;
  for (std::string key; std::getline(keys, key, '.');) parts.push_back(key);
  if (path.empty() || path.ends_with('.')) parts.emplace_back();
  return parts;
}

/// Removes the value `name`, such as "callbacks.pictures", from the tree. `base` names its source.
void unset(Config& tree, const std::string& name, const Origin& asked, const std::string& base) {
  Config *table = nullptr, *at = &tree;
  const auto parts = split_key(name);
  for (const auto& part : parts) {
    table = at;
    at = table->is_table() ? table->find(part) : nullptr;
    if (at) continue;
    std::vector<std::string> known;
    if (table->is_table())
      for (const auto& [key, value] : table->table()) known.push_back(key);
    throw ConfigError(fmt::format("{}: unset: '{}' is not set in {}{}", asked.text(), name, base,
                                  known.empty() ? "" : suggestion(part, known)));
  }
  std::erase_if(std::get<Config::Table>(table->data),
                [&](const auto& member) { return member.first == parts.back(); });
}

/// Removes the keys that an `unset` lists.
void unset_all(Config& tree, const Config& names, const std::string& base) {
  const auto* list = std::get_if<Config::Array>(&names.data);
  if (!list || !std::ranges::all_of(*list, [](const Config& name) {
        return std::holds_alternative<std::string>(name.data);
      }))
    throw ConfigError(names.origin.text() +
                      ": unset takes a list of keys, e.g. [\"callbacks.pictures\"]");
  for (const auto& name : *list) unset(tree, std::get<std::string>(name.data), name.origin, base);
}

/// `asked` is the `base` value that names the file; nullptr = the file is from the command line.
Config load_with_bases(const std::filesystem::path& file, std::vector<std::filesystem::path> chain,
                       const Config* asked = nullptr) {
  if (std::find(chain.begin(), chain.end(), file) != chain.end())
    throw ConfigError(file.string() + ": circular 'base': the file inherits from itself");
  chain.push_back(file);
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& problem) {
    throw ConfigError(asked ? fmt::format("{}: base: {}", asked->origin.text(), problem.what())
                            : problem.what());
  }
  auto own = parse_config(text, file.string());
  const Config* base = own.find("base");
  if (!base) {
    if (const auto* names = own.find("unset"))
      throw ConfigError(names->origin.text() +
                        ": unset removes keys of a `base`; this file has none");
    return own;
  }
  const auto* name = std::get_if<std::string>(&base->data);
  if (!name)
    throw ConfigError(base->origin.text() + ": base must be a string, the path of a TOML file");
  const auto base_file = (file.parent_path() / *name).lexically_normal();
  auto result = load_with_bases(base_file, std::move(chain), base);
  if (const auto* names = own.find("unset")) unset_all(result, *names, base_file.string());
  merge(result, without(own, {"base", "unset"}));
  return result;
}

/// Returns whether the value is a list of tables that all have `after` or `before`, which is
/// appended to another list.
bool says_places(const Config& value) {
  const auto* list = std::get_if<Config::Array>(&value.data);
  return list && !list->empty() && std::ranges::all_of(*list, [](const Config& item) {
           return item.is_table() && (item.find("after") || item.find("before"));
         });
}

void apply_override(Config& root, const std::string& text) {
  const auto equals = text.find('=');
  const auto path = text.substr(0, equals);
  if (equals == std::string::npos || path.empty())
    throw ConfigError("--set " + text + ": expected --set table.key=value");
  const Origin origin{"--set " + path, 0, 0};

  const auto raw = text.substr(equals + 1);
  auto value = [&]() -> Config {
    try {
      return *parse_config("value = " + raw, origin.source).find("value");
    } catch (const ConfigError&) {
      if (raw.find_first_of("\"'[]{}\n") != std::string::npos) throw;
      return {raw, origin};  // a bare word
    }
  }();
  const auto stamp = [&](auto&& self, Config& node) -> void {
    node.origin = origin;
    if (auto* table = std::get_if<Config::Table>(&node.data))
      for (auto& [key, member] : *table) self(self, member);
    if (auto* array = std::get_if<Config::Array>(&node.data))
      for (auto& item : *array) self(self, item);
  };
  stamp(stamp, value);
  if (path == "unset") return unset_all(root, value, "the configuration");

  Config* at = &root;
  const auto parts = split_key(path);
  if (std::ranges::find(parts, "") != parts.end() || parts.size() > kMaxNesting)
    throw ConfigError("--set " + text + ": '" + path +
                      "' is not a path of keys; expected e.g. train.seed");
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    Config* next = at->find(parts[i]);
    if (!next) next = &at->set(parts[i], {Config::Table{}, origin});
    if (!next->is_table())
      throw ConfigError(origin.text() + ": '" + parts[i] + "' is " +
                        std::string(next->type_name()) + ", not a table");
    at = next;
  }
  if (auto* old = at->find(parts.back()); old && !value.is_table())
    merge(*old, value);
  else
    at->set(parts.back(), std::move(value));
}

/// Returns a basic string. JSON and TOML have the same escapes, but TOML also requires them for all
/// control characters.
std::string string_text(const std::string& text) {
  return without_controls(nlohmann::json(text).dump(), "\\u00");
}

/// Returns a key in TOML syntax, bare if possible.
std::string key_text(const std::string& key) {
  const auto bare = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  };
  if (!key.empty() && std::all_of(key.begin(), key.end(), bare)) return key;
  return string_text(key);
}

bool is_table_list(const Config& value) {
  const auto* array = std::get_if<Config::Array>(&value.data);
  return array && !array->empty() && std::ranges::all_of(*array, &Config::is_table);
}

void print_table(std::string& out, const Config& table, const std::string& path, bool origins) {
  for (const auto& [key, value] : table.table()) {
    if (value.is_table() || is_table_list(value) || (value.follows && !origins)) continue;
    const auto line = (value.follows ? "# " : "") + key_text(key) + " = " + value_text(value);
    out += origins ? fmt::format("{:<44}  # {}\n", line, value.origin.text()) : line + "\n";
  }
  for (const auto& [key, value] : table.table()) {
    const auto name = path.empty() ? key_text(key) : path + "." + key_text(key);
    if (value.is_table()) {
      out += fmt::format("\n[{}]\n", name);
      print_table(out, value, name, origins);
    } else if (is_table_list(value)) {
      for (const auto& item : std::get<Config::Array>(value.data)) {
        out += fmt::format("\n[[{}]]\n", name);
        print_table(out, item, name, origins);
      }
    }
  }
}

}  // namespace

std::string Origin::text() const {
  return line > 0 ? fmt::format("{}:{}:{}", source, line, column) : source;
}

const Config* Config::find(std::string_view key) const {
  for (const auto& [name, value] : table())
    if (name == key) return &value;
  return nullptr;
}

Config* Config::find(std::string_view key) {
  return const_cast<Config*>(std::as_const(*this).find(key));
}

const Config* Config::find_path(std::string_view path) const {
  if (!is_table()) return nullptr;
  const auto dot = path.find('.');
  const auto* member = find(path.substr(0, dot));
  return member && dot != path.npos ? member->find_path(path.substr(dot + 1)) : member;
}

const Config& Config::section(std::string_view key) const {
  static const Config empty;
  const Config* found = find(key);
  if (!found) return empty;
  if (!found->is_table())
    throw ConfigError(fmt::format("{}: '{}' must be a table, not {}", found->origin.text(), key,
                                  found->type_name()));
  return *found;
}

Config& Config::set(std::string_view key, Config value) {
  if (auto* found = find(key)) return *found = std::move(value);
  return std::get<Table>(data).emplace_back(std::string(key), std::move(value)).second;
}

void Config::set_path(std::string_view path, Config value) {
  const auto dot = path.find('.');
  if (dot == std::string_view::npos) {
    set(path, std::move(value));
    return;
  }
  auto* below = find(path.substr(0, dot));
  if (!below || !below->is_table()) below = &set(path.substr(0, dot), {Table{}, value.origin});
  below->set_path(path.substr(dot + 1), std::move(value));
}

std::string_view Config::type_name() const {
  static constexpr std::string_view names[] = {"a table",    "an array", "a boolean",
                                               "an integer", "a number", "a string"};
  return names[data.index()];
}

Config parse_config(std::string_view text, const std::string& source) {
  check_depth(text, source);
  try {
    return convert(toml::parse(text, source), source);
  } catch (const toml::parse_error& problem) {
    throw ConfigError(fmt::format("{}:{}:{}: {}", source, problem.source().begin.line,
                                  problem.source().begin.column, problem.description()));
  }
}

Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides) {
  auto result = load_with_bases(file.lexically_normal(), {});
  apply_overrides(result, overrides);
  return result;
}

void apply_overrides(Config& tree, std::span<const std::string> overrides) {
  for (const auto& text : overrides) apply_override(tree, text);
}

void merge(Config& under, const Config& over) {
  if (!under.is_table() || !over.is_table()) {
    auto* list = std::get_if<Config::Array>(&under.data);
    if (!list || !says_places(over)) {
      under = over;
      return;
    }
    const auto& more = std::get<Config::Array>(over.data);
    list->insert(list->end(), more.begin(), more.end());
    return;
  }
  for (const auto& [key, value] : over.table())
    if (auto* member = under.find(key))
      merge(*member, value);
    else
      under.set(key, value);
}

Config without(const Config& table, std::initializer_list<std::string_view> keys) {
  Config::Table members;
  for (const auto& member : table.table())
    if (std::ranges::find(keys, member.first) == keys.end()) members.push_back(member);
  return {std::move(members), table.origin};
}

std::map<std::string, const Config*> leaves(const Config& table) {
  std::map<std::string, const Config*> all;
  for (const auto& [key, value] : table.table())
    if (value.is_table())
      for (const auto& [below, leaf] : leaves(value)) all[key + "." + below] = leaf;
    else
      all[key] = &value;
  return all;
}

std::vector<Config> list_of_tables(const Config& section, const std::string& of, const char* name) {
  const auto* value = section.find(name);
  if (!value) return {};
  const auto* list = std::get_if<Config::Array>(&value->data);
  if (!list)
    throw ConfigError(fmt::format("{0}: {1}.{2} must be a list of tables; write [[{1}.{2}]]",
                                  value->origin.text(), of, name));
  return *list;
}

std::filesystem::path named_path(const Config& value) {
  const auto& by = value.origin;
  const auto folder =
      by.line > 0 ? std::filesystem::path(by.source).parent_path() : std::filesystem::path();
  return std::filesystem::absolute(folder / std::get<std::string>(value.data)).lexically_normal();
}

void make_path_absolute(Config& value) {
  auto* text = std::get_if<std::string>(&value.data);
  if (!text || text->empty() || text->find("://") != std::string::npos) return;
  *text = named_path(value).string();
}

std::string value_text(const Config& value) {
  struct Print {
    std::string operator()(const Config::Table& table) const {
      std::vector<std::string> parts;
      for (const auto& [key, member] : table)
        if (!member.follows) parts.push_back(key_text(key) + " = " + value_text(member));
      return parts.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(parts, ", "));
    }
    std::string operator()(const Config::Array& array) const {
      std::vector<std::string> parts;
      for (const auto& item : array) parts.push_back(value_text(item));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
      // The shortest text that reads back as an equal number.
      const auto text = fmt::format("{}", v);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& v) const { return string_text(v); }
  };
  return std::visit(Print{}, value.data);
}

std::string to_toml(const Config& table, bool origins) {
  std::string out;
  print_table(out, table, "", origins);
  if (out.starts_with('\n')) out.erase(0, 1);
  return out;
}

}  // namespace millrace
