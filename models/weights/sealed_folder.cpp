#include "millrace/models/weights/sealed_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kState = "state.json";

/// Returns the state of the checkpoint that contains a file; nullopt if there is none.
std::optional<SealedState> state_around(const fs::path& file) {
  std::error_code problem;
  if (!fs::exists(file.parent_path() / kState, problem)) return std::nullopt;
  SealedState state(file.parent_path());
  if (!state.has(file.filename().string())) return std::nullopt;
  return state;
}

/// Returns the newest intact checkpoint beside another one; empty if there is none.
fs::path whole_beside(const fs::path& checkpoint) {
  std::vector<fs::path> others;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(checkpoint.parent_path(), problem))
    if (entry.is_directory() && !entry.is_symlink() && fs::exists(entry.path() / kState) &&
        !fs::equivalent(entry.path(), checkpoint, problem))
      others.push_back(entry.path());
  std::ranges::sort(others, std::greater(), [](const fs::path& one) {
    const auto name = one.filename().string();
    return std::pair(name.starts_with("step-") ? name.size() : 0, name);
  });
  for (const auto& other : others) try {
      SealedState(other).check_all();
      return other;
    } catch (const Error&) {
      continue;
    }
  return {};
}

/// Calls in_checkpoint; an error also names an intact checkpoint beside it.
template <class Work>
auto in_one_of_many(const fs::path& checkpoint, Work work) {
  try {
    return in_checkpoint(checkpoint, work);
  } catch (const NewerCheckpoint&) {
    throw;
  } catch (const Error& problem) {
    const auto whole = whole_beside(checkpoint);
    if (whole.empty()) throw;
    throw Error(fmt::format("{}; {} is intact", problem.what(), whole.string()));
  }
}

}  // namespace

std::string digest_text(const std::string& bytes) {
  return hex(digest(bytes.data(), bytes.size()));
}

void write_sealed_state(const fs::path& folder, const json& state) {
  const json sealed = {{"digest", digest_text(state.dump())}, {"state", state}};
  write_file_atomically(folder / kState, sealed.dump(1) + "\n");
}

SealedState::SealedState(fs::path folder) : folder_(std::move(folder)) {
  auto sealed = json::parse(read_file(folder_ / kState), nullptr, /*allow_exceptions=*/false);
  if (!sealed.is_object() || !sealed.contains("state") || !sealed.contains("digest"))
    throw Error(fmt::format("{} is truncated or overwritten", kState));
  state_ = std::move(sealed.at("state"));
  if (sealed.at("digest") != digest_text(state_.dump()))
    throw Error(fmt::format("the bytes of {} have changed", kState));
}

void SealedState::refuse(const json::exception& problem) {
  const std::string_view what = problem.what();  // it starts with the library's error number
  const auto tag = what.find("] ");
  throw Error(fmt::format("{}: {}", kState, what.substr(tag == what.npos ? 0 : tag + 2)));
}

bool SealedState::has(const std::string& name) const {
  return read([&](const json& state) { return state.at("files").contains(name); });
}

void SealedState::check(const std::string& name) const {
  const auto bytes = map_file(folder_ / name);
  const auto wanted =
      read([&](const json& state) { return state.at("files").at(name).get<std::string>(); });
  if (wanted != hex(digest(bytes.data.get(), bytes.size)))
    throw Error(fmt::format("the bytes of {} have changed", name));
}

void SealedState::check_all() const {
  const auto files = read([](const json& state) { return state.at("files"); });
  for (const auto& [name, digest] : files.items()) check(name);
}

void check_file_of_checkpoint(const fs::path& file) {
  in_one_of_many(file.parent_path(), [&] {
    if (const auto state = state_around(file)) state->check(file.filename().string());
  });
}

std::optional<CheckpointOrigin> origin_of(const fs::path& file) {
  const auto folder = file.parent_path();
  return in_one_of_many(folder, [&]() -> std::optional<CheckpointOrigin> {
    const auto sealed = state_around(file);
    if (!sealed) return std::nullopt;
    sealed->check(kCheckpointConfig);
    return CheckpointOrigin{read_file(folder / kCheckpointConfig),
                            sealed->read([](const json& state) {
                              return state.value("classes", std::vector<std::string>());
                            })};
  });
}

}  // namespace millrace
