// A foreign configuration on its way into ours: what of it has been read, what became of it, and
// what has no counterpart. Whatever the rules of a code base do not read is listed, so that nothing
// is lost in silence.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/migration/files/value.h"

namespace millrace {

/// A key that was not translated.
struct LeftOut {
  std::string key;     // "MODEL.RPN.LOSS_WEIGHT"
  std::string value;   // as Python writes it
  std::string place;   // "Base-RCNN-FPN.yaml:12"
  std::string reason;  // why, and what to do instead
};

/// A value of the foreign tree that a rule reads, of the type that it needs. The functions throw
/// ConfigError naming place and key if it has another.
struct Found {
  const Value* value = nullptr;  // nullptr: there is none, or None
  std::string path;
  Place place = {};  // also where None stands

  explicit operator bool() const { return value != nullptr; }
  /// The value, or an error where there is none.
  const Value& need() const;
  double real() const;
  std::int64_t integer() const;
  bool flag() const;
  std::string text() const;
  /// The numbers of a list, also of lists within it; of one number that.
  std::vector<double> reals() const;
  /// "FILE:12: MODEL.MASK_ON": where an error is.
  std::string where() const;
  [[noreturn]] void fail(const std::string& what) const;
};

class Translation {
 public:
  /// `tree`: borrowed.
  explicit Translation(const Value& tree) : tree_(tree) {}

  /// The value at a path, which counts as read, with all below it. None counts as nothing.
  Found read(const std::string& path);
  /// The same without reading it.
  Found look(const std::string& path) const;
  /// The value at the first of these paths that there is.
  Found read_any(const std::vector<std::string>& paths);

  /// Sets a value of ours that comes from one of theirs. `how`: the arithmetic, where there is
  /// some.
  void put(const std::string& key, Config::Data value, const Found& from,
           const std::string& how = "");
  /// The same for numbers, whole ones as integers.
  void put(const std::string& key, double value, const Found& from, const std::string& how = "");
  void put(const std::string& key, const std::vector<double>& values, const Found& from,
           const std::string& how = "");
  /// A flag, a number or numbers as they are, under our name; nothing where there is none.
  void copy(const std::string& theirs, const std::string& ours);
  /// A value that stands for none of theirs, with the reason.
  void set(const std::string& key, Config::Data value, const std::string& why);

  /// Notes that a value has no counterpart.
  void leave_out(const Found& what, const std::string& reason);
  /// Reads a value and notes it, unless it is what is done here anyhow (`ours`, a literal).
  void expect(const std::string& path, const Value& ours, const std::string& reason);

  /// Notes what nobody has read below `path` with this reason.
  void leave_out_rest(const std::string& path, const std::string& reason);

  const Config& ours() const { return ours_; }
  Config& ours() { return ours_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }

 private:
  bool is_read(const std::string& path) const;

  const Value& tree_;
  std::set<std::string> read_;
  Config ours_;
  std::vector<LeftOut> left_out_;
};

/// A number as a value of TOML: whole ones as integers.
Config::Data number(double value);

/// A text as a value of TOML.
inline Config::Data words(std::string text) { return text; }

/// What must be `given`, the text of `found`, in a model that is one of ours. Throws ConfigError
/// naming `possible` if it is none of these.
std::string one_of(const Found& found, std::string given, const std::vector<std::string>& possible);

/// Where the weights of a recipe are looked for that have an address: their file in data/weights.
std::string weights_file(const std::string& address);

/// Why a weight of a loss is left out.
inline constexpr const char* kNoLossWeights = "losses are added without weights";

/// Where a value of ours comes from, as comments and errors name it.
Origin origin_of(const Found& from, const std::string& how = "");

}  // namespace millrace
