// trainer status of real training runs and data servers: while they run, hang or are stopped, and
// after their end.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/cli/served.h"

namespace millrace::testing {
namespace {

class Status : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path run_ = in_folder("runs") / "maskrcnn-1";

  Words train(const Words& settings = {}) const {
    return Words{MILLRACE_TRAINER} + on(data_, {"run", "--out", in_folder("runs")},
                                        kTrainOnly + Words{"train.epochs=100000"} + settings);
  }
  Words serve(const std::string& endpoint) const {
    return Words{MILLRACE_TRAINER} + on(data_, {"serve", "--bind", endpoint});
  }
  Json status() const { return successful(trainer({"status", run_, "--json"})).json(); }
  /// Returns the output of `trainer status`; its last line is the verdict.
  std::string text() const { return successful(trainer({"status", run_})).out; }

  /// Waits until the status satisfies the condition; last_ keeps the last status read.
  template <class Condition>
  bool wait_for_status(Condition condition) {
    return wait_until([&] {
      if (!fs::exists(run_ / "record.json")) return false;
      last_ = status();
      return condition(last_);
    });
  }
  bool wait_for_training() {
    return wait_for_status([](const Json& status) {
      return status["state"] == "training" && status["ranks"][0]["status"]["step"] >= 2;
    });
  }
  Json last_;
};

void expect_short_lines(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find('/') != std::string::npos) continue;  // a file name
    EXPECT_LE(line.size(), 80) << line;
  }
}

TEST_F(Status, ReportsTrainingAndItsEnd) {
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  ASSERT_EQ(last_["ranks"].size(), 1);
  const auto& rank = last_["ranks"][0];
  EXPECT_EQ(rank["name"], "rank 0");
  EXPECT_EQ(rank["answers"], true);
  EXPECT_GT(rank["status"]["images_per_s"], 0);
  EXPECT_GT(rank["status"]["memory_bytes"], 1 << 20);
  EXPECT_NE(rank["status"]["where"], "exchange");
  EXPECT_GT(rank["status"]["images"], 0);
  EXPECT_GT(rank["status"]["metrics"]["loss"], 0);
  EXPECT_THAT(last_["verdict"].get<std::string>(), StartsWith("training: step "));
  EXPECT_THAT(text(), AllOf(HasSubstr("maskrcnn-1: training"), HasSubstr("rank  host"),
                            HasSubstr("\ntraining: step ")));
  expect_short_lines(text());
  // The folder of all runs refers to the newest run.
  EXPECT_EQ(successful(trainer({"status", in_folder("runs"), "--json"})).json()["run"],
            run_.string());

  EXPECT_EQ(training.end(SIGTERM), 3) << training.log();
  const auto ended = status();
  EXPECT_EQ(ended["state"], "stopped") << ended;
  EXPECT_THAT(ended["verdict"].get<std::string>(), HasSubstr("SIGTERM"));
  EXPECT_GE(ended["ranks"][0]["status"]["step"], 2);
}

TEST_F(Status, ReportsEveryActiveRunInFolder) {
  Served first(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << first.log();
  Served second(train(), in_folder("log_2"));
  const auto other = in_folder("runs") / "maskrcnn-2";
  ASSERT_TRUE(wait_until([&] { return fs::exists(other / "record.json"); })) << second.log();
  const auto seen = successful(trainer({"status", in_folder("runs"), "--json"})).json();
  EXPECT_EQ(seen["run"], other.string());
  EXPECT_EQ(seen["also_training"], Json::array({run_.string()}));
  second.end(SIGKILL);
  const auto left = successful(trainer({"status", in_folder("runs"), "--json"})).json();
  EXPECT_EQ(left["run"], run_.string()) << "the run in progress, although the other run is newer";
  EXPECT_EQ(left["also_training"], Json::array());
}

TEST_F(Status, ReportsDoneRun) {
  ASSERT_EQ(trainer(on(data_, {"run", "--out", in_folder("runs")},
                       kTrainOnly + Words{"train.max_steps=2"}))
                .exit_code,
            0);
  const auto done = status();
  EXPECT_EQ(done["state"], "done");
  EXPECT_THAT(done["verdict"].get<std::string>(), HasSubstr("step 2"));
  EXPECT_EQ(done["ranks"][0]["answers"], false);
  EXPECT_EQ(done["ranks"][0]["status"]["step"], 2);
  const auto file = read_json(run_ / "status" / "rank-0.json");
  EXPECT_EQ(file["state"], "done");
  EXPECT_EQ(file["ranks"], 1);
}

TEST_F(Status, ReportsLastStatusOfKilledRun) {
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  training.end(SIGKILL);
  const auto killed = status();
  EXPECT_EQ(killed["state"], "broken");
  const auto& rank = killed["ranks"][0];
  EXPECT_EQ(rank["answers"], false);
  EXPECT_NE(rank["why"], "");
  EXPECT_GE(rank["heard_s"], 0);
  EXPECT_GT(rank["status"]["memory_bytes"], 0);
  EXPECT_THAT(text(), AllOf(HasSubstr(" ago\n"), HasSubstr("log.txt:\n")));
}

TEST_F(Status, NamesSignalOfCrashedRun) {
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  training.end(SIGSEGV);
  EXPECT_THAT(status()["verdict"].get<std::string>(), EndsWith("; rank 0: SIGSEGV"));
}

TEST_F(Status, NamesHangingStageAndImage) {
  const auto images = read_json(data_ / "annotations" / "instances_train2017.json")["images"];
  for (const auto& image : images) {  // opening a pipe without a writer blocks forever
    const auto file = data_ / "train2017" / image["file_name"];
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  }
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_status([](const Json& status) {
    return status["verdict"].get<std::string>().find("'decode'") != std::string::npos;
  })) << last_
      << training.log();
  EXPECT_THAT(last_["verdict"].get<std::string>(),
              AllOf(StartsWith("rank 0 ("), HasSubstr("'decode'"), HasSubstr(data_.string())));
  const auto& status = last_["ranks"][0]["status"];
  EXPECT_EQ(status["where"], "data");
  EXPECT_EQ(status["work"][0]["stage"], "decode");
  EXPECT_GE(status["sign_of_life_s"], 10);
  EXPECT_THAT(text(), AllOf(HasSubstr("'decode'"), HasSubstr(data_.string())));
}

TEST_F(Status, ReportsSilentProcess) {
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  const pid_t process = last_["ranks"][0]["process"];
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  ASSERT_TRUE(wait_for_status([](const Json& status) { return status["state"] == "silent"; }))
      << last_;
  EXPECT_THAT(last_["verdict"].get<std::string>(), StartsWith("rank 0 ("));
  expect_short_lines(text());
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  EXPECT_TRUE(wait_for_training()) << last_;
}

TEST_F(Status, ReportsDataServers) {
  const auto endpoint = "ipc://" + in_folder("socket").string();
  Served server(serve(endpoint), in_folder("server_log"));
  Served training(train({"data.source=[\"" + endpoint + "\"]", "data.source_timeout='9 minutes'"}),
                  in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  EXPECT_GT(last_["ranks"][0]["status"]["received_bytes"], 0);
  EXPECT_EQ(last_["ranks"][0]["status"]["stages"][0]["stage"], endpoint);
  ASSERT_EQ(last_["servers"].size(), 1);
  const auto served = last_["servers"][0];
  EXPECT_EQ(served["name"], endpoint);
  EXPECT_EQ(served["answers"], true);
  EXPECT_GT(served["status"]["sent_bytes"], 0);
  EXPECT_EQ(served["status"]["consumers"].size(), 1);
  EXPECT_THAT(text(), AllOf(HasSubstr("data server"), HasSubstr("consumers")));

  const pid_t process = served["status"]["process"];
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  const auto stopped = status();
  EXPECT_EQ(stopped["servers"][0]["answers"], false);
  EXPECT_THAT(stopped["verdict"].get<std::string>(), HasSubstr("; data server " + endpoint + ": "));
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  server.end(SIGKILL);
  EXPECT_TRUE(wait_for_status([&](const Json& status) {  // a dead server differs from a silent one
    const auto& one = status["servers"][0];
    return one["answers"] == false && one["why"] != stopped["servers"][0]["why"];
  })) << last_;
}

TEST_F(Status, ReportsDataServerByEndpoint) {
  const auto endpoint = "ipc://" + in_folder("socket").string();
  Served server(serve(endpoint), in_folder("server_log"));
  ASSERT_TRUE(wait_until([&] { return fs::exists(in_folder("socket")); })) << server.log();
  const auto answered = successful(trainer({"status", endpoint, "--json"})).json();
  EXPECT_EQ(answered["answers"], true) << answered;
  EXPECT_EQ(answered["status"]["consumers"], Json::array());
  EXPECT_THAT(successful(trainer({"status", endpoint})).out, HasSubstr("consumers"));
  server.end(SIGKILL);
  const auto gone = successful(trainer({"status", endpoint, "--json"})).json();
  EXPECT_EQ(gone["answers"], false) << gone;
}

TEST_F(Status, NamesErrorThatEndedTraining) {
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  fs::remove_all(data_ / "train2017");
  ASSERT_TRUE(wait_for_status([](const Json& status) { return status["state"] == "broken"; }))
      << last_ << training.log();
  EXPECT_THAT(last_["verdict"].get<std::string>(), HasSubstr("; rank 0: "));
  const auto file = read_json(run_ / "status" / "rank-0.json");
  EXPECT_EQ(file["state"], "failed");
  EXPECT_NE(file["reason"], "");
}

TEST_F(Status, OpensNoSocket) {
  Served training(train(), in_folder("log"));
  ASSERT_TRUE(wait_for_training()) << last_ << training.log();
  const pid_t process = last_["ranks"][0]["process"];
  for (const auto& fd : fs::directory_iterator(fs::path("/proc") / std::to_string(process) / "fd"))
    EXPECT_THAT(fs::read_symlink(fd).string(), Not(StartsWith("socket:")));
}

/// The files of a run on a different machine.
class RemoteStatus : public Status {
 protected:
  void SetUp() override {
    fs::create_directories(run_ / "status");
    write_text(run_ / "config.toml", "");
    write_json(run_ / "record.json", {{"format", 1}, {"starts", {Json::object()}}});
    file_ = {{"format", 1},
             {"start", 1},
             {"rank", 0},
             {"ranks", 1},
             {"host", "elsewhere"},
             {"process", ::getpid()},
             {"process_start", 1},
             {"system", "another boot"},
             {"every_s", 0.5},
             {"state", "training"},
             {"reason", ""},
             {"data_servers", {{"endpoints", Json::array()}, {"key", ""}, {"server_key", ""}}},
             {"status", {{"step", 7}, {"where", "step"}, {"doing", "takes step 8"}}}};
  }
  void write(double written) {
    file_["written"] = written;
    write_json(run_ / "status" / "part", file_);
    fs::rename(run_ / "status" / "part", run_ / "status" / "rank-0.json");
  }
  static double now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  }
  Json file_;
};

TEST_F(RemoteStatus, IgnoresClockOfRemoteHost) {
  for (const double ahead_s : {-3600., 0., 3600.}) {
    std::jthread rank([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        write(now() + ahead_s);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    });
    ASSERT_TRUE(wait_until([&] { return fs::exists(run_ / "status" / "rank-0.json"); }));
    EXPECT_EQ(status()["state"], "training") << ahead_s;
  }
}

TEST_F(RemoteStatus, ReportsSilentRank) {
  write(now());
  auto seen = status();
  EXPECT_EQ(seen["state"], "silent") << seen;
  EXPECT_EQ(seen["ranks"][0]["status"]["step"], 7);
  write(now() - 3600);
  seen = status();
  EXPECT_EQ(seen["state"], "broken") << seen;
}

TEST_F(RemoteStatus, OmitsRanksOfEarlierLaunches) {
  write(now());
  write_json(run_ / "record.json", {{"format", 1}, {"starts", {Json::object(), Json::object()}}});
  EXPECT_EQ(status()["ranks"], Json::array());
}

TEST_F(Status, RejectsFoldersThatAreNotRuns) {
  expect_error(trainer({"status", data_}), 1, data_.string());
  expect_error(trainer({"status", in_folder("none")}), 1, in_folder("none").string());
  expect_error(trainer({"status"}), 2, "run is required");
}

}  // namespace
}  // namespace millrace::testing
