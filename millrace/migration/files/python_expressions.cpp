#include "millrace/migration/files/python_expressions.h"

#include <fmt/format.h>

#include <charconv>

#include "millrace/base/errors.h"
#include "millrace/migration/files/python_operators.h"

namespace millrace {
namespace {

constexpr int kDeepest = 100;  // brackets within brackets

std::string not_read(const std::string& what) {
  return fmt::format(
      "{} is no literal. Nothing of a file is run here: only lists, dict(...), numbers, strings, "
      "their arithmetic and names of values above are read. Write out the value that it has",
      what);
}

Value member(const Value& of, const Value& key) {
  const Value* found = nullptr;
  if (const auto* name = std::get_if<std::string>(&key.data); name && of.is_dict())
    found = of.find(*name);
  if (const auto* index = std::get_if<std::int64_t>(&key.data); index && of.is_list()) {
    const auto size = std::ssize(of.list());
    const auto place = *index < 0 ? *index + size : *index;
    if (place >= 0 && place < size) found = &of.list()[static_cast<std::size_t>(place)];
  }
  if (!found)
    throw ConfigError(
        fmt::format("{}: {} has no {}", key.place.text(), of.type_name(), key.text()));
  return *found;
}

}  // namespace

Value PythonExpressions::expression() {
  if (++depth_ > kDeepest) tokens_.fail("brackets are nested too deeply");
  const auto place = tokens_.place();
  auto left = term();
  while (tokens_.is("+") || tokens_.is("-")) {
    const auto sign = tokens_.take().text;
    left.place = place;
    left = combined(sign, std::move(left), term(), tokens_);
  }
  --depth_;
  if (tokens_.is_name("if") || tokens_.is_name("or") || tokens_.is_name("and"))
    tokens_.fail(not_read(tokens_.shown()));
  return left;
}

Value PythonExpressions::expressions() {
  auto first = expression();
  if (!tokens_.is(",")) return first;
  Value tuple{Value::List{}, first.place};
  auto& list = std::get<Value::List>(tuple.data);
  list.push_back(std::move(first));
  while (tokens_.take(",") && !ends()) list.push_back(expression());
  return tuple;
}

std::optional<Value> PythonExpressions::part() {
  const auto place = tokens_.place();
  if (tokens_.take(".")) {
    if (!tokens_.is(PythonToken::Kind::name)) tokens_.fail("a name is needed after '.'");
    return Value{tokens_.take().text, place};
  }
  if (!tokens_.take("[")) return std::nullopt;
  auto key = expression();
  tokens_.expect("]");
  return key;
}

bool PythonExpressions::ends() const {
  return tokens_.is(")") || tokens_.is("]") || tokens_.is("}") ||
         tokens_.is(PythonToken::Kind::line_end) || tokens_.is(PythonToken::Kind::end);
}

Value PythonExpressions::term() {
  const auto place = tokens_.place();
  auto left = unary();
  while (tokens_.is("*") || tokens_.is("/") || tokens_.is("//") || tokens_.is("%")) {
    const auto sign = tokens_.take().text;
    left.place = place;
    left = combined(sign, std::move(left), unary(), tokens_);
  }
  return left;
}

Value PythonExpressions::unary() {
  if (++depth_ > kDeepest) tokens_.fail("brackets are nested too deeply");
  const auto place = tokens_.place();
  Value value;
  if (tokens_.take("-"))
    value = combined("-", Value{std::int64_t{0}, place}, unary(), tokens_);
  else if (tokens_.take("+"))
    value = unary();
  else
    value = power();
  --depth_;
  return value;
}

Value PythonExpressions::power() {
  auto base = postfix();
  if (!tokens_.is("**")) return base;
  tokens_.take();
  return combined("**", std::move(base), unary(), tokens_);
}

Value PythonExpressions::postfix() {
  auto value = atom();
  while (tokens_.is(".") || tokens_.is("[") || tokens_.is("(")) {
    if (tokens_.is("(")) tokens_.fail(not_read("a call"));
    const auto key = *part();
    value = member(value, key);
  }
  return value;
}

Value PythonExpressions::atom() {
  const auto place = tokens_.place();
  switch (tokens_.now().kind) {
    case PythonToken::Kind::number:
      return {number(tokens_.take().text), place};
    case PythonToken::Kind::text: {
      std::string text;
      while (tokens_.is(PythonToken::Kind::text)) text += tokens_.take().text;
      if (text.find("{{") != std::string::npos)
        tokens_.fail("'{{...}}' in a string is not replaced here: write the text that it has");
      return {std::move(text), place};
    }
    case PythonToken::Kind::name:
      return name(place);
    case PythonToken::Kind::sign:
      break;
    default:
      tokens_.fail("a value is needed before " + tokens_.shown());
  }
  if (tokens_.take("(")) {
    if (tokens_.take(")")) return {Value::List{}, place};
    auto value = expressions();
    tokens_.expect(")");
    return value;
  }
  if (tokens_.take("[")) return list(place);
  if (tokens_.take("{")) return braces(place);
  tokens_.fail(not_read(tokens_.shown()));
}

Value PythonExpressions::name(const Place& place) {
  const auto name = tokens_.take().text;
  if (name == "None") return {std::monostate{}, place};
  if (name == "True" || name == "False") return {name == "True", place};
  if (name == "dict" && tokens_.is("(")) {
    tokens_.take();
    return dict(place, ")");
  }
  if (tokens_.is("("))
    throw ConfigError(fmt::format("{}: {}", place.text(), not_read("the call " + name + "()")));
  if (name == loop_name_) return {loop_value_.data, place};
  const auto* value = named_ ? named_(name) : nullptr;
  if (!value)
    throw ConfigError(fmt::format("{}: '{}' is not the name of a value above", place.text(), name));
  return *value;
}

Value::Data PythonExpressions::number(const std::string& text) {
  std::int64_t whole = 0;
  const auto* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc() && read.ptr == end)
    return whole;
  double real = 0;
  const auto read = std::from_chars(text.data(), end, real);
  if (read.ptr != end || read.ec != std::errc())
    tokens_.fail(fmt::format("'{}' is no number", text));
  return real;
}

/// After "[": elements, or `x for x in list`.
Value PythonExpressions::list(const Place& place) {
  Value all{Value::List{}, place};
  auto& list = std::get<Value::List>(all.data);
  if (is_comprehension()) return comprehension(place);
  while (!tokens_.take("]")) {
    list.push_back(expression());
    if (!tokens_.is("]")) tokens_.expect(",");
    check_size(list.size(), tokens_);
  }
  return all;
}

/// Looks ahead, on copies, for the `for` of this bracket.
bool PythonExpressions::is_comprehension() const {
  auto ahead = tokens_;
  for (int open = 0;; ahead.take()) {
    if (ahead.is(PythonToken::Kind::end)) return false;
    if (ahead.is("(") || ahead.is("[") || ahead.is("{")) ++open;
    if (ahead.is(")") || ahead.is("]") || ahead.is("}"))
      if (open-- == 0) return false;
    if (open == 0 && ahead.is_name("for")) return true;
  }
}

Value PythonExpressions::comprehension(const Place& place) {
  auto body = tokens_;  // read again for each element
  auto after = tokens_;
  for (int open = 0; open > 0 || !after.is_name("for"); after.take()) {
    if (after.is("(") || after.is("[") || after.is("{")) ++open;
    if (after.is(")") || after.is("]") || after.is("}")) --open;
  }
  after.take();
  if (!after.is(PythonToken::Kind::name)) after.fail("a name is needed after 'for'");
  const auto name = after.take().text;
  if (!after.is_name("in")) after.fail("'in' is needed before " + after.shown());
  after.take();
  if (!loop_name_.empty()) after.fail(not_read("a loop within a loop"));
  tokens_ = after;
  const auto over = expression();
  tokens_.expect("]");
  if (!over.is_list()) after.fail("'for' goes over a list, not " + std::string(over.type_name()));
  after = tokens_;
  Value all{Value::List{}, place};
  loop_name_ = name;
  for (const auto& one : over.list()) {
    tokens_ = body;
    loop_value_ = one;
    std::get<Value::List>(all.data).push_back(expression());
  }
  loop_name_.clear();
  tokens_ = after;
  return all;
}

/// After "{": a dict; or the second brace of MMDetection's {{_base_.name}}.
Value PythonExpressions::braces(const Place& place) {
  if (!tokens_.take("{")) return dict(place, "}");
  auto value = expression();
  tokens_.expect("}");
  tokens_.expect("}");
  return value;
}

/// After "dict(" or "{": members up to the closing bracket.
Value PythonExpressions::dict(const Place& place, std::string_view close) {
  Value all{Value::Dict{}, place};
  while (!tokens_.take(close)) {
    if (tokens_.take("**")) {
      const auto more = expression();
      if (!more.is_dict()) tokens_.fail("** takes a dict, not " + std::string(more.type_name()));
      for (const auto& [key, value] : more.dict()) all.set(key, value);
    } else if (close == ")") {
      if (!tokens_.is(PythonToken::Kind::name)) tokens_.fail(not_read(tokens_.shown()));
      const auto key = tokens_.take().text;
      tokens_.expect("=");
      all.set(key, expression());
    } else {
      const auto key = expression();
      const auto* text = std::get_if<std::string>(&key.data);
      tokens_.expect(":");
      all.set(text ? *text : key.text(), expression());
    }
    if (!tokens_.is(close)) tokens_.expect(",");
    check_size(all.dict().size(), tokens_);
  }
  return all;
}

}  // namespace millrace
