// Python's pickle, read as data into a tree; nothing in it is ever run. No torch here: what a tree
// means is in pickled_state.h.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// One object of a pickle. Texts point into the pickle's bytes. Objects may be shared, lists and
/// dicts may contain themselves, as in Python: bound the depth of any walk.
struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,   // str and bytes alike
    tuple,  // `items`: its members
    list,   // `items`: its members
    dict,   // `items`: key, value, key, value ... in the pickle's order; an OrderedDict is one, too
    global,      // `text`: "module.name" of a function or class
    call,        // `items`: a global, a tuple of arguments; `state`: that of the object, if set
    persistent,  // `items`: the id of something stored elsewhere
    other,       // a number that is too large, and the like
  };

  Kind kind = Kind::none;
  std::int64_t integer = 0;  // also a boolean's
  double real = 0;
  std::string_view text;
  std::vector<const PickleValue*> items;
  const PickleValue* state = nullptr;

  /// The value of a dict's key; nullptr if there is none, or this is no dict.
  const PickleValue* find(std::string_view key) const;

  /// A call's name and arguments; empty for anything else.
  std::string_view function() const;
  const std::vector<const PickleValue*>& arguments() const;
};

/// A pickle of protocol 2 to 5 at the start of `bytes`, which must outlive it.
class Pickle {
 public:
  /// Throws Error naming the byte (from `first_byte`, the pickle's place in its file) if the bytes
  /// end too early, are no pickle, or name a function or class that is not on the list in
  /// pickle.cpp.
  explicit Pickle(std::string_view bytes, std::uint64_t first_byte = 0);

  const PickleValue& root() const { return *root_; }

  /// All objects, in the order of creation.
  const std::deque<PickleValue>& values() const { return values_; }

  /// Its length in bytes.
  std::size_t size() const { return size_; }

 private:
  class Machine;

  std::deque<PickleValue> values_;  // pointers between them do not own
  std::deque<std::string> texts_;   // those decoded from the bytes
  const PickleValue* root_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace millrace
