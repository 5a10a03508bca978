#include "python/src/flow/flow.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/dataflow/data_recipe.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/serving/facts.h"
#include "python/src/flow/bindings.h"
#include "python/src/flow/stage.h"
#include "python/src/flow/stream.h"
#include "python/src/flow/values.h"

namespace millrace::python {
namespace {

/// A flow in this process: its opened data and its options.
class LocalFlow final : public Stream {
 public:
  /// Reads and checks `file` (empty = none) and `options`, a dict of [data] keys, and opens the
  /// data. Throws Python exceptions.
  LocalFlow(const std::string& file, const nb::dict& options, std::optional<std::int64_t> seed,
            bool training, std::int64_t rank, std::int64_t ranks, const nb::list& functions)
      : Stream(functions), training_(training), share_{rank, ranks} {
    try {
      check_process();
      check_share(share_);
      const auto given = given_options(options, "Flow");
      if (seed) seed_given_ = checked_seed(*seed, "Flow(seed=...)");
      without_gil([&] { open(file, given); });
    } catch (...) {
      raise_in_python();
    }
  }
  ~LocalFlow() override { close(); }  // before the members that the flow uses are destroyed

  serving::Facts facts() override {
    return without_gil([&] {
      check_process();
      const std::lock_guard lock(mutex_);
      if (facts_.empty())
        facts_ = training_ ? serving::batch_facts(recipe_.data, recipe_.stages, train_)
                           : serving::eval_facts(recipe_.data, *split_);
      return facts_;
    });
  }
  std::optional<std::int64_t> samples() override { return samples_; }

  std::uint64_t seed() const { return seed_; }
  const std::vector<std::string>& classes() const {
    return training_ ? train_.classes : split_->classes;
  }
  std::vector<std::int64_t> category_ids() const {
    return split_ ? split_->category_ids : std::vector<std::int64_t>();
  }
  std::string config() const { return to_toml(tree_); }

 private:
  void open(const std::string& file, const Config& given) {
    const auto tree = load_over(file, given);
    seed_ = seed_given_ ? *seed_given_ : seed_of(tree);
    recipe_ = resolve_data(tree, tree_);
    allow_threads(recipe_.data.threads);
    if (training_) {
      train_ = open_train_data(recipe_.data, recipe_.sources);
      if (train_.source)
        samples_ = Order(train_.source->size(), train_.source->repeats(), 0, {}).size();
    } else {
      split_ = open_split(recipe_.data, recipe_.data.val);
      samples_ = std::ssize(split_->annotations->images);
    }
  }

  std::unique_ptr<DataFlow<Batch>> start(const Cursor& cursor) override {
    const ScopedFunctions scoped(functions_);
    if (training_)
      return start_train_flow(recipe_.data, recipe_.stages, train_, seed_, share_, cursor);
    return start_eval_flow(recipe_.data, *split_, share_, cursor);
  }

  const bool training_;
  const Share share_;
  std::optional<std::uint64_t> seed_given_;
  std::uint64_t seed_ = 1;
  Config tree_;  // the complete [data]
  DataRecipe recipe_;
  TrainData train_;
  std::optional<DataSplit> split_;  // for an evaluation only
  std::optional<std::int64_t> samples_;
  serving::Facts facts_;
};

}  // namespace

void allow_threads(std::int64_t threads) {
  note_process();
  using oneapi::tbb::global_control;
  static std::mutex mutex;
  static std::optional<global_control> control;
  static std::size_t allowed = 0;
  // Only increases the limit, since other flows may be running.
  const std::lock_guard lock(mutex);
  const auto wanted =
      std::max<std::size_t>(static_cast<std::size_t>(threads),
                            static_cast<std::size_t>(oneapi::tbb::info::default_concurrency()));
  if (wanted < allowed) return;
  control.emplace(global_control::max_allowed_parallelism, wanted + 1);
  allowed = wanted + 1;
}

Config given_options(const nb::dict& options, const std::string& who) {
  Config given(Config::Table{}, {who});
  for (const auto item : options) {
    const auto key = nb::cast<std::string>(item.first);
    given.set(key, to_config(item.second, fmt::format("{}({}=...)", who, key)));
  }
  return given;
}

Config load_over(const std::string& file, const Config& given) {
  auto tree = file.empty() ? Config(Config::Table{}, given.origin) : load_config(file);
  Config over(Config::Table{}, given.origin);
  over.set("data", given);
  merge(tree, over);
  return tree;
}

void check_share(Share share) {
  if (share.ranks < 1 || share.rank < 0 || share.rank >= share.ranks)
    throw ConfigError(fmt::format("invalid rank {} of {} ranks", share.rank, share.ranks));
}

std::uint64_t checked_seed(std::int64_t seed, const std::string& place) {
  Config tree;
  tree.set_path("train.seed", {seed, {place}});
  return seed_of(tree);
}

void add_flow(nb::module_& module) {
  nb::class_<LocalFlow, Stream>(module, "Flow")
      .def(nb::init<const std::string&, const nb::dict&, std::optional<std::int64_t>, bool,
                    std::int64_t, std::int64_t, const nb::list&>(),
           nb::arg("file"), nb::arg("options"), nb::arg("seed").none(), nb::arg("training"),
           nb::arg("rank"), nb::arg("world_size"), nb::arg("functions"))
      .def("config", &LocalFlow::config)
      .def_prop_ro("seed", &LocalFlow::seed)
      .def_prop_ro("classes", &LocalFlow::classes)
      .def_prop_ro("category_ids", &LocalFlow::category_ids);
}

}  // namespace millrace::python
