// Faults on purpose (MILLRACE_FAULTS): late ranks and damaged, lost, doubled and late messages
// change no byte; a rank that hangs ends the job; who kept the others waiting is named.
#include <sys/stat.h>

#include <map>

#include "tests/cli/served.h"
#include "tests/faults/mpirun.h"

namespace millrace::testing {
namespace {

/// For processes that are started while it lives.
class WithFaults {
 public:
  explicit WithFaults(const std::string& faults) { ::setenv("MILLRACE_FAULTS", faults.c_str(), 1); }
  ~WithFaults() { ::unsetenv("MILLRACE_FAULTS"); }
  WithFaults(const WithFaults&) = delete;
};

class InjectedFaults : public Mpirun {
 protected:
  /// A training of the fake detector by three ranks.
  Outcome train(const std::string& run) const {
    fs::create_directory(in_folder(run));
    return ranks(3, MILLRACE_FAULTS_RANKS, {in_folder(run).string(), "none"});
  }
  std::string bytes(const fs::path& run) const {
    const auto latest = run / "checkpoints" / "latest";
    return read_text(latest / "model.safetensors") + read_text(latest / "optimizer.safetensors");
  }
};

TEST_F(InjectedFaults, RanksThatComeLateChangeNoByte) {
  {
    const WithFaults faults("seed=2,rank.delay=0.1:5ms");
    ASSERT_EQ(train("late").exit_code, 0);
  }
  ASSERT_EQ(train("whole").exit_code, 0);
  EXPECT_TRUE(bytes(in_folder("late")) == bytes(in_folder("whole")));
}

TEST_F(InjectedFaults, ARankThatHangsEndsTheJobAndIsNamed) {
  const WithFaults faults("seed=3,rank1.drop=0.2");
  const auto end = train("hangs");
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, AllOf(HasSubstr(" was given up after 2."),
                             HasSubstr("not heard of: " + rank(1)), Not(HasSubstr(rank(2) + ","))));
  const auto events = read_json(in_folder("hangs") / "events" / "rank-0001.json");
  std::string open;
  for (const auto& event : events.at("traceEvents"))
    if (event.value("cat", "") == "fault" && event.at("ph") == "B") open = event.at("name");
  EXPECT_EQ(open, "rank.drop");
}

TEST_F(InjectedFaults, ThatMakeNoSenseAreRefused) {
  const auto data = make_data();
  const WithFaults faults("seed=3,rank.corrupt=0.2");
  expect_error(trainer(on(data, {"run", "--out", in_folder("runs")})), 2,
               "MILLRACE_FAULTS: 'rank.corrupt=0.2': gradients carry no checksum");
}

TEST_F(InjectedFaults, OnTheWayFromDataServersChangeNoWeight) {
  const auto data = make_data();
  const auto run = [&](const std::string& runs, const Words& settings) {
    return trainer(on(data, {"run", "--out", in_folder(runs)},
                      kTrainOnly +
                          Words{"data.short_side=64", "data.max_side=96", "data.batch_size=1",
                                "train.max_steps=12"} +
                          settings));
  };
  successful(run("whole", {}));
  const auto serve = [&](const std::string& name) {
    return Words{MILLRACE_TRAINER} +
           on(data, {"serve", "--bind", "ipc://" + in_folder(name).string()},
              {"data.short_side=64", "data.max_side=96", "data.batch_size=1"});
  };
  const Served a(serve("a"), in_folder("log-a")), b(serve("b"), in_folder("log-b"));
  const WithFaults faults(
      "seed=4,server.drop=0.04,server.corrupt=0.02,server.duplicate=0.1,server.delay=0.1:50ms");
  const auto end = successful(run("faulty", {"data.source=[\"ipc://" + in_folder("a").string() +
                                             "\",\"ipc://" + in_folder("b").string() + "\"]"}));
  const std::string warning = "MILLRACE_FAULTS: messages and exchanges get faults on purpose";
  const auto told = end.err.find(warning);
  ASSERT_NE(told, std::string::npos) << end.err;
  EXPECT_EQ(end.err.find(warning, told + 1), std::string::npos) << "it is said once";
  EXPECT_TRUE(bytes(in_folder("faulty") / "maskrcnn-1") ==
              bytes(in_folder("whole") / "maskrcnn-1"));
}

/// A training of two ranks with the real program.
class LateRanks : public Mpirun {
 protected:
  // So many images that none is read ahead for the next epoch while another is waited for.
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
  /// Whether some exchange is told in which a rank was late, for which that holds.
  template <class Condition>
  bool comes_to_tell(Condition holds) {
    return comes_to([&] {
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
  /// Of a training that hangs.
  void kill_all(pid_t mpirun) const {
    ::kill(mpirun, SIGKILL);
    for (const auto* rank : {"rank-0.json", "rank-1.json"})
      ::kill(read_json(run_ / "status" / rank)["process"].get<pid_t>(), SIGKILL);
    finish(mpirun);
  }
  Json last_, found_;
};

TEST_F(LateRanks, AreToldWithTheImageThatKeptThem) {
  // Two images that do not come: whoever reads their files waits for what is written into a pipe.
  // The first is written once a rank waits for it; at the second the training stops again, so that
  // what it did in between can be read at leisure.
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
    return one["goes_on"] == true && one["exchange"] == "agreement on the step" &&
           one["late_s"] > 0.5;
  };
  ASSERT_TRUE(comes_to_tell(waits)) << last_ << read_text(in_folder("log"));
  const auto late = found_["ranks"];
  ASSERT_EQ(late.size(), 1U) << found_;
  const auto step = found_["of"];
  const std::string doing = found_["doing"];
  EXPECT_THAT(doing, HasSubstr("waits for data; 'decode' has worked on "));
  const auto slow = std::ranges::find_if(photos, [&](const auto& photo) {
    return doing.find(photo.first.filename().string()) != std::string::npos;
  });
  ASSERT_NE(slow, photos.end()) << doing;

  const auto& [image, photo] = *slow;
  {
    std::ofstream pipe(image, std::ios::binary);
    write_text(in_folder("photo"), photo);
    fs::rename(in_folder("photo"), image);  // what is read again is a file
    pipe << photo;
  }
  const auto came = [&](const Json& one) { return one["of"] == step && one["goes_on"] == false; };
  ASSERT_TRUE(comes_to_tell(came)) << last_ << read_text(in_folder("log"));
  EXPECT_EQ(found_["ranks"], late);
  EXPECT_GT(found_["late_s"], 0.5);
  EXPECT_THAT(found_["doing"].get<std::string>(), HasSubstr(image.filename().string()));
  EXPECT_THAT(successful(trainer({"status", run_, "--events"})).out,
              AllOf(HasSubstr("Who came last to exchanges"), HasSubstr("it was asked"),
                    HasSubstr(rank(late[0]) + " came ")));
  kill_all(mpirun);
}

TEST_F(LateRanks, AreNamedWithTheFaultThatKeptThem) {
  const WithFaults faults("seed=1,rank1.delay=0.02:2s");
  const auto mpirun = train();
  const auto is_delayed = [&](const Json& one) {
    return one["late_s"] > 0.5 &&
           one["doing"].get<std::string>().starts_with("MILLRACE_FAULTS keeps it from '");
  };
  ASSERT_TRUE(comes_to_tell(is_delayed)) << last_ << read_text(in_folder("log"));
  EXPECT_EQ(found_["ranks"], Json::array({1}));
  kill_all(mpirun);
}

}  // namespace
}  // namespace millrace::testing
