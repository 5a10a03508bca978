#include "millrace/migration/translation/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

std::string part_path(const std::string& path, const std::string& part) {
  return path.empty() ? part : path + "." + part;
}

}  // namespace

const Value& Found::need() const {
  if (!value) fail("a value is needed");
  return *value;
}

std::string Found::where() const {
  return place.source.empty() ? path : fmt::format("{}: {}", place.text(), path);
}

void Found::fail(const std::string& what) const {
  throw ConfigError(
      fmt::format("{} = {}: {}", where(), value ? value->text() : std::string("None"), what));
}

double Found::real() const {
  if (const auto* whole = std::get_if<std::int64_t>(&need().data))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&need().data)) return *real;
  fail(fmt::format("a number is needed, not {}", need().type_name()));
}

std::int64_t Found::integer() const {
  const double number = real();
  if (number != std::floor(number) || std::abs(number) > 1e15) fail("a whole number is needed");
  return static_cast<std::int64_t>(number);
}

bool Found::flag() const {
  if (const auto* flag = std::get_if<bool>(&need().data)) return *flag;
  fail(fmt::format("True or False is needed, not {}", need().type_name()));
}

std::string Found::text() const {
  if (const auto* text = std::get_if<std::string>(&need().data)) return *text;
  fail(fmt::format("a string is needed, not {}", need().type_name()));
}

std::vector<double> Found::reals() const {
  if (!need().is_list()) return {real()};
  std::vector<double> all;
  for (const auto& one : value->list())
    for (const double number : Found{&one, path, one.place}.reals()) all.push_back(number);
  return all;
}

Found Translation::look(const std::string& path) const {
  const auto* value = tree_.at_path(path);
  return {value && !value->is_none() ? value : nullptr, path, value ? value->place : Place{}};
}

Found Translation::read(const std::string& path) {
  read_.insert(path);
  return look(path);
}

Found Translation::read_any(const std::vector<std::string>& paths) {
  Found first;
  for (const auto& path : paths)
    if (auto found = read(path); found && !first) first = std::move(found);
  return first;
}

void Translation::put(const std::string& key, Config::Data value, const Found& from,
                      const std::string& how) {
  const auto origin = origin_of(from, how);
  if (auto* array = std::get_if<Config::Array>(&value))
    for (auto& one : *array) one.origin = origin;
  ours_.set_path(key, {std::move(value), origin});
}

void Translation::put(const std::string& key, double value, const Found& from,
                      const std::string& how) {
  put(key, number(value), from, how);
}

void Translation::put(const std::string& key, const std::vector<double>& values, const Found& from,
                      const std::string& how) {
  Config::Array array;
  for (const double one : values) array.push_back({number(one), {}});
  put(key, Config::Data(std::move(array)), from, how);
}

void Translation::copy(const std::string& theirs, const std::string& ours) {
  const auto found = read(theirs);
  if (!found) return;
  if (const auto* flag = std::get_if<bool>(&found.need().data))
    put(ours, Config::Data(*flag), found);
  else if (found.need().is_list())
    put(ours, found.reals(), found);
  else
    put(ours, found.real(), found);
}

void Translation::set(const std::string& key, Config::Data value, const std::string& why) {
  ours_.set_path(key, {std::move(value), {why, 0, 0}});
}

void Translation::leave_out(const Found& what, const std::string& reason) {
  if (what) left_out_.push_back({what.path, what.value->text(), what.value->place.text(), reason});
}

void Translation::expect(const std::string& path, const Value& ours, const std::string& reason) {
  const auto found = read(path);
  if (found && !same(*found.value, ours)) leave_out(found, reason);
}

void Translation::leave_out_rest(const std::string& path, const std::string& reason) {
  if (is_read(path)) return;
  const auto found = look(path);
  if (!found) return;
  const auto& value = *found.value;
  const bool has_parts =
      value.is_dict() || (value.is_list() && std::ranges::any_of(value.list(), &Value::is_dict));
  if (!has_parts) {
    read_.insert(path);
    return leave_out(found, reason);
  }
  if (value.is_dict())
    for (const auto& [key, one] : value.dict()) leave_out_rest(part_path(path, key), reason);
  else
    for (std::size_t i = 0; i < value.list().size(); ++i)
      leave_out_rest(part_path(path, std::to_string(i)), reason);
}

bool Translation::is_read(const std::string& path) const {
  for (auto end = path.size(); end != std::string::npos;
       end = end == 0 ? std::string::npos : path.rfind('.', end - 1))
    if (read_.contains(path.substr(0, end))) return true;
  return false;
}

Config::Data number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

Origin origin_of(const Found& from, const std::string& how) {
  const auto text = from.place.source.empty() ? from.path : from.place.text() + " " + from.path;
  return {how.empty() ? text : text + ": " + how, 0, 0};
}

std::string one_of(const Found& found, std::string given,
                   const std::vector<std::string>& possible) {
  if (!std::ranges::count(possible, given))
    found.fail(
        fmt::format("no model here is made so; what can be imported: {}", joined(possible, ", ")));
  return given;
}

std::string weights_file(const std::string& address) {
  return "data/weights/" + address.substr(address.rfind('/') + 1);
}

}  // namespace millrace
