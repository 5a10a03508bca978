#include "trainer/checkpoint_state.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/digest.h"
#include "base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kState = "state.json";
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

/// What JSON's library says, without its own number for it.
std::string sentence(const json::exception& problem) {
  const std::string_view what = problem.what();
  const auto tag = what.find("] ");
  return std::string(what.substr(tag == what.npos ? 0 : tag + 2));
}

/// Does `work` with the members of a state.
template <class Work>
auto in_words(Work work) {
  try {
    return work();
  } catch (const json::exception& problem) {
    throw Error(fmt::format("{}: {}", kState, sentence(problem)));
  }
}

/// The state of the checkpoint that a file lies in.
std::optional<SealedState> state_around(const fs::path& file) {
  std::error_code problem;
  if (!fs::exists(file.parent_path() / kState, problem)) return std::nullopt;
  SealedState state(file.parent_path());
  if (!state.has(file.filename().string())) return std::nullopt;
  return state;
}

}  // namespace

std::string digest_text(const std::string& bytes) {
  return hex(digest(bytes.data(), bytes.size()));
}

void write_state(const fs::path& folder, const Checkpoint& checkpoint,
                 const std::map<std::string, std::string>& digests) {
  const auto state = state_of(checkpoint, digests);
  const json sealed = {{"digest", digest_text(state.dump())}, {"state", state}};
  write_file_atomically(folder / kState, sealed.dump(1) + "\n");
}

SealedState::SealedState(fs::path folder) : folder_(std::move(folder)) {
  auto sealed = json::parse(read_file(folder_ / kState), nullptr, /*allow_exceptions=*/false);
  if (!sealed.is_object() || !sealed.contains("state") || !sealed.contains("digest"))
    throw Error(fmt::format("{} is not what was written: it is cut off, or overwritten", kState));
  state_ = std::move(sealed.at("state"));
  if (sealed.at("digest") != digest_text(state_.dump()))
    throw Error(fmt::format("the bytes of {} have changed", kState));
}

void SealedState::read_into(Checkpoint& checkpoint) const {
  in_words([&] {
    auto& at = checkpoint.at;
    const auto format = state_.at("format").get<std::int64_t>();
    if (format > kFormat)
      throw NewerCheckpoint(
          fmt::format("was written by a newer version (format {}; this one reads {}): resume with "
                      "that version, "
                      "or move this checkpoint away to go on from the one before",
                      format, kFormat));
    state_.at("step").get_to(at.step);
    state_.at("progress").get_to(at.progress);
    state_.at("images").get_to(at.images);
    state_.at("bad_steps").get_to(at.bad_steps);
    at.overflow_steps = state_.value("overflow_steps", at.overflow_steps);  // not in older ones
    state_.at("bad_in_a_row").get_to(at.bad_in_a_row);
    if (const auto scale = state_.find("loss_scale"); scale != state_.end()) {  // not in older ones
      scale->at("factor").get_to(at.loss_scale.factor);
      scale->at("good_steps").get_to(at.loss_scale.good_steps);
    }
    state_.at("seed").get_to(checkpoint.seed);
    checkpoint.epoch_size = state_.value("epoch_size", std::int64_t{0});
    checkpoint.classes = state_.value("classes", std::vector<std::string>());
    state_.at("cursor").at("next").get_to(at.cursor.next);
    state_.at("cursor").at("pending").get_to(at.cursor.pending);
    if (const auto hyper = state_.find("hyper"); hyper != state_.end())
      hyper->get_to(checkpoint.hyper);
    if (const auto latest = state_.find("latest"); latest != state_.end())
      for (const auto& [name, value] : latest->items())
        checkpoint.latest[name] =
            value.is_null() ? std::nan("") : value.get<double>();  // JSON has no NaN
    state_.at("callbacks").get_to(checkpoint.callbacks);
    if (const auto names = state_.find("callback_tensors"); names != state_.end())
      for (const auto& name : *names) checkpoint.callback_tensors[name.get<std::string>()];
  });
}

bool SealedState::has(const std::string& name) const {
  return in_words([&] { return state_.at("files").contains(name); });
}

void SealedState::check(const std::string& name) const {
  const auto bytes = map_file(folder_ / name);
  const auto wanted = in_words([&] { return state_.at("files").at(name).get<std::string>(); });
  if (wanted != hex(digest(bytes.data.get(), bytes.size)))
    throw Error(fmt::format("the bytes of {} have changed", name));
}

std::vector<std::string> SealedState::classes() const {
  return in_words([&] { return state_.value("classes", std::vector<std::string>()); });
}

void check_file_of_checkpoint(const fs::path& file) {
  in_checkpoint(file.parent_path(), [&] {
    if (const auto state = state_around(file)) state->check(file.filename().string());
  });
}

std::optional<CheckpointOrigin> origin_of(const fs::path& file) {
  const auto folder = file.parent_path();
  return in_checkpoint(folder, [&]() -> std::optional<CheckpointOrigin> {
    const auto state = state_around(file);
    if (!state) return std::nullopt;
    state->check(kCheckpointConfig);
    return CheckpointOrigin{read_file(folder / kCheckpointConfig), state->classes()};
  });
}

}  // namespace millrace
