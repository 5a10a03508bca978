#include "millrace/base/disk/status_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>

#include "millrace/base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::uint64_t kMaxBytes = 1 << 20;
constexpr std::int64_t kMaxRanks = 1 << 20;

/// Returns 3 for "rank-3.json".
std::optional<std::int64_t> rank_of(std::string_view name) {
  constexpr std::string_view kBegin = "rank-", kEnd = ".json";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  std::int64_t rank = -1;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (problem != std::errc() || end != name.data() + name.size() || rank < 0) return std::nullopt;
  return rank;
}

}  // namespace

fs::path status_folder(const fs::path& run) { return run / "status"; }
fs::path status_file(const fs::path& run, std::int64_t rank) {
  return status_folder(run) / fmt::format("rank-{}.json", rank);
}
fs::path asked_events_file(const fs::path& run, std::int64_t rank) {
  return status_folder(run) / fmt::format("events-{}.json", rank);
}
fs::path ask_events_file(const fs::path& run) { return status_folder(run) / "ask-events"; }

ordered_json read_status_file(const fs::path& run, std::int64_t start, std::int64_t rank) try {
  auto file = ordered_json::parse(read_file(status_file(run, rank), {.max_bytes = kMaxBytes}));
  const auto ranks = file.at("ranks").get<std::int64_t>();
  const bool fits = file.at("format") == kStatusFormat && file.at("start") == start &&
                    file.at("rank") == rank && rank < ranks && ranks <= kMaxRanks &&
                    file.at("written").is_number() && file.at("status").is_object();
  return fits ? file : ordered_json();
} catch (const std::exception&) {
  return {};
}

std::vector<ordered_json> read_status_files(const fs::path& run, std::int64_t start) {
  std::vector<ordered_json> files;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(status_folder(run), unreadable)) {
    const auto rank = rank_of(entry.path().filename().string());
    if (!rank) continue;
    auto file = read_status_file(run, start, *rank);
    if (file.is_null()) continue;
    files.resize(std::max(files.size(), file["ranks"].get<std::size_t>()));
    files[static_cast<std::size_t>(*rank)] = std::move(file);
  }
  return files;
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace millrace
