#include "millrace/migration/files/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace millrace {
namespace {

std::optional<double> as_number(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.data)) return *real;
  return std::nullopt;
}

std::string full_text(const Value& value) {
  struct Print {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return "'" + v + "'"; }
    std::string operator()(const Value::List& list) const {
      std::string out = "[";
      for (const auto& one : list) out += (out.size() > 1 ? ", " : "") + full_text(one);
      return out + "]";
    }
    std::string operator()(const Value::Dict& dict) const {
      std::string out = "dict(";
      for (const auto& [key, one] : dict)
        out += (out.size() > 5 ? ", " : "") + key + "=" + full_text(one);
      return out + ")";
    }
  };
  return std::visit(Print{}, value.data);
}

}  // namespace

std::string Place::text() const { return line > 0 ? fmt::format("{}:{}", source, line) : source; }

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : dict())
    if (name == key) return &value;
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

Value& Value::set(std::string_view key, Value value) {
  if (auto* present = find(key)) return *present = std::move(value);
  return std::get<Dict>(data).emplace_back(std::string(key), std::move(value)).second;
}

const Value* Value::at_path(std::string_view path) const {
  const Value* at = this;
  while (at && !path.empty()) {
    const auto dot = path.find('.');
    const auto key = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    if (at->is_dict()) {
      at = at->find(key);
    } else if (at->is_list()) {
      std::size_t index = 0;
      const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool is_place =
          fault == std::errc() && end == key.data() + key.size() && index < at->list().size();
      at = is_place ? &at->list()[index] : nullptr;
    } else {
      at = nullptr;
    }
  }
  return at;
}

Value* Value::at_path(std::string_view path) {
  return const_cast<Value*>(std::as_const(*this).at_path(path));
}

std::string Value::text(std::size_t most) const {
  auto out = full_text(*this);
  if (out.size() <= most) return out;
  return out.substr(0, most - 3) + "...";
}

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"None",     "a bool", "an integer", "a number",
                                         "a string", "a list", "a dict"};
  return kNames[data.index()];
}

bool same(const Value& a, const Value& b) {
  const auto x = as_number(a), y = as_number(b);
  if (x && y) return *x == *y;
  if (a.data.index() != b.data.index()) return false;
  if (a.is_list()) return std::ranges::equal(a.list(), b.list(), same);
  if (a.is_dict())
    return std::ranges::equal(a.dict(), b.dict(), [](const auto& one, const auto& other) {
      return one.first == other.first && same(one.second, other.second);
    });
  if (const auto* text = std::get_if<std::string>(&a.data))
    return *text == std::get<std::string>(b.data);
  if (const auto* flag = std::get_if<bool>(&a.data)) return *flag == std::get<bool>(b.data);
  return true;  // None
}

}  // namespace millrace
