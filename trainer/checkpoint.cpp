#include "trainer/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kModel = "model.safetensors";
constexpr auto kOptimizer = "optimizer.safetensors";
constexpr auto kConfig = "config.toml";
constexpr auto kState = "state.json";

std::string digest_text(const std::string& bytes) {
  return hex(digest(bytes.data(), bytes.size()));
}

std::string tensor_file(const std::string& callback) {
  return "callback." + callback + ".safetensors";
}

/// The files of a checkpoint but for kState.
std::vector<std::string> payload(const Checkpoint& checkpoint) {
  std::vector<std::string> names = {kModel, kOptimizer, kConfig};
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    names.push_back(tensor_file(callback));
  return names;
}

json state_of(const Checkpoint& checkpoint, const fs::path& folder) {
  const auto& at = checkpoint.at;
  json files, callback_tensors = json::array();
  for (const auto& name : payload(checkpoint)) files[name] = digest_text(read_file(folder / name));
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    callback_tensors.push_back(callback);
  return {
      {"format", 1},
      {"step", at.step},
      {"progress", at.progress},
      {"images", at.images},
      {"bad_steps", at.bad_steps},
      {"overflow_steps", at.overflow_steps},
      {"bad_in_a_row", at.bad_in_a_row},
      {"loss_scale", {{"factor", at.loss_scale.factor}, {"good_steps", at.loss_scale.good_steps}}},
      {"seed", checkpoint.seed},
      {"cursor", {{"next", at.cursor.next}, {"pending", at.cursor.pending}}},
      {"hyper", checkpoint.hyper},
      {"latest", checkpoint.latest},
      {"callbacks", checkpoint.callbacks},
      {"callback_tensors", callback_tensors},
      {"files", files}};
}

void read_state(const json& state, Checkpoint& checkpoint) {
  auto& at = checkpoint.at;
  if (state.at("format") != 1) throw Error("its format is of another version");
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
  state.at("cursor").at("next").get_to(at.cursor.next);
  state.at("cursor").at("pending").get_to(at.cursor.pending);
  if (const auto hyper = state.find("hyper"); hyper != state.end()) hyper->get_to(checkpoint.hyper);
  if (const auto latest = state.find("latest"); latest != state.end())
    for (const auto& [name, value] : latest->items())
      checkpoint.latest[name] =
          value.is_null() ? std::nan("") : value.get<double>();  // JSON has no NaN
  state.at("callbacks").get_to(checkpoint.callbacks);
  if (const auto names = state.find("callback_tensors"); names != state.end())
    for (const auto& name : *names) checkpoint.callback_tensors[name.get<std::string>()];
}

/// What a killed process left half done.
void remove_parts(const fs::path& folder) {
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".part") parts.push_back(entry.path());
  for (const auto& part : parts) fs::remove_all(part);
}

void point_latest_at(const fs::path& checkpoint) {
  const auto latest = checkpoint.parent_path() / "latest",
             part = checkpoint.parent_path() / "latest.part";
  fs::create_symlink(checkpoint.filename(), part);
  fs::rename(part, latest);
}

}  // namespace

fs::path checkpoint_of(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("step-{:06}", step);
}

std::int64_t step_of(const fs::path& checkpoint) {
  const auto name = checkpoint.filename().string();
  if (!name.starts_with("step-") || name.size() == 5 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return -1;
  return std::stoll(name.substr(5));
}

fs::path write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) try {
  make_writable_folder(folder);
  remove_parts(folder);
  const auto whole = checkpoint_of(folder, checkpoint.at.step);
  const auto beside = [&](const char* ending) { return fs::path(whole.string() + ending); };
  const auto part = beside(".part");

  make_writable_folder(part);
  write_safetensors(part / kModel, checkpoint.model);
  write_safetensors(part / kOptimizer, checkpoint.optimizer);
  for (const auto& [callback, tensors] : checkpoint.callback_tensors)
    write_safetensors(part / tensor_file(callback), tensors);
  write_file_atomically(part / kConfig, checkpoint.config);
  const auto state = state_of(checkpoint, part);
  const json sealed = {{"digest", digest_text(state.dump())}, {"state", state}};
  write_file_atomically(part / kState, sealed.dump(1) + "\n");
  sync_path(part);

  if (fs::exists(whole)) fs::rename(whole, beside(".replaced.part"));
  fs::rename(part, whole);
  point_latest_at(whole);
  sync_path(folder);
  remove_parts(folder);
  return whole;
} catch (const fs::filesystem_error& problem) {
  throw Error(fmt::format("the checkpoint cannot be written: {}", problem.what()));
}

Checkpoint read_checkpoint(const fs::path& checkpoint) {
  Checkpoint result;
  try {
    const auto sealed = json::parse(read_file(checkpoint / kState));
    const auto& state = sealed.at("state");
    if (sealed.at("digest") != digest_text(state.dump())) throw Error("its bytes have changed");
    read_state(state, result);
    for (const auto& name : payload(result))
      if (state.at("files").at(name) != digest_text(read_file(checkpoint / name)))
        throw Error(fmt::format("the bytes of {} have changed", name));
  } catch (const std::exception& problem) {  // JSON's errors too
    throw Error(
        fmt::format("the checkpoint {} is damaged: {}", checkpoint.string(), problem.what()));
  }
  result.model = read_safetensors(checkpoint / kModel);
  result.optimizer = read_safetensors(checkpoint / kOptimizer);
  for (auto& [callback, tensors] : result.callback_tensors)
    tensors = read_safetensors(checkpoint / tensor_file(callback));
  result.config = read_file(checkpoint / kConfig);
  return result;
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.is_symlink() && step_of(entry.path()) >= 0)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return step_of(a) < step_of(b); });
  return found;
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& folder) {
  const auto all = list_checkpoints(folder);
  for (auto candidate = all.rbegin(); candidate != all.rend(); ++candidate) {
    try {
      return read_checkpoint(*candidate);
    } catch (const Error& problem) {
      spdlog::warn("{}; trying the one before", problem.what());
    }
  }
  if (!all.empty()) throw Error("every checkpoint in " + folder.string() + " is damaged");
  return std::nullopt;
}

}  // namespace millrace
