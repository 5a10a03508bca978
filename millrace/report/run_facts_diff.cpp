#include "millrace/report/run_facts_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "millrace/base/text.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

constexpr auto kNotRecorded = "not recorded";

/// Values of several starts or ranks, each once.
using Values = std::set<std::string>;

std::string values_text(const Values& values) {
  if (values.empty()) return kNotRecorded;
  return joined(std::vector<std::string>(values.begin(), values.end()));
}

std::string fact_text(const ordered_json& value) {
  if (value.is_array() &&
      std::ranges::all_of(value, [](const auto& one) { return one.is_string(); }))
    return joined(value.get<std::vector<std::string>>(), " ");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Calls `take` with every start.
template <class Take>
void each_start(const RunFiles& run, const Take& take) {
  if (!run.record.is_object() || !run.record.contains("starts")) return;
  for (const auto& start : run.record["starts"])
    if (start.is_object()) take(start);
}

/// The value at a path of members; null: there is none.
ordered_json at(const ordered_json& object, std::initializer_list<const char*> path) {
  const auto* now = &object;
  for (const auto* key : path) {
    if (!now->is_object() || !now->contains(key)) return {};
    now = &(*now)[key];
  }
  return *now;
}

Values of_starts(const RunFiles& run, std::initializer_list<const char*> path) {
  Values values;
  each_start(run, [&](const ordered_json& start) {
    if (const auto value = at(start, path); !value.is_null()) values.insert(fact_text(value));
  });
  return values;
}

/// The same of a member of all ranks.
Values of_ranks(const RunFiles& run, const char* key) {
  Values values;
  each_start(run, [&](const ordered_json& start) {
    const auto ranks = at(start, {"ranks"});
    for (const auto& rank : ranks)
      if (const auto value = at(rank, {key}); !value.is_null()) values.insert(fact_text(value));
  });
  return values;
}

Values rank_counts(const RunFiles& run) {
  Values values;
  each_start(run, [&](const ordered_json& start) {
    if (const auto ranks = at(start, {"ranks"}); ranks.is_array())
      values.insert(std::to_string(ranks.size()));
  });
  return values;
}

/// "cuda" of "cuda:0".
Values device_kinds(const RunFiles& run) {
  Values kinds;
  for (const auto& device : of_ranks(run, "device"))
    kinds.insert(device.substr(0, device.find(':')));
  return kinds;
}

/// "118287 samples (digest 0123...), annotations 4567..." of a split.
Values data_of(const RunFiles& run, const char* split) {
  Values values;
  each_start(run, [&](const ordered_json& start) {
    const auto data = at(start, {"data", split});
    if (data.is_null()) return;
    auto text = fmt::format("{} samples, digest {}", fact_text(at(data, {"samples"})),
                            fact_text(at(data, {"digest"})));
    const auto annotations = at(data, {"annotations"});
    if (const auto sum = at(annotations, {"digest"}); sum.is_string())
      text += ", annotations " + fact_text(sum);
    else if (!annotations.is_null())
      text += fmt::format(", annotations of {} bytes", fact_text(at(annotations, {"bytes"})));
    values.insert(std::move(text));
  });
  return values;
}

/// Whether the record has digests, so that names of files need not be compared.
bool knows_weights(const RunFiles& run) {
  bool all = true, any = false;
  each_start(run, [&](const ordered_json& start) {
    any = true;
    all = all && start.contains("weights");
  });
  return any && all;
}

bool is_positive(const RunFiles& run, std::string_view key) {
  const auto* value = run.config.is_table() ? run.config.find_path(key) : nullptr;
  const auto* number = value ? std::get_if<std::int64_t>(&value->data) : nullptr;
  return number && *number > 0;
}

/// Variables that choose kernels or their order.
bool decides_maths(std::string_view variable) {
  constexpr std::string_view kPrefixes[] = {"ONEDNN_", "DNNL_",   "MKL_",    "OPENBLAS_", "ATEN_",
                                            "TORCH_",  "NVIDIA_", "CUBLAS_", "NCCL_"};
  return std::ranges::any_of(kPrefixes, [&](auto one) { return variable.starts_with(one); });
}

class Comparison {
 public:
  Comparison(const RunFiles& a, const RunFiles& b) : a_(a), b_(b) {}

  void add(const std::string& what, bool decides, const std::string& a, const std::string& b) {
    if (a != b) (decides ? diff_.deciding : diff_.others).push_back({what, a, b});
  }

  /// Of what a function finds in each run.
  template <class Find, class... More>
  void each(const std::string& what, bool decides, const Find& find, const More&... more) {
    add(what, decides, values_text(find(a_, more...)), values_text(find(b_, more...)));
  }

  void starts(const std::string& what, bool decides, std::initializer_list<const char*> path) {
    add(what, decides, values_text(of_starts(a_, path)), values_text(of_starts(b_, path)));
  }

  /// Members of an object that every start has.
  void members(const char* object, const std::function<bool(const std::string&)>& decides) {
    std::set<std::string> names;
    for (const auto* run : {&a_, &b_})
      each_start(*run, [&](const ordered_json& start) {
        const auto found = at(start, {object});
        for (const auto& [name, value] : found.items()) names.insert(name);
      });
    const auto text = [&](const RunFiles& run, const std::string& name) {
      const auto values = of_starts(run, {object, name.c_str()});
      return values.empty() ? "nothing" : values_text(values);
    };
    for (const auto& name : names) add(name, decides(name), text(a_, name), text(b_, name));
  }

  void configuration(const DecidesResults& decides) {
    std::map<std::string, std::pair<std::string, std::string>> values;
    if (a_.config.is_table())
      for (const auto& [key, value] : leaves(a_.config)) values[key].first = value_text(*value);
    if (b_.config.is_table())
      for (const auto& [key, value] : leaves(b_.config)) values[key].second = value_text(*value);
    // Compared by what they name, where the records have its digest.
    const bool knows_data = !data_of(a_, "train").empty() && !data_of(b_, "train").empty();
    const std::set<std::string> data_keys = {"data.root", "data.train", "data.classes"};
    const bool same_weights_known = knows_weights(a_) && knows_weights(b_);
    const auto text = [](const std::string& value) { return value.empty() ? "nothing" : value; };
    for (const auto& [key, value] : values) {
      if (value.first == value.second) continue;
      bool does = decides(key, value.second.empty() ? a_.config : b_.config);
      if (data_keys.contains(key)) does = !knows_data;
      if (key == "model.weights") does = !same_weights_known;
      add(key, does, text(value.first), text(value.second));
    }
  }

  FactsDiff take() { return std::move(diff_); }

 private:
  const RunFiles &a_, &b_;
  FactsDiff diff_;
};

}  // namespace

FactsDiff facts_diff(const RunFiles& a, const RunFiles& b, const DecidesResults& decides) {
  Comparison all(a, b);
  all.configuration(decides);
  all.each("data of training", true, data_of, "train");
  all.each("data of validation", true, data_of, "val");
  all.starts("bytes of model.weights", true, {"weights", "digest"});
  all.starts("program", true, {"program"});
  all.members("versions", [](const std::string& name) {
    return name != "mpi" && name != "system" && name != "onetbb";
  });
  // With train.micro_batch any number of ranks computes the same.
  const bool any_ranks = is_positive(a, "train.micro_batch") && is_positive(b, "train.micro_batch");
  all.each("ranks", !any_ranks, rank_counts);
  all.each("devices", true, device_kinds);
  all.each("processors", true, of_ranks, "processor");
  all.each("instructions", true, of_ranks, "instructions");
  all.each("threads of maths", true, of_ranks, "maths_threads");
  all.members("environment", decides_maths);
  all.each("hosts", false, of_ranks, "host");
  all.each("memory of hosts (MiB)", false, of_ranks, "memory_mib");
  all.starts("directory", false, {"directory"});
  all.starts("command", false, {"command"});
  all.add("configuration file", false, text_of(a.record, "config_file"),
          text_of(b.record, "config_file"));
  all.starts("revision of the configuration", false, {"repository", "revision"});
  return all.take();
}

}  // namespace millrace::report
