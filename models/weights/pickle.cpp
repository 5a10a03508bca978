#include "millrace/models/weights/pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

using Kind = PickleValue::Kind;

/// The functions and classes that weights may name. They are not looked up or called. Any other
/// name means that the pickle would run code when Python reads it, or contains something unknown to
/// this reader.
constexpr std::array<std::string_view, 51> kGlobals = {
    "collections.OrderedDict", "collections.defaultdict", "collections.Counter",
    // torchvision's training script saves its arguments
    "argparse.Namespace",
    // bytes in protocol 2
    "_codecs.encode",
    // torch
    "torch.Size", "torch.device", "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter", "torch.nn.parameter.Parameter", "torch.DoubleStorage",
    "torch.FloatStorage", "torch.HalfStorage", "torch.BFloat16Storage", "torch.LongStorage",
    "torch.IntStorage", "torch.ShortStorage", "torch.CharStorage", "torch.ByteStorage",
    "torch.BoolStorage", "torch.float64", "torch.float32", "torch.float16", "torch.bfloat16",
    "torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.bool",
    // torch types without a storage type, read in order to report them
    "torch._utils._rebuild_tensor_v3", "torch.storage.UntypedStorage", "torch.UntypedStorage",
    "torch.float8_e4m3fn", "torch.float8_e5m2", "torch.float8_e4m3fnuz", "torch.float8_e5m2fnuz",
    "torch.float8_e8m0fnu",
    // NumPy
    "numpy.ndarray", "numpy.dtype", "numpy.core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar", "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar", "numpy._core.numeric._frombuffer",
    "numpy.core.numeric._frombuffer",
    // Python
    "builtins.set", "__builtin__.set", "builtins.list", "__builtin__.list"};

/// Converts UTF-8 text to Latin-1. Throws Error for any other character.
std::string latin1(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      bytes += text[i];
      continue;
    }
    if ((c != 0xc2 && c != 0xc3) || i + 1 == text.size())
      throw Error("it encodes text that is not Latin-1");
    bytes += static_cast<char>((c & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
  }
  return bytes;
}

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  if (kind != Kind::dict) return nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i]->kind == Kind::text && items[i]->text == key) return items[i + 1];
  return nullptr;
}

std::string_view PickleValue::function() const {
  return kind == Kind::call ? items[0]->text : std::string_view{};
}

const std::vector<const PickleValue*>& PickleValue::arguments() const {
  static const std::vector<const PickleValue*> none;
  return kind == Kind::call ? items[1]->items : none;
}

/// The stack machine that executes a pickle's instructions. Each creates at most one object, so
/// that memory is proportional to the pickle's bytes.
class Pickle::Machine {
 public:
  Machine(Pickle& result, std::string_view bytes) : result_(result), bytes_(bytes) {}

  std::uint64_t place() const { return at_; }

  void run() {
    for (;;) {
      at_ = next_;
      const auto instruction = take(1)[0];
      if (instruction == '.') break;
      step(instruction);
    }
    result_.root_ = pop();
    result_.size_ = next_;
  }

 private:
  /// Executes the instructions of Python's Lib/pickletools.py that weights use.
  void step(char instruction) {
    switch (static_cast<unsigned char>(instruction)) {
      case 0x80:  // PROTO
        if (take(1)[0] > 5) throw Error("pickle protocols above 5 are not supported");
        return;
      case 0x95:  // FRAME
        take(8);
        return;
      case '(':
        return marks_.push_back(stack_.size());
      case '0':
        pop();
        return;
      case 'N':
        return push_items(Kind::none, {});
      case 0x88:
      case 0x89:
        push(Kind::boolean).integer = instruction == '\x88';
        return;
      case 'J':
        return push_integer(number<std::int32_t>());
      case 'K':
        return push_integer(number<std::uint8_t>());
      case 'M':
        return push_integer(number<std::uint16_t>());
      case 0x8a:  // LONG1
        return push_long(take(number<std::uint8_t>()));
      case 'G':
        take(sizeof(double));
        return push_items(Kind::other, {});
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
        return push_text(take(number<std::uint32_t>()));
      case 0x8c:  // SHORT_BINUNICODE
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
        return push_text(take(number<std::uint8_t>()));
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        return push_text(take(number<std::uint64_t>()));
      case ')':
        return push_items(Kind::tuple, {});
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return push_items(Kind::tuple, top(static_cast<unsigned char>(instruction) - 0x84U));
      case 't':
        return push_items(Kind::tuple, since_mark());
      case ']':
      case 0x8f:  // EMPTY_SET
        return push_items(Kind::list, {});
      case '}':
        return push_items(Kind::dict, {});
      case 'a':
        return extend(Kind::list, top(1));
      case 'e':
      case 0x90:  // ADDITEMS
        return extend(Kind::list, since_mark());
      case 's':
        return extend(Kind::dict, top(2));
      case 'u':
        return extend(Kind::dict, since_mark());
      case 'c': {
        const auto module = line();
        return push_global(module, line());
      }
      case 0x93: {  // STACK_GLOBAL
        const auto names = top(2);
        if (names[0]->kind != Kind::text || names[1]->kind != Kind::text)
          throw Error("the name of a function is not a string");
        return push_global(names[0]->text, names[1]->text);
      }
      case 'R':     // REDUCE
      case 0x81: {  // NEWOBJ
        const auto parts = top(2);
        return call(parts[0], parts[1]);
      }
      case 'b': {
        const auto* state = pop();
        peek().state = state;
        return;
      }
      case 'Q':
        return push_items(Kind::persistent, top(1));
      case 'q':
        return keep(number<std::uint8_t>());
      case 'r':
        return keep(number<std::uint32_t>());
      case 0x94:  // MEMOIZE
        return keep(static_cast<std::uint32_t>(memo_.size()));
      case 'h':
        return recall(number<std::uint8_t>());
      case 'j':
        return recall(number<std::uint32_t>());
      default:
        throw Error("unsupported pickle instruction " +
                    std::to_string(static_cast<unsigned char>(instruction)));
    }
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - next_) throw Error("it is truncated");
    const auto taken = bytes_.substr(next_, count);
    next_ += count;
    return taken;
  }

  /// Returns the rest of the line, without its end.
  std::string_view line() {
    constexpr std::size_t kLongest = 200;
    const auto length = bytes_.substr(next_, kLongest).find('\n');
    if (length == std::string_view::npos) throw Error("unterminated name");
    const auto text = take(length);
    take(1);
    return text;
  }

  /// Reads a little-endian number.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  PickleValue& push(Kind kind) {
    auto& value = result_.values_.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }

  void push_items(Kind kind, std::vector<const PickleValue*> items) {
    push(kind).items = std::move(items);
  }

  void push_integer(std::int64_t value) { push(Kind::integer).integer = value; }

  void push_text(std::string_view text) { push(Kind::text).text = text; }

  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(std::int64_t)) return push_items(Kind::other, {});
    std::uint64_t value = !bytes.empty() && bytes.back() < 0 ? ~std::uint64_t{0} : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push_integer(static_cast<std::int64_t>(value));
  }

  void push_global(std::string_view module, std::string_view name) {
    const auto wanted = std::string(module) + "." + std::string(name);
    const auto* known = std::find(kGlobals.begin(), kGlobals.end(), wanted);
    if (known == kGlobals.end())
      throw Error("it refers to '" + wanted.substr(0, 80) +
                  "', which weights do not need; no code was run. If you trust the file, save only "
                  "its tensors with torch.save(model.state_dict(), ...)");
    push(Kind::global).text = *known;
  }

  void call(const PickleValue* function, const PickleValue* arguments) {
    if (function->kind != Kind::global || arguments->kind != Kind::tuple)
      throw Error("it calls an object that is not a function");
    const auto& given = arguments->items;
    if (function->text == "collections.OrderedDict") {
      auto& dict = push(Kind::dict);
      if (given.empty()) return;
      if (given.size() > 1 || given[0]->kind != Kind::list)
        throw Error("it constructs an OrderedDict from an object that is not a list");
      spend(2 * given[0]->items.size());
      for (const auto* pair : given[0]->items) {
        if (pair->items.size() != 2)
          throw Error("it constructs an OrderedDict from a list of other objects than pairs");
        dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
      }
    } else if (function->text == "_codecs.encode") {
      if (given.empty() || given[0]->kind != Kind::text)
        throw Error("it encodes an object that is not text");
      spend(given[0]->text.size());
      push_text(result_.texts_.emplace_back(latin1(given[0]->text)));
    } else {
      push_items(Kind::call, {function, arguments});
    }
  }

  /// Limits the total of what is copied, since a pickle may recall one list or text many times to
  /// exhaust memory.
  void spend(std::size_t amount) {
    copied_ += amount;
    if (copied_ > bytes_.size()) throw Error("it copies more bytes than the file contains");
  }

  /// Adds to the list or dict on top; ignored for a call, which is only described.
  void extend(Kind kind, const std::vector<const PickleValue*>& items) {
    auto& value = peek();
    if (value.kind == Kind::call) return;
    if (value.kind != kind || (kind == Kind::dict && items.size() % 2 != 0))
      throw Error("it appends to an object that is not a list or dict");
    value.items.insert(value.items.end(), items.begin(), items.end());
  }

  /// Pops the objects pushed since the last mark.
  std::vector<const PickleValue*> since_mark() {
    if (marks_.empty()) throw Error("missing mark");
    const auto count = stack_.size() - marks_.back();
    marks_.pop_back();
    return cut(count);
  }

  std::vector<const PickleValue*> top(std::size_t count) {
    if (count > stack_.size() - floor()) throw Error("stack underflow");
    return cut(count);
  }

  std::vector<const PickleValue*> cut(std::size_t count) {
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<const PickleValue*> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    return items;
  }

  const PickleValue* pop() { return top(1)[0]; }

  PickleValue& peek() {
    if (stack_.size() == floor()) throw Error("stack underflow");
    return *stack_.back();
  }

  /// Objects below the last mark cannot be popped.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  void keep(std::uint32_t place) { memo_[place] = &peek(); }

  void recall(std::uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) throw Error("unknown memo index");
    stack_.push_back(found->second);
  }

  Pickle& result_;
  std::string_view bytes_;
  std::size_t at_ = 0, next_ = 0;  // offsets of the current instruction and of the next byte
  std::size_t copied_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

Pickle::Pickle(std::string_view bytes, std::uint64_t first_byte) {
  Machine machine(*this, bytes);
  try {
    machine.run();
  } catch (const Error& problem) {
    throw Error("pickle at byte " + std::to_string(first_byte + machine.place()) + ": " +
                problem.what());
  }
}

}  // namespace millrace
