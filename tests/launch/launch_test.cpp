// Runs the launchers with the real mpirun and a substitute trainer that records its arguments.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/cli/trainer.h"
#include "tests/support/python.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class Launch : public Trainer {
 protected:
  Launch() {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  }
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun not found";
  }

  /// Replaces the trainer with this script.
  void use(const std::string& script) const {
    const auto file = in_folder("trainer");
    write_text(file, "#!/bin/bash\n" + script);
    fs::permissions(file, fs::perms::owner_all);
    setenv("MILLRACE_TRAINER", file.c_str(), 1);
  }

  std::string said(const std::string& name) const { return read_text(in_folder(name)); }

  /// Returns the script of a rank that takes two seconds to save after the signal, then ends
  /// together with all other ranks, as in a training run. When one rank ends, mpirun kills the
  /// rest.
  std::string saves_with_all(int ranks) const {
    const auto file = [&](const std::string& name) { return in_folder(name).string(); };
    return "trap 'sleep 2; echo saved > " + file("said") + ".$OMPI_COMM_WORLD_RANK; until [ $(ls " +
           file("said") + ".* | wc -l) = " + std::to_string(ranks) +
           " ]; do sleep 0.1; done; exit 3' USR1\ntouch " + file("ready") +
           ".$OMPI_COMM_WORLD_RANK\nfor i in $(seq 6000); do sleep 0.1; done\n";
  }

  void write_sagemaker(const std::string& hyper_parameters) const {
    fs::create_directories(in_folder("ml/input/config"));
    write_text(
        in_folder("ml/input/config/resourceconfig.json"),
        R"({"current_host": "localhost", "hosts": ["localhost"], "network_interface_name": "lo"})");
    write_text(in_folder("ml/input/config/hyperparameters.json"), hyper_parameters);
    setenv("MILLRACE_ML", in_folder("ml").c_str(), 1);
  }
};

// `make build` runs setup first, also on a login node or in `docker build`, where no GPU is
// visible.
TEST_F(Launch, SetupKeepsCudaLibraries) {
  fs::copy("scripts", in_folder("scripts"), fs::copy_options::recursive);
  const auto libtorch = in_folder(".deps/libtorch");
  fs::create_directories(libtorch / "lib");
  for (const auto* half : {"libtorch_cpu.so", "libtorch_cuda.so"})
    write_text(libtorch / "lib" / half, "");
  write_text(libtorch / "stamp",
             read_text("scripts/libtorch-cpu.txt") + read_text("scripts/libtorch-cuda.txt"));
  unsetenv("MILLRACE_CUDA");
  setenv("PIP_INDEX_URL", "http://127.0.0.1:9", 1);  // prevents downloads
  const auto end = run(in_folder("scripts/setup"), {});
  EXPECT_EQ(end.exit_code, 0) << end.out << end.err;
  EXPECT_TRUE(fs::exists(libtorch / "lib/libtorch_cuda.so"));
}

TEST_F(Launch, PassesArgumentsToEachRank) {
  use("echo \"$*\" > " + in_folder("said").string() + ".$OMPI_COMM_WORLD_RANK");
  const auto end = run("scripts/launch/mpi", {"-n", "2", "--", "run", "a b.toml", "--resume"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  for (const auto* rank : {"said.0", "said.1"}) EXPECT_EQ(said(rank), "run a b.toml --resume\n");
}

TEST_F(Launch, LeavesCpuBindingToRanks) {
  use("taskset -cp $$ | sed 's/.*: //' > " + in_folder("said").string() + ".$OMPI_COMM_WORLD_RANK");
  ASSERT_EQ(run("scripts/launch/mpi", {"-n", "2", "--", "run", "x"}).exit_code, 0);
  EXPECT_EQ(said("said.0"), said("said.1"));
}

TEST_F(Launch, ReturnsExitCodeOfRanks) {
  use("exit 7");
  EXPECT_EQ(run("scripts/launch/mpi", {"-n", "1", "--", "run", "x"}).exit_code, 7);
}

TEST_F(Launch, ForwardsSignalsAndWaits) {
  use(saves_with_all(2));
  for (const int signal : {SIGTERM, SIGHUP}) {
    const auto launcher = start("scripts/launch/mpi", {"-n", "2", "--", "run", "x"});
    while (!fs::exists(in_folder("ready.0")) || !fs::exists(in_folder("ready.1")))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::kill(launcher, signal);
    EXPECT_EQ(finish(launcher).exit_code, 3);
    for (const auto* rank : {"said.0", "said.1"}) EXPECT_EQ(said(rank), "saved\n");
    for (const auto* file : {"said.0", "said.1", "ready.0", "ready.1"}) fs::remove(in_folder(file));
  }
}

TEST_F(Launch, ShowsUsage) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{{}, {"-n", "2"}, {"--"}}) {
    const auto end = run("scripts/launch/mpi", wrong);
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_THAT(end.err, HasSubstr("usage: scripts/launch/mpi"));
  }
}

TEST_F(Launch, ReadsSageMakerSettings) {
  use("printf '%s\\n' \"$@\" > " + in_folder("said").string());
  write_sagemaker(R"({"config": "/configs/a.toml", "set": "train.epochs=2 data.batch_size=4"})");
  const auto end = run("scripts/launch/sagemaker", {"train"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const auto ml = in_folder("ml").string();
  EXPECT_EQ(said("said"),
            "run\n/configs/a.toml\n--set=data.root=\"" + ml +
                "/input/data/train\"\n--set=train.epochs=2\n--set=data.batch_size=4\n--out\n" + ml +
                "/checkpoints\n--resume=auto\n");
}

TEST_F(Launch, RejectsSageMakerJobWithoutConfig) {
  use("exit 0");
  write_sagemaker("{}");
  const auto end = run("scripts/launch/sagemaker", {"train"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("'config'"));
}

/// A launcher with four slots. The substitute trainer reports data.batch_size = 2, that is, eight
/// images per step, and runs `script` as each rank.
class ElasticLaunch : public Launch {
 protected:
  void use(const std::string& script) const {
    Launch::use(
        "if [ $1 = config ]; then printf '[data]\\nbatch_size = 2\\n[train]\\n'; exit; fi\n" +
        script);
  }
  Outcome launch() const { return run("scripts/launch/elastic", command()); }
  Words command() const { return {"--np", "4", "--", "run", "a.toml", "--set", "a='b c'"}; }
  static int attempts(const Outcome& end) {
    int found = 0;
    for (std::size_t at = 0; (at = end.err.find("4 ranks on", at)) != std::string::npos; ++at)
      ++found;
    return found;
  }
};

TEST_F(ElasticLaunch, PassesArgumentsAndBatchSize) {
  use("printf '%s\\n' \"$@\" > " + in_folder("said").string() + ".$OMPI_COMM_WORLD_RANK");
  const auto end = launch();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  for (const auto* rank : {"said.0", "said.3"})
    EXPECT_EQ(said(rank), "run\na.toml\n--set\na='b c'\n--resume=auto\n--set\ndata.batch_size=2\n");
}

/// The first rank fails four times, each time after it has reported progress.
TEST_F(ElasticLaunch, RetriesWhileStepsAdvance) {
  const auto tries = in_folder("tries").string(), done = in_folder("done").string();
  use("if [ $OMPI_COMM_WORLD_RANK != 0 ]; then until [ -e " + done +
      " ]; do sleep 0.1; done; exit; fi\necho x >> " + tries + "\ntries=$(wc -l < " + tries +
      ")\n[ $tries = 5 ] && touch " + done +
      " && exit\necho \"info resuming after step $tries, 0 epochs\" >&2\nuntil grep -q \"after "
      "step $tries,\" " +
      in_folder("stderr").string() + "; do sleep 0.1; done\nexit 1");
  const auto end = launch();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(attempts(end), 5);
}

TEST_F(ElasticLaunch, GivesUpWithoutProgress) {
  use("exit 7");
  const auto end = launch();
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(attempts(end), 3);
  EXPECT_THAT(end.err, AllOf(HasSubstr("3 attempts"), HasSubstr("step 0"), HasSubstr("code 7")));
}

TEST_F(ElasticLaunch, DoesNotRetryWrongConfiguration) {
  use("exit 2");
  const auto end = launch();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(attempts(end), 1);
}

TEST_F(ElasticLaunch, SavesAndEndsOnSignal) {
  use(saves_with_all(4));
  const auto launcher = start("scripts/launch/elastic", command());
  // The signal would kill a rank that has not installed its handler yet.
  for (const auto* rank : {"ready.0", "ready.1", "ready.2", "ready.3"})
    while (!fs::exists(in_folder(rank))) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(launcher, SIGTERM);
  const auto end = finish(launcher);
  EXPECT_EQ(end.exit_code, 3) << end.err;
  EXPECT_EQ(attempts(end), 1);
  EXPECT_EQ(said("said.3"), "saved\n");
}

/// If the launcher is killed, its guard ends the ranks.
TEST_F(ElasticLaunch, EndsRanksIfKilled) {
  use("echo $$ > " + in_folder("pid").string() + ".$OMPI_COMM_WORLD_RANK\nsleep 600");
  const auto launcher = start("scripts/launch/elastic", command());
  while (said("pid.0").empty() || said("pid.3").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(launcher, SIGKILL);
  finish(launcher);
  for (const auto* rank : {"pid.0", "pid.3"})
    EXPECT_TRUE(wait_until([&] { return ::kill(std::stoi(said(rank)), 0) != 0; })) << rank;
}

TEST_F(ElasticLaunch, RejectsMissingHosts) {
  const auto end = run("scripts/launch/elastic", {"--", "run", "a.toml"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, AllOf(HasSubstr("--np"), HasSubstr("--hosts")));
}

/// Replaces Slurm's commands with programs that record their arguments.
class Slurm : public Launch {
 protected:
  void SetUp() override {
    fs::create_directory(in_folder("bin"));
    tool("srun",
         "echo \"srun $*\" >> " + in_folder("calls").string() + "; exit ${SRUN_ENDS_WITH:-0}");
    tool("scontrol",
         "if [ $1 = show ]; then printf 'data-1\\ndata-2\\n'; else echo \"scontrol $*\" >> " +
             in_folder("calls").string() + "; fi");
    path_ = std::getenv("PATH");
    setenv("PATH", (in_folder("bin").string() + ":" + path_).c_str(), 1);
    setenv("MILLRACE_TRAINER", "trainer", 1);
    setenv("SLURM_JOB_ID", "17", 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    for (const auto* name : {"SRUN_ENDS_WITH", "SLURM_JOB_NODELIST_HET_GROUP_1", "MILLRACE_KEYS"})
      unsetenv(name);
  }
  void tool(const std::string& name, const std::string& script) const {
    write_text(in_folder("bin/" + name), "#!/bin/bash\n" + script + "\n");
    fs::permissions(in_folder("bin/" + name), fs::perms::owner_all);
  }

  std::string path_;
};

TEST_F(Slurm, StartsOneRankPerTask) {
  EXPECT_EQ(run("scripts/launch/slurm.sbatch", {"a.toml", "--out", "runs"}).exit_code, 0);
  EXPECT_EQ(said("calls"),
            "srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 --label trainer run a.toml "
            "--out runs --resume=auto\n");
}

TEST_F(Slurm, RequeuesOnlyStoppedJobs) {
  for (const auto& [code, requeued] : {std::pair(0, false), {1, false}, {3, true}}) {
    setenv("SRUN_ENDS_WITH", std::to_string(code).c_str(), 1);
    fs::remove(in_folder("calls"));
    EXPECT_EQ(run("scripts/launch/slurm.sbatch", {"a.toml"}).exit_code, code);
    const auto calls = said("calls");
    EXPECT_EQ(calls.substr(std::min(calls.find("scontrol"), calls.size())),
              requeued ? "scontrol requeue 17\n" : "");
  }
}

TEST_F(Slurm, ServesDataFromSecondJobComponent) {
  setenv("SLURM_JOB_NODELIST_HET_GROUP_1", "data-[1-2]", 1);
  setenv("MILLRACE_KEYS", in_folder("").c_str(), 1);
  EXPECT_EQ(run("scripts/launch/slurm.sbatch", {"a.toml"}).exit_code, 0);
  // Servers are started in parallel with the trainer, so their call may be recorded later.
  while (said("calls").find("serve") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto keys = fs::canonical(in_folder("")).string();
  EXPECT_THAT(
      said("calls"),
      HasSubstr("srun --het-group=1 --label trainer serve a.toml --bind tcp://*:5555 --key " +
                keys + "/server.key --allow " + keys + "/trainer.pub --consumers 64\n"));
  EXPECT_THAT(
      said("calls"),
      HasSubstr("run a.toml --set data.source=[\"tcp://data-1:5555\",\"tcp://data-2:5555\"] "
                "--set data.source_key='" +
                keys + "/trainer.key'"));
}

/// The job's nodes are listed and reached with Slurm's own commands.
TEST_F(Slurm, TrainsOnAvailableNodes) {
  tool("scontrol", "echo localhost");
  const auto file = in_folder("trainer");
  write_text(file,
             "#!/bin/bash\n[ $1 = config ] && printf '[data]\\nbatch_size = 1\\n'\n[ $1 = run ] && "
             "echo $* > " +
                 in_folder("said").string() + "\nexit 0\n");
  fs::permissions(file, fs::perms::owner_all);
  setenv("MILLRACE_TRAINER", file.c_str(), 1);
  setenv("SLURM_JOB_NODELIST", "node-[1-2]", 1);
  const auto end = run("scripts/launch/elastic", {"--", "run", "a.toml"});
  unsetenv("SLURM_JOB_NODELIST");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(said("said"), "run a.toml --resume=auto --set data.batch_size=1\n");
}

/// The parts of kubernetes.yaml are consistent, and the trainer accepts its command lines.
TEST_F(Launch, KubernetesYamlIsConsistent) {
  MILLRACE_NEEDS_PYTHON("yaml");
  ASSERT_EQ(run_python("tests/launch/kubernetes.py scripts/launch/kubernetes.yaml > " +
                       in_folder("commands").string()),
            0);
  const auto commands = read_json(in_folder("commands"));
  for (const auto& [name, words] : commands.items()) {
    EXPECT_EQ(words.at(0), name);
    const auto help = run(MILLRACE_TRAINER, {name, "--help"}).out;
    std::vector<std::string> config = {"config", words.at(1)};
    for (std::size_t i = 2; i < words.size(); ++i) {
      const auto word = words.at(i).get<std::string>();
      if (word.starts_with("--set="))
        config.push_back(word);
      else
        EXPECT_THAT(help, HasSubstr(word.substr(0, word.find('=')))) << word;
    }
    const auto resolved = run(MILLRACE_TRAINER, config);
    EXPECT_EQ(resolved.exit_code, 0) << resolved.err;
  }
}

TEST(Launchers, AreValidShellScripts) {
  EXPECT_EQ(std::system("for f in scripts/launch/mpi scripts/launch/sagemaker "
                        "scripts/launch/slurm.sbatch scripts/docker/*; do "
                        "bash -n $f || exit 1; done"),
            0);
}

}  // namespace
}  // namespace millrace::testing
