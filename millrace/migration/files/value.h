// A value of a foreign configuration: what Python's literals are. Each knows where it was written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

/// Where a value was written: "Base-RCNN-FPN.yaml:29"; line 0: the source has no lines.
struct Place {
  std::string source;
  int line = 0;  // 1-based
  std::string text() const;
};

/// One value: None, a bool, a number, a string, a list (or tuple), a dict in the order of its keys.
struct Value {
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<std::string, Value>>;
  using Data = std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict>;

  Data data;
  Place place;

  bool is_none() const { return std::holds_alternative<std::monostate>(data); }
  bool is_dict() const { return std::holds_alternative<Dict>(data); }
  bool is_list() const { return std::holds_alternative<List>(data); }
  const Dict& dict() const { return std::get<Dict>(data); }
  const List& list() const { return std::get<List>(data); }

  /// The member of a dict, or nullptr. REQUIRES: is_dict().
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// Sets (or adds) a member of a dict.
  Value& set(std::string_view key, Value value);

  /// The value at a path of keys and of places in lists, "rcnn.0.sampler.num"; nullptr: none.
  const Value* at_path(std::string_view path) const;
  Value* at_path(std::string_view path);

  /// As Python writes it: `[0.5, 'a', None]`. `most`: longer texts end in "...".
  std::string text(std::size_t most = 60) const;
  /// "a list", "None" ...
  std::string_view type_name() const;
};

/// A value that stands in no file.
inline Value literal(Value::Data data) { return {std::move(data), {}}; }

/// Whether two values are the same, wherever they stand; 1 and 1.0 are.
bool same(const Value& a, const Value& b);

}  // namespace millrace
