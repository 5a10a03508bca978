#include "millrace/migration/python_literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr int kDeepest = 100;             // brackets within brackets
constexpr std::size_t kLongest = 100000;  // elements that an expression may make

struct Token {
  enum class Kind { name, number, text, sign, line_end, end } kind = Kind::end;
  std::string text;  // of a string: its value
  int line = 0;
};

/// Cuts a text into tokens. Line ends within brackets are blanks, as in Python.
class Tokens {
 public:
  Tokens(std::string_view text, std::string source, int first_line)
      : text_(text), source_(std::move(source)), line_(first_line) {
    next();
  }

  const Token& now() const { return now_; }
  bool is(std::string_view sign) const {
    return now_.kind == Token::Kind::sign && now_.text == sign;
  }
  bool is_name(std::string_view name) const {
    return now_.kind == Token::Kind::name && now_.text == name;
  }
  bool take(std::string_view sign) {
    if (!is(sign)) return false;
    next();
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) fail(fmt::format("'{}' is needed before {}", sign, shown()));
  }
  Token take() {
    auto token = std::move(now_);
    next();
    return token;
  }

  /// The token as an error names it.
  std::string shown() const {
    if (now_.kind == Token::Kind::end) return "the end";
    if (now_.kind == Token::Kind::line_end) return "the end of the line";
    return "'" + now_.text + "'";
  }
  Place place() const { return {source_, now_.line}; }
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("{}: {}", place().text(), what));
  }

 private:
  void next() {
    skip_blanks();
    now_ = {Token::Kind::end, "", line_};
    if (at_ == text_.size()) return;
    const char c = text_[at_];
    if (c == '\n') {
      now_.kind = Token::Kind::line_end;
      ++at_, ++line_;
    } else if (is_string()) {
      now_.kind = Token::Kind::text;
      read_string();
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && at_ + 1 < text_.size() &&
                std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))) {
      now_.kind = Token::Kind::number;
      read_number();
    } else if (is_letter(c)) {
      now_.kind = Token::Kind::name;
      while (at_ < text_.size() &&
             (is_letter(text_[at_]) || std::isdigit(static_cast<unsigned char>(text_[at_]))))
        now_.text += text_[at_++];
    } else {
      now_.kind = Token::Kind::sign;
      now_.text = text_.substr(at_, 2) == "**" || text_.substr(at_, 2) == "//"
                      ? text_.substr(at_, 2)
                      : text_.substr(at_, 1);
      at_ += now_.text.size();
      if (now_.text == "(" || now_.text == "[" || now_.text == "{") ++brackets_;
      if ((now_.text == ")" || now_.text == "]" || now_.text == "}") && brackets_ > 0) --brackets_;
    }
  }

  static bool is_letter(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2, ++line_;
      } else if (c == '\n' && brackets_ > 0) {
        ++at_, ++line_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        ++at_;
      } else {
        return;
      }
    }
  }

  /// Whether a string begins here, maybe after letters such as r and f.
  bool is_string() const {
    auto i = at_;
    while (i < text_.size() && i < at_ + 2 && std::isalpha(static_cast<unsigned char>(text_[i])))
      ++i;
    return i < text_.size() && (text_[i] == '\'' || text_[i] == '"');
  }

  void read_string() {
    bool raw = false;
    for (; text_[at_] != '\'' && text_[at_] != '"'; ++at_) {
      const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_])));
      if (kind != 'r' && kind != 'u')
        fail(fmt::format("a string '{}\"...\"' is no literal: write it as plain text", text_[at_]));
      raw = raw || kind == 'r';
    }
    const char quote = text_[at_];
    const auto triple = std::string(3, quote);
    const auto end = text_.substr(at_, 3) == triple ? triple : std::string(1, quote);
    at_ += end.size();
    while (text_.substr(at_, end.size()) != end) {
      if (at_ == text_.size() || (end.size() == 1 && text_[at_] == '\n'))
        fail("a string that does not end");
      if (text_[at_] == '\\' && !raw && at_ + 1 < text_.size()) {
        read_escape();
        continue;
      }
      if (text_[at_] == '\n') ++line_;
      now_.text += text_[at_++];
    }
    at_ += end.size();
  }

  void read_escape() {
    const char c = text_[at_ + 1];
    at_ += 2;
    if (c == '\n') {
      ++line_;
    } else if (c == 'n' || c == 't') {
      now_.text += c == 'n' ? '\n' : '\t';
    } else if (c == '\\' || c == '\'' || c == '"') {
      now_.text += c;
    } else {
      fail(fmt::format("the escape '\\{}' of a string is not read here", c));
    }
  }

  void read_number() {
    const auto digit_or = [&](std::string_view more) {
      return at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) ||
                                    more.find(text_[at_]) != std::string_view::npos);
    };
    while (digit_or("._")) {
      if (text_[at_] != '_') now_.text += text_[at_];
      ++at_;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      now_.text += text_[at_++];
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) now_.text += text_[at_++];
      while (digit_or("")) now_.text += text_[at_++];
    }
    if (at_ < text_.size() && is_letter(text_[at_]))
      fail(fmt::format("'{}{}' is no decimal number", now_.text, text_[at_]));
  }

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  int line_;
  int brackets_ = 0;
  Token now_;
};

/// Recursive descent over the tokens.
class Expressions {
 public:
  Expressions(Tokens& tokens, const NamedValue& named) : tokens_(tokens), named_(named) {}

  Value expression() {
    if (++depth_ > kDeepest) tokens_.fail("brackets are nested too deeply");
    const auto place = tokens_.place();
    auto left = term();
    while (tokens_.is("+") || tokens_.is("-")) {
      const auto sign = tokens_.take().text;
      left.place = place;
      left = combined(sign, std::move(left), term());
    }
    --depth_;
    if (tokens_.is_name("if") || tokens_.is_name("or") || tokens_.is_name("and"))
      tokens_.fail(not_read(tokens_.shown()));
    return left;
  }

  /// An expression, or several with commas: a tuple.
  Value expressions() {
    auto first = expression();
    if (!tokens_.is(",")) return first;
    Value tuple{Value::List{}, first.place};
    auto& list = std::get<Value::List>(tuple.data);
    list.push_back(std::move(first));
    while (tokens_.take(",") && !ends()) list.push_back(expression());
    return tuple;
  }

  /// ".name" or "[key]" after a target's name.
  std::optional<Value> part() {
    const auto place = tokens_.place();
    if (tokens_.take(".")) {
      if (tokens_.now().kind != Token::Kind::name) tokens_.fail("a name is needed after '.'");
      return Value{tokens_.take().text, place};
    }
    if (!tokens_.take("[")) return std::nullopt;
    auto key = expression();
    tokens_.expect("]");
    return key;
  }

 private:
  static std::string not_read(const std::string& what) {
    return fmt::format(
        "{} is no literal. Nothing of a file is run here: only lists, dict(...), numbers, strings, "
        "their arithmetic and names of values above are read. Write out the value that it has",
        what);
  }

  bool ends() const {
    return tokens_.is(")") || tokens_.is("]") || tokens_.is("}") ||
           tokens_.now().kind == Token::Kind::line_end || tokens_.now().kind == Token::Kind::end;
  }

  Value term() {
    const auto place = tokens_.place();
    auto left = unary();
    while (tokens_.is("*") || tokens_.is("/") || tokens_.is("//") || tokens_.is("%")) {
      const auto sign = tokens_.take().text;
      left.place = place;
      left = combined(sign, std::move(left), unary());
    }
    return left;
  }

  Value unary() {
    if (++depth_ > kDeepest) tokens_.fail("brackets are nested too deeply");
    const auto place = tokens_.place();
    Value value;
    if (tokens_.take("-"))
      value = combined("-", Value{std::int64_t{0}, place}, unary());
    else if (tokens_.take("+"))
      value = unary();
    else
      value = power();
    --depth_;
    return value;
  }

  Value power() {
    auto base = postfix();
    if (!tokens_.is("**")) return base;
    tokens_.take();
    return combined("**", std::move(base), unary());
  }

  Value postfix() {
    auto value = atom();
    while (tokens_.is(".") || tokens_.is("[") || tokens_.is("(")) {
      if (tokens_.is("(")) tokens_.fail(not_read("a call"));
      const auto key = *part();
      value = member(value, key);
    }
    return value;
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

  Value atom() {
    const auto place = tokens_.place();
    switch (tokens_.now().kind) {
      case Token::Kind::number:
        return {number(tokens_.take().text), place};
      case Token::Kind::text: {
        std::string text;
        while (tokens_.now().kind == Token::Kind::text) text += tokens_.take().text;
        if (text.find("{{") != std::string::npos)
          tokens_.fail("'{{...}}' in a string is not replaced here: write the text that it has");
        return {std::move(text), place};
      }
      case Token::Kind::name:
        return name(place);
      case Token::Kind::sign:
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

  Value name(const Place& place) {
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
      throw ConfigError(
          fmt::format("{}: '{}' is not the name of a value above", place.text(), name));
    return *value;
  }

  Value::Data number(const std::string& text) {
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
  Value list(const Place& place) {
    Value all{Value::List{}, place};
    auto& list = std::get<Value::List>(all.data);
    if (is_comprehension()) return comprehension(place);
    while (!tokens_.take("]")) {
      list.push_back(expression());
      if (!tokens_.is("]")) tokens_.expect(",");
      limit(list.size());
    }
    return all;
  }

  /// Looks ahead, on copies, for the `for` of this bracket.
  bool is_comprehension() const {
    auto ahead = tokens_;
    for (int open = 0;; ahead.take()) {
      if (ahead.now().kind == Token::Kind::end) return false;
      if (ahead.is("(") || ahead.is("[") || ahead.is("{")) ++open;
      if (ahead.is(")") || ahead.is("]") || ahead.is("}"))
        if (open-- == 0) return false;
      if (open == 0 && ahead.is_name("for")) return true;
    }
  }

  Value comprehension(const Place& place) {
    auto body = tokens_;  // read again for each element
    auto after = tokens_;
    for (int open = 0; open > 0 || !after.is_name("for"); after.take()) {
      if (after.is("(") || after.is("[") || after.is("{")) ++open;
      if (after.is(")") || after.is("]") || after.is("}")) --open;
    }
    after.take();
    if (after.now().kind != Token::Kind::name) after.fail("a name is needed after 'for'");
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
  Value braces(const Place& place) {
    if (!tokens_.take("{")) return dict(place, "}");
    auto value = expression();
    tokens_.expect("}");
    tokens_.expect("}");
    return value;
  }

  /// After "dict(" or "{": members up to the closing bracket.
  Value dict(const Place& place, std::string_view close) {
    Value all{Value::Dict{}, place};
    while (!tokens_.take(close)) {
      if (tokens_.take("**")) {
        const auto more = expression();
        if (!more.is_dict()) tokens_.fail("** takes a dict, not " + std::string(more.type_name()));
        for (const auto& [key, value] : more.dict()) all.set(key, value);
      } else if (close == ")") {
        if (tokens_.now().kind != Token::Kind::name) tokens_.fail(not_read(tokens_.shown()));
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
      limit(all.dict().size());
    }
    return all;
  }

  void limit(std::size_t size) {
    if (size > kLongest) tokens_.fail("a list of more than 100,000 elements");
  }

  Value combined(const std::string& sign, Value left, Value right) {
    const auto place = left.place;
    const auto* text = std::get_if<std::string>(&left.data);
    const auto* more = std::get_if<std::string>(&right.data);
    if (sign == "+" && text && more) return {*text + *more, place};
    if (sign == "+" && left.is_list() && right.is_list()) {
      auto all = left.list();
      all.insert(all.end(), right.list().begin(), right.list().end());
      limit(all.size());
      return {std::move(all), place};
    }
    const auto* times = std::get_if<std::int64_t>(&right.data);
    if (sign == "*" && left.is_list() && times) {
      limit(left.list().size() * static_cast<std::size_t>(std::clamp<std::int64_t>(
                                     *times, 0, static_cast<std::int64_t>(kLongest) + 1)));
      Value::List all;
      for (std::int64_t i = 0; i < *times; ++i)
        all.insert(all.end(), left.list().begin(), left.list().end());
      return {std::move(all), place};
    }
    return {arithmetic(sign, left, right), place};
  }

  Value::Data arithmetic(const std::string& sign, const Value& left, const Value& right) {
    const auto real = [&](const Value& value) {
      if (const auto* whole = std::get_if<std::int64_t>(&value.data))
        return static_cast<double>(*whole);
      if (const auto* number = std::get_if<double>(&value.data)) return *number;
      tokens_.fail(fmt::format("{} {} {}: numbers are needed", left.text(), sign, right.text()));
    };
    const double x = real(left), y = real(right);
    if (y == 0 && (sign == "/" || sign == "//" || sign == "%")) tokens_.fail("division by zero");
    double result = 0;
    if (sign == "+") result = x + y;
    if (sign == "-") result = x - y;
    if (sign == "*") result = x * y;
    if (sign == "/") result = x / y;
    if (sign == "//") result = std::floor(x / y);
    if (sign == "%") result = x - std::floor(x / y) * y;
    if (sign == "**") result = std::pow(x, y);
    if (!std::isfinite(result))
      tokens_.fail(fmt::format("{} {} {} is no finite number", left.text(), sign, right.text()));
    const bool whole = std::holds_alternative<std::int64_t>(left.data) &&
                       std::holds_alternative<std::int64_t>(right.data) && sign != "/" &&
                       result == std::floor(result) && std::abs(result) < 9e15;
    if (whole) return static_cast<std::int64_t>(result);
    return result;
  }

  Tokens& tokens_;
  const NamedValue& named_;
  std::string loop_name_;
  Value loop_value_;
  int depth_ = 0;
};

}  // namespace

void read_assignments(std::string_view text, const std::string& source, const NamedValue& named,
                      const std::function<void(Assignment)>& assign) {
  Tokens tokens(text, source, 1);
  while (tokens.now().kind != Token::Kind::end) {
    const auto place = tokens.place();
    if (tokens.now().kind == Token::Kind::line_end || tokens.now().kind == Token::Kind::text) {
      tokens.take();  // an empty line, or a string that stands for a comment
      continue;
    }
    if (tokens.now().kind != Token::Kind::name)
      tokens.fail("a line `name = value` is needed, not " + tokens.shown());
    Assignment one;
    one.target.push_back({tokens.take().text, place});
    Expressions expressions(tokens, named);
    while (auto part = expressions.part()) one.target.push_back(std::move(*part));
    if (!tokens.take("="))
      throw ConfigError(
          fmt::format("{}: '{}' is no assignment. Nothing of a file is run here: only lines `name "
                      "= value` with "
                      "literals are read. Write out what it does",
                      place.text(), std::get<std::string>(one.target.front().data)));
    one.value = expressions.expressions();
    if (tokens.now().kind != Token::Kind::line_end && tokens.now().kind != Token::Kind::end)
      tokens.fail("the end of the line is needed before " + tokens.shown());
    assign(std::move(one));
  }
}

Value read_expression(std::string_view text, const Place& place) {
  Tokens tokens(text, place.source, place.line);
  const NamedValue none;
  auto value = Expressions(tokens, none).expressions();
  if (tokens.now().kind != Token::Kind::end)
    tokens.fail("the end is needed before " + tokens.shown());
  return value;
}

std::optional<Value> literal_of(std::string_view text, const Place& place) {
  try {
    auto value = read_expression(text, place);
    return value;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace millrace
