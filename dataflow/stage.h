// A stage of a flow: a pure function with a name, its types forgotten but remembered by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "dataflow/message.h"

namespace millrace {

/// What enters a flow: the number of a sample, 0 .. size-1.
struct Index {
  std::int64_t value = 0;
};

/// What people call messages of type `T`: the type's name, unless a specialisation says better.
std::string readable(std::type_index type);
template <class T>
struct MessageName {
  static std::string get() { return readable(typeid(T)); }
};
template <class T>
struct MessageName<std::vector<T>> {
  static std::string get() { return "group of " + MessageName<T>::get() + "s"; }
};

/// The type of a message, and its name.
struct MessageType {
  std::type_index type;
  std::string name;  // "sample"

  template <class T>
  static MessageType of() {
    return {typeid(T), MessageName<T>::get()};
  }
  std::string text() const;  // "a sample"
  friend bool operator==(const MessageType& a, const MessageType& b) { return a.type == b.type; }
};

/// In -> Out, from any number of threads at once. The Rng depends on (seed, epoch, index, stage) alone.
using Map = std::function<Message(Message, Rng&)>;

/// Collects messages with the same key into vectors of `size`; serial and in order.
struct Group {
  std::function<std::size_t(const Message&)> key;  // 0 .. groups-1
  std::function<Message(std::vector<Message>)> join;
  std::size_t groups = 1;
  std::size_t size = 1;
};

struct Stage {
  std::string name;  // in reports and messages
  MessageType takes, yields;
  std::variant<Map, Group> work;

  bool is_group() const { return std::holds_alternative<Group>(work); }
};

/// A stage from a function of (In, Rng&) or (In) alone.
template <class In, class F>
Stage map_stage(std::string name, F function) {
  const auto apply = [function = std::move(function)](In in, Rng& rng) {
    if constexpr (std::is_invocable_v<const F&, In, Rng&>)
      return function(std::move(in), rng);
    else
      return function(std::move(in));
  };
  using Out = std::invoke_result_t<decltype(apply), In, Rng&>;
  return {std::move(name), MessageType::of<In>(), MessageType::of<Out>(),
          Map([apply](Message in, Rng& rng) { return Message::of(apply(in.take<In>(), rng)); })};
}

/// A stage that collects `size` messages of one key each; `key` gives 0 .. groups-1.
template <class T, class Key>
Stage group_stage(std::string name, Key key, std::size_t groups, std::size_t size) {
  Group group;
  group.key = [key = std::move(key)](const Message& m) -> std::size_t { return key(m.peek<T>()); };
  group.join = [](std::vector<Message> members) {
    std::vector<T> joined;
    joined.reserve(members.size());
    for (auto& member : members) joined.push_back(member.take<T>());
    return Message::of(std::move(joined));
  };
  group.groups = groups;
  group.size = size;
  return {std::move(name), MessageType::of<T>(), MessageType::of<std::vector<T>>(),
          std::move(group)};
}

/// The name under which a function object appears in reports: its `kName`, or its type's.
template <class F>
std::string stage_name() {
  if constexpr (requires { F::kName; })
    return std::string(F::kName);
  else
    return readable(typeid(F));
}

}  // namespace millrace
