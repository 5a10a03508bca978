// `trainer status` of several ranks, some of which hang.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <set>

#include "tests/faults/mpirun.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

class FleetStatus : public Mpirun {
 protected:
  fs::path data_ = make_data();
  fs::path run_ = in_folder("runs") / "maskrcnn-1";

  /// Starts a training of two ranks; `trainer` writes its output elsewhere.
  pid_t train(const Words& more = {}) const {
    return spawn(
        Words{MILLRACE_MPIEXEC, "--oversubscribe", "-np", "2", MILLRACE_TRAINER} +
            on(data_, {"run", "--out", in_folder("runs")},
               kTrainOnly + Words{"data.short_side=64", "data.max_side=96", "train.epochs=100000"} +
                   more),
        in_folder("log.out"), in_folder("log"), O_TRUNC);
  }

  /// Whether the status comes to be so; the last one is kept.
  template <class Condition>
  bool comes_to_be(Condition condition) {
    return comes_to([&] {
      if (!fs::exists(run_ / "record.json")) return false;
      last_ = successful(trainer({"status", run_, "--json"})).json();
      verdict_ = last_["verdict"];
      return condition();
    });
  }
  Json last_;
  std::string verdict_;
};

TEST_F(FleetStatus, NamesTheRankThatIsStoppedAndWhatTheOthersWaitIn) {
  const pid_t mpirun = train();
  const auto trains = [&] {
    return last_["state"] == "training" && verdict_.starts_with("training goes on") &&
           last_["ranks"][1]["status"]["step"] >= 2;
  };
  ASSERT_TRUE(comes_to_be(trains)) << last_ << read_text(in_folder("log"));
  for (const auto& rank : last_["ranks"]) {
    EXPECT_EQ(rank["host"], host());
    EXPECT_GT(rank["status"]["sent_bytes"], 0);
    EXPECT_GT(rank["status"]["received_bytes"], 0);
  }
  const pid_t victim = last_["ranks"][1]["process"];
  ASSERT_EQ(::kill(victim, SIGSTOP), 0);
  ASSERT_TRUE(comes_to_be([&] {
    return verdict_.find("the others wait for it in '") != std::string::npos;
  })) << last_;
  EXPECT_THAT(verdict_, AllOf(HasSubstr(rank(1) + " does not answer (no answer)"),
                              HasSubstr("' of step "), HasSubstr(", for ")));
  EXPECT_EQ(last_["ranks"][0]["answers"], true);
  EXPECT_EQ(last_["ranks"][0]["status"]["where"], "exchange");
  EXPECT_EQ(last_["ranks"][1]["answers"], false);
  // The chief has asked it before; what it said then is shown, and how long ago that was.
  EXPECT_GE(last_["ranks"][1]["heard_s"], 0);
  EXPECT_GT(last_["ranks"][1]["status"]["memory_bytes"], 0);

  ASSERT_EQ(::kill(victim, SIGCONT), 0);
  EXPECT_TRUE(comes_to_be(trains)) << last_;
  ::kill(mpirun, SIGUSR1);
  EXPECT_EQ(finish(mpirun).exit_code, 3) << read_text(in_folder("log"));
}

// mpirun ends the other, which writes down that.
TEST_F(FleetStatus, NamesTheRankThatCrashed) {
  const pid_t mpirun = train();
  ASSERT_TRUE(comes_to_be([&] {
    return last_["state"] == "training" && last_["ranks"][1]["status"]["step"] >= 2;
  })) << last_
      << read_text(in_folder("log"));
  ::kill(last_["ranks"][1]["process"].get<pid_t>(), SIGSEGV);
  finish(mpirun);
  EXPECT_TRUE(comes_to_be([&] { return last_["state"] == "broken"; })) << last_;
  EXPECT_THAT(verdict_, EndsWith("; " + rank(1) + ": SIGSEGV")) << last_;
}

TEST_F(FleetStatus, NamesTheRankThatTheOthersWaitFor) {
  // One image that never comes: the rank that needs it waits for data, the other for that rank.
  std::set<fs::path> images;
  for (const auto& image : fs::directory_iterator(data_ / "train2017")) images.insert(image);
  fs::remove(*images.begin());
  ASSERT_EQ(::mkfifo(images.begin()->c_str(), 0600), 0);
  // Nobody reads ahead, or the other might meet it, too, with its only thread.
  const pid_t mpirun = train({"data.in_flight=4"});
  ASSERT_TRUE(comes_to_be([&] {
    return verdict_.find("the others wait for rank ") != std::string::npos &&
           verdict_.find(": waits for data, for ") != std::string::npos;
  })) << last_
      << read_text(in_folder("log"));
  EXPECT_THAT(verdict_, HasSubstr("; 'decode' has worked on " + images.begin()->string()));
  ::kill(mpirun, SIGKILL);
  for (const auto& rank : last_["ranks"]) ::kill(rank["process"].get<pid_t>(), SIGKILL);
  finish(mpirun);
}

/// Connects and holds the connection; -1: it could not.
int connected(const std::string& endpoint) {
  const bool is_file = endpoint.starts_with("ipc://");
  const int fd = ::socket(is_file ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
  sockaddr_un file{};
  file.sun_family = AF_UNIX;
  sockaddr_in port{};
  port.sin_family = AF_INET;
  port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (is_file)
    endpoint.copy(file.sun_path, sizeof file.sun_path - 1, 6);
  else
    port.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  const auto* address =
      is_file ? reinterpret_cast<const sockaddr*>(&file) : reinterpret_cast<const sockaddr*>(&port);
  return ::connect(fd, address, is_file ? sizeof file : sizeof port) == 0 ? fd : -1;
}

TEST_F(FleetStatus, LetsNoOtherUserEndATraining) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr rlim_t kConnections = 1100;
  const auto command = [&](const std::string& runs) {
    return on(data_, {"run", "--out", in_folder(runs)},
              kTrainOnly + Words{"data.short_side=64", "data.max_side=96", "train.max_steps=150",
                                 "train.epochs=100000"});
  };
  const auto weights = [&](const std::string& runs) {
    return read_text(in_folder(runs) / "maskrcnn-1/checkpoints/latest/model.safetensors");
  };
  successful(trainer(command("whole")));
  const auto training =
      spawn({"/bin/bash", "-c",
             "ulimit -n 1024; exec " + quoted(Words{MILLRACE_TRAINER} + command("runs"))},
            in_folder("log.out"), in_folder("log"), O_TRUNC);
  ASSERT_TRUE(comes_to_be([&] { return last_["ranks"][0]["status"]["step"] >= 2; }))
      << last_ << read_text(in_folder("log"));
  const std::string endpoint = read_json(run_ / "fleet.json")["ranks"][0]["endpoints"][0];
  const auto other = ::fork();
  if (other == 0) {
    const rlimit enough{2 * kConnections, 2 * kConnections};
    if (::setrlimit(RLIMIT_NOFILE, &enough) != 0 || ::setuid(54321) != 0) ::_exit(2);
    int held = 0;
    for (rlim_t i = 0; i < kConnections; ++i) held += connected(endpoint) >= 0;
    if (held > 0) ::sleep(30);
    ::_exit(held > 0 ? 1 : 0);
  }
  const auto end = finish(training);
  ::kill(other, SIGKILL);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(end.exit_code, 0) << read_text(in_folder("log"));
  EXPECT_TRUE(weights("runs") == weights("whole"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace millrace::testing
