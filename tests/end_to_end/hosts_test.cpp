// Data servers on hosts of their own, network namespaces with a cable each, whose links are slow, lose packets and are cut:
// the consumer sees the same bytes.
#include "tests/cli/served.h"
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

bool sh(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

/// Hosts 0, 1, 2 with the addresses 10.77.0.1, .2, .3 at one switch, all of them namespaces; gone with the test.
class Hosts {
 public:
  Hosts() {
    works_ = sh("ip netns add " + in(kSwitch)) &&
             sh("ip -n " + in(kSwitch) + " link add hub type bridge") &&
             sh("ip -n " + in(kSwitch) + " link set hub up");
    for (int host = 0; works_ && host < kSwitch; ++host) plug_in(host);
  }
  Hosts(const Hosts&) = delete;
  ~Hosts() {
    for (int host = 0; host <= kSwitch; ++host) sh("ip netns del " + in(host));
  }

  bool works() const { return works_; }
  /// The cable of a host is there or cut.
  void link(int host, bool up) const {
    ASSERT_TRUE(
        sh("ip -n " + in(kSwitch) + " link set p" + std::to_string(host) + (up ? " up" : " down")));
  }
  /// Packets of a host are late and some are lost; whether this kernel can do that.
  bool disturb(int host) const {
    return sh("ip netns exec " + in(host) +
              " tc qdisc add dev eth0 root netem delay 5ms 2ms loss 1%");
  }
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  /// `command` run on a host, among processes of its own, so that memory cannot be shared with other hosts.
  std::vector<std::string> on_host(int host, std::vector<std::string> command) const {
    command.insert(command.begin(), {"/usr/bin/env", "ip", "netns", "exec", in(host), "unshare",
                                     "--pid", "--fork", "--mount-proc", "--kill-child"});
    return command;
  }

 private:
  static constexpr int kSwitch = 3;
  static std::string in(int host) {
    return "millrace" + std::to_string(::getpid()) + "h" + std::to_string(host);
  }
  void plug_in(int host) {
    const auto port = "p" + std::to_string(host);
    works_ = sh("ip netns add " + in(host)) &&
             sh("ip -n " + in(host) + " link add eth0 type veth peer name " + port + " netns " +
                in(kSwitch)) &&
             sh("ip -n " + in(host) + " addr add " + address(host) + "/24 dev eth0") &&
             sh("ip -n " + in(host) + " link set eth0 up") &&
             sh("ip -n " + in(host) + " link set lo up") &&
             sh("ip -n " + in(kSwitch) + " link set " + port + " master hub up");
  }
  bool works_ = false;
};

using ServedHosts = Training;

TEST_F(ServedHosts, ThatAreCutOffAndComeBackGiveTheSameBytes) {
  const Hosts hosts;
  if (!hosts.works())
    GTEST_SKIP() << "no network namespaces with bridges can be made here (needs root, iproute2 and "
                    "util-linux)";
  if (!hosts.disturb(0) || !hosts.disturb(1))
    std::cout << "this kernel has no netem: links are cut, but neither slow nor lossy\n";
  const auto data = make_data();
  for (const auto* name : {"server", "trainer"})
    ASSERT_EQ(trainer({"serve", "--keygen", in_folder(name).string()}).exit_code, 0);
  const std::vector<std::string> bench = {"bench", "dataflow", "--batches",
                                          "2500",  "--digest", "--json"};
  const auto here = trainer(on(data, bench));
  ASSERT_EQ(here.exit_code, 0) << here.err;

  std::vector<std::unique_ptr<Served>> servers;
  std::string sources;
  for (int host = 0; host < 2; ++host) {
    const auto endpoint = "tcp://" + Hosts::address(host) + ":5555";
    sources += (host ? ", \"" : "\"") + endpoint + "\"";
    auto command = on(data, {MILLRACE_TRAINER, "serve"});
    command.insert(command.end(), {"--bind", endpoint, "--key", in_folder("server.key").string(),
                                   "--allow", in_folder("trainer.pub").string()});
    servers.push_back(std::make_unique<Served>(hosts.on_host(host, command),
                                               in_folder("log-" + std::to_string(host))));
    ASSERT_TRUE(servers.back()->says("serving")) << servers.back()->log();
  }
  auto command = on(data, bench,
                    {"data.source=[" + sources + "]",
                     "data.source_key=\"" + in_folder("trainer.key").string() + "\"",
                     "data.source_server_key=\"" + in_folder("server.pub").string() + "\""});
  command.insert(command.begin(), MILLRACE_TRAINER);
  const auto there = hosts.on_host(2, command);
  const auto child = start(there[0], {there.begin() + 1, there.end()});
  const auto cut = [&](std::initializer_list<int> which, int seconds) {
    for (const auto host : which) hosts.link(host, false);
    ::sleep(static_cast<unsigned>(seconds));
    for (const auto host : which) hosts.link(host, true);
  };
  ::sleep(2);
  cut({0}, 7);
  cut({0, 1}, 7);
  ::sleep(1);
  cut({1}, 7);
  const auto served = finish(child);
  ASSERT_EQ(served.exit_code, 0) << served.err;
  EXPECT_EQ(served.json()["digests"], here.json()["digests"]);
  EXPECT_THAT(served.err, HasSubstr("has been silent for 5 s: given up"));
  EXPECT_THAT(served.err, HasSubstr("batches come through the connection"));
}

}  // namespace
}  // namespace millrace::testing
