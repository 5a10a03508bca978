// Declares flows: in C++, typed stage by stage, or by name as a list of tables.
//
//   auto flow = from(paths)                                  // anything with size() and operator[]
//                   .map(Decode{})
//                   .group_by(is_wide, /*groups=*/2, /*size=*/4)  // by the elements of the source
//                   .map(Pad{})
//                   .start({.seed = 1, .shuffle = {true}, .epochs = 0});
//   while (auto batch = flow->next()) train(batch->value);
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "millrace/base/registry.h"
#include "millrace/dataflow/engine/plan.h"

namespace millrace {

/// Converts an item to one with a message of type `T`.
template <class T>
std::optional<Delivery<T>> typed(std::optional<Delivery<Message>> item) {
  if (!item) return std::nullopt;
  return Delivery<T>{item->value.take<T>(), std::move(item->cursor), item->epoch, item->progress,
                     item->number};
}

/// A flow with messages of type `T`.
template <class T>
class TypedFlow final : public DataFlow<T> {
 public:
  explicit TypedFlow(std::unique_ptr<DataFlow<Message>> flow) : flow_(std::move(flow)) {}

  std::optional<Delivery<T>> next() override { return typed<T>(flow_->next()); }
  bool is_ready(std::chrono::milliseconds most) override { return flow_->is_ready(most); }
  std::int64_t epoch_size() const override { return flow_->epoch_size(); }
  FlowReport report() const override { return flow_->report(); }

 private:
  std::unique_ptr<DataFlow<Message>> flow_;
};

/// A numbered flow with messages of type `T`.
template <class T>
class TypedNumberedFlow final : public NumberedFlow<T> {
 public:
  explicit TypedNumberedFlow(std::unique_ptr<NumberedFlow<Message>> flow)
      : flow_(std::move(flow)) {}

  void ask(std::int64_t number) override { flow_->ask(number); }
  std::optional<Made<T>> take() override {
    auto made = flow_->take();
    if (!made) return std::nullopt;
    return Made<T>{made->number, typed<T>(std::move(made->item)), std::move(made->failure),
                   std::move(made->skipped)};
  }
  std::int64_t epoch_size() const override { return flow_->epoch_size(); }
  FlowReport report() const override { return flow_->report(); }

 private:
  std::unique_ptr<NumberedFlow<Message>> flow_;
};

/// Starts a plan that ends in messages of type `T`. Throws ConfigError if it does not.
template <class T>
std::unique_ptr<DataFlow<T>> start_flow(Plan plan, const FlowOptions& options) {
  return std::make_unique<TypedFlow<T>>(
      start_untyped(std::move(plan), MessageType::of<T>(), options));
}

/// Starts such a plan as a flow of items by number.
template <class T>
std::unique_ptr<NumberedFlow<T>> start_numbered_flow(Plan plan, const FlowOptions& options,
                                                     WakeUp wake) {
  return std::make_unique<TypedNumberedFlow<T>>(
      start_untyped_numbered(std::move(plan), MessageType::of<T>(), options, std::move(wake)));
}

/// A pipeline over a source of `Element`s that currently yields messages of type `T`. Each step
/// consumes it and returns the next pipeline.
template <class T, class Element = T>
class Pipeline {
 public:
  explicit Pipeline(Plan plan) : plan_(std::move(plan)) {}

  /// Applies a pure function of (T, Rng&) or (T) to each message, in parallel.
  template <class F>
  auto map(F function) && {
    auto name = stage_name<F>();
    return std::move(*this).template map<F>(std::move(name), std::move(function));
  }
  template <class F>
  auto map(std::string name, F function) && {
    using Out = typename Result<F>::type;
    plan_.stages.push_back(map_stage<T>(std::move(name), std::move(function)));
    return Pipeline<Out, Element>(std::move(plan_));
  }

  /// Passes on the messages for which `wanted(const T&)` is true.
  template <class F>
  Pipeline filter(F wanted) && {
    plan_.stages.push_back(filter_stage<T>("filter", std::move(wanted)));
    return std::move(*this);
  }

  /// Makes one T from each message and further messages drawn at random from the whole source.
  /// `partners(const T&, Rng&)` returns their number; `work(T, std::vector<T>, Rng&)` combines
  /// them.
  template <class Partners, class F>
  Pipeline mix(std::string name, Partners partners, F work) && {
    plan_.stages.push_back(mix_stage<T>(std::move(name), std::move(partners), std::move(work)));
    return std::move(*this);
  }

  /// Stores messages by sample, so that the stages so far run once per sample; see `cache_stage`.
  template <class Store>
  Pipeline cache(std::shared_ptr<Store> store) && {
    plan_.stages.push_back(cache_stage<T>("cache", std::move(store)));
    return std::move(*this);
  }

  /// Collects groups of `size` messages with the same key; `key(const Element&)` takes an element
  /// of the source and returns 0 .. groups-1.
  template <class Key>
  Pipeline<std::vector<T>, Element> group_by(Key key, std::size_t groups, std::size_t size) && {
    plan_.stages.push_back(
        group_stage<T, Element>(stage_name<Key>(), std::move(key), groups, size));
    return Pipeline<std::vector<T>, Element>(std::move(plan_));
  }
  Pipeline<std::vector<T>, Element> group(std::size_t size) && {
    plan_.stages.push_back(group_stage<T>("group", size));
    return Pipeline<std::vector<T>, Element>(std::move(plan_));
  }

  Plan plan() && { return std::move(plan_); }

  std::unique_ptr<DataFlow<T>> start(const FlowOptions& options) && {
    return start_flow<T>(std::move(plan_), options);
  }

 private:
  template <class F>
  struct Result : std::invoke_result<F, T> {};
  template <class F>
  requires std::invocable<F, T, Rng&>
  struct Result<F> : std::invoke_result<F, T, Rng&> {
  };

  Plan plan_;
};

/// Returns the stage that reads the elements of a source with size() and a thread-safe operator[].
template <class Source>
Stage source_stage(std::shared_ptr<const Source> source) {
  return map_stage<Index>("read", [source = std::move(source)](Index index) {
    return (*source)[static_cast<decltype(source->size())>(index.value)];
  });
}

/// Returns a plan with all that the source provides, without stages.
template <class Source>
Plan plan_of(const std::shared_ptr<const Source>& source) {
  using Element = std::decay_t<decltype((*source)[0])>;
  Plan plan{.size = static_cast<std::int64_t>(source->size())};
  const auto about = [source](std::int64_t sample) {
    if constexpr (requires { source->about(sample); })
      return Message::of<Element>(source->about(sample));
    else
      return Message::of<Element>((*source)[static_cast<decltype(source->size())>(sample)]);
  };
  plan.about = About{MessageType::of<Element>(), about};
  if constexpr (requires { (*source)[0].path; })
    plan.about->name = [about](std::int64_t sample) {
      return about(sample).template peek<Element>().path;
    };
  if constexpr (requires { expected_bytes((*source)[0]); })
    plan.about->bytes = [about](std::int64_t sample) {
      return expected_bytes(about(sample).template peek<Element>());
    };
  if constexpr (requires { source->expect(0); })
    plan.expect = [source](std::int64_t sample) { source->expect(sample); };
  if constexpr (requires { source->repeats(); }) plan.repeats = source->repeats();
  return plan;
}

/// Returns a pipeline that starts with the elements of `source`.
template <class Source>
auto from(std::shared_ptr<const Source> source) {
  using T = std::decay_t<decltype((*source)[0])>;
  auto plan = plan_of(source);
  plan.stages.push_back(source_stage(std::move(source)));
  return Pipeline<T>(std::move(plan));
}
template <class Source>
auto from(Source source) {
  return from(std::make_shared<const Source>(std::move(source)));
}

/// Makes a stage from its table; `Context` holds what the stages of one kind of flow share.
template <class Context>
using StageFactory = std::function<Stage(const Config& table, const Context& context)>;

/// The keys that every stage's table may have besides the stage's own options.
struct StageKeys {
  std::string type;
  std::int64_t until = 0;
  std::string after, before;  // see complete_stages

  void describe(Options& o) {
    o.add("type", type, "registered name of the stage");
    o.add("until", until, "epoch from which on the stage is skipped; 0 = never",
          {.min = 0, .unit = "epochs"});
    o.add("after", after,
          "type of the stage directly behind which this one is inserted into the inherited or "
          "default list");
    o.add("before", before,
          "type of the stage directly in front of which this one is inserted into the inherited or "
          "default list");
  }
};

/// Returns the stages of a list of tables, each with `type = "name"` and the options of that stage.
/// If a context has a member `in_front`, it receives the tables before each stage's own. Throws
/// ConfigError with file and line.
template <class Factory, class Context>
std::vector<Stage> build_stages(const Registry<Factory>& registry, std::span<const Config> tables,
                                Context context) {
  std::vector<Stage> stages;
  for (const auto& table : tables) {
    if constexpr (requires { context.in_front; }) context.in_front = tables.first(stages.size());
    const auto name = component_type(table, registry.kind());
    const auto& entry = registry.at(name, table.origin);
    stages.push_back(with_component_name(registry.title(entry), "its factory", [&] {
      return entry.create(without(table, {"until"}), context);
    }));
    stages.back().plugin = entry.plugin;
    stages.back().where = table.origin.text();
    stages.back().until = read_part<StageKeys>(table).until;
  }
  return stages;
}

}  // namespace millrace
