// Reads Python's pickle as data into a tree; nothing in it is ever run. Independent of torch:
// pickled_state.h interprets the tree.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// One object of a pickle. Texts point into the pickle's bytes. Objects may be shared, and lists
/// and dicts may contain themselves, as in Python: limit the depth of recursion.
struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    text,        // str or bytes
    tuple,       // `items`: its elements
    list,        // `items`: its elements
    dict,        // `items`: key, value, key, value ... in the pickle's order; also an OrderedDict
    global,      // `text`: "module.name" of a function or class
    call,        // `items`: a global and a tuple of arguments; `state`: that of the object, if set
    persistent,  // `items`: the id of an object stored elsewhere
    other,       // a floating-point number, or an integer that is too large
  };

  Kind kind = Kind::none;
  std::int64_t integer = 0;  // also of a boolean
  std::string_view text;
  std::vector<const PickleValue*> items;
  const PickleValue* state = nullptr;

  /// Returns the value of a dict's key; nullptr if not found, or if this is not a dict.
  const PickleValue* find(std::string_view key) const;

  /// A call's function name and arguments; empty for other kinds.
  std::string_view function() const;
  const std::vector<const PickleValue*>& arguments() const;
};

/// A pickle of protocol 2 to 5 at the start of `bytes`, which must outlive it.
class Pickle {
 public:
  /// Throws Error naming the byte (counted from `first_byte`, the pickle's offset in its file) if
  /// the bytes end too early, are not a pickle, or name a function or class that is not on the list
  /// in pickle.cpp.
  explicit Pickle(std::string_view bytes, std::uint64_t first_byte = 0);

  const PickleValue& root() const { return *root_; }

  /// All objects, in the order of creation.
  const std::deque<PickleValue>& values() const { return values_; }

  /// Its length in bytes.
  std::size_t size() const { return size_; }

 private:
  class Machine;

  std::deque<PickleValue> values_;  // pointers between them do not own
  std::deque<std::string> texts_;   // texts that had to be decoded
  const PickleValue* root_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace millrace
