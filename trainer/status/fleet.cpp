#include "millrace/trainer/status/fleet.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <string_view>
#include <utility>

#include "millrace/base/disk/private_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/dataflow/serving/status.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/status/rank_status.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::chrono::seconds kAskEvery{5};
constexpr std::chrono::milliseconds kAnswersWithin{2000};

/// The IPv4 addresses of this host's networks.
std::vector<std::string> addresses() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, ::freeifaddrs);
  std::vector<std::string> found;
  for (const auto* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP) ||
        (one->ifa_flags & IFF_LOOPBACK))
      continue;
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(one->ifa_addr, sizeof(sockaddr_in), text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      found.emplace_back(text.data());
  }
  return found;
}

/// A socket of this process in a folder where no other user can reach it: as many connections as a
/// process has descriptors would end the training. Throws Error.
std::string own_socket() {
  const auto folder = fs::temp_directory_path() / fmt::format("millrace-status-{}", ::geteuid());
  make_private_folder(folder);
  return fmt::format("ipc://{}", (folder / std::to_string(::getpid())).string());
}

std::string absolute_text(const std::string& file) {
  return file.empty() ? "" : fs::absolute(file).string();
}

std::string name_of(std::int64_t rank) { return fmt::format("rank {}", rank); }

}  // namespace

Fleet::Fleet(const Cluster& cluster, const Activity& activity, const DataOptions& data,
             fs::path folder, std::int64_t start)
    : cluster_(cluster), activity_(activity), events_(cluster, folder), folder_(std::move(folder)) {
  const auto secret = cluster.broadcast("key of the run", cluster.is_chief() ? make_key() : "");
  if (secret.empty()) return;
  const auto keys = serving::key_pair_of(secret);
  const auto mine = listen(keys);
  const ordered_json told = {
      {"host", mine.host}, {"process", mine.process}, {"endpoints", mine.endpoints}};
  for (const auto& text : cluster.gather("where ranks answer", serving::status_text(told))) {
    const auto rank = ordered_json::parse(text);
    file_.ranks.push_back({.name = name_of(std::ssize(file_.ranks)),
                           .host = rank.at("host"),
                           .process = rank.at("process"),
                           .endpoints = rank.at("endpoints")});
  }
  if (!cluster.is_chief()) return;
  file_.start = start;
  for (const auto& endpoint : data.source)
    file_.servers.push_back({.name = endpoint, .endpoints = {endpoint}});
  file_.server_key_own = absolute_text(data.source_key);
  file_.server_key_of_server = absolute_text(data.source_server_key);
  write();
  watch_ = std::jthread([this, keys](const std::stop_token& stop) { watch(stop, keys); });
}

Fleet::~Fleet() {
  if (!watch_.joinable()) return;
  watch_.request_stop();
  watch_.join();
  auto& own = file_.ranks.front();
  own.heard = wall_clock();
  own.status = rank_status(cluster_, activity_);
  write();
}

/// The secret key of the run, made by its first start; empty if there can be none.
std::string Fleet::make_key() const try {
  const auto file = folder_ / kFleetKey;
  if (!fs::exists(file)) serving::make_keys(folder_ / fs::path(kFleetKey).stem());
  return serving::read_secret_key(file).secret_key;
} catch (const std::exception& problem) {
  spdlog::warn("`trainer status` will get no answer: {}", problem.what());
  return "";
}

/// Opens this rank's door: to this user's processes alone where all ranks are on this host. Without
/// endpoints if it cannot.
FleetMember Fleet::listen(const serving::KeyPair& keys) {
  FleetMember mine{.host = host_name(), .process = ::getpid()};
  const bool one_host = cluster_.local_size() == cluster_.size();
  try {
    door_ = std::make_unique<serving::StatusDoor>(
        serving::DoorOptions{.bind = one_host ? own_socket() : "tcp://*:*",
                             .keys = keys,
                             .allowed = {keys.public_key},
                             .is_quiet = true},  // one who asked and left is no stranger
        name_of(cluster_.rank()),
        [this] { return serving::status_text(rank_status(cluster_, activity_)); },
        [this] { return events_.text("it was asked"); });
  } catch (const std::exception& problem) {
    spdlog::warn("`trainer status` will get no answer here: {}", problem.what());
    return mine;
  }
  const auto& endpoint = door_->endpoint();
  if (one_host) {
    mine.endpoints = {endpoint};
  } else {
    const auto port = endpoint.substr(endpoint.rfind(':'));
    for (const auto& address : addresses())
      mine.endpoints.push_back(fmt::format("tcp://{}{}", address, port));
  }
  return mine;
}

/// Asks all now and then, and writes what they say.
void Fleet::watch(const std::stop_token& stop, const serving::KeyPair& keys) try {
  serving::StatusLinks ranks(rank_sources(file_, keys)), servers(server_sources(file_));
  std::mutex mutex;
  std::condition_variable_any wake;
  const auto note = [](std::vector<FleetMember>& members, serving::StatusLinks& links,
                       const std::stop_token& until) {
    const auto answers = links.ask(kAnswersWithin, until);
    for (std::size_t i = 0; i < members.size(); ++i)
      if (answers[i].kind == serving::StatusAnswer::Kind::answered) {
        members[i].heard = wall_clock();
        members[i].status = answers[i].status;
      }
  };
  std::unique_lock lock(mutex);
  do {
    note(file_.ranks, ranks, stop);
    if (!file_.servers.empty()) note(file_.servers, servers, stop);
    write();
  } while (!wake.wait_for(lock, stop, kAskEvery, [&] { return stop.stop_requested(); }));
} catch (const std::exception& problem) {  // an observer's failure ends no training
  spdlog::warn("`trainer status` will not know what ranks said last: {}", problem.what());
}

void Fleet::write() try {
  file_.written = wall_clock();
  const auto text = to_json(file_);
  const std::string_view part = text;
  replace_file(folder_ / kFleetFile, {&part, 1});
} catch (const std::exception& problem) {
  if (!std::exchange(has_failed_to_write_, true))
    spdlog::warn("`trainer status` will not know what ranks said last: {}", problem.what());
}

}  // namespace millrace
