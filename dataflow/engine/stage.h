// A stage of a flow: a named pure function of untyped messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/dataflow/engine/message.h"

namespace millrace {

/// The input of a flow: the number of a sample, 0 .. size-1.
struct Index {
  std::int64_t value = 0;
};

/// The type of a message, and its name.
struct MessageType {
  std::type_index type;
  std::string name;  // "sample"
  std::size_t (*bytes)(const Message&) = nullptr;

  template <class T>
  static MessageType of() {
    return {typeid(T), MessageName<T>::get(),
            [](const Message& message) { return MessageBytes<T>::get(message.peek<T>()); }};
  }
  std::string text() const;  // "a sample"
  friend bool operator==(const MessageType& a, const MessageType& b) { return a.type == b.type; }
};

/// A function In -> Out, thread-safe; an empty result rejects the sample. The Rng depends only on
/// (seed, epoch, index, stage).
struct Map {
  std::function<Message(Message, Rng&)> function;
  bool random = false;   // draws from the Rng
  bool filters = false;  // returns its input unchanged, or empty
};

/// The group that a message belongs to.
struct GroupPlace {
  std::int64_t number = 0;  // from 0 at the start of training, also in a resumed flow
  std::int64_t rank = 0, ranks = 1;
};

/// Receives each message, which passes on unchanged. Thread-safe.
struct Watch {
  std::function<void(const Message&, const GroupPlace&)> see;
};

/// A map that takes further samples with each message. `partners` returns their number; the engine
/// makes them with the stages before, each drawn at random from the whole source.
struct Mix {
  std::function<std::size_t(const Message&, Rng&)> partners;
  std::function<Message(Message, std::vector<Message>, Rng&)> function;
  // Last stage that partners pass; if empty or not before this stage, partners pass all stages
  // before.
  std::string made_by = {};
};

/// Stores the results of the stages before it by sample, so that they need not run again.
/// Thread-safe.
struct Cache {
  std::function<Message(std::int64_t sample)> find;  // returns a copy; empty = not found
  std::function<void(std::int64_t sample, const Message&)> keep;
};

/// Collects messages of samples with the same key into vectors of `size`. The key is computed from
/// About, so that groups are known before any sample is read.
struct Group {
  std::function<std::size_t(const Message& about)> key;  // 0 .. groups-1; unused for one group
  std::optional<MessageType> of;                         // type that the key takes
  std::function<Message(std::vector<Message>)> join;
  std::size_t groups = 1;
  std::size_t size = 1;
};

struct Stage {
  std::string name;  // for reports and messages
  MessageType takes, yields;
  std::variant<Map, Watch, Mix, Cache, Group> work;
  std::string plugin = {};  // plug-in that provides it; empty = built in
  std::string where = {};   // position of its table, "a.toml:12:1"; empty = none
  std::string after = {};   // stage that makes its input; empty = the source
  std::int64_t until = 0;   // passes its input on from this epoch; 0 = never

  /// Returns "a.toml:12:1: ", the prefix of messages about it.
  std::string place() const { return where.empty() ? "" : where + ": "; }
  bool is_group() const { return std::holds_alternative<Group>(work); }
  bool is_cache() const { return std::holds_alternative<Cache>(work); }
  /// Returns true if the flow yields the same bytes without this stage.
  bool changes_nothing() const { return is_cache() || std::holds_alternative<Watch>(work); }
};

/// Returns true if a function object draws from its Rng argument. A function object without
/// `draws()` is assumed to.
template <class F, class In>
bool draws_at_random(const F& function) {
  if constexpr (!std::is_invocable_v<const F&, In, Rng&>)
    return false;
  else if constexpr (requires { function.draws(); })
    return function.draws();
  else
    return true;
}

/// Makes a stage from a function of (In, Rng&) or (In).
template <class In, class F>
Stage map_stage(std::string name, F function) {
  const bool random = draws_at_random<F, In>(function);
  const auto apply = [function = std::move(function)](In in, Rng& rng) {
    if constexpr (std::is_invocable_v<const F&, In, Rng&>)
      return function(std::move(in), rng);
    else
      return function(std::move(in));
  };
  using Out = std::invoke_result_t<decltype(apply), In, Rng&>;
  return {std::move(name), MessageType::of<In>(), MessageType::of<Out>(),
          Map{[apply](Message in, Rng& rng) { return Message::of(apply(in.take<In>(), rng)); },
              random}};
}

/// Makes a stage that passes on the messages for which `wanted(const T&)` is true.
template <class T, class F>
Stage filter_stage(std::string name, F wanted) {
  return {std::move(name), MessageType::of<T>(), MessageType::of<T>(),
          Map{[wanted = std::move(wanted)](Message in, Rng&) {
                return wanted(in.peek<T>()) ? std::move(in) : Message();
              },
              /*random=*/false, /*filters=*/true}};
}

/// Makes a stage that calls `see(const T&)` or `see(const T&, const GroupPlace&)` and passes every
/// message on.
template <class T, class F>
Stage watch_stage(std::string name, F see) {
  return {std::move(name), MessageType::of<T>(), MessageType::of<T>(),
          Watch{[see = std::move(see)](const Message& in, const GroupPlace& place) {
            if constexpr (std::is_invocable_v<const F&, const T&, const GroupPlace&>)
              see(in.peek<T>(), place);
            else
              see(in.peek<T>());
          }}};
}

/// Makes a Mix stage. `partners(const T&, Rng&)` returns the number of partners; `work(T,
/// std::vector<T>, Rng&)` returns a T.
template <class T, class Partners, class F>
Stage mix_stage(std::string name, Partners partners, F work) {
  Mix mix;
  mix.partners = [partners = std::move(partners)](const Message& message, Rng& rng) {
    return static_cast<std::size_t>(partners(message.peek<T>(), rng));
  };
  mix.function = [work = std::move(work)](Message message, std::vector<Message> others, Rng& rng) {
    std::vector<T> values;
    values.reserve(others.size());
    for (auto& other : others) values.push_back(other.take<T>());
    return Message::of(T(work(message.take<T>(), std::move(values), rng)));
  };
  return {std::move(name), MessageType::of<T>(), MessageType::of<T>(), std::move(mix)};
}

/// Makes a Cache stage. `store` has std::optional<T> find(std::int64_t) and keep(std::int64_t,
/// const T&).
template <class T, class Store>
Stage cache_stage(std::string name, std::shared_ptr<Store> store) {
  Cache cache;
  cache.find = [store](std::int64_t sample) {
    std::optional<T> found = store->find(sample);
    return found ? Message::of(std::move(*found)) : Message();
  };
  cache.keep = [store](std::int64_t sample, const Message& message) {
    store->keep(sample, message.peek<T>());
  };
  return {std::move(name), MessageType::of<T>(), MessageType::of<T>(), std::move(cache)};
}

/// Makes a stage that collects groups of `size` messages.
template <class T>
Stage group_stage(std::string name, std::size_t size) {
  Group group;
  group.join = [](std::vector<Message> members) {
    std::vector<T> joined;
    joined.reserve(members.size());
    for (auto& member : members) joined.push_back(member.take<T>());
    return Message::of(std::move(joined));
  };
  group.size = size;
  return {std::move(name), MessageType::of<T>(), MessageType::of<std::vector<T>>(),
          std::move(group)};
}

/// Makes a stage that groups by key: `key(const Element&)` takes an element of the source and
/// returns 0 .. groups-1.
template <class T, class Element, class Key>
Stage group_stage(std::string name, Key key, std::size_t groups, std::size_t size) {
  auto stage = group_stage<T>(std::move(name), size);
  auto& group = std::get<Group>(stage.work);
  group.key = [key = std::move(key)](const Message& about) -> std::size_t {
    return key(about.peek<Element>());
  };
  group.of = MessageType::of<Element>();
  group.groups = groups;
  return stage;
}

/// Returns the name of a function object for reports: its `kName`, or its type's name.
template <class F>
std::string stage_name() {
  if constexpr (requires { F::kName; })
    return std::string(F::kName);
  else
    return readable(typeid(F));
}

}  // namespace millrace
