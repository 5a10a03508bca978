#include "millrace/trainer/status/rank_status.h"

#include "millrace/dataflow/serving/status.h"
#include "millrace/trainer/cluster/mpi_world.h"

namespace millrace {

using nlohmann::ordered_json;

ordered_json rank_status(const Cluster& cluster, const Activity& activity) {
  const auto now = activity.now();
  const auto standing = activity.standing();
  const auto data = activity.data();
  auto* world = cluster.world();
  const auto waiting = world ? world->waiting() : std::nullopt;
  const auto traffic = world ? world->traffic() : MpiWorld::Traffic();

  ordered_json json = {{"rank", cluster.rank()}};
  json.update(serving::process_status());
  json["step"] = standing.step;
  json["total_steps"] = standing.total_steps;
  json["epoch"] = standing.progress;
  json["images"] = standing.images;
  json["images_per_s"] = standing.images_per_s;
  // A step or a callback that waits for other ranks.
  json["where"] = waiting ? "exchange" : now.where;
  json["doing"] = now.what;
  json["for_s"] = seconds_since(waiting ? waiting->since : now.since);
  json["sign_of_life_s"] = seconds_since(now.moved);
  json["exchange"] = nullptr;
  if (waiting) json["exchange"] = {{"what", waiting->what}, {"of", waiting->place}};
  json["work"] = data ? serving::work_status(*data) : ordered_json::array();
  json["stages"] = ordered_json::array();
  for (const auto& stage : data ? data->stages : std::vector<StageReport>())
    json["stages"].push_back(
        {{"stage", stage.name}, {"items", stage.items}, {"waiting", stage.waiting}});
  json["received_bytes"] = traffic.received + serving::received_bytes();
  json["sent_bytes"] = traffic.sent;
  json["metrics"] = standing.metrics;
  return json;
}

}  // namespace millrace
