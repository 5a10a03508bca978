#include "millrace/base/toml_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

/// Returns the end of the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at).starts_with(three);
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\')
      ++at;
    else if (is_long && text.substr(at).starts_with(three))
      // The content may end with up to two quotes.
      return std::min(text.find_first_not_of(quote, at), at + 5);
    else if (!is_long && (text[at] == quote || text[at] == '\n'))
      return at + 1;
  }
  return text.size();
}

/// An open array or inline table.
struct Bracket {
  bool is_table = false;
  std::size_t levels = 0;  // levels added by the bracket and its key
};

/// Tracks the nesting depth, character by character.
class Depth {
 public:
  std::size_t levels() const { return header_ + inside_ + key_; }

  void see(char c) {
    if (c == '\n' && open_.empty()) {  // the next statement
      begin_key();
      in_header_ = written_ = false;
    } else if (c == '[' && open_.empty() && in_key_ && key_ == 1 && !written_) {
      in_header_ = true;
      header_ = 1;  // set again at the second '[' of an array of tables
    } else if (c == '[' || c == '{') {
      open_.push_back({c == '{', key_});
      inside_ += key_;
      begin_key();
      in_key_ = c == '{';
    } else if ((c == ']' && !in_header_) || c == '}') {
      if (open_.empty()) return;
      key_ = open_.back().levels;
      inside_ -= key_;
      open_.pop_back();
      in_key_ = false;
    } else if (c != ']') {
      if (c == '=') in_key_ = false;
      if (c == ',' && !open_.empty() && open_.back().is_table) begin_key();
      if (c == '.' && in_key_) ++(in_header_ ? header_ : key_);
      written_ = written_ || (c != ' ' && c != '\t' && c != '\r');
    }
  }

 private:
  void begin_key() {
    in_key_ = true;
    key_ = 1;
  }

  std::vector<Bracket> open_;
  std::size_t header_ = 0;  // levels of the current header
  std::size_t inside_ = 0;  // levels of the open brackets
  std::size_t key_ = 1;     // parts of the current key
  bool in_key_ = true, in_header_ = false, written_ = false;
};

}  // namespace

void check_depth(std::string_view toml, const std::string& source) {
  Depth depth;
  for (std::size_t at = 0; at < toml.size();) {
    const char c = toml[at];
    if (c == '#') {
      at = std::min(toml.find('\n', at), toml.size());
      continue;
    }
    depth.see(c);
    if (depth.levels() > kMaxNesting) {
      const auto before = toml.substr(0, at);
      throw ConfigError(fmt::format(
          "{}:{}:{}: tables and arrays are nested more than {} levels deep", source,
          1 + std::ranges::count(before, '\n'), at - (before.rfind('\n') + 1) + 1, kMaxNesting));
    }
    at = c == '"' || c == '\'' ? end_of_string(toml, at) : at + 1;
  }
}

}  // namespace millrace
