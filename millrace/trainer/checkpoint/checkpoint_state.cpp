#include "millrace/trainer/checkpoint/checkpoint_state.h"

#include <ATen/core/Tensor.h>

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

json state_of(const Checkpoint& checkpoint, const std::map<std::string, std::string>& files) {
  const auto& at = checkpoint.at;
  json callback_tensors = json::array();
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    callback_tensors.push_back(callback);
  return {
      {"format", kFormat},
      {"step", at.step},
      {"progress", at.progress},
      {"images", at.images},
      {"bad_steps", at.bad_steps},
      {"overflow_steps", at.overflow_steps},
      {"bad_in_a_row", at.bad_in_a_row},
      {"loss_scale", {{"factor", at.loss_scale.factor}, {"good_steps", at.loss_scale.good_steps}}},
      {"seed", checkpoint.seed},
      {"epoch_size", checkpoint.epoch_size},
      {"classes", checkpoint.classes},
      {"cursor", {{"next", at.cursor.next}, {"pending", at.cursor.pending}}},
      {"hyper", checkpoint.hyper},
      {"latest", checkpoint.latest},
      {"callbacks", checkpoint.callbacks},
      {"callback_tensors", callback_tensors},
      {"files", files}};
}

}  // namespace

void write_state(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                 const std::map<std::string, std::string>& digests) {
  write_sealed_state(folder, state_of(checkpoint, digests));
}

void read_state(const SealedState& sealed, Checkpoint& checkpoint) {
  sealed.read([&](const json& state) {
    auto& at = checkpoint.at;
    const auto format = state.at("format").get<std::int64_t>();
    if (format > kFormat)
      throw NewerCheckpoint(
          fmt::format("was written by a newer version (format {}; this one reads {}): resume with "
                      "that version, "
                      "or move this checkpoint away to go on from the one before",
                      format, kFormat));
    state.at("step").get_to(at.step);
    state.at("progress").get_to(at.progress);
    state.at("images").get_to(at.images);
    state.at("bad_steps").get_to(at.bad_steps);
    at.overflow_steps = state.value("overflow_steps", at.overflow_steps);  // not in older ones
    state.at("bad_in_a_row").get_to(at.bad_in_a_row);
    if (const auto scale = state.find("loss_scale"); scale != state.end()) {  // not in older ones
      scale->at("factor").get_to(at.loss_scale.factor);
      scale->at("good_steps").get_to(at.loss_scale.good_steps);
    }
    state.at("seed").get_to(checkpoint.seed);
    checkpoint.epoch_size = state.value("epoch_size", std::int64_t{0});
    checkpoint.classes = state.value("classes", std::vector<std::string>());
    state.at("cursor").at("next").get_to(at.cursor.next);
    state.at("cursor").at("pending").get_to(at.cursor.pending);
    if (const auto hyper = state.find("hyper"); hyper != state.end())
      hyper->get_to(checkpoint.hyper);
    if (const auto latest = state.find("latest"); latest != state.end())
      for (const auto& [name, value] : latest->items())
        checkpoint.latest[name] =
            value.is_null() ? std::nan("") : value.get<double>();  // JSON has no NaN
    state.at("callbacks").get_to(checkpoint.callbacks);
    if (const auto names = state.find("callback_tensors"); names != state.end())
      for (const auto& name : *names) checkpoint.callback_tensors[name.get<std::string>()];
  });
}

}  // namespace millrace
