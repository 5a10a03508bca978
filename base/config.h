// The configuration tree: TOML with inheritance and overrides. Each value records its origin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

/// The place where a value was written. `text()` returns "configs/maskrcnn.toml:12:5", "--set
/// model.type" or "default".
struct Origin {
  std::string source = "default";
  int line = 0;    // 1-based; 0 = the source has no lines
  int column = 0;  // 1-based
  std::string text() const;
};

/// One value of the tree: a scalar, an array or a table. Tables keep the order of keys.
class Config {
 public:
  using Array = std::vector<Config>;
  using Table = std::vector<std::pair<std::string, Config>>;
  using Data = std::variant<Table, Array, bool, std::int64_t, double, std::string>;

  Config() = default;  // Creates an empty table.
  Config(Data value, Origin from) : data(std::move(value)), origin(std::move(from)) {}

  bool is_table() const { return std::holds_alternative<Table>(data); }
  const Table& table() const { return std::get<Table>(data); }
  /// Returns the member `key` of a table, or nullptr. REQUIRES: is_table().
  const Config* find(std::string_view key) const;
  Config* find(std::string_view key);
  /// Returns the value at a dotted path below a table, such as "rpn.nms_thresh", or nullptr.
  const Config* find_path(std::string_view path) const;
  /// Returns the table `key`, or an empty table if it is missing. Throws ConfigError if the value
  /// is not a table.
  const Config& section(std::string_view key) const;
  /// Sets or adds a member of a table.
  Config& set(std::string_view key, Config value);
  /// Sets or adds the value at a dotted path. Creates the tables on the path and replaces values on
  /// it that are not tables.
  void set_path(std::string_view path, Config value);
  /// Returns "a table", "an integer" and so on.
  std::string_view type_name() const;

  Data data;
  Origin origin;
  // True if the value was derived from the key that `origin` names (such as "data.flip"). TOML text
  // omits such a value, so that it is derived again when the text is read with another value of
  // that key.
  bool follows = false;
};

/// Returns the value at a dotted path of a table, such as "rpn.nms_thresh", if it is a T; otherwise
/// nullptr.
template <class T>
const T* value_at(const Config& table, std::string_view path) {
  const auto* found = table.find_path(path);
  return found ? std::get_if<T>(&found->data) : nullptr;
}

/// Reads a TOML file and applies `overrides`. `base = "other.toml"` inherits from another file
/// (relative to this one; see `merge`); `unset = ["a.b"]` first removes keys of the base. An
/// override is `a.b=value`, where the value is TOML or a bare word (a string), or `unset=["a.b"]`.
/// Throws ConfigError with file, line and column.
Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides = {});

/// Applies overrides to an existing tree.
void apply_overrides(Config& tree, std::span<const std::string> overrides);

/// Parses TOML text without a base. `source` is the name used in error messages.
Config parse_config(std::string_view toml, const std::string& source);

/// Merges `over` into `under`. Tables are merged member by member. A list of tables that all have
/// `after` or `before` is appended to the existing list. Any other value replaces the old one.
void merge(Config& under, const Config& over);

/// Returns a copy of a table without the members `keys`.
Config without(const Config& table, std::initializer_list<std::string_view> keys);

/// Returns all values of a table that are not tables, by dotted key such as "optimizer.lr". The
/// pointers refer into `table`.
std::map<std::string, const Config*> leaves(const Config& table);
std::map<std::string, const Config*> leaves(Config&& table) = delete;

/// Returns the tables of the list `SECTION.NAME`; empty if the section has no such key. `of` is the
/// section's name. Throws ConfigError if the value is not a list.
std::vector<Config> list_of_tables(const Config& section, const std::string& of, const char* name);

/// Returns the absolute path of the file or folder that a string names. The string is relative to
/// the folder of the TOML file that sets it, or to the current folder if it was set by --set, by
/// the program or by default. REQUIRES: `value` is a string.
std::filesystem::path named_path(const Config& value);

/// Replaces a string that names a file or folder by named_path, so that the value keeps its meaning
/// when it is written to another file. Leaves empty strings, URLs and other values unchanged.
void make_path_absolute(Config& value);

/// Returns one value as TOML text, such as `[640, 800]` or `{ a = 1 }`. Omits values that follow
/// another key.
std::string value_text(const Config& value);

/// Returns a table as TOML text. With `origins`, a comment after each value names its origin, and
/// values that follow another key appear as comments: "# probability = 0.5   # data.flip".
std::string to_toml(const Config& table, bool origins = false);

}  // namespace millrace
