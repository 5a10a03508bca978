#include "millrace/migration/files/python_tokens.h"

#include <fmt/format.h>

#include <cctype>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

PythonTokens::PythonTokens(std::string_view text, std::string source, int first_line)
    : text_(text), source_(std::move(source)), line_(first_line) {
  next();
}

bool PythonTokens::take(std::string_view sign) {
  if (!is(sign)) return false;
  next();
  return true;
}

PythonToken PythonTokens::take() {
  auto token = std::move(now_);
  next();
  return token;
}

void PythonTokens::expect(std::string_view sign) {
  if (!take(sign)) fail(fmt::format("'{}' is needed before {}", sign, shown()));
}

std::string PythonTokens::shown() const {
  if (is(PythonToken::Kind::end)) return "the end";
  if (is(PythonToken::Kind::line_end)) return "the end of the line";
  return "'" + now_.text + "'";
}

void PythonTokens::fail(const std::string& what) const {
  throw ConfigError(fmt::format("{}: {}", place().text(), what));
}

void PythonTokens::next() {
  skip_blanks();
  now_ = {PythonToken::Kind::end, "", line_};
  if (at_ == text_.size()) return;
  const char c = text_[at_];
  if (c == '\n') {
    now_.kind = PythonToken::Kind::line_end;
    ++at_, ++line_;
  } else if (is_string()) {
    now_.kind = PythonToken::Kind::text;
    read_string();
  } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
    now_.kind = PythonToken::Kind::number;
    read_number();
  } else if (is_letter(c)) {
    now_.kind = PythonToken::Kind::name;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_])))
      now_.text += text_[at_++];
  } else {
    now_.kind = PythonToken::Kind::sign;
    now_.text = text_.substr(at_, 2) == "**" || text_.substr(at_, 2) == "//" ? text_.substr(at_, 2)
                                                                             : text_.substr(at_, 1);
    at_ += now_.text.size();
    if (now_.text == "(" || now_.text == "[" || now_.text == "{") ++brackets_;
    if ((now_.text == ")" || now_.text == "]" || now_.text == "}") && brackets_ > 0) --brackets_;
  }
}

void PythonTokens::skip_blanks() {
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
bool PythonTokens::is_string() const {
  auto i = at_;
  while (i < text_.size() && i < at_ + 2 && std::isalpha(static_cast<unsigned char>(text_[i]))) ++i;
  return i < text_.size() && (text_[i] == '\'' || text_[i] == '"');
}

void PythonTokens::read_string() {
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

void PythonTokens::read_escape() {
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

void PythonTokens::read_number() {
  const auto digit_or = [&](std::string_view more) {
    return at_ < text_.size() &&
           (is_digit(text_[at_]) || more.find(text_[at_]) != std::string_view::npos);
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

}  // namespace millrace
