#include "millrace/trainer/status/fleet_file.h"

#include <fmt/format.h>

#include <chrono>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/serving/status.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

constexpr int kFleetFormat = 1;

ordered_json to_json(const std::vector<FleetMember>& members) {
  auto all = ordered_json::array();
  for (const auto& [name, host, process, endpoints, heard, status] : members)
    all.push_back({{"name", name},
                   {"host", host},
                   {"process", process},
                   {"endpoints", endpoints},
                   {"heard", heard},
                   {"status", status}});
  return all;
}

std::vector<FleetMember> members_of(const ordered_json& all) {
  std::vector<FleetMember> members;
  for (const auto& one : all)
    members.push_back({one.at("name"), one.at("host"), one.at("process"), one.at("endpoints"),
                       one.at("heard"), one.at("status")});
  return members;
}

}  // namespace

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string to_json(const FleetFile& fleet) {
  return serving::status_text(
             {{"format", kFleetFormat},
              {"start", fleet.start},
              {"written", fleet.written},
              {"ranks", to_json(fleet.ranks)},
              {"servers", to_json(fleet.servers)},
              {"server_keys",
               {{"own", fleet.server_key_own}, {"server", fleet.server_key_of_server}}}}) +
         "\n";
}

std::optional<FleetFile> read_fleet_file(const std::filesystem::path& run) {
  const auto file = run / kFleetFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    const auto json = ordered_json::parse(read_file(file));
    const auto& keys = json.at("server_keys");
    return FleetFile{.start = json.at("start"),
                     .written = json.at("written"),
                     .ranks = members_of(json.at("ranks")),
                     .servers = members_of(json.at("servers")),
                     .server_key_own = keys.at("own"),
                     .server_key_of_server = keys.at("server")};
  } catch (const nlohmann::json::exception& problem) {
    throw Error(fmt::format("{} is damaged ({})", file.string(), problem.what()));
  }
}

std::vector<serving::StatusSource> rank_sources(const FleetFile& fleet,
                                                const serving::KeyPair& keys) {
  std::vector<serving::StatusSource> sources;
  for (const auto& rank : fleet.ranks)
    sources.push_back({rank.name, rank.endpoints, serving::LinkKeys{keys.public_key, keys}});
  return sources;
}

std::vector<serving::StatusSource> server_sources(const FleetFile& fleet) {
  std::optional<serving::LinkKeys> keys;
  if (!fleet.server_key_own.empty() && !fleet.servers.empty())
    keys = {serving::read_public_key(fleet.server_key_of_server),
            serving::read_secret_key(fleet.server_key_own)};
  std::vector<serving::StatusSource> sources;
  for (const auto& server : fleet.servers) sources.push_back({"", server.endpoints, keys});
  return sources;
}

}  // namespace millrace
