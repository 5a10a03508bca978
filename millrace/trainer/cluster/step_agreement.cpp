#include "millrace/trainer/cluster/step_agreement.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

/// A wish as it travels: this, the hyper-parameters, the reason to stop. Few bytes, so that one exchange takes them all.
struct Head {
  std::uint64_t place;
  std::int64_t images;
  double waited_s, busy_s;
  std::uint8_t signal, figures, checkpoint, hyper;
};

std::string encoded(const StepWish& wish) {
  Head head{};
  head.place = wish.place;
  head.images = wish.images;
  head.waited_s = wish.waited_s;
  head.busy_s = wish.busy_s;
  head.signal = static_cast<std::uint8_t>(wish.signal);
  head.figures = wish.figures;
  head.checkpoint = wish.checkpoint;
  head.hyper = static_cast<std::uint8_t>(wish.hyper.size());
  std::string bytes(sizeof(Head) + wish.hyper.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), &head, sizeof(Head));
  std::memcpy(bytes.data() + sizeof(Head), wish.hyper.data(), wish.hyper.size() * sizeof(double));
  return bytes + wish.stop;
}

StepWish decoded(std::string_view bytes, const std::string& from) {
  Head head{};
  const auto values = [&] { return head.hyper * sizeof(double); };
  if (bytes.size() >= sizeof(Head)) std::memcpy(&head, bytes.data(), sizeof(Head));
  if (bytes.size() < sizeof(Head) + values())
    throw Error(fmt::format("{} speaks of steps as another version would", from));
  StepWish wish{.signal = head.signal,
                .figures = head.figures != 0,
                .checkpoint = head.checkpoint != 0,
                .place = head.place,
                .images = head.images,
                .waited_s = head.waited_s,
                .busy_s = head.busy_s,
                .hyper = std::vector<double>(head.hyper)};
  std::memcpy(wish.hyper.data(), bytes.data() + sizeof(Head), values());
  wish.stop = bytes.substr(sizeof(Head) + values());
  return wish;
}

}  // namespace

StepAgreement agree_on_step(const Cluster& cluster, const StepWish& wish) {
  const auto all = cluster.gather("agreement on the step", encoded(wish));
  StepAgreement agreement;
  double longest = -1, shortest = 0;
  std::uint64_t place = 0;
  for (std::int64_t rank = 0; rank < std::ssize(all); ++rank) {
    auto one = decoded(all[static_cast<std::size_t>(rank)], cluster.name(rank));
    if (agreement.stop.empty() && !one.stop.empty())
      agreement.stop = rank == 0 ? one.stop : fmt::format("{} of {}", one.stop, cluster.name(rank));
    if (agreement.signal == 0) agreement.signal = one.signal;
    if (place == 0) place = one.place;
    if (one.place != 0 && one.place != place)
      throw Error(fmt::format(
          "{} has come to another place of the data than the ranks before it: do all hosts have "
          "the same images and annotations?",
          cluster.name(rank)));
    agreement.figures |= one.figures;
    agreement.checkpoint |= one.checkpoint;
    agreement.images += one.images;
    if (rank == 0) agreement.hyper = std::move(one.hyper);
    shortest = rank == 0 ? one.busy_s : std::min(shortest, one.busy_s);
    if (one.busy_s <= longest) continue;
    longest = one.busy_s;
    agreement.slowest = rank;
    agreement.slowest_waited_s = one.waited_s;
  }
  agreement.slowest_s = longest - shortest;
  return agreement;
}

}  // namespace millrace
