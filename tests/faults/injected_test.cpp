// Corrupted, dropped, duplicated and delayed messages of data servers do not change the results; a
// rank that delays the other ranks is reported.
#include <sys/stat.h>

#include <map>

#include "tests/cli/served.h"
#include "tests/faults/mpirun.h"
#include "tests/support/faulty_proxy.h"

namespace millrace::testing {
namespace {

using FaultyNetwork = Mpirun;

TEST_F(FaultyNetwork, DoesNotChangeWeights) {
  const auto data = make_data();
  const Words small = {"data.short_side=64", "data.max_side=96", "data.batch_size=1"};
  const auto train = [&](const std::string& runs, const Words& settings) {
    successful(trainer(on(data, {"run", "--out", in_folder(runs)},
                          kTrainOnly + small + Words{"train.max_steps=12"} + settings)));
    const auto latest = in_folder(runs) / "maskrcnn-1" / "checkpoints" / "latest";
    return read_text(latest / "model.safetensors") + read_text(latest / "optimizer.safetensors");
  };
  const auto endpoint = [&](const std::string& name) {
    return "ipc://" + in_folder(name).string();
  };
  const auto serve = [&](const std::string& name) {
    return Words{MILLRACE_TRAINER} + on(data, {"serve", "--bind", endpoint(name)}, small);
  };
  const Served a(serve("a"), in_folder("log-a")), b(serve("b"), in_folder("log-b"));
  const WireFaults faults{.drop = 0.04, .corrupt = 0.02, .duplicate = 0.1, .delay = 0.1, .seed = 4};
  const FaultyProxy to_a(endpoint("to-a"), endpoint("a"), faults),
      to_b(endpoint("to-b"), endpoint("b"), faults);
  const auto source = "data.source=[\"" + endpoint("to-a") + "\",\"" + endpoint("to-b") + "\"]";
  EXPECT_TRUE(train("whole", {}) == train("faulty", {source}));
  EXPECT_GT(to_a.faults() + to_b.faults(), 0);
}

/// A training run on two ranks with the real program.
class LateRanks : public Mpirun {
 protected:
  // Enough images that no image of the next epoch is prefetched while one is waited for.
  fs::path data_ = in_folder("many");
  fs::path run_ = in_folder("runs") / "maskrcnn-1";

  void SetUp() override {
    successful(trainer({"sample", "--out", data_, "--train", "160", "--val", "2"}));
  }
  pid_t train() const {
    return spawn(Words{MILLRACE_MPIEXEC, "--oversubscribe", "-np", "2", MILLRACE_TRAINER} +
                     on(data_, {"run", "--out", in_folder("runs")},
                        kTrainOnly + Words{"data.short_side=64", "data.max_side=96",
                                           "data.batch_size=1", "train.epochs=100000"}),
                 in_folder("log.out"), in_folder("log"), O_TRUNC);
  }
  /// Waits until the status reports an exchange with a late rank that satisfies `holds`.
  template <class Condition>
  bool wait_for_late_exchange(Condition holds) {
    return wait_until([&] {
      if (!fs::exists(run_ / "status" / "rank-1.json")) return false;
      last_ = successful(trainer({"status", run_, "--events", "--json"})).json();
      for (const auto& one : last_["late"])
        if (holds(one)) {
          found_ = one;
          return true;
        }
      return false;
    });
  }
  /// Kills all processes of a hanging training run.
  void kill_all(pid_t mpirun) const {
    ::kill(mpirun, SIGKILL);
    for (const auto* rank : {"rank-0.json", "rank-1.json"})
      ::kill(read_json(run_ / "status" / rank)["process"].get<pid_t>(), SIGKILL);
    finish(mpirun);
  }
  Json last_, found_;
};

TEST_F(LateRanks, AreReportedWithTheirImage) {
  // Two images are replaced by pipes, so a rank that reads one waits until it is written. The first
  // pipe is written once a rank waits for it. At the second pipe training waits again, so that the
  // events recorded in between can be read.
  std::vector<fs::path> images;
  for (const auto& image : fs::directory_iterator(data_ / "train2017"))
    images.push_back(image.path());
  std::ranges::sort(images);
  std::map<fs::path, std::string> photos;
  for (const auto& image : {images[0], images[7]}) {
    photos[image] = read_text(image);
    fs::remove(image);
    ASSERT_EQ(::mkfifo(image.c_str(), 0600), 0);
  }
  const auto mpirun = train();
  const auto waits = [&](const Json& one) {
    return one["goes_on"] == true && one["late_s"] > 0.5 &&
           one["doing"].get<std::string>().find("'decode'") != std::string::npos;
  };
  ASSERT_TRUE(wait_for_late_exchange(waits)) << last_ << read_text(in_folder("log"));
  const auto late = found_["ranks"];
  ASSERT_EQ(late.size(), 1U) << found_;
  const auto step = found_["of"];
  const std::string doing = found_["doing"];
  const auto slow = std::ranges::find_if(photos, [&](const auto& photo) {
    return doing.find(photo.first.filename().string()) != std::string::npos;
  });
  ASSERT_NE(slow, photos.end()) << doing;

  const auto& [image, photo] = *slow;
  {
    std::ofstream pipe(image, std::ios::binary);
    write_text(in_folder("photo"), photo);
    fs::rename(in_folder("photo"), image);  // a second read finds a regular file
    pipe << photo;
  }
  const auto came = [&](const Json& one) { return one["of"] == step && one["goes_on"] == false; };
  ASSERT_TRUE(wait_for_late_exchange(came)) << last_ << read_text(in_folder("log"));
  EXPECT_EQ(found_["ranks"], late);
  EXPECT_GT(found_["late_s"], 0.5);
  EXPECT_THAT(found_["doing"].get<std::string>(), HasSubstr(image.filename().string()));
  EXPECT_THAT(successful(trainer({"status", run_, "--events"})).out,
              AllOf(HasSubstr(rank(late[0])), HasSubstr(image.filename().string())));
  kill_all(mpirun);
}

}  // namespace
}  // namespace millrace::testing
