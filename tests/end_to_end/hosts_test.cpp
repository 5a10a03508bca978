// Hosts in network namespaces with slow, lossy and interrupted links: a consumer of their data
// servers receives the same bytes; ranks on two hosts train as on one, and end if one host is
// disconnected.
#include "tests/end_to_end/hosts.h"
#include "tests/cli/served.h"
#include "tests/faults/mpirun.h"

namespace millrace::testing {
namespace {

using ServedHosts = Trainer;

TEST_F(ServedHosts, SendSameBytesAfterReconnecting) {
  const Hosts hosts;
  if (!hosts.works()) GTEST_SKIP() << kNoHosts;
  if (!hosts.disturb(0) || !hosts.disturb(1))
    std::cout << "this kernel has no netem; links are cut, but not slow or lossy\n";
  const auto data = make_data();
  for (const auto* name : {"server", "trainer"})
    successful(trainer({"serve", "--keygen", in_folder(name).string()}));
  const Words bench = {"bench", "dataflow", "--batches", "6000", "--digest", "--json"};
  const auto here = successful(trainer(on(data, bench)));

  std::vector<std::unique_ptr<Served>> servers;
  std::string sources;
  for (int host = 0; host < 2; ++host) {
    const auto endpoint = "tcp://" + Hosts::address(host) + ":5555";
    sources += (host ? ", \"" : "\"") + endpoint + "\"";
    const auto command = on(data, {MILLRACE_TRAINER, "serve", "--bind", endpoint, "--key",
                                   in_folder("server.key"), "--allow", in_folder("trainer.pub")});
    servers.push_back(std::make_unique<Served>(hosts.on_host(host, command),
                                               in_folder("log-" + std::to_string(host))));
    ASSERT_TRUE(servers.back()->wait_for_log(endpoint)) << servers.back()->log();
  }
  const auto command =
      Words{MILLRACE_TRAINER} +
      on(data, bench,
         {"data.source=[" + sources + "]", setting("data.source_key", in_folder("trainer.key")),
          setting("data.source_server_key", in_folder("server.pub"))});

  const auto there = hosts.on_host(2, command);
  const auto child = start(there[0], {there.begin() + 1, there.end()});
  const auto cut = [&](std::initializer_list<int> which, int seconds) {
    for (const auto host : which) hosts.link(host, false);
    ::sleep(static_cast<unsigned>(seconds));
    for (const auto host : which) hosts.link(host, true);
  };
  // First both hosts are disconnected, as soon as batches arrive; then one at a time, so that the
  // other host serves the remaining batches.
  ASSERT_TRUE(wait_for_text(in_folder("stderr"), Hosts::address(0)));
  cut({0, 1}, 7);
  ::sleep(1);
  cut({0}, 7);
  cut({1}, 7);
  const auto served = successful(finish(child));
  EXPECT_EQ(served.json()["digests"], here.json()["digests"]);
  EXPECT_THAT(served.err, ContainsRegex("10\\.77\\.0\\.[12]:5555[^\n]* 5 s"));
}

class RanksOnTwoHosts : public Mpirun {
 protected:
  /// Returns the command of a training run with these settings.
  Words run(const std::string& output, const Words& overrides) const {
    return on(data_, {"run", "--out", in_folder(output)},
              kTrainOnly + Words{"train.threads=1", "train.epochs=100000"} + overrides);
  }

  /// Starts mpirun on host 0, with one rank on host 0 and one on host 1.
  pid_t start_on(const Hosts& hosts, const Words& run) const {
    // Replaces ssh: mpirun calls it with a host's address and the command that starts its daemon on
    // that host.
    const auto agent = in_folder("agent");
    std::string there;
    for (const auto& word : hosts.on_host(1, {"sh", "-c"})) there += "'" + word + "' ";
    write_text(agent, "#!/bin/sh\nshift\nexec " + there + "\"$*\"\n");
    fs::permissions(agent, fs::perms::owner_all);
    write_text(in_folder("hosts"),
               Hosts::address(0) + " slots=1\n" + Hosts::address(1) + " slots=1\n");
    Words command = {MILLRACE_MPIEXEC, "--mca", "plm_rsh_agent", agent};
    for (const auto* tcp : {"oob_tcp_if_include", "btl_tcp_if_include"})
      command = command + Words{"--mca", tcp, "eth0"};
    command = hosts.on_host(
        0, command + Words{"--hostfile", in_folder("hosts"), "-np", "2", MILLRACE_TRAINER} + run);
    return start(command[0], {command.begin() + 1, command.end()});
  }

  static std::string rank(int number) {
    return "rank " + std::to_string(number) + " (" + Hosts::name(number) + ")";
  }

  fs::path data_ = make_data();
};

TEST_F(RanksOnTwoHosts, TrainLikeOneHost) {
  const Hosts hosts;
  if (!hosts.works()) GTEST_SKIP() << kNoHosts;
  const auto weights = [&](const std::string& output) {
    return read_text(in_folder(output) / "maskrcnn-1" / "checkpoints" / "latest" /
                     "model.safetensors");
  };
  const Words steps = {"train.max_steps=4"};
  const auto two = successful(finish(start_on(hosts, run("two", steps))));
  const auto record = read_json(in_folder("two") / "maskrcnn-1" / "record.json");
  const auto& where = record.at("starts").at(0).at("ranks");
  ASSERT_EQ(where.size(), 2U);
  for (std::size_t host = 0; host < 2; ++host) {
    EXPECT_EQ(where.at(host).at("host"), Hosts::name(static_cast<int>(host)));
    EXPECT_EQ(where.at(host).at("local_size"), 1);
  }
  const auto one = successful(ranks(2, MILLRACE_TRAINER, run("one", steps)));
  EXPECT_TRUE(weights("two") == weights("one"));
}

TEST_F(RanksOnTwoHosts, EndIfOneHostIsDisconnected) {
  const Hosts hosts;
  if (!hosts.works()) GTEST_SKIP() << kNoHosts;
  const auto job = start_on(hosts, run("runs", {"train.rank_timeout='5 seconds'"}));
  const auto log = in_folder("stderr");
  ASSERT_TRUE(wait_for_text(log, "first step")) << read_text(log);
  hosts.link(1, false);
  EXPECT_TRUE(wait_for_text(log, "train.rank_timeout")) << read_text(log);
  EXPECT_THAT(line_with(read_text(log), "train.rank_timeout"),
              AllOf(HasSubstr(rank(1)), HasSubstr(" 5.0 s")))
      << read_text(log);
  hosts.link(1, true);  // mpirun waits for its daemon on this host
  EXPECT_EQ(finish(job).exit_code, 1);
}

}  // namespace
}  // namespace millrace::testing
