// The registry of stages that a detection pipeline may be made of: `[[data.stages]]`, `use = "flip"`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/pipeline.h"
#include "millrace/engine/source.h"

namespace millrace {

template <>
struct MessageName<Sample> {
  static std::string get() { return "sample"; }
};
template <>
struct MessageName<Batch> {
  static std::string get() { return "batch"; }
};

template <>
struct MessageBytes<Sample> {
  static std::size_t get(const Sample& sample) { return sample.image.bytes(); }
};
template <>
struct MessageBytes<Batch> {
  static std::size_t get(const Batch& batch) { return batch.bytes(); }
};

/// What a stage may know beside its own table.
struct DetectionContext {
  SourcePtr<Sample> source;
  DataOptions data;
  std::vector<std::string> classes;       // names; class k is the k-th
  std::span<const Config> in_front = {};  // the tables of the stages before it
  bool only_checked =
      false;  // the configuration is looked at and no flow starts: make no file; `source` is empty
};

/// What any table of [[data.stages]] may say besides its stage's own options.
struct StageKeys {
  std::string use;
  void describe(Options& o) { o.add("use", use, "the stage"); }
};

/// Their defaults may be those of `[data]`.
using DetectionStages = Registry<StageFactory<DetectionContext>, DataOptions>;
DetectionStages& detection_stages();

/// Completes the tables of `[[data.stages]]` with their defaults (without those that follow a key of `[data]`) and checks
/// all that does not take the data: names and options, that each stage takes what the one before yields, that a batch of
/// data.batch_size comes out, and that no key of `[data]` is set that no stage uses. Throws ConfigError naming file and
/// line. `data_table` is `[data]` as it was written.
void settle_stages(const DataOptions& data, const Config& data_table, std::vector<Config>& tables);

/// Registers the function object `S` under its `kName`; `make_stage` makes a stage of a name and an S. Where S works on
/// what another stage makes, `static constexpr std::string_view kAfter = "decode"` says so: a list of stages in another
/// order is then refused before anything runs.
template <class S, class F>
bool register_as(std::string doc, F make_stage) {
  return detection_stages().add<S>(
      std::string(S::kName), std::move(doc),
      [make_stage](const Config& table, const DetectionContext& context) {
        auto stage = make_stage(std::string(S::kName), configured<S>(table, context.data));
        if constexpr (requires { S::kAfter; }) stage.after = S::kAfter;
        return stage;
      });
}

/// Registers the function object `S` (In -> Out) under its `kName`.
template <class In, class S>
bool register_map(std::string doc) {
  return register_as<S>(std::move(doc), map_stage<In, S>);
}

/// Registers one that mixes samples: `partners(const Sample&, Rng&)` further ones go with each into
/// operator()(Sample, std::vector<Sample>, Rng&).
template <class S>
bool register_mix(std::string doc) {
  return register_as<S>(std::move(doc), [](std::string name, S stage) {
    const auto partners = [stage](const Sample& sample, Rng& rng) {
      return stage.partners(sample, rng);
    };
    return mix_stage<Sample>(std::move(name), partners, std::move(stage));
  });
}

}  // namespace millrace
