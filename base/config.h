// The configuration tree: TOML with inheritance and overrides. Each value knows its origin.
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

/// Where a value was written. `text()` is "configs/maskrcnn.toml:12:5", "--set model.type" or
/// "default".
struct Origin {
  std::string source = "default";
  int line = 0;    // 1-based; 0: the source has no lines
  int column = 0;  // 1-based
  std::string text() const;
};

/// One value of the tree: a scalar, an array or a table. Tables keep the order of keys.
class Config {
 public:
  using Array = std::vector<Config>;
  using Table = std::vector<std::pair<std::string, Config>>;
  using Data = std::variant<Table, Array, bool, std::int64_t, double, std::string>;

  Config() = default;  // an empty table
  Config(Data value, Origin from) : data(std::move(value)), origin(std::move(from)) {}

  bool is_table() const { return std::holds_alternative<Table>(data); }
  const Table& table() const { return std::get<Table>(data); }
  /// The member `key` of a table, or nullptr. REQUIRES: is_table().
  const Config* find(std::string_view key) const;
  Config* find(std::string_view key);
  /// The value at a path of keys below a table, "rpn.nms_thresh", or nullptr.
  const Config* find_path(std::string_view path) const;
  /// The table `key`, or an empty one if it is missing. Throws ConfigError if it is not a table.
  const Config& section(std::string_view key) const;
  /// Sets (or adds) a member of a table.
  Config& set(std::string_view key, Config value);
  /// Sets (or adds) the value at a path of keys; makes the tables on the way, replacing other
  /// values.
  void set_path(std::string_view path, Config value);
  /// "a table", "an integer", ...
  std::string_view type_name() const;

  Data data;
  Origin origin;
  // The value is that of the key named by `origin` ("data.flip"), and TOML text omits it: read
  // again with another value there, it follows that.
  bool follows = false;
};

/// Reads a TOML file, following `base = "other.toml"` (relative to the file; tables merge as by
/// `merge`; `unset = ["a.b"]` first removes these keys of the base), then applies overrides:
/// `a.b=value`, where value is TOML (or a bare word, taken as a string), or `unset=["a.b"]`. Throws
/// ConfigError with file, line and column.
Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides = {});

/// Only the overrides, to a tree from elsewhere.
void apply_overrides(Config& tree, std::span<const std::string> overrides);

/// Reads TOML text without a base; `source` names it in messages.
Config parse_config(std::string_view toml, const std::string& source);

/// Merges `over` into `under`: tables member by member; a list of tables that all have `after` or
/// `before` is added to the list below; other values replace.
void merge(Config& under, const Config& over);

/// A table without some of its members.
Config without(const Config& table, std::initializer_list<std::string_view> keys);

/// All values in a table that are not tables, by dotted key: "optimizer.lr". Borrowed from `table`.
std::map<std::string, const Config*> leaves(const Config& table);
std::map<std::string, const Config*> leaves(Config&& table) = delete;

/// The tables of the list `SECTION.NAME`, if any; `of`: the section's name. Throws ConfigError if
/// it is not a list.
std::vector<Config> list_of_tables(const Config& section, const std::string& of, const char* name);

/// The absolute path of the file or folder that a string names: relative to the file that sets it,
/// or to the current folder if --set, the program or a default does. REQUIRES: `value` is a string.
std::filesystem::path named_path(const Config& value);

/// Replaces a string that names a file or folder by named_path, so that it means the same in a file
/// elsewhere. Keeps empty strings, URLs and other values.
void make_path_absolute(Config& value);

/// TOML text of one value, without values that follow another key: `[640, 800]`, `{ a = 1 }`.
std::string value_text(const Config& value);

/// TOML text of a table; with `origins`, a comment after each value says where it came from, and
/// values that follow another key are comments: "# probability = 0.5   # data.flip".
std::string to_toml(const Config& table, bool origins = false);

}  // namespace millrace
